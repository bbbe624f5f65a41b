"""Where strings, comments, diffs, math, armour and JSON end that stand in a text without a fence."""

from __future__ import annotations

import json
import re

from phaseguard.normalize.lines import CODE_LINE
from phaseguard.normalize.source import Source

_MATH_REACH = 20_000
_STATEMENT = re.compile(r"(?:[^;'\n]|\n(?!\n)|'[^']*')*+;[ \t\r]*(?=\n|\Z)")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_DIFF_HEAD = re.compile(
    r"(?:diff |index |--- |\+\+\+ |(?:old|new|deleted|new file|similarity|rename|copy|dissimilarity) |Binary )"
)
_STRING_HEAD = re.compile(
    r"(?:.*(?:[=(\[{,:+%]|\b(?:return|yield|in|and|or|assert|raise|not))[ ]*)?[rRbBuUfF]{0,2}"
)
_HEREDOC = re.compile(r"<<[-~]?[ ]*(['\"]?)(\w+)\1")
_COMMENTS = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*")
_ENVIRONMENT = re.compile(r"\\begin\{([^{}\n]*)\}")
_CELL = re.compile(r'"(?:[^"]|"")*+"(?=[ ]*(?:[,;\t\r\n]|\Z))')
_JSON_START = re.compile(r"[\[{]\s*(?:[\[{\]}\"\d-]|true|false|null)")
_JSON_PIECE = 8192
_DECODER = json.JSONDecoder()


def end_of_math(source: Source, start: int, mark: int) -> int | None:
    r"""End of a display formula.

    >>> end_of_math(Source("$$\na\n\nb\n$$\n"), 0, 0), end_of_math(Source("\\[ a \\]\n"), 0, 0)
    (10, 7)
    """
    closer = "$$" if source.text[mark] == "$" else "\\]"
    end = source.find(closer, mark + 2)
    return end if end and end < mark + _MATH_REACH else None


def end_of_environment(source: Source, start: int, mark: int) -> int | None:
    r"""End of a LaTeX environment, others of its name inside included.

    >>> end_of_environment(Source("\\begin{a}\n\nb\n\\end{a}\n"), 0, 0)
    20
    """
    name = _ENVIRONMENT.match(source.text, mark)
    pattern = r"\\(?:begin|(?P<close>end))\{" + re.escape(name[1] if name else "") + r"\}"
    return source.pair(pattern, mark)


def end_of_armour(source: Source, start: int, mark: int) -> int | None:
    """End of a PEM or PGP block."""
    label = source.text[mark + len("-----BEGIN ") : source.line_end(mark)]
    ended = "PGP SIGNATURE" if label.startswith("PGP SIGNED") else label.strip().rstrip("-")
    return source.find("-----END " + ended, mark)


def end_of_conflict(source: Source, start: int, mark: int) -> int | None:
    """End of a merge conflict."""
    return source.find("\n>>>>>>>", mark)


def end_of_comment(source: Source, start: int, mark: int) -> int | None:
    r"""End of a comment that can hold blank lines: of C, CMake, Lua, PowerShell, Perl or Ruby.

    >>> end_of_comment(Source("/* a\n\nb */\n"), 0, 0), end_of_comment(Source("=head1 A\n\nb\n\n=cut\n"), 0, 0)
    (10, 17)
    """
    text = source.text
    if text.startswith("/*", mark):
        return source.find("*/", mark + 2)
    if text.startswith("<#", mark):
        return source.find("#>", mark + 2)
    if text[mark] == "=":
        if mark > start:
            return None
        return (
            source.find("\n=end", mark)
            if text.startswith("=begin\n", mark)
            else source.find("\n=cut", mark) or len(text)
        )
    bars = text.find("[", mark + 3) - text.find("[", mark) - 1
    return source.find("]" + "=" * max(0, bars) + "]", mark)


def end_of_diff(source: Source, start: int, mark: int) -> int | None:
    r"""End of a diff: its header lines and every hunk, counted line by line.

    >>> end_of_diff(Source("@@ -1,2 +1,2 @@\n-a\n+b\n\nText\n"), 0, 0)
    22
    """
    text = source.text
    if text.startswith("--- ", mark) and not text.startswith("\n+++ ", source.line_end(mark)):
        return None
    at, last = start, None
    while at < len(text):
        end = source.line_end(at)
        hunk = _HUNK.match(text, at)
        if hunk:
            end = _end_of_hunk(source, end, int(hunk[1] or 1), int(hunk[2] or 1))
        elif not _DIFF_HEAD.match(text, at):
            break
        last, at = end, end + 1
    return last


def _end_of_hunk(source: Source, end: int, old: int, new: int) -> int:
    """Take lines from the one after ``end`` on for as long as the hunk's counts ask for them."""
    while (old > 0 or new > 0) and end < len(source.text):
        sign = source.text[end + 1 : end + 2]
        if sign not in ("", " ", "+", "-", "\n", "\r", "\\"):
            break
        old -= sign not in ("+", "\\")
        new -= sign not in ("-", "\\")
        end = source.line_end(end + 1)
    return end


def end_of_json(source: Source, start: int, mark: int) -> int | None:
    r"""End of a JSON value that begins a line and ends one, or of the part of it that reads as JSON.

    >>> end_of_json(Source('{"a":\n\n1}\nText'), 0, 0), end_of_json(Source("[1] A source\n"), 0, 0)
    (9, None)
    """
    if mark != start or not _JSON_START.match(source.text, mark):
        return None
    try:
        end = mark + _decode(source.text, mark)
    except json.JSONDecodeError as error:
        return mark + error.pos if error.doc.count("\n", 0, error.pos) > 1 else None
    except RecursionError:
        return len(source.text)
    return None if source.text[end : source.line_end(end)].strip(" \t\r,;") else end


def _decode(text: str, start: int) -> int:
    """Length of the JSON value at ``start``; a short piece first, for an error counts the lines before it."""
    piece = text[start : start + _JSON_PIECE]
    try:
        return _DECODER.raw_decode(piece)[1]
    except json.JSONDecodeError as error:
        if len(piece) < _JSON_PIECE or (error.pos < _JSON_PIECE // 2 and not error.msg.startswith("Unterm")):
            raise
    return _DECODER.raw_decode(text[start:])[1]


def end_of_quoted_cell(source: Source, start: int, mark: int) -> int | None:
    r"""End of a CSV cell in quotes that has line breaks in it.

    >>> end_of_quoted_cell(Source('1,"a\n\n\nb",2\n'), 0, 1)
    9
    """
    if source.text.find('"', mark + 2, source.line_end(mark)) >= 0:
        return None
    found = _CELL.match(source.text, mark + 1)
    return found.end() if found else None


def end_of_sql(source: Source, start: int, mark: int) -> int | None:
    """End of an SQL statement, quoted text with blank lines in it included."""
    found = _STATEMENT.match(source.text, mark)
    return found.end() if found else None


def end_of_heredoc(source: Source, start: int, mark: int) -> int | None:
    r"""End of a shell document given in place.

    >>> end_of_heredoc(Source("cat <<EOF\na\n\n\nb\nEOF\n"), 0, 4)
    19
    """
    opened = _HEREDOC.match(source.text, mark)
    if not opened or not (opened[1] or opened[2].isupper()):
        return None
    return source.search(rf"\n[ \t]*{opened[2]}[ \t\r]*(?=\n|\Z)", mark)


def end_of_triple(source: Source, start: int, mark: int) -> int | None:
    r"""End of a triple-quoted string when code stands around it; quotes that only delimit prose are none.

    >>> end_of_triple(Source("x = '''a\n\nb'''\n"), 0, 4)
    14
    >>> end_of_triple(Source("Text:\n'''\nProse.\n'''\nDone.\n"), 6, 6) is None
    True
    """
    text = source.text
    if not _STRING_HEAD.fullmatch(text, start, mark):
        return None
    end = source.find(text[mark : mark + 3], mark + 3)
    if end is None:
        return None
    if text[start:mark].strip(" \trRbBuUfF") or mark - start > 3 or _near_code(text, start, mark, end):
        return end
    return None


def _near_code(text: str, start: int, mark: int, end: int) -> bool:
    """Whether a statement stands in front of a string or behind it, or the string is all there is."""
    if text[end : end + 1] not in ("", "\n", "\r", " "):
        return True
    comments = _COMMENTS.match(text, min(len(text), end + 1))
    rest = text[(low := comments.end() if comments else end) : low + 300].split("\n", 1)[0]
    if CODE_LINE.match("\n" + rest):
        return True
    before = text[max(0, start - 300) : start].rstrip()
    if not before.strip("\ufeff"):
        return not rest.strip() or text[mark + 3] != "\n"
    line = before[before.rfind("\n") + 1 :]
    return CODE_LINE.match("\n" + line) is not None or line.startswith("#!")
