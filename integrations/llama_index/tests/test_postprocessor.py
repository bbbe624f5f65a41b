"""``PhaseGuardPostprocessor``: what it changes, what it marks, and all that it leaves alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.postprocessor.phaseguard import PhaseGuardPostprocessor

from phaseguard import PhaseGuard
from phaseguard.errors import PhaseGuardWarning
from phaseguard.normalize import normalize

UNTIDY = "The code is A-17. \n\n\n\nIt changes.\u200b"
TIDY = "The code is A-17.\n\nIt changes."
MORE: dict[str, Any] = {
    "id_": "n1",
    "metadata": {"file": "a.md", "tags": {"deep": ["x"]}},
    "excluded_llm_metadata_keys": ["file"],
    "excluded_embed_metadata_keys": ["tags"],
    "relationships": {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc", metadata={"a": 1})},
    "embedding": [0.5, 0.25],
}
NODES = (
    TextNode(text=UNTIDY, **MORE),
    Node(text_resource=MediaResource(text=UNTIDY), **MORE),
    IndexNode(text=UNTIDY, index_id="i", obj=threading.Lock(), **MORE),
    ImageNode(text=UNTIDY, image_url="https://example.com/a.png", **MORE),
)
names = [type(node).__name__ for node in NODES]
ASKED = {"query_str": "Which code?"}


def fields_of(node: Any) -> dict[str, Any]:
    return {name: deepcopy(getattr(node, name)) for name in type(node).model_fields if name != "obj"}


def test_class() -> None:
    ancestors = [cls.__name__ for cls in PhaseGuardPostprocessor.__mro__]
    assert BaseNodePostprocessor.__name__ in ancestors
    assert PhaseGuardPostprocessor.class_name() == "PhaseGuardPostprocessor"


@pytest.mark.parametrize("node", NODES, ids=names)
def test_a_node_is_copied_and_only_its_text_changes(node: Any) -> None:
    before = fields_of(node)
    (made,) = PhaseGuardPostprocessor().postprocess_nodes([NodeWithScore(node=node, score=0.5)], **ASKED)
    assert type(made.node) is type(node)
    assert made.score == 0.5
    assert made.node.get_content(metadata_mode=MetadataMode.NONE) == TIDY
    assert fields_of(node) == before
    changed = fields_of(made.node)
    assert {name for name in before if changed[name] != before[name]} <= {"text", "text_resource"}
    assert getattr(made.node, "obj", None) is getattr(node, "obj", None)


@pytest.mark.parametrize("node", NODES, ids=names)
def test_nothing_is_shared_with_the_store(node: Any) -> None:
    before = fields_of(node)
    (made,) = PhaseGuardPostprocessor(level="off").postprocess_nodes([NodeWithScore(node=node)], **ASKED)
    made.node.metadata["tags"]["deep"].append("y")
    made.node.relationships[NodeRelationship.SOURCE].metadata["a"] = 2
    made.node.excluded_llm_metadata_keys.append("z")
    made.node.embedding.append(1.0)
    assert fields_of(node) == before


def test_metadata_in_prompts_and_embeddings_stay() -> None:
    (made,) = PhaseGuardPostprocessor().postprocess_nodes([NodeWithScore(node=NODES[0])], **ASKED)
    for mode in (MetadataMode.LLM, MetadataMode.EMBED, MetadataMode.ALL):
        assert made.node.get_content(mode) == NODES[0].get_content(mode).replace(UNTIDY, TIDY).strip()
    assert "file" not in made.node.get_content(MetadataMode.LLM)


def test_order_ids_and_scores_stay() -> None:
    given = [
        NodeWithScore(node=TextNode(text=f"No. {n} \n", id_=str(n)), score=score)
        for n, score in enumerate((None, 0.1, 0.9, None))
    ]
    made = PhaseGuardPostprocessor().postprocess_nodes(given, query_str="Which?")
    assert [(one.node_id, one.score, one.text) for one in made] == [
        ("0", None, "No. 0\n"),
        ("1", 0.1, "No. 1\n"),
        ("2", 0.9, "No. 2\n"),
        ("3", None, "No. 3\n"),
    ]


async def test_empty_in_is_empty_out() -> None:
    made = PhaseGuardPostprocessor()
    assert made.postprocess_nodes([]) == await made.apostprocess_nodes([], query_str="Which?") == []


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_texts_without_words_are_not_marked(text: str) -> None:
    guard = PhaseGuard()
    PhaseGuardPostprocessor(guard).postprocess_nodes(
        [NodeWithScore(node=TextNode(text=text))], query_str="Q?"
    )
    assert guard.marked("Q?") == ()


async def test_sync_and_async_do_the_same() -> None:
    for post in ("sync", "async"):
        guard = PhaseGuard()
        made = PhaseGuardPostprocessor(guard)
        nodes = [NodeWithScore(node=deepcopy(node)) for node in NODES[:2]]
        if post == "sync":
            out = made.postprocess_nodes(nodes, QueryBundle("Which code?"))
        else:
            out = await made.apostprocess_nodes(nodes, QueryBundle("Which code?"))
        assert [one.node.get_content(MetadataMode.NONE) for one in out] == [TIDY, TIDY]
        assert guard.marked(f"{TIDY}\n\nWhich code?") == (TIDY,)


def test_without_a_query_it_normalizes_and_marks_inside_a_request_alone() -> None:
    guard = PhaseGuard()
    post = PhaseGuardPostprocessor(guard)
    nodes = [NodeWithScore(node=NODES[0])]
    with pytest.warns(PhaseGuardWarning, match="Marks without a query"):
        assert post.postprocess_nodes(nodes)[0].text == TIDY
    assert guard.marked(TIDY) == ()
    with guard.request():
        post.postprocess_nodes(nodes)
        assert guard.marked(TIDY) == (TIDY,)


def test_top_marks_the_first_alone() -> None:
    guard = PhaseGuard()
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in ("First.", "Second.")]
    made = PhaseGuardPostprocessor(guard, top=1).postprocess_nodes(nodes, query_str="Q?")
    assert len(made) == 2
    assert guard.marked("First. Second. Q?") == ("First.",)


def test_round_trips() -> None:
    guard = PhaseGuard("deepseek-v4.1-flash", level="full")
    post = PhaseGuardPostprocessor(guard, top=3)
    form = post.to_dict()
    assert form["class_name"] == "PhaseGuardPostprocessor"
    again = PhaseGuardPostprocessor.from_dict(form)
    from_json = PhaseGuardPostprocessor.from_json(post.to_json())
    assert again.to_dict() == from_json.to_dict() == form
    assert (again.profile, again.level, again.top) == ("deepseek-v4.1-flash", "full", 3)
    assert again.postprocess_nodes([NodeWithScore(node=NODES[0])], **ASKED)[0].text == TIDY
    assert PhaseGuardPostprocessor.from_dict(form, guard=guard)._guard is guard


def test_a_callback_manager_can_be_assigned() -> None:
    post, manager = PhaseGuardPostprocessor(), CallbackManager()
    post.callback_manager = manager
    assert post.callback_manager is manager


@pytest.fixture
def spans() -> Iterator[SimpleSpanHandler]:
    root = get_dispatcher()
    handler = SimpleSpanHandler()
    root.add_span_handler(handler)
    yield handler
    root.span_handlers.remove(handler)


async def test_spans(spans: SimpleSpanHandler) -> None:
    post = PhaseGuardPostprocessor()
    post.postprocess_nodes([NodeWithScore(node=NODES[0])], **ASKED)
    await post.apostprocess_nodes([NodeWithScore(node=NODES[0])], **ASKED)
    seen = [span.id_.split("-")[0] for span in spans.completed_spans]
    assert seen.count("PhaseGuardPostprocessor._postprocess_nodes") == 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("A {brace} and {{two}}.", "A {brace} and {{two}}."),
        ("<p>One &amp; two</p>\n<pre>  a\n</pre>", "<p>One &amp; two</p>\n<pre>  a\n</pre>"),
        ("One. \r\nTwo.\r\n\r\n\r\n\r\nThree.", "One.\nTwo.\n\nThree."),
        ("a<|endoftext|>b<\uff5cUser\uff5c>c", "a<|endoftext|>b<\uff5cUser\uff5c>c"),
        ("```\nx  \n\n\n\ny\n```", "```\nx  \n\n\n\ny\n```"),
    ],
)
def test_unusual_documents(text: str, wanted: str) -> None:
    assert (
        PhaseGuardPostprocessor()
        .postprocess_nodes([NodeWithScore(node=TextNode(text=text))], **ASKED)[0]
        .text
        == wanted
    )


@given(st.lists(st.text(max_size=40), max_size=4))
def test_texts_are_normalized_and_nothing_else(texts: list[str]) -> None:
    made = PhaseGuardPostprocessor().postprocess_nodes(
        [NodeWithScore(node=TextNode(text=t)) for t in texts], **ASKED
    )
    assert [one.text for one in made] == [normalize(text).text for text in texts]


def test_metadata_that_cannot_be_copied_are_shared() -> None:
    lock = threading.Lock()
    given = TextNode(text="A-17. ", metadata={"lock": lock, "pages": [1]})
    (made,) = PhaseGuardPostprocessor().postprocess_nodes([NodeWithScore(node=given)], query_str="Which?")
    assert made.node.metadata == {"lock": lock, "pages": [1]}
    assert made.node.metadata["pages"] is not given.metadata["pages"]
