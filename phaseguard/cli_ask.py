"""``phaseguard ask``: several layouts of a prompt to an endpoint, one answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaseguard import cli_choices as choices
from phaseguard.access import NAMES, Access
from phaseguard.cli_ask_run import Endpoint, show, show_forecast, vote
from phaseguard.cli_files import STDIN, Document
from phaseguard.cli_print import print_status
from phaseguard.errors import InputError

if TYPE_CHECKING:
    from phaseguard.ensemble import LayoutSet, Prices

EPILOG = (
    "Exit codes: 0 an answer; 1 no call gave an answer, or a tie is reported; 2 bad input or usage; "
    "3 an error of phaseguard itself; 130 interrupted. "
    f"The API key is read from {' or '.join(NAMES)} and is never shown."
)
_PRESET = re.compile("[a-z]+(-[a-z]+)*")
_NO_AGREEMENT = 2  # strong phases that agreement needs


class Rule(StrEnum):
    """Rules of voting."""

    MAJORITY = "majority"
    WEIGHTED = "weighted"
    PROBABILITY = "probability"
    PROBABILITY_SUM = "probability-sum"


def ask(
    base_url: Annotated[
        str, typer.Option(envvar="OPENAI_BASE_URL", show_envvar=True, help="Such as https://host/v1.")
    ],
    file: choices.PromptFile = STDIN,
    question: Annotated[str | None, typer.Option("--question", "-q", help="Asked behind the prompt.")] = None,
    model: Annotated[str | None, typer.Option(help="As the endpoint calls it; else the payload's.")] = None,
    key: choices.Key = None,
    query: choices.Query = None,
    profile: choices.Profile = "deepseek-v4-flash",
    messages: choices.Messages = False,
    strong: choices.Strong = None,
    isolate: choices.Isolate = None,
    repeat: choices.Repeat = False,
    reasoning: choices.Reasoning = None,
    layouts: Annotated[int, typer.Option(min=1, help="Most layouts; never more than the period.")] = 4,
    rule: Annotated[Rule, typer.Option(help="Who wins.")] = Rule.MAJORITY,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            help="When to ask no more: settled, agree, all, or an answer's probability; may be repeated."
        ),
    ] = None,
    extract: Annotated[
        list[str] | None,
        typer.Option(
            help="The final answer in a reply: answer-is, boxed, hashes, last-line, fence, json, whole, "
            "or a pattern; the first that finds one counts."
        ),
    ] = None,
    report_ties: Annotated[
        bool, typer.Option("--report-ties", help="No answer for a tie, in place of the strongest layout's.")
    ] = False,
    max_calls: Annotated[int | None, typer.Option(min=1, help="Most calls.")] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Calls at once behind the first; some may not be needed.")
    ] = 1,
    timeout: Annotated[float | None, typer.Option(help="Most seconds a call may take.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Of sampling.")] = 0.0,
    logprobs: Annotated[bool, typer.Option("--logprobs", help="Ask for the answers' probabilities.")] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="A further field of each request, NAME=JSON; may be repeated.", metavar="NAME=JSON"
        ),
    ] = None,
    price_input: Annotated[float | None, typer.Option(help="Price of a million prompt tokens.")] = None,
    price_cached: Annotated[float | None, typer.Option(help="Likewise of those from the cache.")] = None,
    price_output: Annotated[float | None, typer.Option(help="Price of a million answer tokens.")] = None,
    answer_tokens: Annotated[int, typer.Option(min=0, help="Expected of an answer, for the forecast.")] = 0,
    api_key_env: Annotated[
        str | None, typer.Option(help="Variable that holds the key.", metavar="NAME")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The forecast alone; nothing is asked.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: forecast, ballots and verdict.")
    ] = False,
) -> None:
    """Ask an endpoint several layouts of a prompt, whose answers stand at different phases, and vote.

    The forecast goes to stderr before the first call, ballots and verdict to stdout. Layouts are asked one
    after the other until the answer is clear. An answer cannot be streamed: it is known after the vote.
    """
    access = Access.read(base_url, api_key_env)
    prompt = with_question(Document.read(file, messages=messages).prompt, question)
    from phaseguard.ensemble import Ensemble  # noqa: PLC0415
    from phaseguard.voting import Budget  # noqa: PLC0415

    stops = _stops(stop)
    likely = logprobs or rule.value.startswith("probability") or any(isinstance(one, float) for one in stops)
    settings: dict[str, Any] = {
        "profile": choices.chosen_profile(profile, reasoning),
        "strong": choices.parse_strong(strong),
        "layouts": layouts,
        "rule": rule.value,
        "find_answer": _extractors(extract),
        "report_ties": report_ties,
        "budget": Budget(calls=max_calls),
        "timeout": timeout,
        "concurrency": concurrency,
        "answer_tokens": answer_tokens,
        "prices": _prices(price_input, price_cached, price_output),
        "isolate": "auto" if isolate is None else isolate,
        "repeat": repeat,
    }
    request = _request(prompt, model, temperature, logprobs=likely, options=option)
    made = Ensemble(str, **settings).lay_out(
        prompt, key_passages=key or None, query=query if key or query else question
    )
    endpoint = None if dry_run else Endpoint(access, request)
    ensemble = Ensemble(endpoint or str, **settings, stop=_useful(stops, made))
    forecast = ensemble.forecast(made)
    show_forecast(forecast, as_json=as_json, alone=dry_run)
    if endpoint is not None:
        show(access, forecast, vote(ensemble, endpoint, made, access), as_json=as_json)


def with_question(prompt: Any, question: str | None) -> Any:
    r"""The prompt with a question behind it, as a paragraph of its own.

    In messages it joins a user message at the end, since passages are found for the question of their own
    turn; behind any other message it is a user message.

    >>> with_question("The code is A-17.\n", "Which code?")
    'The code is A-17.\n\nWhich code?'
    """
    if question is None:
        return prompt
    if isinstance(prompt, str):
        before = prompt.rstrip()
        return f"{before}\n\n{question}" if before else question
    if isinstance(prompt, dict) and isinstance(prompt.get("messages"), list):
        return {**prompt, "messages": _asked(prompt["messages"], question)}
    return _asked(prompt, question) if isinstance(prompt, list) else prompt


def _asked(messages: list[Any], question: str) -> list[Any]:
    last: Any = messages[-1] if messages else None
    content = last.get("content") if isinstance(last, dict) and last.get("role") == "user" else None
    if isinstance(content, str):
        return [*messages[:-1], {**last, "content": with_question(content, question)}]
    if isinstance(content, list):
        return [*messages[:-1], {**last, "content": [*content, {"type": "text", "text": question}]}]
    return [*messages, {"role": "user", "content": question}]


def _stops(given: Sequence[str] | None) -> list[Any]:
    """Names, and the probability as a number."""
    stops: list[Any] = []
    for one in given or ["settled"]:
        try:
            stops.append(float(one))
        except ValueError:
            stops.append(one)
    return stops


def _useful(stops: Sequence[Any], layouts: LayoutSet) -> list[Any]:
    """Without ``agree`` where no two phases are known that could."""
    if "agree" not in stops or len(layouts.strong) >= _NO_AGREEMENT:
        return list(stops)
    print_status(
        f"phaseguard: note: --stop agree can do nothing here: it needs two strong phases, and "
        f"{len(layouts.strong)} are known. State them with --strong, or measure them with calibrate."
    )
    return [one for one in stops if one != "agree"] or ["settled"]


def _extractors(given: Sequence[str] | None) -> list[str | re.Pattern[str]] | None:
    """Presets by name, patterns compiled; a misspelt name is left for ``extract`` to refuse."""
    if not given:
        return None
    found: list[str | re.Pattern[str]] = []
    for one in given:
        try:
            found.append(one if _PRESET.fullmatch(one) else re.compile(one))
        except re.error as fault:
            raise InputError(f"--extract {one!r} is no pattern: {fault}.") from fault
    return found


def _prices(prompt: float | None, cached: float | None, answer: float | None) -> Prices | None:
    from phaseguard.ensemble import Prices  # noqa: PLC0415

    if prompt is None and cached is None and answer is None:
        return None
    if prompt is None or answer is None:
        raise InputError("A cost needs both --price-input and --price-output.")
    return Prices(prompt, answer, cached)


def _request(
    prompt: Any, model: str | None, temperature: float, *, logprobs: bool, options: Sequence[str] | None
) -> dict[str, Any]:
    """What each request says besides its messages."""
    named = model or (prompt.get("model") if isinstance(prompt, dict) else None)
    if not named:
        raise InputError("--model: say which model to ask.")
    more: dict[str, Any] = {}
    for one in options or ():
        name, equals, value = one.partition("=")
        if not (name and equals):
            raise InputError(f"--option {one!r}: give NAME=JSON, such as max_tokens=200.")
        try:
            more[name] = json.loads(value)
        except ValueError:
            more[name] = value
    request = {"model": named, "temperature": temperature, "extra_body": more}
    return request | ({"logprobs": True} if logprobs else {})
