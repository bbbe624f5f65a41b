"""Ratios of normalizing to parsing, in one run: ``python tests/bench/bench_normalize.py``.

Prints, for texts made of the language reference that pydoc ships, the best time of several runs of
``normalize`` divided by the best time of markdown-it-py's block phase on the same text.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pydoc_data import topics

from markdown_it import MarkdownIt

from phaseguard.normalize import BlockMap, normalize
from phaseguard.normalize.prose import Kind

MEGA = 1_000_000


def best(run: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def paragraphs() -> list[str]:
    """The prose paragraphs of the reference."""
    found = []
    for topic in topics.topics.values():
        blocks = BlockMap(topic)
        for number in range(blocks.count):
            segment = blocks.segments(number)[0]
            text = topic[segment.start : segment.end]
            if segment.kind is Kind.PROSE and len(text) > 80 and text[0].isalpha() and "\n" in text:
                found.append(text)
    return found


def markdown(size: int) -> str:
    """Headings, paragraphs, lists, fences, tables, quotations, with some decoration, in a fixed order."""
    parts: list[str] = []
    length = 0
    for number, paragraph in enumerate(itertools.cycle(paragraphs())):
        if length >= size:
            break
        extra = {
            0: f"## Section {number}",
            3: "- first point of the list\n- second point, with `code`\n- third point",
            5: "```python\ndef f(x):\n    if x:\n        return 1\n\n\n    return 2\n```",
            7: "| name | value |\n|---|---|\n| a | 1 |\n| b | 2 |",
            8: "> A quotation that runs\n> over two lines.",
            9: "1. one\n\n   more of one\n\n2. two",
        }.get(number % 11)
        parts += [paragraph, *([extra] if extra else [])]
        length += len(paragraph) + len(extra or "") + 3
    return "\n\n".join(parts) + "\n"


def decorated(text: str) -> str:
    """A blank behind every twentieth line, and three blank lines in every tenth gap."""
    lines = text.split("\n")
    for at in range(10, len(lines), 20):
        lines[at] += " " if lines[at] else ""
    gaps = "\n".join(lines).split("\n\n")
    return "".join(g + ("\n\n\n\n" if n % 10 == 0 else "\n\n") for n, g in enumerate(gaps))


def plain(size: int) -> str:
    """Paragraphs alone."""
    text = "\n\n".join(p for p in paragraphs() if not set("`|~#*_=<>[]{}") & set(p))
    return (text + "\n\n") * (1 + size // len(text))


def breaks_near(text: str, calls: int = 300) -> int:
    """What alignment asks for: the first breaks behind many offsets."""
    blocks, step = BlockMap(text), len(text) // calls
    return sum(
        len(list(itertools.islice(blocks.breaks(at, len(text)), 4))) for at in range(0, len(text), step)
    )


def report(name: str, text: str) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    lines = text.replace("\r\n", "\n")
    parse = best(lambda: parser.block.parse(lines, parser, {}, []), 3)
    spent = best(lambda: normalize(text))
    edits = len(normalize(text).edits)
    mapped = best(lambda: BlockMap(text))
    asked = best(lambda: breaks_near(text))
    print(
        f"{name:24} {len(text):>9} chars {edits:>6} edits"
        f"   normalize {1e3 * spent:7.1f} ms = {spent / parse:.3f} x parse"
        f"   map {1e3 * mapped:5.1f} ms   300 x breaks {1e3 * asked:5.1f} ms"
    )


if __name__ == "__main__":
    report("markdown", markdown(MEGA))
    report("markdown, decorated", decorated(markdown(MEGA)))
    report("plain", plain(MEGA))
    report("plain, decorated", decorated(plain(MEGA)))
    report("prompt, half", markdown(MEGA // 2))
    report("prompt, half, decorated", decorated(markdown(MEGA // 2)))
    report("carriage returns", decorated(markdown(MEGA)).replace("\n", "\r\n"))
