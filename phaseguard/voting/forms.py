"""The comparable form of an answer: two answers are the same when their forms are equal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from phaseguard.errors import InputError, did_you_mean
from phaseguard.voting.characters import bare, joined, plain, without_fence
from phaseguard.voting.quantities import number, quantity
from phaseguard.voting.structures import json_form, list_form

Kind = Literal["auto", "text", "number", "choice", "list", "set"]

_SHORT = 200  # characters; forms of longer answers are not kept
_NAMED_OPTION = re.compile(r"(?:option|choice)\s+", re.IGNORECASE)
_OPTION = re.compile(
    r"[(\[]?(?P<letter>[a-z])(?:[)\]]?[.:)\]]?$|[)\]][.:]?\s+\S|[.:]\s+\S|\s+[-—]\s+\S)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Form:
    """How answers are compared; call it with an answer to get its form.

    Everything is done that is certain, and nothing else. In every kind: characters are written in one way,
    a code fence around the whole answer, a label such as ``Answer:``, quotes, emphasis and trailing stops
    are removed, runs of blanks become one, and case does not count. Lines that are indented, as in code,
    are compared as they are. Then, by kind:

    - ``auto``: numbers by value (``0.5``, ``1/2``, ``50%``; ``1,000``, ``1 000``, ``1_000``), a number with a
      unit or currency sign likewise, JSON objects and arrays with any key order and spacing, else text.
      ``007`` is an identifier, not 7. ``3.10`` is the number 3.1: take ``text`` for versions and dates.
    - ``text``: nothing is read as a number or as JSON.
    - ``number``: as ``auto``, and leading zeros do not count.
    - ``choice``: the letter of an option: ``B``, ``(b)``, ``Answer: B.``, ``B) Paris``, ``Option B``.
    - ``list``: items in lines, with or without bullets, between commas or semicolons, or a JSON array.
    - ``set``: as ``list`` in any order; also arrays inside JSON.

    Never the same: a number with and without its unit or currency, ``$5`` and ``5 USD``, ``seven`` and 7,
    ``the Nile`` and ``Nile``, a decimal comma and a decimal point. Where meaning decides, use
    :func:`phaseguard.voting.group_by_embedding` or :func:`~phaseguard.voting.group_by_judge`.

    Attributes:
        kind: one of the kinds above.
        letters: letters of the options, for ``choice``.
        options: their texts in the order of ``letters``; an answer that is one of them counts as its letter.
        keep_case: whether case counts in text, for ``auto``, ``text``, ``list`` and ``set``.

    Raises:
        InputError: when the kind is unknown, a letter is no letter, or options outnumber letters.

    >>> same = Form()
    >>> same("**0.50**.") == same("1/2"), same("007") == same("7")
    (True, False)
    >>> Form("choice", options=("London", "Paris"))("paris") == Form("choice")("(b)")
    True
    """

    kind: Kind = "auto"
    letters: str = "ABCDE"
    options: tuple[str, ...] = ()
    keep_case: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError(f"There is no form {self.kind!r}. {did_you_mean(self.kind, get_args(Kind))}")
        if not re.fullmatch("[A-Za-z]+", self.letters) or len(set(self.letters.upper())) != len(self.letters):
            raise InputError(f"letters={self.letters!r}: give each option one Latin letter, such as 'ABCD'.")
        if len(self.options) > len(self.letters):
            raise InputError(
                f"{len(self.options)} options for {len(self.letters)} letters: give more letters."
            )

    def __call__(self, answer: str) -> str:
        """Return the form of an answer; it begins with the kind that was found, as in ``number 1/2``."""
        return _remembered(self, answer) if len(answer) <= _SHORT else _form(self, answer)


def _form(form: Form, answer: str) -> str:
    text = without_fence(answer).strip()
    if form.kind in ("text", "choice") or json_form(text) is None:  # strings in JSON are compared as they are
        text = bare(without_fence(plain(answer)))
    return _KINDS[form.kind](form, text)


_remembered = lru_cache(maxsize=2048)(_form)


def _text(form: Form, text: str) -> str:
    return "text " + joined(text, keep_case=form.keep_case)


def _auto(form: Form, text: str) -> str:
    return _scalar(form, text) if (found := json_form(text)) is None else "json " + found


def _scalar(form: Form, text: str) -> str:
    value = number(text, leading_zeros=form.kind == "number")
    if value is not None:
        return f"number {value}"
    amount = quantity(text)
    return _text(form, text) if amount is None else "quantity " + amount


def _choice(form: Form, text: str) -> str:
    match = _OPTION.match(_NAMED_OPTION.sub("", text, count=1))
    if match and match["letter"].upper() in form.letters.upper():
        return "choice " + match["letter"].upper()
    wanted = joined(text, keep_case=False)
    for letter, option in zip(form.letters.upper(), form.options, strict=False):
        if joined(bare(plain(option)), keep_case=False) == wanted:
            return "choice " + letter
    return "text " + wanted


def _list(form: Form, text: str) -> str:
    any_order = form.kind == "set"
    if text.startswith("{") and (found := json_form(text, any_order=any_order)) is not None:
        return "json " + found
    return "list " + list_form(text, lambda item: _auto(form, bare(plain(item))), any_order=any_order)


_KINDS: dict[Kind, Callable[[Form, str], str]] = {
    "auto": _auto,
    "text": _text,
    "number": _auto,
    "choice": _choice,
    "list": _list,
    "set": _list,
}
