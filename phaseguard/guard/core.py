"""``PhaseGuard``: configuration, marks and the aligning of payloads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from phaseguard.align import AlignedPrompt, Report, align_prompt
from phaseguard.guard.marks import Marks
from phaseguard.guard.memory import Memory
from phaseguard.normalize import Level, normalize
from phaseguard.profiles import PhaseProfile, load_profile

_LOG = logging.getLogger("phaseguard")


@dataclass(frozen=True, eq=False)
class PhaseGuard:
    profile: Any = "deepseek-v4-flash"
    _: KW_ONLY
    strong: Collection[int] | None = None
    level: Level = "safe"
    pads: str | Sequence[str] = "auto"
    isolate: bool | Literal["auto"] = "auto"
    repeat: bool = False
    max_added_tokens: int | None = None
    tokenizer: Any = None
    marks: int = 64
    on_report: Callable[[Report], object] | None = None
    _marks: Marks = field(init=False, repr=False)
    _memory: Memory = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "profile", load_profile(self.profile))
        object.__setattr__(self, "_marks", Marks(self.marks))
        object.__setattr__(self, "_memory", Memory(10_000))

    def normalize(self, text: str) -> str:
        return normalize(text, self.level).text

    def mark(
        self, passages: Iterable[str], *, query: str | None = None, request: Hashable | None = None
    ) -> None:
        self._marks.add(passages, query, request)

    def request(self) -> AbstractContextManager[None]:
        return self._marks.scope()

    def forget(self, request: Hashable) -> None:
        self._marks.forget(request)

    def align(
        self, prompt: Any, *, key_passages: Any = None, query: str | None = None, frozen: int = 0
    ) -> AlignedPrompt:
        return align_prompt(
            prompt,
            key_passages=key_passages,
            query=query,
            profile=self.profile,
            frozen=frozen,
            level=self.level,
            strong=self.strong,
            pads=self.pads,
            isolate=self.isolate,
            repeat=self.repeat,
            max_added_tokens=self.max_added_tokens,
            tokenizer=self.tokenizer,
        )

    def align_payload(
        self,
        payload: Mapping[str, Any],
        *,
        key_passages: Any = None,
        query: str | None = None,
        frozen: int = 0,
        request: Hashable | None = None,
    ) -> AlignedPrompt:
        given = payload["messages"]
        options = {
            key: value for key, value in payload.items() if key in ("tools", "response_format", "model")
        }
        earlier = self._memory.earlier(given, options)
        text = "\n".join(_texts(given[len(earlier) :]))
        whole = "\n".join(_texts(given))
        marked = (
            key_passages
            if key_passages is not None
            else ([p for p in self._marks.standing_in(whole, request) if p in text] or None)
        )
        made = self.align(
            {**payload, "messages": [*earlier, *given[len(earlier) :]]},
            key_passages=marked,
            query=query,
            frozen=max(frozen, len(earlier)),
        )
        self._memory.keep(given, options, made.prompt["messages"])
        if self.on_report is not None:
            self.on_report(made.report)
        return made


def _texts(messages: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            yield content
        elif content:
            yield from (block["text"] for block in content if block.get("type") == "text")
