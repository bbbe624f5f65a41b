"""Where strings, comments, diffs, math, armour and JSON end that stand in a text without a fence."""

from __future__ import annotations

import json
import re

from phaseguard.normalize.lines import CODE_LINE

_MATH_REACH = 20_000
_STATEMENT = re.compile(r"(?:[^;'\n]|\n(?!\n)|'[^']*')*+;[ \t\r]*(?=\n|\Z)")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_DIFF_HEAD = re.compile(
    r"(?:diff |index |--- |\+\+\+ |(?:old|new|deleted|new file|similarity|rename|copy|dissimilarity) |Binary )"
)
_STRING_HEAD = re.compile(r"(?:.*(?:[=(\[{,:+%]|\b(?:return|yield|in|and|or|assert|raise|not))[ ]*)?[rRbBuUfF]{0,2}")
_HEREDOC = re.compile(r"<<[-~]?[ ]*(['\"]?)(\w+)\1")
_COMMENTS = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*")
_DECODER = json.JSONDecoder()


def end_of_math(text: str, start: int, mark: int) -> int | None:
    r"""End of a display formula or a LaTeX environment.

    >>> end_of_math("$$\na\n\nb\n$$\n", 0, 0), end_of_math("\\[ a \\]\n", 0, 0)
    (10, 7)
    """
    if text.startswith("\\begin{", mark):
        return _end_of_environment(text, mark)
    closer = "$$" if text[mark] == "$" else "\\]"
    found = text.find(closer, mark + 2, mark + _MATH_REACH)
    return None if found < 0 else found + 2


def _end_of_environment(text: str, mark: int) -> int | None:
    name = text[mark + 7 : text.find("}", mark) + 1]
    depth = 0
    for tag in re.compile(r"\\(begin|end)\{" + re.escape(name)).finditer(text, mark):
        depth += 1 if tag[1] == "begin" else -1
        if depth == 0:
            return tag.end()
    return None


def end_of_armour(text: str, start: int, mark: int) -> int | None:
    """End of a PEM or PGP block."""
    label = text[mark + len("-----BEGIN ") : text.find("\n", mark) if "\n" in text[mark : mark + 99] else mark + 99]
    found = text.find("-----END " + label.strip().rstrip("-"), mark)
    return None if found < 0 else found + 5


def end_of_conflict(text: str, start: int, mark: int) -> int | None:
    """End of a merge conflict."""
    found = text.find("\n>>>>>>>", mark)
    return None if found < 0 else found + 8


def end_of_comment(text: str, start: int, mark: int) -> int | None:
    """End of a comment of the C family."""
    found = text.find("*/", mark + 2)
    return None if found < 0 else found + 2


def end_of_diff(text: str, start: int, mark: int) -> int | None:
    r"""End of a diff: its header lines and every hunk, counted line by line.

    >>> end_of_diff("@@ -1,2 +1,2 @@\n-a\n+b\n\nText\n", 0, 0)
    22
    """
    if text.startswith("--- ", mark):
        following = text.find("\n", mark) + 1
        if not following or not text.startswith("+++ ", following):
            return None
    at, last = start, None
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        hunk = _HUNK.match(text, at)
        if hunk:
            end = _end_of_hunk(text, end, int(hunk[1] or 1), int(hunk[2] or 1))
        elif not _DIFF_HEAD.match(text, at):
            break
        last, at = end, end + 1
    return last


def _end_of_hunk(text: str, end: int, old: int, new: int) -> int:
    """Take lines from the one after ``end`` on for as long as the hunk's counts ask for them."""
    while (old > 0 or new > 0) and end < len(text):
        following = text.find("\n", end + 1)
        following = len(text) if following < 0 else following
        sign = text[end + 1 : end + 2]
        if sign not in ("", " ", "+", "-", "\n", "\r", "\\"):
            break
        old -= sign not in ("+", "\\")
        new -= sign not in ("-", "\\")
        end = following
    return end


def end_of_json(text: str, start: int, mark: int) -> int | None:
    r"""End of a JSON value that begins a line and ends one.

    >>> end_of_json('{"a":\n\n1}\nText', 0, 0), end_of_json("[1] A source\n", 0, 0)
    (10, None)
    """
    if mark != start:
        return None
    try:
        _, end = _DECODER.raw_decode(text, mark)
    except (ValueError, RecursionError):
        return None
    rest = text[end : text.find("\n", end) if text.find("\n", end) >= 0 else len(text)]
    return None if rest.strip(" \t\r,;") else end


def end_of_sql(text: str, start: int, mark: int) -> int | None:
    """End of an SQL statement, quoted text with blank lines in it included."""
    found = _STATEMENT.match(text, mark)
    return found.end() if found else None


def end_of_heredoc(text: str, start: int, mark: int) -> int | None:
    r"""End of a shell document given in place.

    >>> end_of_heredoc("cat <<EOF\na\n\n\nb\nEOF\n", 0, 4)
    19
    """
    opened = _HEREDOC.match(text, mark)
    if not opened or not (opened[1] or opened[2].isupper()):
        return None
    closed = re.compile(rf"\n[ \t]*{opened[2]}[ \t\r]*(?=\n|\Z)").search(text, mark)
    return closed.end() if closed else None


def end_of_triple(text: str, start: int, mark: int) -> int | None:
    r'''End of a triple-quoted string when code stands around it; quotes that only delimit prose are none.

    >>> end_of_triple('x = """a\n\nb"""\n', 0, 4)
    13
    >>> end_of_triple('Text:\n"""\nProse.\n"""\nDone.\n', 6, 6) is None
    True
    '''
    if not _STRING_HEAD.fullmatch(text, start, mark):
        return None
    found = text.find(text[mark : mark + 3], mark + 3)
    if found < 0:
        return None
    end = found + 3
    if text[start:mark].strip(" \trRbBuUfF") or mark - start > 3 or _near_code(text, start, mark, end):
        return end
    return None


def _near_code(text: str, start: int, mark: int, end: int) -> bool:
    """Whether a statement stands in front of a string or behind it, or the string is all there is."""
    if text[end : end + 1] not in ("", "\n", "\r", " "):
        return True
    comments = _COMMENTS.match(text, min(len(text), end + 1))
    rest = text[comments.end() if comments else end :][:300].split("\n", 1)[0]
    if CODE_LINE.match("\n" + rest):
        return True
    before = text[max(0, start - 300) : start].rstrip()
    if not before.strip("\ufeff"):
        return not rest.strip() or text[mark + 3] != "\n"
    line = before[before.rfind("\n") + 1 :]
    return CODE_LINE.match("\n" + line) is not None or line.startswith("#!")
