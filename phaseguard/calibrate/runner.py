"""Asking what is planned: check, looks, controls; every answer is kept before the next is waited for."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from phaseguard.calibrate.check import CALLS, Check, check_lengths
from phaseguard.calibrate.endpoint import Endpoint, Outcome, Question, Reply, margin
from phaseguard.calibrate.items import PROBES, Language, Probe
from phaseguard.calibrate.judge import Judgement, judge
from phaseguard.calibrate.plan import Plan
from phaseguard.calibrate.record import Answered, Place, Results, observed
from phaseguard.calibrate.shifts import Shifted, Shifter
from phaseguard.errors import EndpointError
from phaseguard.profiles import PhaseProfile, Provenance

Progress: TypeAlias = Callable[[int, int, str], object]
_IN_A_ROW = 12  # failures after which an endpoint counts as gone
_MISSING = 0.05  # share of answers that may be missing in the end
_KEPT = 200  # characters of an answer
_CHECKED = 1_000_000  # items of the check call are no others: nothing may be asked twice
# lines such as decorate docstrings; which of them add how many tokens is measured
_DECORATION = tuple(
    line
    for count in range(1, 36)
    for line in (" =" * count + " \n", "= " * count + "\n\n", "=" * count + "\n")
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One prompt to ask: a place, and what moves its record."""

    place: Place
    shifter: Shifter


@dataclass
class Run:
    """One run.

    Attributes:
        endpoint, language: who is asked, and what.
        given: how requests are read, but for what stands in front of them.
        plan: what is asked at most.
        results: where answers are kept.
        extra: what requests say besides, such as the reasoning mode.
        max_tokens: most tokens of an answer.
        seed: of the order.
        progress: told of every answer: how many there are, how many at most, and of what.
        profile: how requests are read; before the check without anything in front of them.
        wanted: the prompts that were to be asked, controls aside.
    """

    endpoint: Endpoint
    language: Language
    given: PhaseProfile
    plan: Plan
    results: Results
    extra: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int = 16
    seed: int = 0
    progress: Progress | None = None
    profile: PhaseProfile = field(init=False)
    wanted: set[Place] = field(default_factory=set, init=False)
    _counts: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.profile = self._read_with(0)

    def _read_with(self, prefix_offset: int) -> PhaseProfile:
        """The given profile without what it says of phases."""
        nothing = Provenance(kind="stated", source="nothing is known before calibrating")
        return self.given.with_(
            prefix_offset=prefix_offset, period=1, strengths=None, reported=None, provenance=nothing
        )

    @property
    def missing(self) -> int:
        """Prompts that were to be asked and have no answer, controls aside; each counts once."""
        return sum(place not in self.results for place in self.wanted)

    def check(self) -> Check:
        """Ask a few prompts of different lengths, and take over what stands in front of them.

        Raises:
            EndpointError: when nothing can be asked, or phases cannot be known.
        """
        wanted = [
            Wanted(Place("records", -1 - number, 0), self._shifter("records", _CHECKED + number))
            for number in range(CALLS)
        ]
        self._ask([one for one in wanted if one.place not in self.results], "check")
        check = check_lengths([self.results.answers[one.place] for one in wanted], self.given)
        self.profile, self._counts = self._read_with(check.prefix_offset), bool(check.counted)
        return check

    def look(self, number: int) -> Judgement:
        """Ask what the look with this number still lacks, and judge all answers so far.

        Raises:
            EndpointError: when too many answers are missing.
        """
        items, shifts = self.plan.looks[number], self.plan.shifts
        what = f"look {number + 1} of {len(self.plan.looks)}"
        self._ask(self._all("records", items, shifts), what, spare=_spare(items * shifts))
        return judge(
            observed(self.results.of("records", items=items)),
            periods=self.plan.periods,
            alpha=self.plan.alpha,
            smallest=self.plan.smallest,
            looks=self.plan.looks,
            look=number,
        )

    def strengths(self, period: int) -> None:
        """Ask all planned items at the shifts that aligning would make, so that each phase is well known.

        Raises:
            EndpointError: when too many answers are missing.
        """
        items, shifts = self.plan.items, min(period, self.plan.shifts)
        self._ask(self._all("records", items, shifts), "strengths", spare=_spare(items * shifts))

    def control(self, probe: Probe, period: int) -> Judgement | None:
        """Ask a control at few shifts, and judge it for the period found; None without calls or answers."""
        controls = self.plan.controls(period)
        if not controls.items:
            return None
        wanted = list(self._all(probe, controls.items, controls.shifts))
        self._ask(wanted, probe, spare=len(wanted))
        answers = self.results.of(probe, items=controls.items, below=controls.shifts)
        if not answers:
            return None
        return judge(observed(answers), periods=[period], alpha=self.plan.alpha, smallest=self.plan.smallest)

    def _shifter(self, probe: Probe, item: int) -> Shifter:
        made = self.language.draw(item, probe)
        return Shifter(made, self.profile, self.plan.shifts, self.language.tokenizer)

    def _all(self, probe: Probe, items: int, shifts: int) -> Iterator[Wanted]:
        """Every prompt of so many items that has no answer yet, in random order.

        Items of earlier looks come first; inside a look neither phase nor difficulty goes with time.
        """
        places = [Place(probe, item, shift) for item in range(items) for shift in range(shifts)]
        left = [place for place in places if place not in self.results]
        rng = np.random.default_rng([self.seed, PROBES.index(probe), items])
        shifters: dict[int, Shifter] = {}
        for at in rng.permutation(len(left)).tolist():
            place = left[at]
            if place.item not in shifters:
                shifters[place.item] = self._shifter(probe, place.item)
            yield Wanted(place, shifters[place.item])

    def _ask(self, wanted: Iterable[Wanted], what: str, *, spare: int = 0) -> None:
        """Ask, and once more what failed.

        Args:
            wanted: what has no answer yet.
            what: it is asked for.
            spare: how many may stay without an answer.

        Raises:
            EndpointError: when the endpoint is gone, refuses, or too many answers are missing.
        """
        asked = list(wanted)
        failed, error = self._round(asked, what)
        if failed:
            failed, error = self._round(failed, what)
        self.wanted |= {one.place for one in asked if one.place.probe == "records"}
        if len(failed) > spare:
            raise EndpointError(
                f"{len(failed)} of {len(asked)} requests ({what}) failed, the last with: {error}{self._kept}"
            )

    def _round(self, wanted: list[Wanted], what: str) -> tuple[list[Wanted], str]:
        round_ = _Round(wanted)
        outcomes = self.endpoint.ask(self._questions(round_))
        try:
            for outcome in outcomes:
                self._take(round_, outcome, what)
        except KeyboardInterrupt:
            round_.over = True
            for outcome in outcomes:  # under way, so paid for
                self._take(round_, outcome, what)
            raise
        if round_.fatal:
            raise EndpointError(f"{round_.error}{self._kept}")
        if round_.over:
            raise EndpointError(
                f"{_IN_A_ROW} requests in a row failed, the last with: {round_.error}{self._kept}"
            )
        return round_.failed, round_.error

    def _take(self, round_: _Round, outcome: Outcome, what: str) -> None:
        one, reply = round_.sent.pop(outcome.number), outcome.reply
        error = (outcome.error or "") if reply is None else self._uncounted(one.shifted, reply)
        if reply is not None and not error:
            self._keep(one, reply, outcome.seconds)
            round_.row = 0
        else:
            round_.error, round_.row = error, round_.row + 1
            round_.fatal = round_.fatal or outcome.fatal
            round_.over = round_.over or outcome.fatal or round_.row >= _IN_A_ROW
            round_.failed.append(one.wanted)
            self.results.failed(one.wanted.place, error)
        if self.progress is not None:
            self.progress(len(self.results.answers), self.plan.calls, what)

    def _uncounted(self, shifted: Shifted, reply: Reply) -> str:
        """Why the answer's phase is not known after all; empty where it is, or where nothing counts."""
        counted, cached = reply.prompt_tokens, reply.cached_tokens or 0
        if not self._counts or counted is None or shifted.tokens in (counted, counted + cached):
            return ""
        return (
            f"The endpoint counts {counted} prompt tokens where {shifted.tokens} are predicted, unlike in "
            "the check calls: what stands in front of prompts varies, and no phase can be known. Ask one "
            "engine behind the endpoint, or begin again with another results file."
        )

    @property
    def _kept(self) -> str:
        if self.results.path is None or not self.results.answers:
            return ""
        return (
            f" {len(self.results.answers)} answers are kept in {self.results.path}: the same command goes on."
        )

    def _questions(self, round_: _Round) -> Iterator[Question]:
        for number, one in enumerate(round_.wanted):
            if round_.over:
                return
            decorated = one.place.probe == "filler"
            shifted = one.shifter.at(one.place.shift, _DECORATION if decorated else "auto")
            if shifted is None:  # no pad adds exactly so many tokens here
                continue
            question = Question(number, shifted.prompt, self.max_tokens, self.extra)
            round_.sent[number] = _Sent(one, shifted, question)
            yield question

    def _keep(self, sent: _Sent, reply: Reply, seconds: float) -> None:
        place, shifted = sent.wanted.place, sent.shifted
        item = sent.wanted.shifter.item
        right = self.language.right(reply.text, item)
        self.results.add(
            Answered(
                probe=item.probe,
                item=place.item,
                shift=place.shift,
                request=sent.question.digest(self.endpoint.model),
                position=shifted.position,
                key=shifted.key,
                shape=shifted.shape,
                tokens=shifted.tokens,
                right=right,
                answer=reply.text[:_KEPT],
                expected=item.expected,
                margin=margin(reply, item.expected),
                seconds=round(seconds, 4),
                at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
                prompt_tokens=reply.prompt_tokens,
                cached_tokens=reply.cached_tokens,
                completion_tokens=reply.completion_tokens,
            )
        )


def _spare(prompts: int) -> int:
    """How many of all these prompts, those with an answer included, may stay without one."""
    return math.ceil(_MISSING * prompts)


@dataclass(frozen=True, slots=True)
class _Sent:
    wanted: Wanted
    shifted: Shifted
    question: Question


@dataclass
class _Round:
    """Prompts asked once: what is under way, and how it goes; ``over`` lets no further one begin."""

    wanted: list[Wanted]
    sent: dict[int, _Sent] = field(default_factory=dict)
    failed: list[Wanted] = field(default_factory=list)
    error: str = ""
    row: int = 0
    fatal: bool = False
    over: bool = False
