"""What ``phaseguard ask`` does once its options are read: the calls, what they tell, the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import typer

from phaseguard.access import NAMES, Access
from phaseguard.cli_extras import for_asking
from phaseguard.cli_print import print_error, print_json, print_lines, print_rich, print_status
from phaseguard.cli_progress import Steps
from phaseguard.errors import AllCallsFailedError, InputError

if TYPE_CHECKING:
    from phaseguard.ensemble import Answer, Ensemble, Forecast, LayoutSet, Verdict

NO_ANSWER, INTERRUPTED = 1, 130
_SHOWN = 5  # passages


class Endpoint:
    """Asks the endpoint, and says how far it is."""

    def __init__(self, access: Access, request: dict[str, Any]) -> None:
        with for_asking():
            from openai import AsyncOpenAI  # noqa: PLC0415
        from phaseguard.ensemble.openai import async_openai_ask  # noqa: PLC0415

        self.client = AsyncOpenAI(base_url=access.url, api_key=access.key)
        self.done: Callable[[str], None] = print_status
        self._ask: Callable[[Any], Awaitable[Answer]] = async_openai_ask(self.client, **request)
        if access.source is None:
            print_status(f"phaseguard: note: no key in {' or '.join(NAMES)}: asking without one.")

    async def __call__(self, prompt: Any) -> Answer:
        """Ask one layout."""
        try:
            answer = await self._ask(prompt)
        except BaseException:  # a call that is cancelled or takes too long is over as well
            self.done("no answer")
            raise
        self.done("answered")
        return answer


def vote(
    ensemble: Ensemble, endpoint: Endpoint, layouts: LayoutSet, access: Access
) -> Verdict | AllCallsFailedError:
    """Ask, and show how far it is.

    Raises:
        InputError: when replies lack what the rules need.
        Exit: when the user interrupts.
    """

    async def run(most: int) -> Verdict:
        with Steps(most, every=1, unit="calls") as steps:
            endpoint.done = steps.done
            async with endpoint.client:
                return await ensemble.aask(layouts)

    try:
        return asyncio.run(run(ensemble.budget.calls or len(layouts)))
    except AllCallsFailedError as failed:
        return failed
    except InputError as fault:
        raise InputError(access.hide(str(fault))) from None
    except KeyboardInterrupt:
        print_status("phaseguard: interrupted; calls that were under way are called off.")
        raise typer.Exit(INTERRUPTED) from None


def show_forecast(forecast: Forecast, *, as_json: bool, alone: bool) -> None:
    """Print what asking will cost: to stdout when it is all that was wanted, else to stderr."""
    from phaseguard.align.passages import shorten  # noqa: PLC0415
    from phaseguard.show.verdict import forecast_lines  # noqa: PLC0415

    found = forecast.to_dict()
    if alone and as_json:
        print_json({"forecast": found})
    elif alone:
        print_lines(forecast_lines(found))
    else:
        for line in forecast_lines(found):
            print_status(f"phaseguard: {line}")
    passages = forecast.layouts.layouts[0].aligned.report.passages
    for passage in passages[:_SHOWN]:
        answers = ", ".join(span.text for span in passage.spans)
        print_status(f"phaseguard: answer   {answers} in {shorten(passage.text)!r}, {passage.why}")
    if len(passages) > _SHOWN:
        print_status(f"phaseguard: answer   and in {len(passages) - _SHOWN} more passages")
    if forecast.layouts.period > 1 and not passages:
        print_status(
            "phaseguard: note: no key passage was found for the question, so the phases of the answer are "
            "unknown. Name it with --key, or give another question with --query."
        )
    if not all(one["verified"] for one in found["layouts"]):
        print_status("phaseguard: warning: the proof of a layout failed; its phases are not certain.")


def show(
    access: Access, forecast: Forecast, outcome: Verdict | AllCallsFailedError, *, as_json: bool
) -> None:
    """Print ballots and verdict, without secrets.

    Raises:
        Exit: with code 1 when there is no answer.
    """
    from phaseguard.show.verdict import render_verdict, render_votes  # noqa: PLC0415

    if isinstance(outcome, AllCallsFailedError):
        votes = access.hide([vote.to_dict() for vote in outcome.votes])
        if as_json:
            print_json({"forecast": forecast.to_dict(), "verdict": None, "votes": votes})
        else:
            print_rich(*render_votes(votes))
        print_error(f"none of {len(votes)} calls gave an answer.")
        raise typer.Exit(NO_ANSWER)
    verdict = access.hide(outcome.to_dict())
    if as_json:
        print_json({"forecast": forecast.to_dict(), "verdict": verdict})
    else:
        print_rich(*render_verdict(verdict))
    if verdict["tie"]:
        raise typer.Exit(NO_ANSWER)
