"""Where strings, comments, diffs, math, armour and JSON end that stand in a text without a fence."""

from __future__ import annotations

import json
import re

from phaseguard.normalize.lines import CODE_LINE
from phaseguard.normalize.source import Opening, Source

_MATH_REACH = 20_000
_STATEMENT = re.compile(r"(?:[^;'\n]|\n(?!\n)|'[^']*')*+;[ \t\r]*(?=\n|\Z)")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_DIFF_HEAD = re.compile(
    r"(?:diff |index |--- |\+\+\+ |(?:old|new|deleted|similarity|rename|copy|dissimilarity) |Binary )"
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


def end_of_math(at: Opening) -> int | None:
    r"""End of a display formula.

    >>> end_of_math(Opening.of("$$\na\n\nb\n$$\n")), end_of_math(Opening.of("\\[ a \\]\n"))
    (10, 7)
    """
    closer = "$$" if at.text[at.mark] == "$" else "\\]"
    end = at.source.find(closer, at.mark + 2)
    return end if end and end < at.mark + _MATH_REACH else None


def end_of_environment(at: Opening) -> int | None:
    r"""End of a LaTeX environment, others of its name inside included.

    >>> end_of_environment(Opening.of("\\begin{a}\n\nb\n\\end{a}\n"))
    20
    """
    name = _ENVIRONMENT.match(at.text, at.mark)
    pattern = r"\\(?:begin|(?P<close>end))\{" + re.escape(name[1] if name else "") + r"\}"
    return at.source.pair(pattern, at.mark)


def end_of_armour(at: Opening) -> int | None:
    """End of a PEM or PGP block."""
    label = at.text[at.mark + len("-----BEGIN ") : at.source.line_end(at.mark)]
    ended = "PGP SIGNATURE" if label.startswith("PGP SIGNED") else label.strip().rstrip("-")
    return at.source.find("-----END " + ended, at.mark)


def end_of_conflict(at: Opening) -> int | None:
    """End of a merge conflict."""
    return at.source.find("\n>>>>>>>", at.mark)


def end_of_comment(at: Opening) -> int | None:
    r"""End of a comment that can hold blank lines: of C, CMake, Lua, PowerShell, Perl or Ruby.

    >>> end_of_comment(Opening.of("/* a\n\nb */\n")), end_of_comment(Opening.of("=head1 A\n\nb\n\n=cut\n"))
    (10, 17)
    """
    text = at.text
    if text.startswith("/*", at.mark):
        return at.source.find("*/", at.mark + 2)
    if text.startswith("<#", at.mark):
        return at.source.find("#>", at.mark + 2)
    if text[at.mark] == "=":
        if at.mark > at.start:
            return None
        return (
            at.source.find("\n=end", at.mark)
            if text.startswith("=begin\n", at.mark)
            else at.source.find("\n=cut", at.mark) or len(text)
        )
    bars = text.find("[", at.mark + 3) - text.find("[", at.mark) - 1
    return at.source.find("]" + "=" * max(0, bars) + "]", at.mark)


def end_of_diff(at: Opening) -> int | None:
    r"""End of a diff: its header lines and every hunk, counted line by line.

    >>> end_of_diff(Opening.of("@@ -1,2 +1,2 @@\n-a\n+b\n\nText\n"))
    22
    """
    text = at.text
    if text.startswith("--- ", at.mark) and not text.startswith("\n+++ ", at.source.line_end(at.mark)):
        return None
    here, last = at.start, None
    while here < len(text):
        end = at.source.line_end(here)
        hunk = _HUNK.match(text, here)
        if hunk:
            end = _end_of_hunk(at.source, end, int(hunk[1] or 1), int(hunk[2] or 1))
        elif not _DIFF_HEAD.match(text, here):
            break
        last, here = end, end + 1
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


def end_of_json(at: Opening) -> int | None:
    r"""End of a JSON value that begins a line and ends one, or of the part of it that reads as JSON.

    >>> end_of_json(Opening.of('{"a":\n\n1}\nText')), end_of_json(Opening.of("[1] A source\n"))
    (9, None)
    """
    if at.mark != at.start or not _JSON_START.match(at.text, at.mark):
        return None
    try:
        end = at.mark + _decode(at.text, at.mark)
    except json.JSONDecodeError as error:
        return at.mark + error.pos if error.doc.count("\n", 0, error.pos) > 1 else None
    except RecursionError:
        return len(at.text)
    return None if at.text[end : at.source.line_end(end)].strip(" \t\r,;") else end


def _decode(text: str, start: int) -> int:
    """Length of the JSON value at ``start``; a short piece first, for an error counts the lines before it."""
    piece = text[start : start + _JSON_PIECE]
    try:
        return _DECODER.raw_decode(piece)[1]
    except json.JSONDecodeError as error:
        if len(piece) < _JSON_PIECE or (error.pos < _JSON_PIECE // 2 and not error.msg.startswith("Unterm")):
            raise
    return _DECODER.raw_decode(text[start:])[1]


def end_of_quoted_cell(at: Opening) -> int | None:
    r"""End of a CSV cell in quotes that has line breaks in it.

    >>> end_of_quoted_cell(Opening.of('1,"a\n\n\nb",2\n', 1))
    9
    """
    if at.text.find('"', at.mark + 2, at.source.line_end(at.mark)) >= 0:
        return None
    found = _CELL.match(at.text, at.mark + 1)
    return found.end() if found else None


def end_of_sql(at: Opening) -> int | None:
    """End of an SQL statement, quoted text with blank lines in it included."""
    found = _STATEMENT.match(at.text, at.mark)
    return found.end() if found else None


def end_of_heredoc(at: Opening) -> int | None:
    r"""End of a shell document given in place.

    >>> end_of_heredoc(Opening.of("cat <<EOF\na\n\n\nb\nEOF\n", 4))
    19
    """
    opened = _HEREDOC.match(at.text, at.mark)
    if not opened or not (opened[1] or opened[2].isupper()):
        return None
    return at.source.search(rf"\n[ \t]*{opened[2]}[ \t\r]*(?=\n|\Z)", at.mark)


def end_of_triple(at: Opening) -> int | None:
    r"""End of a triple-quoted string when code stands around it; quotes that only delimit prose are none.

    >>> end_of_triple(Opening.of("x = '''a\n\nb'''\n", 4))
    14
    >>> end_of_triple(Opening.of("Text:\n'''\nProse.\n'''\nDone.\n", 6)) is None
    True
    """
    text = at.text
    if not _STRING_HEAD.fullmatch(text, at.start, at.mark):
        return None
    end = at.source.find(text[at.mark : at.mark + 3], at.mark + 3)
    if end is None:
        return None
    if (
        text[at.start : at.mark].strip(" \trRbBuUfF")
        or at.mark - at.start > 3
        or _near_code(text, at.start, at.mark, end)
    ):
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
