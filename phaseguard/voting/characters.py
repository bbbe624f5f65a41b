"""Which ways of writing a character are the same, and the cleaning with which every form begins."""

from __future__ import annotations

import re
import unicodedata

# NFKC makes "10²" into "102" and "1½" into "11⁄2", so only these kinds of compatibility characters go
_SAME_AS_PLAIN = {
    "<wide>", "<narrow>", "<noBreak>", "<compat>", "<font>", "<square>", "<vertical>",
    "<initial>", "<medial>", "<final>", "<isolated>",
}  # fmt: skip
_TRANSLATED = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–−", "-"),
        **dict.fromkeys("‘’‛′", "'"),
        **dict.fromkeys("“”‟″", '"'),
        **dict.fromkeys("⁄∕", "/"),
        # invisible: zero-width marks, soft hyphen, direction marks, presentation selectors; the joiners stay
        **dict.fromkeys([0x00AD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, 0xFE0E, 0xFE0F], None),
        **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], None),
    }
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+")
_LOWERED = re.compile("(?<=[^\\W\\d_])[₀₁₂₃₄₅₆₇₈₉]+")  # after a letter; "101₂" is not 1012
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<inside>.*?)\n?[ \t]*(?P=fence)\s*", re.DOTALL)
_WRAPPERS = (("**", "**"), ("*", "*"), ("`", "`"), ('"', '"'), ("'", "'"), ("«", "»"), ("$", "$"),
             ("\\(", "\\)"), ("\\[", "\\]"), ("\\boxed{", "}"), ("\\text{", "}"), ("\\textbf{", "}"),
             ("\\mathrm{", "}"), ("\\mathbf{", "}"))  # fmt: skip
_LABEL = re.compile(
    r"[*_]{0,2}(?:the\s+)?(?:(?:final|correct|right|best)\s+)?answer(?:[*_]{0,2}\s*[:=][*_]{0,2}|\s+is\b:?)\s*(?=\S)",
    re.IGNORECASE,
)
_STOPS = ".,;:。，；：、．"
_LATEX = (
    (re.compile(r"(?<=\d)\s*\\[dt]?frac\{(\d+)\}\{(\d+)\}"), r" \1/\2"),
    (re.compile(r"\\[dt]?frac\{(\d+)\}\{(\d+)\}"), r"\1/\2"),
    (re.compile(r"\{,\}|\\,(?=\d{3})"), ","),
    (re.compile(r"\\([%$#&_])"), r"\1"),
    (re.compile(r"\^\{?\\circ\}?"), "°"),
    (re.compile(r"\\(?:times|cdot)\b"), "×"),
    (re.compile(r"\^\{([+-]?\d+)\}"), r"^\1"),
    (re.compile(r"\\[,;:! ]|\\(?:left|right)(?![a-z])"), ""),
)


def plain(text: str) -> str:
    """Write characters in one way where that is certain; spaces and case are left alone.

    Full-width forms, ligatures, presentation forms, typographic quotes, hyphens and minus signs, digits of
    other scripts, vulgar fractions and raised or lowered digits get their plain form; invisible marks go.

    >>> plain("１２ ﬁsh, x², 1½, H₂O, −5")
    '12 fish, x^2, 1 1/2, H2O, -5'
    """
    if text.isascii():
        return text
    text = _RAISED.sub(lambda run: "^" + run[0].translate(_SUPERSCRIPTS), text)
    text = _LOWERED.sub(lambda run: run[0].translate(_SUBSCRIPTS), text)
    made: list[str] = []
    for char in unicodedata.normalize("NFC", text):
        made.append(
            char if char.isascii() else _plain(char, after_digit=bool(made) and made[-1][-1:].isdigit())
        )
    return unicodedata.normalize("NFC", "".join(made)).translate(_TRANSLATED)


def _plain(char: str, *, after_digit: bool) -> str:
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    tag, _, rest = unicodedata.decomposition(char).partition(" ")
    if tag in _SAME_AS_PLAIN:
        return "".join(chr(int(code, 16)) for code in rest.split())
    if tag == "<fraction>" and not rest.endswith("2044"):
        return " " * after_digit + unicodedata.normalize("NFKC", char)
    return char


def without_fence(text: str) -> str:
    r"""Return what stands inside a code fence when the fence holds the whole text, else the text.

    >>> without_fence("```json\n[1]\n```")
    '[1]'
    """
    match = _FENCE.fullmatch(text)
    return match["inside"] if match and match["fence"] not in match["inside"] else text


def bare(text: str) -> str:
    """Remove what stands around an answer: blanks, a label ``Answer:``, quotes, emphasis, trailing stops.

    ``?`` stays, and ``!`` after a digit, a bracket or a single letter, where it can be a factorial.

    >>> bare('**Answer:** "Paris".')
    'Paris'
    >>> bare("5!")
    '5!'
    """
    if "\\" in text or "{" in text:
        for pattern, replacement in _LATEX:
            text = pattern.sub(replacement, text)
    while True:
        before = text
        text = _unstopped(_unwrapped(text.strip()))
        label = _LABEL.match(text)
        if label:
            text = text[label.end() :]
        if text == before:
            return text


def _unwrapped(text: str) -> str:
    for opening, closing in _WRAPPERS:
        if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening) + len(closing):
            inside = text[len(opening) : -len(closing)]
            if opening not in inside and closing not in inside:
                return inside
    return text


def _unstopped(text: str) -> str:
    """Drop trailing stops, unless nothing else is there."""
    shorter = text.rstrip(_STOPS)
    if shorter.endswith(("!", "！")):
        words = shorter.rstrip("!！")
        if words[-2:].isalpha() and len(words[-2:]) == 2:
            shorter = words
    return shorter if shorter else text


def joined(text: str, *, keep_case: bool) -> str:
    r"""Text with every run of white space as one blank, in lower case unless ``keep_case``.

    A text with indented lines, such as code or a tree, keeps its lines, its indentation and its case.

    >>> joined("New \n York", keep_case=False)
    'new york'
    >>> joined("if x:\n    Y", keep_case=False)
    'if x:\n    Y'
    """
    lines = text.split("\n")
    if len(lines) > 1 and any(line.startswith(("  ", "\t")) for line in lines[1:] if line.strip()):
        return "\n".join(line.rstrip() for line in lines if line.strip())
    text = " ".join(text.split())
    # not casefold, which makes the German "Maße" (measures) into "Masse" (mass)
    return text if keep_case else text.lower()
