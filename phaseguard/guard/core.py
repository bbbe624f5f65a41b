"""``PhaseGuard``: what an application configures once, and asks before each call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from typing import Any, Literal

from pydantic_core.core_schema import CoreSchema, is_instance_schema

from phaseguard.align import AlignedPrompt, Report
from phaseguard.align.passages import Given
from phaseguard.align.prompt import Prompt
from phaseguard.errors import InputError, PhaseGuardError, PhaseGuardWarning
from phaseguard.guard.bare import is_textless, normalized_only, untouched
from phaseguard.guard.marks import Marks
from phaseguard.guard.memory import Memory
from phaseguard.guard.models import Models
from phaseguard.guard.places import as_given, is_asked, places_of
from phaseguard.guard.survival import Survival, survival
from phaseguard.guard.telling import LOG, Telling, UnknownModel
from phaseguard.guard.turn import Ask, Turn, align_turn, readable
from phaseguard.normalize import Level, normalize
from phaseguard.profiles import PhaseProfile
from phaseguard.tokens import TokenizerLike


@dataclass(frozen=True, eq=False)
class PhaseGuard:
    r"""One object for an application: retrieval normalizes and marks with it, the last layer aligns with it.

    Safe to share between threads and tasks. It makes no call fail that would have worked without it: a prompt
    that it cannot align goes out normalized, or as it is, with a :class:`PhaseGuardWarning` and the reason in
    ``report.warnings``. Only wrong arguments of your own are errors.

    **Earlier turns stay byte-identical.** What decided a turn (marks, a query, key passages) is gone in the
    next one, so the guard remembers the edits of each message by a digest of all that stands in front of it,
    as given and as sent, with the payload's tools, formats, ``user``, ``safety_identifier`` and
    ``prompt_cache_key``; bounded, and without the texts. The last turn is never looked up, so no other
    conversation decides it. What is unknown (another process, long ago) goes by :func:`align_prompt`'s own
    rule, which looks at the content alone: marked passages of earlier turns may then stand elsewhere, once.

    **Aligning again changes nothing**, so that guarded layers may be nested in a request.

    Args:
        profile: name, file or :class:`PhaseProfile` of the model.
        strong, level, pads, isolate, repeat, max_added_tokens, tokenizer: as in :func:`align_prompt`;
            ``strong`` and ``tokenizer`` hold for ``profile``, not for those in ``models``.
        unknown_model: what happens where a payload names a model that the guard has no profile for, or cannot
            be rendered: it is normalized only, and ``"warn"`` says so once, ``"ignore"`` only in the log;
            ``"raise"`` raises instead.
        models: profiles of other models, or other names of this one, by the name that payloads give.
        marks: most key passages that one request marks.
        on_report: called with the report of every alignment; what it raises is logged.

    Raises:
        InputError, ProfileError, TokenizerError: for arguments that cannot be used.

    >>> guard = PhaseGuard(strong={2, 3})
    >>> guard.mark(["The vault code is PROVOCATIVE-8417."], query="Which is the vault code?")
    >>> text = "The door code is A-17.\n\nThe vault code is PROVOCATIVE-8417.\n\nWhich is the vault code?"
    >>> messages = [{"role": "user", "content": text}]
    >>> out = guard.align_payload({"model": "deepseek-v4-flash", "messages": messages})
    >>> out.report.verified, [span.phase_after for span in out.report.passages[0].spans]
    (True, [2])
    """

    profile: str | PhaseProfile | Mapping[str, Any] = "deepseek-v4-flash"
    _: KW_ONLY
    strong: Iterable[int] | None = None
    level: Level = "safe"
    pads: str | Sequence[str] = "auto"
    isolate: bool | Literal["auto"] = "auto"
    repeat: bool = False
    max_added_tokens: int | None = None
    tokenizer: TokenizerLike | None = None
    unknown_model: UnknownModel = "warn"
    models: Mapping[str, str | PhaseProfile] | None = None
    marks: int = 64
    on_report: Callable[[Report], object] | None = field(default=None, repr=False)

    _models: Models = field(init=False, repr=False)
    _marks: Marks = field(init=False, repr=False)
    _memory: Memory = field(init=False, repr=False)
    _telling: Telling = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.marks, int) or isinstance(self.marks, bool) or self.marks < 1:
            raise InputError(f"marks={self.marks!r}: give how many passages a request may mark, 1 or more.")
        strong = frozenset(self.strong) if isinstance(self.strong, Iterable) else self.strong
        own = {"strong": strong, "tokenizer": self.tokenizer}
        models = Models.read(
            self.profile,
            self.models,
            own,
            level=self.level,
            pads=self.pads,
            isolate=self.isolate,
            repeat=self.repeat,
            budget=self.max_added_tokens,
        )
        for name, value in (
            ("profile", models.own.profile),
            ("strong", strong),
            ("_models", models),
            ("_marks", Marks(self.marks)),
            ("_memory", Memory()),
            ("_telling", Telling(self.unknown_model, self.on_report)),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> CoreSchema:
        """Of a field of pydantic models: an instance, taken as it is."""
        return is_instance_schema(cls)

    def __reduce__(self) -> tuple[Any, ...]:
        choices = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return partial(PhaseGuard, **choices), ()  # marks and memory stay with the process

    def normalize(self, text: str) -> str:
        r"""A text with decorative whitespace removed: the retrieval side.

        >>> PhaseGuard().normalize("One. \n\n\n\nTwo.")
        'One.\n\nTwo.'
        """
        return normalize(text, self.level).text

    def mark(
        self, passages: Iterable[str], *, query: str | None = None, request: Hashable | None = None
    ) -> None:
        """Mark key passages for the running request; found by content in what its turn added.

        Marks never reach another request: with ``request`` only calls with the same key see them, until
        :meth:`forget`; inside :meth:`request` only calls in it; else only this context (a thread's, a
        task's), and there only a prompt in which ``query`` stands.

        Args:
            passages: retrieved texts, the most important first.
            query: what they were retrieved for.
            request: a key of the request, where its parts run in contexts of their own.
        """
        if not self._marks.add(passages, query, request):
            self._telling.warn(
                "Marks without a query, a request or a surrounding guard.request() are never used."
            )

    def marked(
        self, prompt: Any, *, query: str | None = None, request: Hashable | None = None
    ) -> tuple[str, ...]:
        """The marks of this request that stand in a prompt: a string, messages, or a payload.

        Args:
            prompt: where they are looked for.
            query: what is asked, where the prompt does not say it.
            request: the request's key.

        >>> guard = PhaseGuard()
        >>> with guard.request():
        ...     guard.mark(["The code is A-17.", "The desk is D-4."])
        ...     guard.marked("The code is A-17.")
        ('The code is A-17.',)
        """
        if (read := readable(prompt)) is None:
            return ()
        sources = as_given(read)
        marks = self._marks.of(request, lambda asked: asked == query or is_asked(asked, read, sources))
        return tuple(passage for passage in marks if places_of(passage, sources))

    def request(self) -> AbstractContextManager[None]:
        """A scope: marks made inside are seen inside alone, by its tasks and copied contexts too."""
        return self._marks.scope()

    def forget(self, request: Hashable) -> None:
        """Drop the marks of a request that has ended."""
        self._marks.forget(request)

    def align_payload(
        self,
        payload: Mapping[str, Any],
        *,
        key_passages: Given | Sequence[Given] | None = None,
        query: str | None = None,
        frozen: int = 0,
        request: Hashable | None = None,
    ) -> AlignedPrompt:
        r"""Align what is about to be sent: an OpenAI-style payload in, the same shape out.

        Args:
            payload: ``messages`` and all else that is sent; ``extra_body`` is read as the endpoint reads it.
            key_passages: always win. None takes the marks that stand in what this turn added, else what the
                question points at.
            query: the question of the last turn; None takes the last user message's.
            frozen: this many leading messages stay as they are.
            request: the key that marks were made with.

        Returns:
            ``.prompt`` is a payload; its report tells of the earlier turns as they were sent, and of the pads
            that this turn needed.

        Raises:
            InputError, PassageNotFoundError: for arguments that do not fit; never because of marks.
            PhaseGuardError: with ``unknown_model="raise"``, when the payload cannot be aligned.

        >>> guard = PhaseGuard(unknown_model="ignore")
        >>> messages = [{"role": "user", "content": "Hi. \n"}]
        >>> made = guard.align_payload({"model": "gpt-5", "messages": messages})
        >>> made.prompt, made.report.verified
        ({'model': 'gpt-5', 'messages': [{'role': 'user', 'content': 'Hi.\n'}]}, False)
        """
        if not isinstance(payload, Mapping):
            raise InputError(f"A payload is a dict, not {type(payload).__name__}: use align() for it.")
        return self.align(payload, key_passages=key_passages, query=query, frozen=frozen, request=request)

    def align(
        self,
        prompt: Any,
        *,
        key_passages: Given | Sequence[Given] | None = None,
        query: str | None = None,
        frozen: int = 0,
        request: Hashable | None = None,
    ) -> AlignedPrompt:
        """As :meth:`align_payload`, for a string or a list of messages too; these name no model."""
        ask = Ask.read(key_passages, query, frozen, request)
        try:
            made = self._align(prompt, ask)
        except (PhaseGuardError, PhaseGuardWarning):
            raise
        except Exception as fault:
            if self.unknown_model == "raise":
                raise
            LOG.exception("A prompt could not be aligned")
            why = f"A prompt goes out as it is: aligning it failed with {type(fault).__name__}: {fault}"
            self._telling.warn(why)
            made = untouched(prompt, self._models.own.profile, why)
        self._telling.report(made.report)
        return made

    def survives(
        self, prompt: AlignedPrompt | Any, strip: Callable[[str], str] = str.strip, **ask: Any
    ) -> Survival:
        r"""Whether a late step that strips each message's text would undo an alignment.

        Args:
            prompt: what was returned by :meth:`align`, or a prompt to align first.
            strip: what the late step does to each text: a server, a splitter, a proxy.
            ask: arguments of :meth:`align`, for a prompt.

        Returns:
            What would be lost, and what to do.

        >>> guard = PhaseGuard(strong={3})
        >>> guard.survives("The code is A-17.", key_passages=["A-17"]).lost[0].text
        ' \t\n'
        """
        aligned = prompt if isinstance(prompt, AlignedPrompt) else self.align(prompt, **ask)
        model = aligned.prompt.get("model") if isinstance(aligned.prompt, Mapping) else None
        return survival(aligned, strip, self._models.setting_of(model) or self._models.own)

    def wrap(self, client: Any) -> Any:
        """An ``openai`` client with aligned chat completions; see :func:`phaseguard.guard.openai.wrap`."""
        from phaseguard.guard.openai import wrap  # noqa: PLC0415 - openai is loaded only here

        return wrap(self, client)

    def _align(self, prompt: Any, ask: Ask) -> AlignedPrompt:
        try:
            turn = Turn.of(Prompt.read(prompt))
        except InputError as fault:
            return self._unread(prompt, fault)
        setting = self._models.setting_of(turn.model)
        if setting is None:
            unknown = InputError(self._models.explain(turn.model))
            return self._bare(prompt, self._models.own.profile, ask, unknown)
        try:
            return align_turn(turn, ask, setting, self._marks, self._memory)
        except InputError:
            raise  # an argument of the caller's does not fit
        except PhaseGuardError as fault:
            return self._bare(prompt, setting.profile, ask, fault)

    def _unread(self, prompt: Any, fault: InputError) -> AlignedPrompt:
        """Without any text there is nothing to do; the endpoint says what is wrong with another prompt."""
        why = f"A prompt goes out as it is: {fault}"
        if not is_textless(prompt):
            if self.unknown_model == "raise":
                raise fault
            self._telling.warn(why)
        return untouched(prompt, self._models.own.profile, why)

    def _bare(self, prompt: Any, profile: PhaseProfile, ask: Ask, fault: PhaseGuardError) -> AlignedPrompt:
        if self.unknown_model == "raise":
            raise fault
        why = f"A prompt is only normalized: {fault}"
        self._telling.warn(why)
        return normalized_only(prompt, profile, self.level, ask.frozen, why)
