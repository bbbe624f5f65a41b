"""Scripted models: what each layout answers, and in which order answers come."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from phaseguard.ensemble import Answer, Ensemble
from tests.align.helpers import with_strengths
from tests.align.words import WordTokenizer

MEANS = [0.5, 0.6, 0.8, 0.9]
PROFILE = with_strengths(4, {"1": MEANS}).with_(
    tokenizer="words",
    chat="plain",
    strengths={
        "1": {"mean": MEANS, "low": [m - 0.02 for m in MEANS], "high": [m + 0.1 for m in MEANS], "n": 9}
    },
)
PROMPT = "Hello there.\n\nSome text.\n\nThe code is A17.\n\nWhich code?"
WHERE: Any = {"key_passages": ["The code is A17."], "answer": "A17"}
COMMON: dict[str, Any] = {"profile": PROFILE, "tokenizer": WordTokenizer()}
Script = Sequence[Any]
LAYOUTS = Ensemble(str, **COMMON).lay_out(PROMPT, **WHERE)
NUMBERS = {layout.prompt: layout.number for layout in LAYOUTS.layouts}


class Scripted:
    """Answers a layout with its entry: a string, an Answer, or an error that is raised."""

    def __init__(self, replies: Script) -> None:
        self.replies = replies
        self.asked: list[int] = []

    def __call__(self, prompt: str) -> Answer | str:
        number = NUMBERS[prompt]
        self.asked.append(number)
        reply = self.replies[number]
        if isinstance(reply, Exception):
            raise reply
        return reply


class Slow(Scripted):
    """The same, async: each layout takes so many turns of the event loop; None never ends."""

    def __init__(self, replies: Script, turns: Sequence[int | None]) -> None:
        super().__init__(replies)
        self.turns = turns
        self.running = self.most = 0
        self.cancelled: list[int] = []

    async def __call__(self, prompt: str) -> Answer | str:
        number = NUMBERS[prompt]
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.turns[number] is None:
                await asyncio.Event().wait()
            for _ in range(self.turns[number] or 0):
                await asyncio.sleep(0)
            return super().__call__(prompt)
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        finally:
            self.running -= 1


class Clock:
    """Each look at it finds it a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now
