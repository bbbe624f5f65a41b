"""What can be done at a site: every pad is measured there, between the tokens that really stand around it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phaseguard.align.evidence import EDGE_PRICE, PRICE_PER_TOKEN, SECOND_CHOICE_PRICE
from phaseguard.align.pads import SEPARATORS, PadAlphabet
from phaseguard.align.prompt import FieldKey
from phaseguard.align.request import Request
from phaseguard.text import Span
from phaseguard.tokens.base import Ids, Tokenizer

_WINDOWS = (8, 40)  # tokens on either side that are encoded again; the wider one where the first is not exact
_ID_BYTES = 4  # token ids are uint32


@dataclass(frozen=True, slots=True)
class Place:
    """A site in the request.

    Attributes:
        key: the text in which it stands.
        content: the characters of that text between two blocks: a blank line, or nothing at an edge.
        request: the same characters in the request.
        edge: whether it stands at the edge of a message, where ``.strip()`` reaches.
        strips: whether the chat encoding itself takes blanks away there.
    """

    key: FieldKey
    content: Span
    request: Span
    edge: bool
    strips: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing to do at a place: write ``text`` instead of what stands there; it adds ``tokens``."""

    text: str
    tokens: int
    price: int
    kind: str


def measure(
    request: Request,
    places: Sequence[Place],
    alphabets: Sequence[PadAlphabet],
    tokenizer: Tokenizer,
    modulus: int,
) -> list[tuple[Choice, ...]]:
    """For each place the best choice for each number of tokens mod ``modulus``, cheapest first.

    A choice is kept only when its window shows that no token outside the place changes.

    Args:
        request: the request without pads.
        places: the sites to measure.
        alphabets: the pads to try, the preferred alphabet first.
        tokenizer: the request's tokenizer.
        modulus: the period; more than the longest pad where every number of tokens counts by itself.
    """
    boundaries = _Boundaries(request)
    trials = [(place, _candidates(request, place, alphabets)) for place in places]
    found: list[tuple[Choice, ...]] = [()] * len(places)
    left = list(range(len(places)))
    for reach in _WINDOWS:
        windows = {at: boundaries.window(places[at].request, reach) for at in left}
        texts = [
            window.before(request) + text + window.after(request)
            for at, window in windows.items()
            for text in (window.middle(request), *(trial.text for trial in trials[at][1]))
        ]
        encoded = iter(tokenizer.encode_ids(texts))
        left = []
        for at, window in windows.items():
            base = next(encoded)
            here = [next(encoded) for _ in trials[at][1]]
            if not np.array_equal(base, request.encoding.ids[window.first : window.stop]):
                left.append(at)
                continue
            found[at] = _menu(window, trials[at][1], base, here, modulus)
    return found


@dataclass(frozen=True, slots=True)
class _Trial:
    text: str
    kind: str
    price_per_token: int
    surcharge: int


@dataclass(frozen=True, slots=True)
class _Window:
    """Tokens ``first`` to ``stop`` around a place.

    ``head`` of them end before it, ``kept`` end before its end, and ``tail`` start behind it.
    """

    first: int
    stop: int
    head: int
    kept: int
    tail: int
    span: Span
    place: Span

    def before(self, request: Request) -> str:
        return request.rendered.text[self.span.start : self.place.start]

    def middle(self, request: Request) -> str:
        return request.rendered.text[self.place.start : self.place.end]

    def after(self, request: Request) -> str:
        return request.rendered.text[self.place.end : self.span.end]


class _Boundaries:
    """Finds windows that begin and end between tokens and never reach over a special token."""

    def __init__(self, request: Request) -> None:
        self._encoding = request.encoding
        self._specials = request.rendered.specials
        self._starts = [special.start for special in self._specials]
        self._length = len(request.rendered.text)

    def window(self, place: Span, reach: int) -> _Window:
        starts, ends = self._encoding.starts, self._encoding.ends
        low, high = self._segment(place)
        head = int(np.searchsorted(ends, place.start, side="right"))
        kept = int(np.searchsorted(ends, place.end, side="right"))
        tail = int(np.searchsorted(starts, place.end, side="left"))
        first, stop = max(low, head - reach), min(high, tail + reach)
        while first > low and starts[first] < ends[first - 1]:  # a character in several tokens
            first -= 1
        while stop < high and starts[stop] < ends[stop - 1]:
            stop += 1
        begin = int(starts[first]) if first < len(starts) else self._length
        end = int(ends[stop - 1]) if stop > first else begin
        span = Span(min(begin, place.start), max(end, place.end))
        return _Window(
            first, stop, max(head - first, 0), max(kept - first, 0), max(stop - tail, 0), span, place
        )

    def _segment(self, place: Span) -> tuple[int, int]:
        """Token range of the plain text around a place, up to the special tokens on both sides."""
        after = bisect_right(self._starts, place.start)
        low = 0
        if after:
            low = int(np.searchsorted(self._encoding.ends, self._specials[after - 1].end, side="right"))
        if after < len(self._specials):
            high = int(np.searchsorted(self._encoding.starts, self._specials[after].start, side="left"))
        else:
            high = len(self._encoding)
        return low, high


def _candidates(request: Request, place: Place, alphabets: Sequence[PadAlphabet]) -> list[_Trial]:
    separator = place.request.of(request.rendered.text)
    trials = []
    if separator == "\n\n" and any(alphabet.blank for alphabet in alphabets):
        trials += [_Trial(text, "separator", 0, 0) for text in SEPARATORS]
    for rank, alphabet in enumerate(alphabets):
        for pads in alphabet.by_tokens.values():
            for pad in pads[: 1 if pads[0].exact == 1 else 2]:
                if place.strips and pad.text[0].isspace():
                    continue
                surcharge = SECOND_CHOICE_PRICE * rank
                surcharge += EDGE_PRICE if place.edge and not pad.text.strip() else 0
                trials.append(_Trial(separator + pad.text, pad.kind, PRICE_PER_TOKEN, surcharge))
    return trials


def _menu(
    window: _Window, trials: Sequence[_Trial], base: Ids, padded: Sequence[Ids], modulus: int
) -> tuple[Choice, ...]:
    """Keep for each residue the choices that no other beats in both price and tokens."""
    kept: dict[int, list[Choice]] = {}
    plain = base.tobytes()
    for trial, ids in zip(trials, padded, strict=True):
        tokens = len(ids) - len(base)
        if tokens < 1 or tokens % modulus == 0 or not _local(window, trial, plain, ids.tobytes()):
            continue
        price = trial.price_per_token * tokens + trial.surcharge
        rivals = kept.setdefault(tokens % modulus, [])
        if not any(rival.price <= price and rival.tokens <= tokens for rival in rivals):
            rivals.append(Choice(trial.text, tokens, price, trial.kind))
    choices = [choice for rivals in kept.values() for choice in rivals]
    return tuple(sorted(choices, key=lambda choice: (choice.price, choice.tokens)))


def _local(window: _Window, trial: _Trial, base: bytes, ids: bytes) -> bool:
    """Whether the tokens before and behind are the same; only another separator may change the old one."""
    head = _ID_BYTES * (window.head if trial.kind == "separator" else window.kept)
    tail = _ID_BYTES * window.tail
    return ids[:head] == base[:head] and ids[len(ids) - tail :] == base[len(base) - tail :]
