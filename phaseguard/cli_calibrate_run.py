"""What ``phaseguard calibrate`` does with its options: calls, and what is printed of them."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from phaseguard.cli_calibrate_target import Options, given, target_of
from phaseguard.cli_print import print_json, print_rich, print_status
from phaseguard.cli_progress import Steps
from phaseguard.errors import InputError

if TYPE_CHECKING:
    from phaseguard.calibrate import Plan, Prices


def run_calibrate(options: Options) -> bool:
    """Calibrate and print; False while undecided.

    Raises:
        InputError, EndpointError, ProfileError: as :func:`phaseguard.calibrate.calibrate`.
    """
    from phaseguard.calibrate import calibrate  # noqa: PLC0415
    from phaseguard.show.calibration import render_calibration  # noqa: PLC0415

    candidates, prices = parse_periods(options.periods), _prices(options)
    if options.report is not None and not Path(options.report).parent.is_dir():
        raise InputError(f"{options.report} cannot be written: there is no such folder.")
    if options.plot is not None:  # refused, too, before anything is spent
        from phaseguard.show.figure import check_figure  # noqa: PLC0415

        check_figure(options.plot)
    with ExitStack() as stack:
        target = target_of(options, stack)
        name = options.name or target.profile.name
        results = options.results or f"calibrate-{name}.jsonl"
        stack.enter_context(_told_where(results))
        found = calibrate(
            target.endpoint,
            target.profile,
            language=target.language,
            items=options.items,
            max_calls=options.max_calls,
            budget=options.budget,
            prices=prices,
            periods=candidates,
            controls=options.controls,
            results=results,
            name=name,
            out=options.out,
            concurrency=options.concurrency,
            seed=options.seed,
            confirm=lambda plan: _confirm(plan, options.yes),
            progress=_Progress(stack).show,
            command=shlex.join(["phaseguard", "calibrate", *_arguments(options)]),
        )
    told = found.to_dict()
    _write(options, told)
    if options.as_json:
        print_json(told)
    else:
        print_rich(*render_calibration(told))
    return found.judgement.verdict != "undecided"


@contextmanager
def _told_where(results: str) -> Iterator[None]:
    """Say, when the run is interrupted, that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        if Path(results).exists():
            print_status(f"interrupted: the answers are kept in {results}; the same command goes on")
        raise


def _write(options: Options, told: dict[str, Any]) -> None:
    """The page and the figure that were wanted."""
    if options.report is not None:
        from phaseguard.cli_files import write_bytes  # noqa: PLC0415
        from phaseguard.show.calibration_page import render_calibration_page  # noqa: PLC0415

        write_bytes(options.report, render_calibration_page(told).encode("utf-8"))
    if options.plot is not None:
        from phaseguard.show.calibration_figure import save_calibration  # noqa: PLC0415

        save_calibration(told, options.plot)


def run_revalidate(options: Options, profile: str) -> bool:
    """Ask a sample and print; whether the profile holds.

    Raises:
        InputError, EndpointError, ProfileError: as :func:`phaseguard.calibrate.revalidate`.
    """
    from phaseguard.calibrate import revalidate  # noqa: PLC0415
    from phaseguard.calibrate.revalidate import ITEMS  # noqa: PLC0415
    from phaseguard.profiles import load_profile  # noqa: PLC0415
    from phaseguard.show.calibration import render_revalidation  # noqa: PLC0415

    known, prices = load_profile(profile), _prices(options)
    with ExitStack() as stack:
        target = target_of(options, stack, known)
        found = revalidate(
            target.endpoint,
            known,
            target.language,
            items=ITEMS if options.items is None else options.items,
            results=options.results,
            prices=prices,
            concurrency=options.concurrency,
            seed=options.seed,
            confirm=lambda plan: _confirm(plan, options.yes),
            progress=_Progress(stack).show,
        )
    told = found.to_dict()
    if options.as_json:
        print_json(told)
    else:
        print_rich(*render_revalidation(told))
    return found.verdict == "holds"


def _prices(options: Options) -> Prices | None:
    from phaseguard.calibrate import Prices  # noqa: PLC0415

    if options.price_input is None and options.price_output is None:
        return None
    if options.price_input is None or options.price_output is None:
        raise InputError("A cost needs both --price-input and --price-output.")
    return Prices(options.price_input, options.price_output)


def _confirm(plan: Plan, yes: bool) -> bool:
    from phaseguard.show.calibration import plan_lines  # noqa: PLC0415

    for line in plan_lines(asdict(plan)):
        print_status(line)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError("Nothing was asked: give --yes where nobody can confirm the plan.")
    return typer.confirm("Ask?", err=True)


def _arguments(options: Options) -> list[str]:
    """The options that differ from their defaults, without what tells how the run was started."""
    told: list[str] = []
    for key, value in given(options):
        if key in _HOW:
            continue
        for one in value if isinstance(value, list) else [value]:
            shown = _LOGIN.sub("", str(one)) if key == "base_url" else str(one)
            told += [f"--{key.replace('_', '-')}"] + ([] if one is True else [shown])
    return told if options.controls else [*told, "--no-controls"]


_LOGIN = re.compile(r"(?<=://)[^/?#]*@")  # a password in a URL stays out of what is saved and shown
_HOW = ("yes", "as_json", "controls", "results", "out", "report", "plot", "weights", "revalidate")


class _Progress:
    """A bar that starts with the first answer, when it is known how many there will be at most."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._steps: Steps | None = None

    def show(self, done: int, most: int, what: str) -> None:
        """Take an answer."""
        if self._steps is None:
            self._steps = self._stack.enter_context(Steps(most, every=100, unit="calls"))
        self._steps.reached(done, what)


def parse_periods(given: str) -> tuple[int, ...]:
    """Candidate periods from a list such as ``2-16,128``.

    Raises:
        InputError: when it is no list of whole numbers and ranges.

    >>> parse_periods("2-4,128")
    (2, 3, 4, 128)
    """
    found: set[int] = set()
    for part in given.split(","):
        low, dash, high = part.strip().partition("-")
        if not (low.isdecimal() and (high.isdecimal() or not dash)):
            raise InputError(f"--periods {given!r}: give numbers and ranges, such as 2-16,128.")
        found.update(range(int(low), int(high or low) + 1))
    return tuple(sorted(found))
