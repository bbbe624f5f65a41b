"""The alphabet of pads: for each tokenizer, short strings that add an exact number of tokens.

Spaces alone cannot steer: a run of them merges into one token. What steers is found by trying
candidates between real kinds of text, once for each tokenizer; at a site every pad is measured again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from phaseguard.errors import InputError
from phaseguard.tokens.base import Tokenizer

# how lines end and begin in prose, lists, code, tables and Chinese text
_BEFORE = ("word.", "8417", "（中文）。", "end:", "`x`")
_AFTER = ("The", "word", "- item", "# Head", "中文", "[1]")
_LEAST_EXACT = 0.9
SEPARATORS = ("\n \n", "\n\t\n")  # other spellings of one blank line
_OTHER_SEPARATORS = "|".join(SEPARATORS)


@dataclass(frozen=True, slots=True)
class Pad:
    """A line, or a paragraph of its own, that adds ``tokens`` tokens after a blank line.

    Attributes:
        text: its characters; it ends with a newline.
        tokens: tokens it adds in most places.
        kind: ``invisible`` (blanks), ``visible`` (dots) or ``custom``.
        exact: share of the trial places where it adds exactly that many.
    """

    text: str
    tokens: int
    kind: str
    exact: float


@dataclass(frozen=True, slots=True)
class PadAlphabet:
    """Pads by the tokens they add, best first; ``blank`` when they are made of blanks alone."""

    by_tokens: Mapping[int, tuple[Pad, ...]]
    blank: bool

    def __len__(self) -> int:
        return sum(len(pads) for pads in self.by_tokens.values())


# what one process has found out, by tokenizer, most tokens and kind
_TESTED: dict[tuple[str, str, int, str], PadAlphabet] = {}


def pad_alphabet(tokenizer: Tokenizer, most: int, kind: str) -> PadAlphabet:
    r"""The pads of one kind that add 1 to ``most`` tokens with this tokenizer.

    Args:
        tokenizer: the tokenizer of the target model.
        most: largest number of tokens wanted, the period minus one.
        kind: ``"invisible"`` or ``"visible"``.

    >>> from phaseguard.tokens import load_tokenizer
    >>> alphabet = pad_alphabet(load_tokenizer("deepseek-v4"), 3, "invisible")
    >>> [pads[0].text for pads in alphabet.by_tokens.values()]
    [' \n', ' \t\n', ' \t \t\n']
    """
    key = (tokenizer.name, tokenizer.digest, most, kind)
    if key not in _TESTED:
        candidates = _invisible(most) if kind == "invisible" else _visible(most)
        _TESTED[key] = _tested(tokenizer, tuple(dict.fromkeys(candidates)), kind, most)
    return _TESTED[key]


def custom_alphabet(
    tokenizer: Tokenizer, pads: Sequence[str], most: int, *, joined: bool = False
) -> PadAlphabet:
    """The alphabet of the caller's own pads; ``joined``: also of two or more of them one after the other.

    Raises:
        InputError: when a pad is not a string that ends with a newline, or none adds 1 to ``most`` tokens.
    """
    for pad in pads:
        if not isinstance(pad, str) or not pad.endswith("\n"):
            raise InputError(
                f"pads: {pad!r} must be a string that ends with a newline, to stand on a line of its own."
            )
    alphabet = _tested(tokenizer, tuple(dict.fromkeys(pads)), "custom", most)
    if joined:
        alphabet = _tested(tokenizer, _joined(alphabet, most), "custom", most)
    if not len(alphabet):
        raise InputError(
            f"pads: none of {list(pads)!r} adds 1 to {most} tokens with tokenizer {tokenizer.name!r}: "
            "give others, or 'auto'."
        )
    return alphabet


def _joined(alphabet: PadAlphabet, most: int) -> tuple[str, ...]:
    """For each number of tokens the given pads, or as few as possible one after the other."""
    fewest: dict[int, tuple[str, ...]] = {0: ()}
    for total in range(1, most + 1):
        rows = [
            (*fewest[total - tokens], pads[0].text)
            for tokens, pads in alphabet.by_tokens.items()
            if total - tokens in fewest
        ]
        if rows:
            fewest[total] = min(rows, key=len)
    single = [pad.text for pads in alphabet.by_tokens.values() for pad in pads]
    return tuple(dict.fromkeys([*single, *("".join(row) for row in fewest.values() if row)]))


def standing_tokens(text: str, alphabets: Sequence[PadAlphabet]) -> int:
    r"""Tokens of the pads that already stand in a text: they count against a budget.

    Without this a text that was aligned with a budget would be given the budget again.

    >>> from phaseguard.tokens import load_tokenizer
    >>> dots = pad_alphabet(load_tokenizer("deepseek-v4"), 3, "visible")
    >>> standing_tokens("One.\n\n. .\n\nTwo.", [dots])
    2
    """
    tokens = {pad.text: pad.tokens for a in alphabets for pads in a.by_tokens.values() for pad in pads}
    if not tokens:
        return 0
    pads = "|".join(re.escape(pad) for pad in sorted(tokens, key=len, reverse=True))
    # what a pad stands in front of may be indented, or begin with a newline where a whole text does
    pattern = re.compile(
        rf"\A(?P<opening>{pads})|(?<=\n\n)(?P<pad>{pads})(?=[ \t]*\S|\Z)|(?<=\S)(?:{_OTHER_SEPARATORS})(?=\S)"
    )
    return sum(tokens.get(match["opening"] or match["pad"], 1) for match in pattern.finditer(text))


def _invisible(most: int) -> list[str]:
    """Blanks and tabs in turn: neither merges with the other in the vocabularies known."""
    lengths = range(1, 3 * most + 3)
    alternating = [(first * length)[:length] + "\n" for length in lengths for first in (" \t", "\t ")]
    lines = [unit * count for unit in (" \n", "\t \n") for count in range(2, most + 1)]
    return [*alternating, *lines]


def _visible(most: int) -> list[str]:
    """Lines of dots: not a rule, not a list, not a heading, so they stay a paragraph of their own."""
    return list(
        chain.from_iterable(
            (" ".join([unit] * count) + "\n\n" for count in range(1, most + 2)) for unit in ".…·"
        )
    )


def _tested(tokenizer: Tokenizer, candidates: tuple[str, ...], kind: str, most: int) -> PadAlphabet:
    places = [(before + "\n\n", after) for before in _BEFORE for after in _AFTER]
    plain = [len(ids) for ids in tokenizer.encode_ids([before + after for before, after in places])]
    padded = tokenizer.encode_ids([before + pad + after for pad in candidates for before, after in places])
    found: dict[int, list[Pad]] = {}
    for number, pad in enumerate(candidates):
        here = padded[number * len(places) : (number + 1) * len(places)]
        added = Counter(len(ids) - base for ids, base in zip(here, plain, strict=True))
        tokens, count = added.most_common(1)[0]
        if 1 <= tokens <= most and (exact := count / len(places)) >= _LEAST_EXACT:
            found.setdefault(tokens, []).append(Pad(pad, tokens, kind, exact))
    return PadAlphabet(
        {
            tokens: tuple(sorted(pads, key=lambda pad: (-pad.exact, len(pad.text))))
            for tokens, pads in sorted(found.items())
        },
        blank=kind == "invisible",
    )
