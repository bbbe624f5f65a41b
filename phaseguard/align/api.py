"""``align_prompt``: normalize, render, encode, find answer spans, solve pads, apply, encode again, prove."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from phaseguard.align.draft import Draft
from phaseguard.align.evidence import Evidence
from phaseguard.align.finish import finish
from phaseguard.align.keys import Wanted
from phaseguard.align.passages import Given
from phaseguard.align.prompt import Prompt
from phaseguard.align.repeat import Repeated, solve_with_copies
from phaseguard.align.report import AlignedPrompt, Report
from phaseguard.align.request import Request
from phaseguard.align.setting import Setting
from phaseguard.align.solve import Solution, located
from phaseguard.align.summary import summarize
from phaseguard.errors import InputError
from phaseguard.normalize import Level
from phaseguard.profiles import PhaseProfile
from phaseguard.text import Span
from phaseguard.tokens import TokenizerLike


def align_prompt(
    prompt: Any,
    *,
    key_passages: Given | Sequence[Given] | None = None,
    query: str | None = None,
    profile: str | PhaseProfile | Any = "deepseek-v4-flash",
    frozen: int = 0,
    level: Level = "safe",
    max_added_tokens: int | None = None,
    pads: str | Sequence[str] = "auto",
    strong: Iterable[int] | None = None,
    answer: str | Sequence[str] | None = None,
    occurrence: int | None = None,
    inside: bool = False,
    isolate: bool | Literal["auto"] = "auto",
    repeat: bool = False,
    tokenizer: TokenizerLike | None = None,
) -> AlignedPrompt:
    r"""Put the answer spans of key passages on the strong phases of a model, and prove it.

    Args:
        prompt: a string (one user message in the profile's chat encoding), a list of OpenAI-style
            messages, or a payload with ``messages``. It is not changed; ``.prompt`` of the result has
            the same type.
        key_passages: texts, :class:`~phaseguard.text.Span` or
            :class:`~phaseguard.align.passages.PassageSpan` of the prompt as given. A text that occurs
            several times is aligned at each place. None finds passages from the query.
        query: the question of the last turn; None takes the last user message's. Each earlier turn keeps
            the question of its own user message: where you gave another one then, give ``frozen`` now.
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
        isolate: whether pads also keep other text out of the chunks that answers stand in, and for an
            overlapping kernel out of the chunk before: about 4 to 8 tokens a record, for strides up to 16.
            ``"auto"`` isolates where no phase is known to be strong. What it is worth is a finding on
            on-device models; see ``report.isolation``.
        repeat: whether key passages are repeated to the letter, each as a paragraph of its own, in front of
            the last paragraph of the last user message, where that lies in the profile's raw window and
            the passage does not. What becomes of each is told in ``report.repeated``; one that does not fit
            is an error where you name it, and left out where the question found it. Copies are content, so
            ``max_added_tokens`` does not count them. Keep the returned messages as the history of a longer
            conversation: its next turn repeats in its own question.
        tokenizer: reads the request in place of the profile's tokenizer: any object with the members of
            :class:`phaseguard.tokens.Tokenizer`, or what :func:`phaseguard.tokens.load_tokenizer` takes.
            The profile's strengths are taken to hold for it.

    Returns:
        The aligned prompt with its report. When the proof fails, the normalized prompt with
        ``report.verified == False`` and a warning.

    Raises:
        InputError: for an argument or prompt that cannot be used, or a named passage that cannot be repeated.
        PassageNotFoundError: when a key passage or answer does not occur.
        ProfileError, TokenizerError, RenderError: when the profile, its tokenizer or its chat
            encoding cannot be loaded or cannot read this prompt.

    >>> text = "The door code is A-17.\n\nThe vault code is PROVOCATIVE-8417.\n\nWhich is the vault code?"
    >>> out = align_prompt(text, key_passages=["PROVOCATIVE-8417"], profile="deepseek-v4.1-flash")
    >>> span = out.report.passages[0].spans[0]
    >>> out.report.verified, span.phase_after
    (True, 1)
    """
    setting = Setting.read(
        profile,
        strong=strong,
        pads=pads,
        level=level,
        inside=inside,
        budget=max_added_tokens,
        isolate=isolate,
        repeat=repeat,
        tokenizer=tokenizer,
    )
    wanted = Wanted.read(key_passages, query, answer, occurrence)
    return finish(solve_with_copies(Draft.make(Prompt.read(prompt, frozen=frozen), setting, wanted)))


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
    tokenizer: TokenizerLike | None = None,
) -> Inspection:
    """Look at a prompt without changing it; arguments and errors are those of :func:`align_prompt`.

    >>> seen = inspect_prompt("The code is A-17.", key_passages=["A-17"], profile="deepseek-v4.1-flash")
    >>> [span.of(seen.text) for span in seen.spans], seen.report.passages[0].spans[0].phase_before
    (['A-17'], 1)
    """
    setting = Setting.read(profile, strong=strong, budget=0, tokenizer=tokenizer)
    if setting.evidence.period < 2:
        raise InputError(f"Profile {setting.profile.name} has no phase: there is nothing to inspect.")
    wanted = Wanted.read(key_passages, query, answer, occurrence)
    draft = Draft.make(Prompt.read(prompt), setting, wanted)
    keys = located(draft)
    report = summarize(Repeated(draft, Solution.unpadded(draft, keys)), {})
    return Inspection(
        draft.base.rendered.text, draft.base, report, tuple(key.request for key in keys), setting.evidence
    )
