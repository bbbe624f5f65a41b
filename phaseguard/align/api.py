"""``align_prompt``: normalize, render, encode, find answer spans, solve pads, apply, encode again, prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from phaseguard.align.evidence import Evidence, evidence_for
from phaseguard.align.keys import Wanted, choose_answers, choose_passages
from phaseguard.align.layout import Key
from phaseguard.align.pads import PadAlphabet, custom_alphabet, pad_alphabet
from phaseguard.align.passages import Given, Passage, Source
from phaseguard.align.plan import (
    Answers,
    Banned,
    MessagePlan,
    PlannedPad,
    locate,
    measure_messages,
    pad_edits,
    plan_pads,
)
from phaseguard.align.prompt import FieldKey, Prompt
from phaseguard.align.prove import Proof, prove
from phaseguard.align.report import AlignedPrompt, Report
from phaseguard.align.request import Request, encode_request
from phaseguard.align.summary import Outcome, summarize
from phaseguard.chat import Renderer, load_renderer, unstable_messages
from phaseguard.errors import InputError, RenderError
from phaseguard.normalize import normalize
from phaseguard.profiles import PhaseProfile, load_profile
from phaseguard.text import Edit, OffsetMap, Span, apply_edits
from phaseguard.tokens import Tokenizer, load_tokenizer

_REPAIRS = 12  # rounds of planning without a pad that did something else than measured


def align_prompt(
    prompt: Any,
    *,
    key_passages: Given | Sequence[Given] | None = None,
    query: str | None = None,
    profile: str | PhaseProfile | Any = "deepseek-v4-flash",
    frozen: int = 0,
    level: str = "safe",
    max_added_tokens: int | None = None,
    pads: str | Sequence[str] = "auto",
    strong: Iterable[int] | None = None,
    answer: str | Sequence[str] | None = None,
    occurrence: int | None = None,
    inside: bool = False,
) -> AlignedPrompt:
    r"""Put the answer spans of key passages on the strong phases of a model, and prove it.

    Args:
        prompt: a string (one user message in the profile's chat encoding), a list of OpenAI-style
            messages, or a payload with ``messages``. It is not changed; ``.prompt`` of the result has
            the same type.
        key_passages: texts, :class:`~phaseguard.text.Span` or
            :class:`~phaseguard.align.passages.PassageSpan` of the prompt as given. A text that occurs
            several times is aligned at each place. None finds passages from the query.
        query: the question; None takes the last user message's, each earlier turn keeping its own.
        profile: a profile's name, the path of its JSON file, or a
            :class:`~phaseguard.profiles.PhaseProfile`.
        frozen: this many leading messages stay byte-identical. Assistant messages always do.
        level: what :func:`phaseguard.normalize.normalize` may do first: ``off``, ``safe`` or ``full``.
            Tool results are never normalized.
        max_added_tokens: most tokens that pads may add; None for no limit.
        pads: ``"auto"`` (blanks first, dots where blanks do not do), ``"invisible"``, ``"visible"``, or
            your own strings, each ending with a newline.
        strong: phases to treat as strong, whatever the profile says.
        answer: the answer's own characters inside the key passages; None finds answer spans.
        occurrence: only this place of each key passage, from 0; -1 is the last.
        inside: whether pads may stand at blank lines inside a key passage.

    Returns:
        The aligned prompt with its report. When the proof fails, the normalized prompt with
        ``report.verified == False`` and a warning.

    Raises:
        InputError: for an argument or prompt that cannot be used.
        PassageNotFoundError: when a key passage or answer does not occur.
        ProfileError, TokenizerError, RenderError: when the profile, its tokenizer or its chat
            encoding cannot be loaded or cannot read this prompt.

    >>> text = "The door code is A-17.\n\nThe vault code is PROVOCATIVE-8417.\n\nWhich is the vault code?"
    >>> out = align_prompt(text, key_passages=["PROVOCATIVE-8417"], profile="deepseek-v4.1-flash")
    >>> span = out.report.passages[0].spans[0]
    >>> out.report.verified, span.phase_after
    (True, 1)
    """
    setting = _Setting.read(profile, strong, pads, level, inside=inside, max_added_tokens=max_added_tokens)
    draft = _draft(Prompt.read(prompt, frozen=frozen), setting)
    wanted = Wanted.read(key_passages, query, answer, occurrence)
    passages = choose_passages(draft.prompt, draft.sources, wanted)
    answers = choose_answers(passages, draft.sources, wanted, setting.tokenizer)
    return _align(draft, setting, passages, answers)


@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """A prompt as the model sees it, unchanged, token by token.

    Attributes:
        text: the request text, special tokens included.
        request: its tokens: ``request.encoding`` and, in front of the text, ``request.offset`` more.
        report: where the answer spans stand; nothing in the prompt was changed.
        spans: characters of ``text`` of each answer span, in the order of the report.
        evidence: which phases are strong, and how that is known.
    """

    text: str
    request: Request
    report: Report
    spans: tuple[Span, ...]
    evidence: Evidence


def inspect_prompt(
    prompt: Any,
    *,
    key_passages: Given | Sequence[Given] | None = None,
    query: str | None = None,
    profile: str | PhaseProfile | Any = "deepseek-v4-flash",
    strong: Iterable[int] | None = None,
    answer: str | Sequence[str] | None = None,
    occurrence: int | None = None,
) -> Inspection:
    """Look at a prompt without changing it; arguments and errors are those of :func:`align_prompt`.

    >>> seen = inspect_prompt("The code is A-17.", key_passages=["A-17"], profile="deepseek-v4.1-flash")
    >>> [span.of(seen.text) for span in seen.spans], seen.report.passages[0].spans[0].phase_before
    (['A-17'], 1)
    """
    setting = _Setting.read(profile, strong, (), "off", inside=False, max_added_tokens=0)
    draft = _draft(Prompt.read(prompt), setting)
    wanted = Wanted.read(key_passages, query, answer, occurrence)
    passages = choose_passages(draft.prompt, draft.sources, wanted)
    answers = choose_answers(passages, draft.sources, wanted, setting.tokenizer)
    report = _align(draft, setting, passages, answers).report
    stretches = locate(draft.base, draft.sources, passages, answers)
    spans = tuple(key.request for stretch in stretches for key in stretch.keys)
    return Inspection(draft.base.rendered.text, draft.base, report, spans, setting.evidence)


@dataclass(frozen=True, slots=True)
class _Setting:
    """The caller's choices, checked, with what they load."""

    profile: PhaseProfile
    evidence: Evidence
    tokenizer: Tokenizer
    renderer: Renderer
    alphabets: tuple[PadAlphabet, ...]
    level: str
    inside: bool
    budget: int | None

    @classmethod
    def read(
        cls,
        profile: Any,
        strong: Iterable[int] | None,
        pads: str | Sequence[str],
        level: str,
        *,
        inside: bool,
        max_added_tokens: int | None,
    ) -> _Setting:
        loaded = load_profile(profile)
        if max_added_tokens is not None and (
            not isinstance(max_added_tokens, int)
            or isinstance(max_added_tokens, bool)
            or max_added_tokens < 0
        ):
            raise InputError(
                f"max_added_tokens={max_added_tokens!r}: give a number of tokens from 0, or None."
            )
        evidence = evidence_for(loaded, strong)
        tokenizer = load_tokenizer(loaded.tokenizer)
        renderer = load_renderer(loaded.chat, reasoning=loaded.reasoning)
        alphabets = _alphabets(pads, tokenizer, evidence.period - 1) if evidence.usable else ()
        return cls(loaded, evidence, tokenizer, renderer, alphabets, level, inside, max_added_tokens)

    def encode(self, messages: Sequence[Any], options: Any) -> Request:
        rendered = self.renderer.render(messages, options)
        return encode_request(rendered, self.tokenizer, prefix_offset=self.profile.prefix_offset)


def _alphabets(pads: str | Sequence[str], tokenizer: Tokenizer, most: int) -> tuple[PadAlphabet, ...]:
    kinds = {"auto": ("invisible", "visible"), "invisible": ("invisible",), "visible": ("visible",)}
    if isinstance(pads, str):
        if pads not in kinds:
            raise InputError(f"pads={pads!r}: give 'auto', 'invisible', 'visible' or a list of strings.")
        return tuple(pad_alphabet(tokenizer, most, kind) for kind in kinds[pads])
    return (custom_alphabet(tokenizer, pads, most),) if pads else ()


@dataclass(frozen=True, slots=True)
class _Draft:
    """The normalized prompt."""

    prompt: Prompt
    sources: tuple[Source, ...]
    edits: dict[FieldKey, tuple[Edit, ...]]
    base: Request

    def messages(self, texts: dict[FieldKey, str]) -> Sequence[Any]:
        """The prompt's messages with other texts."""
        changed = self.prompt.with_texts(texts)
        if self.prompt.kind == "text":
            return [{"role": "user", "content": changed}]
        return Prompt.read(changed).messages


def _draft(prompt: Prompt, setting: _Setting) -> _Draft:
    sources: list[Source] = []
    edits: dict[FieldKey, tuple[Edit, ...]] = {}
    for field in prompt.fields:
        level = setting.level if field.editable and not field.is_tool else "off"
        normalized = normalize(field.text, level)
        sources.append(Source(field, normalized.text, OffsetMap(normalized.edits)))
        if normalized.edits:
            edits[field.key] = normalized.edits
    draft = _Draft(prompt, tuple(sources), edits, None)  # type: ignore[arg-type]
    messages = draft.messages({source.field.key: source.text for source in sources})
    return _Draft(prompt, tuple(sources), edits, setting.encode(messages, prompt.options))


def _measured(
    draft: _Draft, setting: _Setting, passages: Sequence[Passage], answers: Answers
) -> tuple[dict[int, MessagePlan], frozenset[int]]:
    """What can be done in each message, and which messages had to be looked at in a shorter request.

    A message is solved from itself and what precedes it, so that its text stays the same when the
    conversation goes on; where later messages change what precedes it, the request up to it counts.
    """

    def look(request: Request) -> dict[int, MessagePlan]:
        stretches = locate(request, draft.sources, passages, answers)
        return measure_messages(
            request,
            stretches,
            setting.alphabets,
            setting.tokenizer,
            period=setting.evidence.period,
            inside=setting.inside,
        )

    plans = look(draft.base)
    messages = draft.messages({source.field.key: source.text for source in draft.sources})
    unstable = unstable_messages(setting.renderer, messages, draft.prompt.options, tuple(plans))
    for message in unstable:
        plans[message] = look(_up_to(message, messages, draft, setting))[message]
    return plans, frozenset(unstable)


def _up_to(message: int, messages: Sequence[Any], draft: _Draft, setting: _Setting) -> Request:
    """The request that ends with a message, or the shortest longer one that can be rendered."""
    for stop in range(message + 1, len(messages)):
        try:
            return setting.encode(messages[:stop], draft.prompt.options)
        except RenderError:
            continue
    return draft.base


def _solve(
    draft: _Draft,
    setting: _Setting,
    measured: tuple[dict[int, MessagePlan], frozenset[int]],
    keys: Sequence[Key],
) -> tuple[tuple[PlannedPad, ...], Request, Proof]:
    """Plan and prove; when a pad does something else than measured, plan again without it."""
    plans, unstable = measured
    texts = {source.field.key: source.text for source in draft.sources}
    banned: set[Banned] = set()
    while True:
        planned = tuple(
            pad.placed_in(draft.base) if pad.place.key.message in unstable else pad
            for pad in plan_pads(plans, setting.evidence, budget=setting.budget, banned=banned)
        )
        if not planned:
            return (), draft.base, prove(draft.base, draft.base, (), keys)
        steps = pad_edits(planned, texts)
        changed = {key: apply_edits(texts[key], edits) for key, edits in steps.items()}
        padded = setting.encode(draft.messages({**texts, **changed}), draft.prompt.options)
        proof = prove(draft.base, padded, planned, keys)
        if proof.holds or proof.culprit is None or len(banned) >= _REPAIRS:
            return planned, padded, proof
        banned.add(proof.culprit.ban)


def _align(draft: _Draft, setting: _Setting, passages: Sequence[Passage], answers: Answers) -> AlignedPrompt:
    stretches = locate(draft.base, draft.sources, passages, answers)
    keys = [key for stretch in stretches for key in stretch.keys]
    texts = {source.field.key: source.text for source in draft.sources}
    planned: tuple[PlannedPad, ...] = ()
    padded, proof = draft.base, Proof(True, None, tuple(key.request for key in keys))
    if setting.evidence.usable and keys:
        planned, padded, proof = _solve(draft, setting, _measured(draft, setting, passages, answers), keys)
    if not proof.holds:
        planned, padded = (), draft.base
    steps = pad_edits(planned, texts)
    texts.update({key: apply_edits(texts[key], edits) for key, edits in steps.items()})
    outcome = Outcome(
        given=draft.base if not draft.edits else setting.encode(draft.prompt.messages, draft.prompt.options),
        base=draft.base,
        padded=padded,
        planned=planned,
        keys=tuple(keys),
        moved=proof.moved if proof.holds else tuple(key.request for key in keys),
        verified=proof.holds,
        culprit=proof.culprit,
    )
    every = {key: (draft.edits.get(key, ()), steps.get(key, ())) for key in {*draft.edits, *steps}}
    report = summarize(outcome, draft.sources, passages, answers, setting.evidence, setting.profile, every)
    return AlignedPrompt(draft.prompt.with_texts(texts), report, every)
