"""The command line: parse, one call, print. What is heavy is imported inside the commands."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from phaseguard import __version__, cli_ask, cli_batch
from phaseguard import cli_choices as choices
from phaseguard.cli_agreement import agreement
from phaseguard.cli_calibrate import EPILOG as CALIBRATE_EXITS
from phaseguard.cli_calibrate import calibrate
from phaseguard.cli_demo import demo, prior
from phaseguard.cli_files import STDIN, Document, read_text, write_bytes
from phaseguard.cli_lab import app as lab_app
from phaseguard.cli_print import print_error, print_lines, print_rich, print_status
from phaseguard.cli_reproduce import reproduce
from phaseguard.errors import InputError, PhaseGuardError

OK, FOUND, BAD_INPUT, INTERNAL = 0, 1, 2, 3
_EXITS = (
    "Exit codes: 0 done; 1 a check found something to change, or the proof of an alignment failed; "
    "2 bad input or usage; 3 an error of phaseguard itself."
)

_UsageError: Any = typer.BadParameter.__mro__[1]  # click's, wherever this version of typer keeps click

app = typer.Typer(
    name="phaseguard",
    help="Makes prompts safe for models that compress their KV cache over fixed chunks.",
    epilog=_EXITS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

lab_app.command()(agreement)
lab_app.command()(prior)
lab_app.command()(reproduce)
app.add_typer(lab_app)
app.command(epilog=_EXITS)(demo)
app.command(epilog=CALIBRATE_EXITS)(calibrate)
app.command(epilog=cli_ask.EPILOG)(cli_ask.ask)
app.command(epilog=cli_batch.EPILOG)(cli_batch.batch)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"phaseguard {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(epilog=_EXITS)
def align(
    file: choices.PromptFile = STDIN,
    key: choices.Key = None,
    query: choices.Query = None,
    answer: choices.Answer = None,
    profile: choices.Profile = "deepseek-v4-flash",
    messages: choices.Messages = False,
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
    output: choices.Output = None,
    report: choices.Report = choices.ReportForm.TEXT,
) -> None:
    """Put the answers of key passages on strong phases or in chunks of their own, and prove it.

    The prompt goes to stdout or -o, the report to stderr.

    Without --key, passages are found from --query, or from the last user message.
    """
    document = Document.read(file, messages=messages)
    phases = choices.parse_strong(strong)
    from phaseguard.align import align_prompt  # noqa: PLC0415

    aligned = align_prompt(
        document.prompt,
        key_passages=key or None,
        query=query,
        answer=answer or None,
        profile=choices.chosen_profile(profile, reasoning),
        strong=phases,
        pads=pads.value,
        level=level.value,
        frozen=frozen,
        occurrence=occurrence,
        inside=inside,
        isolate="auto" if isolate is None else isolate,
        repeat=repeat,
        max_added_tokens=max_added_tokens,
    )
    write_bytes(output, document.dump(aligned.prompt))
    if report is choices.ReportForm.TEXT and not messages and document.looks_like_messages():
        print_status("phaseguard: note: this looks like JSON messages, but is read as text: give --messages.")
    if report is choices.ReportForm.JSON:
        import json  # noqa: PLC0415

        print_status(json.dumps(aligned.report.to_dict(), ensure_ascii=False, indent=2))
    elif report is choices.ReportForm.TEXT:
        from phaseguard.show.report import render_report  # noqa: PLC0415

        print_rich(render_report(aligned.report), stderr=True)
    if not aligned.report.verified:
        raise typer.Exit(FOUND)


@app.command(epilog=_EXITS)
def inspect(
    file: choices.PromptFile = STDIN,
    key: choices.Key = None,
    query: choices.Query = None,
    answer: choices.Answer = None,
    profile: choices.Profile = "deepseek-v4-flash",
    messages: choices.Messages = False,
    strong: choices.Strong = None,
    occurrence: choices.Occurrence = None,
    reasoning: choices.Reasoning = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every token of a long prompt.")] = False,
    html: Annotated[
        str | None, typer.Option(help="Write a page instead; - is stdout.", metavar="OUT")
    ] = None,
) -> None:
    """Show the tokens of a prompt coloured by phase, with the answers marked; nothing is changed."""
    document = Document.read(file, messages=messages)
    phases = choices.parse_strong(strong)
    from phaseguard.align import inspect_prompt  # noqa: PLC0415
    from phaseguard.show.tokens import token_map  # noqa: PLC0415

    seen = inspect_prompt(
        document.prompt,
        key_passages=key or None,
        query=query,
        answer=answer or None,
        profile=choices.chosen_profile(profile, reasoning),
        strong=phases,
        occurrence=occurrence,
    )
    tokens = token_map(seen)
    if html is not None:
        from phaseguard.show.html import render_page  # noqa: PLC0415

        title = "standard input" if file == STDIN else os.path.basename(file)
        page = render_page(tokens, title, everything=everything)
        write_bytes(html, page.encode("utf-8"))
        return
    from phaseguard.show.terminal import render_inspection  # noqa: PLC0415

    print_rich(*render_inspection(tokens, everything=everything))


@app.command(epilog=_EXITS)
def normalize(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILES", help="Files; - or nothing reads stdin.")
    ] = None,
    level: Annotated[choices.Level, typer.Option(help="What may be changed.")] = choices.Level.SAFE,
    check: Annotated[
        bool, typer.Option("--check", help="List what would change; exit 1 if anything.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show a unified diff instead of the text.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", "-i", help="Write the files back.")] = False,
    output: choices.Output = None,
) -> None:
    """Remove decorative whitespace and rules that move tokens; code, tables and data stay as they are."""
    names = files or [STDIN]
    _refuse_mixtures(names, output, report=check or diff, in_place=in_place)
    from phaseguard.normalize import normalize as normalize_text  # noqa: PLC0415
    from phaseguard.show.changes import change_lines, unified_diff  # noqa: PLC0415

    done = [(name, text, normalize_text(text, level.value)) for name in names for text in [read_text(name)]]
    for name, text, result in done:
        label = "stdin" if name == STDIN else name
        if check and not diff:
            print_lines(change_lines(label, text, result.edits))
        if diff:
            print_lines([unified_diff(label, text, result.text)], end="")
        if in_place and result.edits:
            write_bytes(name, result.text.encode("utf-8"))
        if not (check or diff or in_place):
            write_bytes(output, result.text.encode("utf-8"))
    changed = sum(bool(result.edits) for _, _, result in done)
    if check:
        print_status(f"phaseguard: {changed} of {len(done)} files would change")
    if check and changed:
        raise typer.Exit(FOUND)


def _refuse_mixtures(names: Sequence[str], output: str | None, *, report: bool, in_place: bool) -> None:
    if in_place and report:
        raise InputError("--in-place writes files, --check and --diff only look: give one of them.")
    if output is not None and (report or in_place):
        raise InputError("--output is for the normalized text alone: drop --check, --diff or --in-place.")
    if in_place and STDIN in names:
        raise InputError("--in-place needs files, standard input cannot be written back.")
    if names.count(STDIN) > 1:
        raise InputError("standard input can be read only once: give - once.")
    if len(names) > 1 and not (report or in_place):
        raise InputError("several files need --in-place, --check or --diff; one file is written to stdout.")


@app.command(epilog=_EXITS)
def profiles(
    name: Annotated[str | None, typer.Argument(help="One profile, in full.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the models whose phases are known, and how: measured, reported, or only that there is a gap."""
    from phaseguard.profiles import list_profiles, load_profile  # noqa: PLC0415

    if name is not None:
        chosen = load_profile(name)
        if as_json:
            print_lines([chosen.to_json()], end="")
            return
        from phaseguard.show.profiles import profile_details  # noqa: PLC0415

        print_rich(profile_details(chosen))
        return
    entries = list_profiles()
    if as_json:
        from phaseguard.show.listing import listing_json  # noqa: PLC0415

        print_lines([listing_json(entries)])
        return
    from phaseguard.show.profiles import profile_table  # noqa: PLC0415

    print_rich(profile_table(entries))


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a character must not stop us
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(args=None if args is None else list(args), prog_name="phaseguard", standalone_mode=False)
    except _UsageError as fault:
        _print_usage_error(fault)
        return BAD_INPUT
    except PhaseGuardError as fault:
        print_error(re.sub(r"\bkey_passages\[\d+\]", "--key", str(fault)))
        return BAD_INPUT
    except OSError as fault:
        print_error(f"the output cannot be written: {fault.strerror or fault}.")
        return BAD_INPUT
    return code if isinstance(code, int) else OK


def _print_usage_error(fault: Any) -> None:
    message = fault.format_message().replace("Value error, ", "").rstrip(".")
    if message:  # it is empty when help was printed instead
        command = fault.ctx.command_path if fault.ctx is not None else "phaseguard"
        print_error(f"{message}. See {command} --help.")


def run() -> NoReturn:
    """Run as a process of its own: quick to start, quick to end, quiet when the reader goes away."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    gc.set_threshold(500_000)  # imports make a hundred thousand objects that all stay
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no matrix is multiplied here
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them reads every package
    try:
        code = main()
    except Exception:  # noqa: BLE001 - Python would exit with 1, which a check takes for a finding
        traceback.print_exc()
        code = INTERNAL
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or BAD_INPUT
    os._exit(code)  # freeing a vocabulary entry by entry takes a tenth of a second
