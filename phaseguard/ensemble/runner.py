"""``Ensemble``: asks a model several layouts of one prompt, one after the other or at once, and votes."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Real
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from phaseguard.align.passages import Given
from phaseguard.ensemble.calls import Ask, Caller, is_async, opinion
from phaseguard.ensemble.forecast import Forecast, Prices, make_forecast
from phaseguard.ensemble.layouts import LayoutSet, make_layouts
from phaseguard.ensemble.poll import Limits, Poll, Start
from phaseguard.ensemble.stops import Rules, StopRule
from phaseguard.ensemble.verdict import Verdict
from phaseguard.ensemble.votes import Answer, Reply
from phaseguard.errors import InputError
from phaseguard.normalize import Level
from phaseguard.profiles import PhaseProfile
from phaseguard.tokens import TokenizerLike
from phaseguard.voting import Ballot, Budget, Grouping, extract, group
from phaseguard.voting.rules import Rule

Opinion: TypeAlias = Callable[[Verdict], "str | Answer | Awaitable[str | Answer | None] | None"]


class Where(TypedDict, total=False):
    """What is key in a prompt, as in :func:`phaseguard.align_prompt`."""

    key_passages: Given | Sequence[Given] | None
    query: str | None
    answer: str | Sequence[str] | None
    frozen: int


@dataclass(frozen=True)
class Ensemble:
    r"""Asks several layouts of a prompt, whose answers stand at different phases, and lets them vote.

    The first layout is asked alone, so that the next ones find what they share with it in the prompt cache.
    Then ``ask`` goes on one by one, ``aask`` with up to ``concurrency`` calls at once; both count votes in
    the order of layouts and give the same verdict on the same replies. A call that fails, or takes longer
    than the timeout, is a missing ballot with its error recorded; retries are the business of its own client.
    The answer of the winning layout can be streamed only once the verdict is there. Where several calls cost
    too much, ``align_prompt(..., repeat=True)`` is the alternative of a single one; ``repeat`` does both.

    Attributes:
        ask_model: takes a prompt of the type that was given (a string, messages, a payload) and returns a
            string or an :class:`Answer`; a plain or an async function. ``aask`` runs a plain one in threads.
        profile, strong, level, pads, isolate, repeat, tokenizer: as in :func:`phaseguard.align_prompt`.
        layouts: largest number of layouts, as ``most`` in
            :func:`~phaseguard.ensemble.layouts.make_layouts`.
        rule: who wins, see :func:`phaseguard.voting.decide`.
        stop: when to ask no more: ``settled``, as soon as no further ballot changes the winner; ``agree``,
            also when two strong phases agree; a number, also when an answer is that probable; several of
            these; or ``all``, never early.
        grouping: puts ballots that say the same together; :func:`phaseguard.voting.group`, or for free text
            a function that calls :func:`phaseguard.voting.group_by_embedding` or ``group_by_judge``.
        find_answer: the final answer in a longer text: whatever :func:`phaseguard.voting.extract` takes, or
            None for the whole text.
        report_ties: whether a tie is reported (``answer`` is None) in place of going to the strongest layout.
        budget: most calls, tokens and seconds; no call starts that is expected to go over it.
        timeout: most seconds a call may take. A plain function cannot be interrupted: ``ask`` refuses a
            timeout for one, ``aask`` leaves its thread behind.
        concurrency: most calls at once in ``aask``.
        answer_tokens: tokens expected of an answer, for forecasts and budgets.
        prices: for forecasts.
        on_disagreement: called with the verdict when it is ``disputed``, for example to ask again with
            reasoning on; the answer that it returns takes the vote's place, None keeps it.
        clock: gives seconds, for latencies and budgets.

    Raises:
        InputError: when an argument cannot be used.

    >>> from phaseguard.ensemble import Ensemble
    >>> text = "The door code is A-17.\n\nThe vault code is B-8417.\n\nWhich is the vault code?"
    >>> verdict = Ensemble(lambda prompt: "B-8417", strong={2, 3}).ask(text, key_passages=["B-8417"])
    >>> verdict.answer, verdict.support, verdict.ended
    ('B-8417', 2, 'settled')
    """

    ask_model: Ask
    _: KW_ONLY
    profile: str | PhaseProfile | Any = "deepseek-v4-flash"
    strong: Collection[int] | None = None
    layouts: int = 4
    rule: Rule = "majority"
    stop: StopRule | Sequence[StopRule] = "settled"
    grouping: Callable[[Sequence[Ballot]], Grouping] = group
    find_answer: Any = None
    report_ties: bool = False
    budget: Budget = field(default_factory=Budget)
    timeout: float | None = None
    concurrency: int = 4
    answer_tokens: int = 0
    prices: Prices | None = None
    on_disagreement: Opinion | None = None
    level: Level = "safe"
    pads: str | Sequence[str] = "auto"
    isolate: bool | Literal["auto"] = "auto"
    repeat: bool = False
    tokenizer: TokenizerLike | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if not callable(self.ask_model):
            raise InputError(f"ask_model={self.ask_model!r}: give a function that takes a prompt.")
        if self.on_disagreement is not None and not callable(self.on_disagreement):
            raise InputError(f"on_disagreement={self.on_disagreement!r}: give a function, or None.")
        if self.timeout is not None and not (isinstance(self.timeout, Real) and self.timeout > 0):
            raise InputError(f"timeout={self.timeout!r}: give seconds above 0, or None.")
        if not isinstance(self.budget, Budget):
            raise InputError(f"budget={self.budget!r}: give a voting.Budget, such as Budget(calls=3).")
        for name, least in (("concurrency", 1), ("answer_tokens", 0)):
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or given < least:
                raise InputError(f"{name}={given!r}: give a whole number from {least}.")
        self._rules()
        if self.find_answer is not None:
            several = self.find_answer if isinstance(self.find_answer, list | tuple) else [self.find_answer]
            extract("", [one for one in several if not callable(one)])  # what is none of them is told at once

    def lay_out(self, prompt: Any, **where: Unpack[Where]) -> LayoutSet:
        r"""The layouts that would be asked; arguments and errors are those of :func:`make_layouts`.

        Layouts that were made before, here or in a forecast, can be given to :meth:`forecast` and
        :meth:`ask` in place of the prompt.

        >>> len(Ensemble(str, layouts=2).lay_out("One.\n\nThe code is A-17.", key_passages="A-17"))
        2
        """
        if isinstance(prompt, LayoutSet):
            if where:
                raise InputError(f"{next(iter(where))}=: what is key is settled in layouts that are made.")
            return prompt
        return make_layouts(
            prompt,
            profile=self.profile,
            most=self.layouts,
            strong=self.strong,
            level=self.level,
            pads=self.pads,
            isolate=self.isolate,
            repeat=self.repeat,
            tokenizer=self.tokenizer,
            **where,
        )

    def forecast(self, prompt: Any, **where: Unpack[Where]) -> Forecast:
        r"""What asking will cost, without a call; arguments and errors are those of :meth:`ask`.

        >>> Ensemble(str).forecast("One.\n\nThe code is A-17.", key_passages="A-17").calls
        Range(least=2, expected=None, most=4)
        """
        layouts = self.lay_out(prompt, **where)
        return make_forecast(layouts, self._ready(layouts), self._limits(1), self.prices)

    def ask(self, prompt: Any, **where: Unpack[Where]) -> Verdict:
        """Ask one layout after the other until the answer is clear.

        An async ``ask_model`` is run as :meth:`aask` does, in an event loop of its own.

        Args:
            prompt: a string, a list of messages or a payload; or the layouts made of one.
            where: ``key_passages``, ``query``, ``answer`` and ``frozen``, as in
                :func:`phaseguard.align_prompt`.

        Raises:
            AllCallsFailedError: when no call gave an answer; it carries them all.
            InputError: for an argument or prompt that cannot be used, or when replies lack what the rules
                need, such as probabilities.

        >>> Ensemble(lambda prompt: "Paris.").ask("Which is the capital of France?").answer
        'Paris.'
        """
        if is_async(self.ask_model):
            return _run(self.aask(prompt, **where))
        if self.timeout is not None:
            raise InputError(
                "timeout: a plain function cannot be interrupted. Give its client the timeout, use an async "
                "function, or await aask."
            )
        steps = self._poll(prompt, where, 1).steps()
        caller = Caller(self.ask_model, self.timeout, self.clock)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Start):
                    (layout,) = step.layouts
                    step = steps.send((caller.call(layout),))
                else:
                    step = steps.send(opinion(self._consult(step.verdict)))
        except StopIteration as end:
            verdict: Verdict = end.value
            return verdict

    async def aask(self, prompt: Any, **where: Unpack[Where]) -> Verdict:
        """As :meth:`ask`, with several calls at once; those no longer needed are cancelled.

        >>> async def model(prompt): return "Paris."
        >>> asyncio.run(Ensemble(model).aask("Which is the capital of France?")).answer
        'Paris.'
        """
        steps = self._poll(prompt, where, self.concurrency).steps()
        caller = Caller(self.ask_model, self.timeout, self.clock)
        running: set[asyncio.Task[Reply]] = set()
        try:
            step = next(steps)
            while True:
                if isinstance(step, Start):
                    running |= {asyncio.create_task(caller.acall(layout)) for layout in step.layouts}
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    step = steps.send(tuple(task.result() for task in done))
                else:
                    said = self._consult(step.verdict)
                    step = steps.send(opinion(await said if inspect.isawaitable(said) else said))
        except StopIteration as end:
            verdict: Verdict = end.value
            return verdict
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _poll(self, prompt: Any, where: Where, concurrency: int) -> Poll:
        layouts = self.lay_out(prompt, **where)
        limits = self._limits(concurrency)
        consult = self.on_disagreement is not None
        return Poll(layouts, self._ready(layouts), limits, self._extract, consult)

    def _limits(self, concurrency: int) -> Limits:
        return Limits(concurrency, self.budget, self.answer_tokens)

    def _rules(self) -> Rules:
        return Rules.read(self.rule, self.stop, self.grouping, report_ties=self.report_ties)

    def _ready(self, layouts: LayoutSet) -> Rules:
        rules = replace(self._rules(), strong=layouts.strong)
        rules.ready(layouts)
        return rules

    def _extract(self, text: str) -> str | None:
        return text if self.find_answer is None else extract(text, self.find_answer)

    def _consult(self, verdict: Verdict) -> Any:
        assert self.on_disagreement is not None  # noqa: S101 - a poll consults only where there is one
        return self.on_disagreement(verdict)


def _run(verdict: Coroutine[Any, Any, Verdict]) -> Verdict:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(verdict)
    verdict.close()
    raise InputError("An event loop is running: await aask instead of calling ask.")
