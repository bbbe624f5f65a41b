"""Numbers and quantities: which ways of writing them mean the same for certain."""

from __future__ import annotations

import re
from fractions import Fraction

_LONGEST = 400  # characters; longer runs of digits are compared as text
_INTEGER = r"(?:0|[1-9]\d{0,2}(?P<sep>[, _'])\d{3}(?:(?P=sep)\d{3})*|[1-9]\d?(?:,\d\d)+,\d{3}|[1-9]\d*)"
_DECIMAL = re.compile(
    rf"(?P<sign>[+-]?)(?:(?P<whole>{_INTEGER})(?:\.(?P<digits>\d*))?|\.(?P<only>\d+))"
    r"(?:[eE](?P<e>[+-]?\d{1,3})|\s*[×xX*·]\s*10(?:\^|\*\*)(?P<power>[+-]?\d{1,3}))?"
    r"(?P<percent>\s*(?:%|per\s?cent\b))?",
    re.IGNORECASE,
)
_FRACTION = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[1-9]\d*) (?=\d))?"
    r"(?P<over>0|[1-9]\d*)\s*/\s*(?P<under>[1-9]\d*)"
)
_MONEY = "[$€£¥₹]"
_QUANTITY = re.compile(
    rf"(?P<minus>-?)(?P<before>{_MONEY}?)\s*(?P<number>[\d.+-](?:[\d.,_' /+-]*\d)?)\s*"
    rf"(?P<unit>{_MONEY}|[°µμΩ]?[^\W\d_][^\W\d_]*(?:[/·][^\W\d_]+)?(?:\^-?\d)?)?"
)
# where case changes the meaning: milli and mega, bit and byte, metre and million, thousand and kelvin
_CASE_MATTERS = re.compile(
    r"[mk]|m(?:w|wh|v|a|ah|hz|pa|j|g|s|l|n|bar|ev|mol|cal|ω)|[kmgtp]?i?b(?:ps|/s|it)?", re.IGNORECASE
)


def number(text: str, *, leading_zeros: bool = False) -> Fraction | None:
    """Read a text that is a number and nothing else; None when that is not certain.

    Thousands may be set apart by a comma, blank, low line or apostrophe, consistently; ``1,00,000`` is the
    Indian form. A comma is never a decimal mark: ``0,5`` and ``1.000,50`` are not read. Exponents have up
    to three digits.

    Args:
        text: plain characters, without blanks around it (:func:`phaseguard.voting.characters.plain`).
        leading_zeros: whether ``007`` is 7; otherwise it is an identifier, and not read.

    >>> [number(text) for text in ("0.50", "1/2", "50%", ".5", "5e-1")] == [Fraction(1, 2)] * 5
    True
    >>> number("1 000") == number("1,000") == number("1_000") == 1000
    True
    >>> number("007"), number("1,00"), number("3 apples")
    (None, None, None)
    """
    if len(text) > _LONGEST or not any(map(str.isdigit, text[:4])):
        return None
    if leading_zeros:
        text = re.sub(r"^([+-]?)0+(?=\d)", r"\1", text)
    match = _FRACTION.fullmatch(text)
    return _read_fraction(match) if match else _read_decimal(_DECIMAL.fullmatch(text))


def _read_fraction(match: re.Match[str]) -> Fraction | None:
    part = Fraction(int(match["over"]), int(match["under"]))
    if match["whole"]:
        if part >= 1:
            return None  # "3 7/2" is no mixed number
        part += int(match["whole"])
    return -part if match["sign"] == "-" else part


def _read_decimal(match: re.Match[str] | None) -> Fraction | None:
    if match is None:
        return None
    whole = re.sub("[, _']", "", match["whole"] or "")
    digits = match["digits"] or match["only"] or ""
    power = int(match["e"] or match["power"] or 0) - len(digits) - (2 if match["percent"] else 0)
    value = Fraction(int(whole + digits))
    value *= Fraction(10) ** power
    return -value if match["sign"] == "-" else value


def quantity(text: str) -> str | None:
    """A number with a currency sign in front or one unit behind, in one form; None when it is something else.

    Nothing is converted: ``$5`` is not ``5 USD``, ``1 km`` not ``1000 m``. The case of a unit counts where
    it changes the meaning (``mW`` and ``MW``, ``Mb`` and ``MB``).

    >>> quantity("$1,000.00"), quantity("$ 1000")
    ('$1000', '$1000')
    >>> quantity("5 KM") == quantity("5km"), quantity("5 mW") == quantity("5 MW")
    (True, False)
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or bool(match["before"]) == bool(match["unit"]):
        return None
    value = number(match["number"].strip())
    if value is None:
        return None
    unit = match["unit"] or ""
    unit = unit if _CASE_MATTERS.fullmatch(unit) else unit.lower()
    value = -value if match["minus"] else value
    return f"{match['before']}{value}{' ' * bool(unit)}{unit}"
