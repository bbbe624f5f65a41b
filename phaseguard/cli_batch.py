"""``phaseguard batch``: parse, one call, print."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from phaseguard import cli_choices as choices
from phaseguard.cli_files import STDIN
from phaseguard.cli_print import print_status
from phaseguard.cli_progress import Steps
from phaseguard.show.words import visible

if TYPE_CHECKING:
    from phaseguard.batch import BatchAligner, FileReport

FAILED, INTERRUPTED = 1, 130
EPILOG = (
    "Exit codes: 0 every row is aligned and proven; 1 a row has an error, or its proof failed; 2 bad input "
    "or usage, no output is written; 3 an error of phaseguard itself; 130 interrupted: it can go on."
)
_DEFAULT_KEY = "key_passages"
_REPORTS = "verified,tokens_added,warnings"


def batch(
    source: Annotated[str, typer.Argument(metavar="IN", help="JSON Lines, one object a row; - is stdin.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="Where rows go; - is stdout, without resume.")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    restart: Annotated[bool, typer.Option("--restart", help="Throw away shards of an earlier run.")] = False,
    prompt_field: Annotated[str, typer.Option(help="Prompts: text, messages or payloads.")] = "prompt",
    key_field: Annotated[
        str | None, typer.Option(help=f"Key passages, null to find them; {_DEFAULT_KEY} when not given.")
    ] = None,
    query_field: Annotated[str | None, typer.Option(help="Questions to find key passages by.")] = None,
    answer_field: Annotated[str | None, typer.Option(help="The answers' own characters.")] = None,
    find: Annotated[
        bool, typer.Option("--find", help="No key field: find passages by the question.")
    ] = False,
    output_field: Annotated[
        str, typer.Option(help="Aligned prompts; the prompt field's name replaces it.")
    ] = "aligned_prompt",
    error_field: Annotated[str, typer.Option(help="Errors, empty where there is none.")] = "phaseguard_error",
    fields: Annotated[
        str,
        typer.Option(
            help="What else rows tell: a list of verified, tokens_added, warnings, report; or none."
        ),
    ] = _REPORTS,
    profile: choices.Profile = "deepseek-v4-flash",
    strong: choices.Strong = None,
    pads: choices.PadKind = choices.Pads.AUTO,
    level: choices.FirstLevel = choices.Level.SAFE,
    frozen: choices.Frozen = 0,
    occurrence: choices.Occurrence = None,
    inside: choices.Inside = False,
    isolate: choices.Isolate = None,
    repeat: choices.Repeat = False,
    max_added_tokens: choices.MaxAddedTokens = None,
    reasoning: choices.Reasoning = None,
    report: choices.Report = choices.ReportForm.TEXT,
) -> None:
    """Align a file of prompts, row for row, in several processes.

    Finished shards wait in OUT.parts until all are done: after a kill or Ctrl-C the same command goes on from
    there. OUT is written whole, at the end. A row that cannot be aligned keeps its prompt and says why.
    """
    from phaseguard.batch import BatchAligner  # noqa: PLC0415

    aligner = BatchAligner(
        profile=choices.chosen_profile(profile, reasoning),
        prompt_column=prompt_field,
        key_column=key_field or (None if find or query_field else _DEFAULT_KEY),
        query_column=query_field,
        answer_column=answer_field,
        output_column=output_field,
        error_column=error_field,
        report_columns=() if fields == "none" else tuple(name.strip() for name in fields.split(",")),
        strong=choices.parse_strong(strong),
        pads=pads.value,
        level=level.value,
        frozen=frozen,
        occurrence=occurrence,
        inside=inside,
        isolate="auto" if isolate is None else isolate,
        repeat=repeat,
        max_added_tokens=max_added_tokens,
    )
    done = _run(source, target, aligner, jobs=jobs, restart=restart)
    _print_report(done, report)
    if done.counts.errors or done.counts.unverified:
        raise typer.Exit(FAILED)


def _run(source: str, target: str, aligner: BatchAligner, *, jobs: int, restart: bool) -> FileReport:
    from phaseguard.batch import align_file  # noqa: PLC0415

    streamed = target == STDIN or (Path(target).exists() and not Path(target).is_file())
    with TemporaryDirectory(prefix="phaseguard-") as folder, _bar() as progress:
        given, written = Path(source), Path(folder) / "out.jsonl" if streamed else Path(target)
        try:
            if source == STDIN:
                given = Path(folder) / "in.jsonl"
                with given.open("wb") as file:
                    shutil.copyfileobj(sys.stdin.buffer, file)
            with _pipes_may_break():
                done = align_file(given, written, aligner, jobs=jobs, restart=restart, progress=progress)
        except KeyboardInterrupt:
            kept = "" if streamed else "; the same command goes on from what is finished"
            print_status(f"phaseguard: interrupted{kept}.")
            raise typer.Exit(INTERRUPTED) from None
        if streamed:
            _stream(written, target)
    return done


@contextmanager
def _pipes_may_break() -> Iterator[None]:
    """Keep a worker that goes away from ending this process: the command line ends quietly on SIGPIPE."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)


def _stream(written: Path, target: str) -> None:
    with written.open("rb") as file:
        if target != STDIN:
            with Path(target).open("wb") as device:
                shutil.copyfileobj(file, device)
            return
        sys.stdout.flush()
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """A progress bar, from when the number of rows is known."""
    with ExitStack() as stack:
        steps: list[Steps] = []

        def progress(done: int, total: int) -> None:
            if not steps:
                steps.append(stack.enter_context(Steps(total, unit="rows")))
            steps[0].reached(done, "")

        yield progress


def _print_report(done: FileReport, form: choices.ReportForm) -> None:
    if form is choices.ReportForm.JSON:
        import json  # noqa: PLC0415
        from dataclasses import asdict  # noqa: PLC0415

        print_status(json.dumps(asdict(done), ensure_ascii=False, indent=2))
    if form is not choices.ReportForm.TEXT:
        return
    counts = done.counts
    resumed = f", {done.resumed:,} of them in an earlier run" if done.resumed else ""
    print_status(
        f"phaseguard: {counts.rows:,} rows{resumed}: {counts.verified:,} verified, "
        f"{counts.unverified:,} not verified, {counts.errors:,} errors"
    )
    for error in counts.first_errors:
        print_status(f"  {visible(error)}")
    if counts.errors > len(counts.first_errors):
        print_status(f"  ... and {counts.errors - len(counts.first_errors):,} more")
