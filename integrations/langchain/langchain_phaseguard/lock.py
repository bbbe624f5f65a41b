"""Documents that all start at the same phase of a stuff-documents prompt, padded inside their own text."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.prompts import BasePromptTemplate, PromptTemplate, format_document

from langchain_phaseguard.payloads import to_payload
from phaseguard import PhaseGuard, PhaseProfile, Span, inspect_prompt, load_profile, load_tokenizer
from phaseguard.errors import InputError, PhaseGuardError, PhaseGuardWarning

_LEAD, _NEXT = "word.", "The"  # stand for the documents in front and behind
_MARK = "\x00"  # stands for a document's text


@dataclass(frozen=True)
class StuffPrompt:
    """How documents are packed into a prompt: what ``create_stuff_documents_chain`` is given.

    Attributes:
        prompt: the template; ``variable``: its variable that takes the documents.
        document_prompt: how each document is written; ``separator``: what stands between them.
        values: the template's other variables, as far as they are known; else the query stands for them.
        phase: where every document shall start; None leaves the first where it is, and needs to know nothing
            of what stands in front of it.
        prefix: tokens in front of the request that the chat encoding does not know of, for ``phase``.
    """

    prompt: BasePromptTemplate[Any]
    document_prompt: BasePromptTemplate[Any] = field(
        default_factory=lambda: PromptTemplate.from_template("{page_content}")
    )
    separator: str = "\n\n"
    variable: str = "context"
    values: Mapping[str, Any] = field(default_factory=dict)
    phase: int | None = None
    prefix: int = 0

    def messages(self, context: str, query: str | None) -> list[BaseMessage]:
        """The rendered prompt."""
        given = {self.variable: context, **self.values}
        for name in self.prompt.input_variables:
            given.setdefault(name, [] if name in self.prompt.input_types else query or "")
        return list(self.prompt.format_prompt(**given).to_messages())

    def block(self, document: Document, text: str) -> _Block:
        """A document as it is written, around another text.

        Raises:
            InputError: when the text does not stand in it once, and as it is.
        """
        marked = format_document(document.model_copy(update={"page_content": _MARK}), self.document_prompt)
        front, *behind = marked.split(_MARK)
        written = format_document(document.model_copy(update={"page_content": text}), self.document_prompt)
        if len(behind) != 1 or written != f"{front}{text}{behind[0]}":
            raise InputError("document_prompt: it must write {page_content} once, and as it is.")
        return _Block(front, text, behind[0])


@dataclass(frozen=True, slots=True)
class _Block:
    front: str
    text: str
    behind: str

    def __str__(self) -> str:
        return f"{self.front}{self.text}{self.behind}"


def locked(
    documents: Sequence[Document], guard: PhaseGuard, lock: StuffPrompt, query: str | None = None
) -> list[Document]:
    r"""Copies of documents with pads, so that each one's text starts at the same phase of the prompt.

    A document's text and what is written around it take a multiple of the period, so that this holds whatever
    documents stand in front, and in any order. It is proven on the rendered prompt.

    Args:
        documents: in the order in which they are packed.
        guard: names the model, and the kind of pads.
        lock: how they are packed.
        query: what they were retrieved for.

    Returns:
        The documents as they are, with a :class:`PhaseGuardWarning`, where the proof fails.

    >>> from langchain_core.prompts import ChatPromptTemplate
    >>> lock = StuffPrompt(ChatPromptTemplate.from_messages([("system", "Answer from:\n\n{context}")]))
    >>> found = [Document("The door code is A-17."), Document("The vault code is B-8417.")]
    >>> [document.page_content for document in locked(found, PhaseGuard(), lock)]
    ['The door code is A-17.', 'The vault code is B-8417.\n \t \t']
    """
    if not documents:
        return []
    try:
        made = _Locker(guard, lock, query).locked(documents)
    except (PhaseGuardError, KeyError, ValueError) as fault:
        why = f"lock: documents are packed as they are, since padding them failed: {fault}"
        warnings.warn(why, PhaseGuardWarning, stacklevel=2)
        return list(documents)
    return made


@dataclass(frozen=True, slots=True)
class _Pad:
    """The same pad as it stands in front of a text, and behind one."""

    front: str
    behind: str


@dataclass(frozen=True, slots=True)
class _Padded:
    """A text with its pads, the first ``front`` characters long."""

    text: str
    front: int


def _pads(kind: str | Sequence[str], most: int) -> Iterator[_Pad]:
    """No pad, then longer and longer ones of a kind."""
    yield _Pad("", "")
    lengths = range(1, most)
    if not isinstance(kind, str):
        lines = [unit * length for length in lengths for unit in kind]
        yield from (_Pad(line, "\n" + line.removesuffix("\n")) for line in lines)
    if kind in ("auto", "invisible"):
        blanks = [(" \t" * length)[:length] for length in lengths]
        yield from (_Pad(f"{blank}\n", f"\n{blank}") for blank in blanks)
    if kind in ("auto", "visible"):
        dots = [(". " * length).strip() for length in lengths]
        yield from (_Pad(f"{dot}\n\n", f"\n\n{dot}") for dot in dots)


@dataclass(frozen=True)
class _Locker:
    guard: PhaseGuard
    lock: StuffPrompt
    query: str | None

    @cached_property
    def profile(self) -> PhaseProfile:
        return load_profile(self.guard.profile)

    @cached_property
    def tokenizer(self) -> Any:
        own = self.guard.tokenizer
        return load_tokenizer(self.profile.tokenizer if own is None else own)

    def locked(self, documents: Sequence[Document]) -> list[Document]:
        """Pad, then prove.

        Raises:
            InputError: when no pads do, or the proof fails.
        """
        phase, lead = self.lock.phase, 0
        if phase is not None:
            first = self.lock.block(documents[0], documents[0].page_content)
            lead = phase - self._phases([_Block("", str(first), "")], [0])[0]
        padded = [self._padded(document, lead) for document in documents]
        blocks = [self.lock.block(one, pad.text) for one, pad in zip(documents, padded, strict=True)]
        found = self._phases(blocks, [pad.front for pad in padded])
        if len(set(found)) > 1 or (phase is not None and found[0] != phase % self.profile.period):
            raise InputError(f"in the rendered prompt they start at phases {found}.")
        return [
            one.model_copy(update={"page_content": pad.text})
            for one, pad in zip(documents, padded, strict=True)
        ]

    def _padded(self, document: Document, lead: int) -> _Padded:
        """With a pad in front, which brings the text ``lead`` tokens behind its block, and one behind it."""
        text = document.page_content
        pads = tuple(_pads(self.guard.pads, 4 * self.profile.period))
        front = self._fitting(document, (pad.front + text for pad in pads), lead, text)
        whole = self._fitting(document, (front + pad.behind for pad in pads), 0, None)
        return _Padded(whole, len(front) - len(text))

    def _fitting(self, document: Document, candidates: Iterable[str], wanted: int, until: str | None) -> str:
        """The first candidate where so many tokens, mod the period, stand up to a text or the next block."""
        before = f"{_LEAD}{self.lock.separator}"
        for candidate in candidates:
            block = self.lock.block(document, candidate)
            whole = f"{before}{block}{self.lock.separator}{_NEXT}"
            end = len(whole) - len(_NEXT)
            if until is not None:
                end = len(before) + len(block.front) + len(candidate) - len(until)
            starts = self.tokenizer.encode(whole).starts
            if (_index(starts, end) - _index(starts, len(before)) - wanted) % self.profile.period == 0:
                return candidate
        raise InputError("no pad adds the tokens that are needed.")

    def _phases(self, blocks: Sequence[_Block], pads: Sequence[int]) -> list[int]:
        """The phase of each text behind its pad, in the rendered prompt."""
        context = self.lock.separator.join(map(str, blocks))
        payload = to_payload(self.lock.messages(context, self.query))
        seen = inspect_prompt(payload, key_passages=(), profile=self.profile, tokenizer=self.guard.tokenizer)
        if seen.text.count(context) != 1:
            raise InputError("the prompt does not hold the documents once, and as they are.")
        step = len(self.lock.separator)
        begins = accumulate((len(str(one)) + step for one in blocks[:-1]), initial=seen.text.index(context))
        places = [
            start + len(block.front) + pad for start, block, pad in zip(begins, blocks, pads, strict=True)
        ]
        index = [seen.request.offset + seen.request.token_range(Span(at, at + 1))[0] for at in places]
        return [(one + self.lock.prefix) % self.profile.period for one in index]


def _index(starts: Any, at: int) -> int:
    """The token that holds a character."""
    return int(np.searchsorted(starts, at, side="right")) - 1
