"""An endpoint with a planted effect: it reads the request as the model would see it, and answers by phase."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from phaseguard.profiles import PhaseProfile
from phaseguard.testing import Completion, ScriptedEngine, phases_on_wire

_ASKED = re.compile(r"What is (the .+?)\? Answer with")


class PlantedEngine:
    """Right by the phase of the answer on the wire; else the last digit is wrong.

    Args:
        profile: how the model reads requests, and the period of its phases.
        chances: of a right answer, by phase.
        extra: tokens that every prompt has more in the usage.
    """

    def __init__(self, profile: PhaseProfile, chances: tuple[float, ...], extra: int = 0) -> None:
        self._profile, self._chances, self._extra = profile.with_(period=len(chances)), chances, extra
        self._counter = ScriptedEngine("0", profile=profile)

    def reply(self, body: Mapping[str, Any], path: str) -> Completion:
        """The answer to the question behind the text."""
        text = body["messages"][0]["content"]
        asked = _ASKED.search(text.rpartition("\n\n")[2])
        assert asked is not None
        found = re.search(rf"{re.escape(asked[1][0].upper() + asked[1][1:])} is (\d+)\.", text)
        assert found is not None
        (place,) = phases_on_wire(body, f" {found[1]}.", self._profile)
        phase = (place.index + 1) % len(self._chances)  # the blank in front is a token of its own
        luck = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") / 2**32
        answer = (
            found[1] if luck < self._chances[phase] else found[1][:-1] + str((int(found[1][-1]) + 4) % 10)
        )
        counted = self._counter.reply(body, path)
        return Completion(
            answer, prompt_tokens=(counted.prompt_tokens or 0) + self._extra, completion_tokens=2
        )
