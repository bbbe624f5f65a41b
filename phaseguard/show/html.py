"""The token map as one self-contained page."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from string import Template

from phaseguard.show.tokens import Mark, TokenMap, windows
from phaseguard.show.words import brief, count, picture, visible

_PAGE = Path(__file__).with_name("page.html")
TINTS = 8
CHUNK = 240  # tokens a block: the browser lays out only the blocks that are in sight
MOST = 200_000  # tokens a page holds before it shows only what surrounds answers
CONTEXT = 400
AROUND = 14  # tokens on either side of an answer in the table
_WORDS = {
    "strong": "strong",
    "weak": "weak",
    "raw": "read raw: phase does not matter here",
    "unknown": "not known",
}


def render_page(tokens: TokenMap, title: str, *, everything: bool = False) -> str:
    """A page that needs nothing from outside.

    Args:
        tokens: the map.
        title: what was inspected, such as the file's name.
        everything: show each token however many there are.
    """
    page = _PAGE.read_text(encoding="utf-8")
    script = page.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    report = tokens.report
    return Template(page).substitute(
        script_hash=digest,
        title=escape(brief(title, 100)),
        facts="".join(_facts(tokens)),
        notes="".join(f"<li>{escape(brief(note, 600))}</li>" for note in (*report.warnings, *report.notes)),
        legend="".join(_legend(tokens)),
        strip="".join(_strip(tokens)),
        rows="".join(_rows(tokens)),
        map="".join(_map(tokens, everything=everything or len(tokens) <= MOST)),
        period=tokens.period,
    )


def _facts(tokens: TokenMap) -> Iterator[str]:
    report, total = tokens.report, tokens.first + len(tokens)
    verdicts = [mark.verdict for mark in tokens.marks]
    yield f"<div><dt>Tokens</dt><dd>{total:,}</dd></div>"
    yield f"<div><dt>Period</dt><dd>{tokens.period}</dd></div>"
    yield f"<div><dt>Answers</dt><dd>{len(verdicts):,}</dd></div>"
    for verdict in ("weak", "strong"):
        if set(verdicts) - {"unknown"}:
            number = verdicts.count(verdict)
            yield f'<div class="{verdict}"><dt>{verdict.title()}</dt><dd>{number:,}</dd></div>'
    yield f'<div class="wide"><dt>Profile</dt><dd>{escape(report.profile)}</dd></div>'
    evidence = report.provenance
    words = f"{evidence.kind} ({brief(evidence.source, 160)}). {brief(evidence.detail, 300)}"
    yield f'<div class="wide"><dt>Evidence</dt><dd class="words">{escape(words)}</dd></div>'


def _legend(tokens: TokenMap) -> Iterator[str]:
    for phase in range(min(tokens.period, TINTS)):
        known = "" if tokens.strong is None else (": strong" if phase in tokens.strong else ": weak")
        yield f'<li><i class="{_tint(phase)}">phase {phase}{known}</i></li>'
    if tokens.period > TINTS:
        yield f"<li>and so on to phase {tokens.period - 1}, colours repeating</li>"
    for verdict in sorted({mark.verdict for mark in tokens.marks}):
        yield f'<li><mark class="{verdict}">answer, {escape(_WORDS[verdict])}</mark></li>'


def _tint(phase: int) -> str:
    return f"p{phase % TINTS}"


def _strip(tokens: TokenMap) -> Iterator[str]:
    """One tick an answer, where it stands between the request's beginning and its end."""
    for mark in tokens.marks:
        at = 100 * mark.start / max(len(tokens), 1)
        label = escape(f"{brief(mark.span.text)}: {_WORDS[mark.verdict]}", quote=True)
        yield (
            f'<a class="{mark.verdict}" href="#a{mark.number}" style="left:{at:.2f}%" title="{label}" '
            f'aria-label="{label}"></a>'
        )


def _rows(tokens: TokenMap) -> Iterator[str]:
    marks = {mark.number: mark for mark in tokens.marks}
    number = 0
    for passage in tokens.report.passages:
        for span in passage.spans:
            number += 1
            mark = marks.get(number)
            verdict = mark.verdict if mark else "unknown"
            name = escape(brief(span.text, 72))
            link = f'<a href="#a{number}">{name}</a>' if mark else name
            index = "?" if span.index_after is None else f"{span.index_after:,}"
            phase = "" if span.phase_after is None else span.phase_after
            strength = "" if span.strength_after is None else f" {span.strength_after:.2f}"
            badge = f'<span class="badge {verdict}">{_WORDS[verdict]}{strength}</span>'
            place = _context(tokens, mark) if mark else escape(brief(passage.text))
            yield (
                f"<tr><td>{number}</td><th scope=row>{link}</th><td>{span.tokens}</td><td>{index}</td>"
                f"<td>{phase}</td><td>{badge}</td>"
                f"<td class=passage>{place}</td></tr>"
            )


def _context(tokens: TokenMap, mark: Mark) -> str:
    """The answer between the words around it."""
    before = "".join(tokens.texts[max(0, mark.start - AROUND) : mark.start])
    after = "".join(tokens.texts[mark.stop : mark.stop + AROUND])
    left, right = before.rsplit("\n\n")[-1], after.split("\n\n")[0]
    answer = "".join(tokens.texts[mark.start : mark.stop])
    gaps = (
        " " if answer[:1].isspace() or left[-1:].isspace() else "",
        " " if answer[-1:].isspace() or right[:1].isspace() else "",
    )
    left, answer, right = (escape(visible(" ".join(piece.split()))) for piece in (left, answer, right))
    return f"{left}{gaps[0]}<b>{answer}</b>{gaps[1]}{right}"


def _map(tokens: TokenMap, *, everything: bool) -> Iterator[str]:
    size = len(tokens)
    at = 0
    for start, stop in ((0, size),) if everything else windows(tokens, CONTEXT):
        if start > at:
            yield f'<p class="gap">{count(start - at, "token")} not shown</p>'
        for first, last in _chunks(tokens, start, stop):
            yield f'<div class="chunk" data-first="{tokens.first + first}">'
            yield from _chunk(tokens, first, last)
            yield "</div>"
        at = stop


def _chunks(tokens: TokenMap, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Blocks that end behind a line's end, so that no block border breaks a line, nor a mark."""
    inside = {position for mark in tokens.marks for position in range(mark.start + 1, mark.stop)}
    first = start
    for position in range(start, stop):
        full = position - first >= CHUNK
        if full and tokens.texts[position].endswith("\n") and position + 1 not in inside:
            yield first, position + 1
            first = position + 1
    if first < stop:
        yield first, stop


def _chunk(tokens: TokenMap, first: int, last: int) -> Iterator[str]:
    for run in tokens.runs(first, last):
        if run.mark is not None:
            yield _open(run.mark)
        for position in range(run.start, run.stop):
            yield f"<i class={_tint(tokens.phase(position))}>{_shown(tokens.texts[position])}</i>"
        if run.mark is not None:
            yield "</mark>"


def _open(mark: Mark) -> str:
    return f'<mark id="a{mark.number}" class="{mark.verdict}" data-n="{mark.number}">'


def _shown(token: str) -> str:
    """A token's characters; a line's end is both to be seen and real."""
    if token.isprintable():
        return escape(token, quote=False) or "<u></u>"
    shown = "".join(f"{picture(char)}\n" if char == "\n" else picture(char) for char in token)
    return escape(shown, quote=False)
