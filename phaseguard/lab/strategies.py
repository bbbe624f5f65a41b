"""Defences against a compressed cache, as layouts of one prompt; alignment is the real ``align_prompt``.

Each strategy turns a case into prompts, which a model answers, and says how the answers become one. The raw
prompt stands behind 0 to ``period - 1`` decorative blank lines, as prompts do in the wild.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from phaseguard.align import align_prompt
from phaseguard.lab.cases import Case
from phaseguard.lab.tasks import PAD, Ints
from phaseguard.lab.words import WordTokenizer
from phaseguard.normalize import normalize
from phaseguard.profiles import PhaseProfile

TOKENIZER = WordTokenizer()


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One prompt of a strategy.

    Attributes:
        ids: ``[T]`` its tokens.
        added: tokens that it has more than the normalized prompt.
        phase: phase of the answer in it.
    """

    ids: Ints
    added: int
    phase: int


@dataclass(frozen=True, slots=True)
class Defender:
    """Makes layouts of cases for one model.

    Attributes:
        profile: strengths measured on padded prompts.
        bare: the same without strengths.
    """

    profile: PhaseProfile
    bare: PhaseProfile

    @classmethod
    def of(cls, profile: PhaseProfile) -> Defender:
        """The defender that knows this profile."""
        return cls(profile, profile.with_(strengths=None))

    @property
    def order(self) -> tuple[int, ...]:
        """Phases, the strongest first."""
        (shape,) = (self.profile.strengths or {}).values()
        return tuple(sorted(range(self.profile.period), key=lambda phase: (-shape.mean[phase], phase)))

    def raw(self, case: Case) -> Layout:
        """The prompt as it is sent."""
        return self._read(case, case.prompt)

    def normalized(self, case: Case) -> Layout:
        """Without decoration."""
        return self._read(case, normalize(case.prompt).text)

    def aligned(self, case: Case) -> Layout:
        """The asked record's answer on a strong phase."""
        return self._align(case)

    def aligned_all(self, case: Case) -> Layout:
        """The answers of all records on strong phases: what is done when nobody knows what will be asked."""
        front, size = case.value - case.start, len(case.answer)
        spans = [(case.start, case.end), *case.others]
        records = [_stripped(case, start, end) for start, end in spans]
        answers = [_stripped(case, start + front, start + front + size) for start, _ in spans]
        return self._align(case, key_passages=records, answer=answers)

    def isolated(self, case: Case) -> Layout:
        """The asked record alone in its chunks, which needs no strengths."""
        return self._align(case, profile=self.bare, isolate=True)

    def aligned_isolated(self, case: Case) -> Layout:
        """On a strong phase, and alone."""
        return self._align(case, isolate=True)

    def repeated(self, case: Case) -> Layout:
        """The asked record once more in front of the question, inside the raw window."""
        return self._align(case, profile=self.bare, isolate=False, repeat=True)

    def at_phase(self, case: Case, phase: int) -> Layout:
        """The asked record's answer on one phase."""
        return self._align(case, strong=[phase])

    def shuffled(self, case: Case, added: int, rng: np.random.Generator) -> Layout:
        """As many pads at one random place outside the record: the control for :meth:`aligned`."""
        ids = self.normalized(case).ids
        places = np.flatnonzero((np.arange(len(ids)) <= case.start) | (np.arange(len(ids)) >= case.end))
        at = int(rng.choice(places))
        phase = (case.value + added * (at <= case.start)) % self.profile.period
        return Layout(np.insert(ids, at, np.full(added, PAD)), added, phase)

    def same_phase(self, case: Case, periods: int) -> Layout:
        """Another prompt where no word changes phase or neighbours: whole periods of pads in front."""
        return self._periods(case, periods, 0)

    def same_phase_thinned(self, case: Case, periods: int) -> Layout:
        """The answer on its own phase, with whole periods of pads directly in front of the asked record."""
        return self._periods(case, periods, case.start)

    def _periods(self, case: Case, periods: int, at: int) -> Layout:
        added = periods * self.profile.period
        ids = self.normalized(case).ids
        return Layout(np.insert(ids, at, np.full(added, PAD)), added, case.value % self.profile.period)

    def _align(self, case: Case, **options: Any) -> Layout:
        defaults: dict[str, Any] = {
            "key_passages": [case.record],
            "answer": case.answer_text,
            "profile": self.profile,
        }
        out = align_prompt(case.prompt, tokenizer=TOKENIZER, **defaults | options)
        return self._read(case, str(out.prompt))

    def _read(self, case: Case, prompt: str) -> Layout:
        ids = TOKENIZER.encode(prompt).ids.astype(np.int64)
        words = np.flatnonzero(ids != PAD)
        plain = len(case.context) + len(case.asked)
        return Layout(ids, len(ids) - plain, int(words[case.value]) % self.profile.period)


def _stripped(case: Case, start: int, end: int) -> str:
    return case.text(start, end).strip()
