"""``phaseguard calibrate``: parse, one call, print."""

from __future__ import annotations

from typing import Annotated

import typer

from phaseguard.cli_calibrate_run import run_calibrate, run_revalidate
from phaseguard.cli_calibrate_target import Options, refuse_unused
from phaseguard.cli_calibrate_weights import weights_command

FOUND = 1
EPILOG = (
    "Exit codes: 0 done; 1 undecided, or a profile does not hold any more; 2 bad input, or an endpoint that "
    "cannot be asked; 3 an error of phaseguard itself; 130 interrupted: the same command goes on."
)


def calibrate(
    base_url: Annotated[str | None, typer.Option(help="Such as https://api.deepseek.com/v1.")] = None,
    model: Annotated[str | None, typer.Option(help="The model, as the endpoint calls it.")] = None,
    lab: Annotated[
        str | None, typer.Option(help="An on-device model or scheme instead, such as csa4.", metavar="SCHEME")
    ] = None,
    hf: Annotated[
        str | None,
        typer.Option(help="A local transformers model instead: a folder, or a .gguf file.", metavar="PATH"),
    ] = None,
    completions: Annotated[
        bool, typer.Option("--completions", help="Legacy completions: the prompt is continued as it is.")
    ] = False,
    reasoning: Annotated[str | None, typer.Option(help="off, low, high or max.")] = None,
    context: Annotated[int, typer.Option(help="Tokens of the longest prompts.")] = 8000,
    filler: Annotated[str, typer.Option(help="load, text or ask: what stands around a record.")] = "load",
    records: Annotated[
        str | None, typer.Option(help=r"Your own passages, answers marked [\[so]].", metavar="FILE")
    ] = None,
    answer_tokens: Annotated[
        list[int] | None, typer.Option(help="Tokens of answers, 1 to 3; may be repeated.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", "-p", help="How requests are read; known for known models.")
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="A name, a tokenizer.json or a hub name.")] = None,
    chat: Annotated[
        str | None, typer.Option(help="plain, deepseek-v4, deepseek-v4.1 or jinja:FOLDER.")
    ] = None,
    items: Annotated[int | None, typer.Option(help="Texts; each is asked at every shift. 60.")] = None,
    max_calls: Annotated[int | None, typer.Option(help="Calls at most.")] = None,
    budget: Annotated[float | None, typer.Option(help="Dollars at most; needs prices.")] = None,
    price_input: Annotated[float | None, typer.Option(help="Dollars a million prompt tokens.")] = None,
    price_output: Annotated[float | None, typer.Option(help="Dollars a million answer tokens.")] = None,
    periods: Annotated[str, typer.Option(help="Candidates, such as 2-16 or 2,4,8,128.")] = "2-16",
    controls: Annotated[bool, typer.Option(help="Ask negative controls once an effect is found.")] = True,
    results: Annotated[
        str | None, typer.Option(help="Every answer goes here (.jsonl).", metavar="FILE")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The new profile's name.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the profile here, not among your own.")
    ] = None,
    report: Annotated[
        str | None, typer.Option(help="Write the findings as a page.", metavar="FILE.html")
    ] = None,
    plot: Annotated[str | None, typer.Option(help="Write a figure here (.png, .svg, .pdf).")] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="Only read what a checkpoint says: a folder, or owner/name.", metavar="PATH"),
    ] = None,
    revalidate: Annotated[
        str | None, typer.Option(help="Ask a small sample: does this profile still hold?", metavar="PROFILE")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="Who serves the model; the host.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="Variable with the API key; PHASEGUARD_API_KEY or OPENAI_API_KEY.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Calls under way at once.")] = 8,
    timeout: Annotated[float, typer.Option(help="Seconds for one call.")] = 120.0,
    seed: Annotated[int, typer.Option(min=0, help="Of texts and order.")] = 0,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find out on an endpoint whether phase matters, at which period, and which phases are strong.

    The plan with its cost comes first. What is found is kept as a profile, which aligning uses from then on.
    """
    options = Options(**locals())
    refuse_unused(options)
    if weights is not None:
        weights_command(
            weights, name=name, tokenizer=tokenizer, chat=chat, model=model, output=out, as_json=as_json
        )
        return
    done = run_calibrate(options) if revalidate is None else run_revalidate(options, revalidate)
    if not done:
        raise typer.Exit(FOUND)
