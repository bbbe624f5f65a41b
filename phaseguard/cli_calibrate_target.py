"""What ``phaseguard calibrate`` asks: the options, the endpoint, how its requests are read, the texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from phaseguard.errors import InputError

if TYPE_CHECKING:
    from phaseguard.calibrate import Endpoint, Language, StandardLanguage
    from phaseguard.profiles import PhaseProfile
    from phaseguard.tokens import Tokenizer


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``phaseguard calibrate``, as given."""

    base_url: str | None
    model: str | None
    lab: str | None
    hf: str | None
    completions: bool
    reasoning: str | None
    context: int
    filler: str
    records: str | None
    answer_tokens: list[int] | None
    profile: str | None
    tokenizer: str | None
    chat: str | None
    items: int | None
    max_calls: int | None
    budget: float | None
    price_input: float | None
    price_output: float | None
    periods: str
    controls: bool
    results: str | None
    name: str | None
    out: str | None
    report: str | None
    plot: str | None
    weights: str | None
    revalidate: str | None
    provider: str | None
    api_key_env: str | None
    concurrency: int
    timeout: float
    seed: int
    yes: bool
    as_json: bool


_DEFAULTS: dict[str, Any] = {
    "context": 8000,
    "filler": "load",
    "periods": "2-16",
    "controls": True,
    "concurrency": 8,
    "timeout": 120.0,
    "seed": 0,
}
_SAID = {"controls": "--no-controls"}
_ASKED = ("base_url", "hf", "lab")
_READING = (
    "model",
    "reasoning",
    "context",
    "filler",
    "records",
    "answer_tokens",
    "profile",
    "tokenizer",
    "chat",
)
_LIMITS = ("max_calls", "budget")
_PRICES = ("price_input", "price_output")
_UNUSED = {
    "weights": (
        *_ASKED,
        *(name for name in _READING if name not in {"model", "tokenizer", "chat"}),
        *_LIMITS,
        *_PRICES,
        *("items", "periods", "controls", "results", "report", "plot", "revalidate"),
    ),
    "revalidate": ("profile", *_LIMITS, "periods", "controls", "name", "out", "report", "plot"),
    "lab": _READING,
    "hf": ("reasoning",),
}
_HINTS = {"revalidate": " It asks a small sample; --items sets how many texts."}


@dataclass(frozen=True, slots=True)
class Target:
    """Who is asked, how requests are read, and what is asked."""

    endpoint: Endpoint
    profile: PhaseProfile
    language: Language


def given(options: Options) -> Iterator[tuple[str, Any]]:
    """The options that differ from their defaults, with their values."""
    for name, value in asdict(options).items():
        if value not in (None, [], _DEFAULTS.get(name, False if isinstance(value, bool) else None)):
            yield name, value


def refuse_unused(options: Options) -> None:
    """Refuse options that have no effect beside others: a limit that nobody keeps costs money.

    Raises:
        InputError: which names them.
    """
    names = [name for name, _ in given(options)]
    for mode, unused in _UNUSED.items():
        idle = [_option(name) for name in names if name in unused] if mode in names else []
        if idle:
            raise InputError(
                f"{' and '.join(idle)} {'do' if len(idle) > 1 else 'does'} nothing with --{mode}: leave "
                f"{'them' if len(idle) > 1 else 'it'} out.{_HINTS.get(mode, '')}"
            )
    asked = [_option(name) for name in _ASKED if name in names]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)} each name who is asked: give one.")


def _option(name: str) -> str:
    return _SAID.get(name, f"--{name.replace('_', '-')}")


def target_of(options: Options, stack: ExitStack, known: PhaseProfile | None = None) -> Target:
    """The target that options name; ``known`` is the profile that is tried again.

    Raises:
        InputError: when they name none, or cannot be used together.
    """
    fresh = options.seed + (known is not None)  # other texts than those that the profile was measured on
    if options.lab is not None:
        from phaseguard.calibrate import LabEndpoint, LabLanguage, lab_profile  # noqa: PLC0415
        from phaseguard.lab.manifest import leading_name  # noqa: PLC0415
        from phaseguard.lab.spec import SCHEMES  # noqa: PLC0415

        model = leading_name(SCHEMES[options.lab], "ask") if options.lab in SCHEMES else options.lab
        return Target(LabEndpoint(model), known or lab_profile(model), LabLanguage.of(model, seed=fresh))
    if options.hf is not None:
        return _local(options, options.hf, known, fresh)
    if options.base_url is None or options.model is None:
        raise InputError(
            "Give --base-url and --model, --hf for a local model, or --lab for an on-device one."
        )
    return _remote(options, options.base_url, options.model, stack, known, fresh)


def _remote(
    options: Options, base_url: str, model: str, stack: ExitStack, known: PhaseProfile | None, seed: int
) -> Target:
    from phaseguard.calibrate import OpenAIEndpoint  # noqa: PLC0415
    from phaseguard.calibrate.settings import base_profile  # noqa: PLC0415

    base = base_profile(
        model,
        profile=known or options.profile,
        tokenizer=options.tokenizer,
        chat=options.chat,
        reasoning=options.reasoning,
        completions=options.completions,
    )
    endpoint = OpenAIEndpoint(
        base_url,
        model,
        completions=options.completions,
        key_env=options.api_key_env,
        concurrency=options.concurrency,
        timeout=options.timeout,
        provider=options.provider,
    )
    language = _texts(options, base, known, seed, completions=options.completions)
    return Target(stack.enter_context(endpoint), base, language)


def _local(options: Options, path: str, known: PhaseProfile | None, seed: int) -> Target:
    """A local model continues prompts as they are, or chats by its template; numbers are its choices."""
    from phaseguard.calibrate.local import LocalEndpoint, numbers  # noqa: PLC0415
    from phaseguard.calibrate.settings import base_profile  # noqa: PLC0415

    if path.endswith(".gguf") and options.tokenizer is None and known is None and options.profile is None:
        raise InputError("A .gguf file names no tokenizer that aligning can load later: give --tokenizer.")
    chat = options.chat or "plain"
    endpoint = LocalEndpoint.load(
        path,
        tokenizer=options.tokenizer,
        chat=chat,
        candidates=numbers if options.records is None else None,
        **({} if options.model is None else {"name": options.model}),
    )
    base = base_profile(
        endpoint.model,
        profile=known or options.profile,
        tokenizer=options.tokenizer or path,
        chat=chat,
        completions=endpoint.completions,
    )
    language = _texts(
        options, base, known, seed, completions=endpoint.completions, tokenizer=endpoint.tokenizer
    )
    return Target(endpoint, base, language)


def _texts(
    options: Options,
    base: PhaseProfile,
    known: PhaseProfile | None,
    seed: int,
    *,
    completions: bool,
    tokenizer: Tokenizer | None = None,
) -> StandardLanguage:
    from phaseguard.calibrate import PassageFacts, StandardLanguage  # noqa: PLC0415

    shapes = tuple(map(int, known.strengths)) if known is not None and known.strengths else (2,)
    return StandardLanguage(
        base,
        context=options.context,
        completions=completions,
        filler=options.filler,  # type: ignore[arg-type]
        answer_tokens_of=tuple(options.answer_tokens or shapes),
        facts=None if options.records is None else PassageFacts.read(options.records),
        seed=seed,
        tokenizer=tokenizer,
    )
