"""The rules of the safe level: each searches for candidates and asks the block map about them alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from phaseguard.normalize import characters
from phaseguard.normalize.lines import LIST_LINE, RULE_LINE
from phaseguard.normalize.prose import Kind
from phaseguard.normalize.zones import BlockMap, Segment
from phaseguard.text import Edit, make_edit

Rule = Callable[[BlockMap], Iterator[Edit]]

_TIDY_GAP = "\n\n"
_UNTIDY_END = re.compile(r"\n(?<=[ \t\r]\n)")
_INTERRUPTS = re.compile(r"[ ]{0,3}(?:#{1,6}(?:[ \n]|\Z)|>|<|`{3}|~{3}|([=\-*_])(?:[ ]?\1)*[ \t]*(?:\n|\Z))")
_OPEN_TAG = re.compile(r"<[A-Za-z/!?][^>\n]*$")
_LONE_RULE = re.compile(r"\n[ \t\r]*\n(?=([=\-*_~#+─━═])(?:\1{2}| \1 \1))")
_WORD = re.compile(r"\w")
_MARKS, _HASHES = 3, 7


def tidy_gaps(blocks: BlockMap) -> Iterator[Edit]:
    r"""Bring every open gap between blocks to one blank line, and drop blank lines in front of the text.

    >>> [e.reason for e in tidy_gaps(BlockMap("A b.\n\n\n\nC d.\n"))]
    ['surplus-blank-lines']
    """
    text = blocks.text
    if blocks.lead and blocks.opening:
        yield make_edit(text, 0, blocks.lead, "", "surplus-blank-lines")
    for gap in blocks.untidy_gaps():
        start, end = blocks.gap(gap).start, blocks.gap(gap).end
        start -= text[start - 1] == "\r"
        if blocks.is_open(gap):
            yield _gap_edit(text, start, end, _TIDY_GAP)
    tail = blocks.tail - (text[blocks.tail - 1 : blocks.tail] == "\r")
    kept = _TIDY_GAP if text.count("\n", tail) > 1 else "\n"
    if len(text) - tail > 1 and text[tail:] not in (kept, "\r\n") and blocks.is_editable(blocks.tail - 1):
        yield _gap_edit(text, tail, len(text), kept)


def _gap_edit(text: str, start: int, end: int, replacement: str) -> Edit:
    """One edit for a gap, named after the most that it does."""
    gap = text[start:end]
    if gap.count("\n") > 2:
        reason = "surplus-blank-lines"
    elif " " in gap or "\t" in gap:
        reason = "trailing-blanks"
    else:
        reason = "line-endings"
    return make_edit(text, start, end, replacement, reason)


def tidy_line_ends(blocks: BlockMap) -> Iterator[Edit]:
    r"""Drop blanks at the ends of prose lines, and carriage returns in front of their newlines.

    >>> [(e.start, e.reason) for e in tidy_line_ends(BlockMap("Answer: \nyes\r\n"))]
    [(7, 'trailing-blanks'), (12, 'line-endings')]
    """
    text, low, high = blocks.text, 0, 0
    segment = blocks.segment_at(0)
    for match in _UNTIDY_END.finditer(text):
        newline = match.start()
        if not low < newline <= high:
            segment = blocks.segment_at(newline - 1)
            low, high = segment.start, segment.end
        if segment.kind is not Kind.PROSE or not low < newline <= high:
            continue
        if text[newline - 1] == "\r" and text[newline - 2] not in " \t":
            yield Edit(newline - 1, newline + 1, "\n", "line-endings", "\r\n")
        else:
            yield from _line_end_edits(blocks, segment, newline)
    end = len(text)
    if text[-1:] in (" ", "\t") and blocks.tail == end and blocks.is_editable(end - 1):
        yield from _line_end_edits(blocks, blocks.segment_at(end - 1), end)


def _line_end_edits(blocks: BlockMap, segment: Segment, newline: int) -> Iterator[Edit]:
    text = blocks.text
    start = text.rfind("\n", 0, newline) + 1
    end = newline - (text[newline - 1] == "\r")
    line = text[start:end]
    words = line.rstrip(" \t")
    if len(words) < len(line) and not _keeps_blanks(blocks, segment, words, start, newline):
        yield make_edit(text, start + len(words), end, "", "trailing-blanks")
    if end < newline:
        yield make_edit(text, end, newline + 1, "\n", "line-endings")


def _keeps_blanks(blocks: BlockMap, segment: Segment, words: str, start: int, newline: int) -> bool:
    """Whether blanks behind ``words`` mean something: a hard break, an escape, a code span or an open tag."""
    if not _WORD.search(words) or words.endswith("\\") or _OPEN_TAG.search(words):
        return True
    blanks = blocks.text[start + len(words) : newline].rstrip("\r")
    if blanks.endswith("  ") and newline < segment.end and not words.startswith("#"):
        after = (blocks.text, newline + 1, segment.end)
        return not (_INTERRUPTS.match(*after) or LIST_LINE.match(*after))
    return blocks.in_code_span(start + len(words), newline)


def shorten_rules(blocks: BlockMap) -> Iterator[Edit]:
    r"""Bring a rule that stands alone between paragraphs to one length: three marks, seven for ``#``.

    >>> [e.replacement for e in shorten_rules(BlockMap("A b.\n\n==========\n\nC d.\n"))]
    ['===']
    """
    text = blocks.text
    for match in _LONE_RULE.finditer(text):
        segment = blocks.segment_at(match.end())
        if segment.kind is Kind.RULE and segment.start == match.end():
            line = text[segment.start : segment.end].rstrip("\r")
            short = canonical_rule(line)
            if line != short and _stands_alone(blocks, blocks.block_at(segment.start)):
                yield make_edit(text, segment.start, segment.start + len(line), short, "lone-rule")


def canonical_rule(line: str) -> str:
    """The one length that a rule has after normalizing; a few hashes are a heading and stay.

    >>> canonical_rule("= = = = ="), canonical_rule("----------"), canonical_rule("####")
    ('= = =', '---', '####')
    """
    match = RULE_LINE.fullmatch(line)
    if not match:
        return line
    char, rule = match["char"], match["rule"]
    joint = " " if rule[1] == " " else ""
    if char == "#" and not joint:
        return rule if len(rule) < _HASHES else char * _HASHES
    return joint.join(char * _MARKS)


def _stands_alone(blocks: BlockMap, block: int) -> bool:
    """Whether the blocks beside a rule are prose or other rules, and one of them is prose."""
    beside = []
    if block > 0:
        beside.append(blocks.segments(block - 1)[-1].kind)
    if block + 1 < blocks.count:
        beside.append(blocks.segments(block + 1)[0].kind)
    return Kind.ZONE not in beside and Kind.PROSE in beside


def drop_zero_width(blocks: BlockMap) -> Iterator[Edit]:
    r"""Drop characters of no width from prose where no script, emoji or markup needs them.

    >>> [e.original for e in drop_zero_width(BlockMap("The in\u200bvoice.\n"))]
    ['\u200b']
    """
    text = blocks.text
    if not characters.has_zero_width(text):
        return
    for match in characters.RUN.finditer(text):
        start, end = match.span()
        if not blocks.is_editable(start) and not (start == 0 and blocks.is_editable(blocks.lead)):
            continue
        noise = characters.is_noise(text[start - 1 : start], match[0], text[end : end + 1])
        if noise and not blocks.in_code_span(start, end):
            yield make_edit(text, start, end, "", "zero-width")


SAFE_RULES: tuple[Rule, ...] = (tidy_gaps, tidy_line_ends, shorten_rules, drop_zero_width)


def may_apply(text: str) -> bool:
    r"""Whether any safe rule can have a candidate; a few searches, and no map.

    >>> may_apply("One.\n\nTwo.\n"), may_apply("One. \n")
    (False, True)
    """
    return (
        text[:1] in ("\n", " ", "\t", "\r")
        or text[-1:] in (" ", "\t")
        or "\n\n\n" in text
        or _UNTIDY_END.search(text) is not None
        or characters.has_zero_width(text)
        or any(
            canonical_rule(_line_at(text, m.end())) != _line_at(text, m.end())
            for m in _LONE_RULE.finditer(text)
        )
    )


def _line_at(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end]
