"""Documents that are locked start at one phase of the rendered prompt, whatever stands in front of them."""

from __future__ import annotations

import random
from pydoc_data import topics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_openai import ChatOpenAI
from langchain_phaseguard import (
    PhaseGuardDocumentCompressor,
    PhaseGuardDocumentTransformer,
    PhaseGuardRetriever,
    StuffPrompt,
    locked,
)

from phaseguard import PhaseGuard, Span, inspect_prompt
from phaseguard.errors import PhaseGuardWarning

from .case import MODEL, QUERY, Store, asked, both_ways, chat, serving
from .server import Clients

PROMPT = ChatPromptTemplate.from_messages([("system", "Answer from:\n\n{context}"), ("human", "{input}")])
SOURCED = PromptTemplate.from_template("Source: {source}\n{page_content}\n(end of {source})")
TEXTS = [part.strip() for topic in topics.topics.values() for part in topic.split("\n\n") if part.strip()]


def drawn(seed: int, n: int) -> list[Document]:
    rng = random.Random(seed)
    return [
        Document(text, metadata={"source": "/".join("abc"[: rng.randrange(4)]) or "?"}, id=str(number))
        for number, text in enumerate(rng.sample(TEXTS, n))
    ]


def phases(documents: list[Document], plain: list[Document], lock: StuffPrompt, **more: Any) -> list[int]:
    """Where the texts start in the prompt that a template makes, read by nothing of the lock's own."""
    blocks = [lock.document_prompt.format(page_content=d.page_content, **d.metadata) for d in documents]
    values: dict[str, Any] = {"input": QUERY, **lock.values, **more}
    messages = lock.prompt.format_messages(**{lock.variable: lock.separator.join(blocks)}, **values)
    sent = [{"role": {"human": "user"}.get(one.type, one.type), "content": one.content} for one in messages]
    seen = inspect_prompt(sent, key_passages=(), profile=MODEL)
    found, at = [], seen.text.index(blocks[0])
    for document in plain:
        at = seen.text.index(document.page_content, at)
        found.append((seen.request.offset + seen.request.token_range(Span(at, at + 1))[0]) % 4)
        at += len(document.page_content)
    return found


def lock_for(document_prompt: Any = None, **more: Any) -> StuffPrompt:
    own = {} if document_prompt is None else {"document_prompt": document_prompt}
    return StuffPrompt(PROMPT, **own, **more)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 12),
    phase=st.sampled_from([None, 0, 1, 2, 3]),
    sourced=st.booleans(),
    separator=st.sampled_from(["\n\n", "\n---\n", "\n\n\n"]),
    pads=st.sampled_from(["auto", "visible"]),
)
def test_every_text_starts_at_one_phase(
    seed: int, n: int, phase: int | None, sourced: bool, separator: str, pads: str
) -> None:
    lock = lock_for(SOURCED if sourced else None, phase=phase, separator=separator)
    plain = drawn(seed, n)
    made = locked(plain, PhaseGuard(MODEL, pads=pads), lock, QUERY)
    assert [(d.id, d.metadata) for d in made] == [(d.id, d.metadata) for d in plain]
    assert all(old.page_content in new.page_content for old, new in zip(plain, made, strict=True))
    found = set(phases(made, plain, lock))
    assert found == ({phase} if phase is not None else found)
    assert len(found) == 1
    order = list(range(n))
    random.Random(seed).shuffle(order)
    kept = order[: max(1, n - 2)]
    other = set(phases([made[i] for i in kept], [plain[i] for i in kept], lock))
    assert len(other) == 1, "also in another order, and with fewer of them"
    assert other == found or phase is None


def test_unlocked_texts_start_anywhere() -> None:
    plain = drawn(1, 12)
    assert set(phases(plain, plain, lock_for())) == {0, 1, 2, 3}


def test_what_stands_in_front_moves_them_together() -> None:
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You are {who}."), MessagesPlaceholder("history", optional=True), *PROMPT.messages]
    )
    lock = StuffPrompt(prompt, values={"who": "a librarian"})
    plain = drawn(2, 6)
    made = locked(plain, PhaseGuard(MODEL), lock, QUERY)
    starts = [
        set(phases(made, plain, StuffPrompt(prompt, values={"who": who})))
        for who in ("a librarian", "one of many", "X", "a very, very old librarian")
    ]
    assert all(len(one) == 1 for one in starts)
    assert len(set.union(*starts)) > 1


@both_ways
@pytest.mark.parametrize("phase", range(4))
async def test_on_the_wire(clients: Clients, way: str, phase: int) -> None:
    guard = PhaseGuard(MODEL)
    plain = drawn(3, 8)
    lock = lock_for(SOURCED, phase=phase)
    retriever = PhaseGuardRetriever(Store(found=plain), guard, lock=lock)
    with serving() as server:
        stuff = create_stuff_documents_chain(
            chat(ChatOpenAI, server, clients), PROMPT, document_prompt=SOURCED
        )
        chain = {"context": retriever, "input": RunnablePassthrough()} | stuff
        await asked(chain, way, QUERY)
        (call,) = server.calls
    seen = inspect_prompt(dict(call.body), key_passages=(), profile=MODEL)
    at = 0
    for document in plain:
        at = seen.text.index(guard.normalize(document.page_content), at)
        assert (seen.request.offset + seen.request.token_range(Span(at, at + 1))[0]) % 4 == phase


@both_ways
async def test_compressor_and_transformer_lock_too(way: str) -> None:
    guard, lock, plain = PhaseGuard(MODEL), lock_for(phase=2), drawn(4, 5)
    retriever = PhaseGuardRetriever(Store(found=plain), guard, lock=lock)
    compressor = PhaseGuardDocumentCompressor(guard=guard, lock=lock)
    transformer = PhaseGuardDocumentTransformer(guard, lock=lock)
    expected = await asked(retriever, way, QUERY)
    if way == "sync":
        made = (
            compressor.compress_documents(plain, QUERY),
            transformer.transform_documents(plain, query=QUERY),
        )
    else:
        made = (
            await compressor.acompress_documents(plain, QUERY),
            await transformer.atransform_documents(plain, query=QUERY),
        )
    assert list(made) == [expected, expected]
    assert set(phases(expected, [Document(guard.normalize(d.page_content)) for d in plain], lock)) == {2}


def test_nothing_is_padded_unless_asked_for() -> None:
    guard, plain = PhaseGuard(MODEL), drawn(5, 4)
    found = PhaseGuardRetriever(Store(found=plain), guard).invoke(QUERY)
    assert [d.page_content for d in found] == [guard.normalize(d.page_content) for d in plain]
    assert locked([], guard, lock_for()) == []


FAILS: dict[str, tuple[Any, Any]] = {
    "no pad does": (lock_for(phase=3), PhaseGuard(MODEL, pads=[".\n" * 4])),
    "twice in the prompt": (StuffPrompt(ChatPromptTemplate.from_template("{context}\n{context}")), None),
    "not in the prompt": (StuffPrompt(ChatPromptTemplate.from_template("{input}"), variable="x"), None),
    "twice in a document": (lock_for(PromptTemplate.from_template("{page_content}{page_content}")), None),
    "not in a document": (lock_for(PromptTemplate.from_template("{source}")), None),
    "escaped": (lock_for(PromptTemplate.from_template("{{page_content}}", template_format="mustache")), None),
    "metadata that are missing": (lock_for(PromptTemplate.from_template("{page_content}{title}")), None),
}


@pytest.mark.parametrize(("lock", "guard"), FAILS.values(), ids=FAILS)
def test_without_proof_documents_stay_as_they_are(lock: StuffPrompt, guard: PhaseGuard | None) -> None:
    plain = [Document("<b>One</b> & two.", metadata={"source": "a"}), *drawn(6, 3)]
    with pytest.warns(PhaseGuardWarning, match="lock"):
        assert locked(plain, guard or PhaseGuard(MODEL), lock, QUERY) == plain


def test_unknown_tokens_in_front_count_for_the_phase() -> None:
    plain = drawn(7, 4)
    made = locked(plain, PhaseGuard(MODEL), lock_for(phase=1, prefix=3), QUERY)
    assert set(phases(made, plain, lock_for())) == {2}
