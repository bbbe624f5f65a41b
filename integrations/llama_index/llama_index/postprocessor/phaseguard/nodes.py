"""``PhaseGuardPostprocessor``: retrieved nodes, normalized and marked as key passages of the request."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle

from phaseguard import PhaseGuard


class PhaseGuardPostprocessor(BaseNodePostprocessor):
    """Normalizes the texts of nodes, and marks them for the layer that aligns the final prompt.

    It cannot align: it runs before the prompt is packed, and response synthesizers strip the ends of every
    text. Guard the LLM as well (:func:`guard_llm`, or a ready class), with the same guard: it finds the marks
    by itself. Nodes are copied; ids, scores, metadata and relationships stay, and no metadata is added.

    Attributes:
        profile: name or path of the profile, for a guard of its own and for serialized forms.
        level: what normalizing may do.
        top: mark only the first so many nodes; None marks all.

    Args:
        guard: the application's guard; None makes one from ``profile`` and ``level``.

    >>> from llama_index.core.schema import TextNode
    >>> found = [NodeWithScore(node=TextNode(text="It is A-17.   "))]
    >>> made = PhaseGuardPostprocessor().postprocess_nodes(found, query_str="Which code?")
    >>> made[0].node.get_content(), made[0].score
    ('It is A-17.', None)
    """

    profile: str = Field(default="deepseek-v4-flash")
    level: str = Field(default="safe")
    top: int | None = Field(default=None, ge=0)
    _guard: PhaseGuard = PrivateAttr()

    def __init__(self, guard: PhaseGuard | None = None, **kwargs: Any) -> None:
        if guard is not None:
            kwargs = {"profile": guard.profile.name, "level": guard.level} | kwargs
        super().__init__(**kwargs)
        self._guard = guard or PhaseGuard(profile=self.profile, level=self.level)  # type: ignore[arg-type]

    @classmethod
    def class_name(cls) -> str:
        """The name in serialized forms."""
        return "PhaseGuardPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        made = [self._normalized(node) for node in nodes]
        texts = [node.node.get_content(metadata_mode=MetadataMode.NONE).strip() for node in made[: self.top]]
        if marked := [text for text in texts if text]:
            self._guard.mark(marked, query=None if query_bundle is None else query_bundle.query_str)
        return made

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        # in the caller's own context: a thread's marks would be lost with its copy of it
        return self._postprocess_nodes(nodes, query_bundle)

    def _normalized(self, scored: NodeWithScore) -> NodeWithScore:
        node = _copy(scored.node)
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        new = self._guard.normalize(text)
        if new != text:
            node.set_content(new)
        return scored.model_copy(update={"node": node})


def _copy(node: BaseNode) -> BaseNode:
    """A deep copy, but for the object that an ``IndexNode`` stands for: an index or engine is no value."""
    fields = {name: _copied(getattr(node, name)) for name in type(node).model_fields if name != "obj"}
    return node.model_copy(update=fields)


def _copied(value: Any) -> Any:
    """A deep copy, but for values that cannot be copied, such as a connection in the metadata."""
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 - whatever the copying of an application's value raises
        return {key: _copied(one) for key, one in value.items()} if isinstance(value, dict) else value
