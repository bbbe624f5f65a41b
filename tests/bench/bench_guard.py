"""``PhaseGuard.align_payload`` against ``align_prompt`` of the same messages, in one run.

    python tests/bench/bench_guard.py [4K 128K]

Prints for each size medians of runs in turn: one plain ``tokenizers`` encode of the payload's text,
``align_prompt``, and the guard with marks, as a first turn and as the next turn of a conversation that it
remembers. What the guard adds should stay below 3 ms and 15 % of the plain encode. Times are processor time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from bench_align import RUNS, STRONG, plain_tokenizer, prompt

from phaseguard import PhaseGuard, align_prompt, load_profile, load_tokenizer


def timed(work: Callable[[], Any]) -> float:
    """Processor seconds of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def run(size: str) -> None:
    """Measure one size and print a line."""
    text, passages = prompt(size)
    first = {"model": "deepseek-v4-flash", "messages": [{"role": "user", "content": text}]}
    again = [{"role": "assistant", "content": "Which one?"}, {"role": "user", "content": "The first."}]
    longer = {**first, "messages": [*first["messages"], *again]}
    profile = load_profile("deepseek-v4-flash")
    tokenizer = plain_tokenizer()
    load_tokenizer(profile.tokenizer, fast=True)
    guard = PhaseGuard(profile, strong=STRONG, marks=len(passages))

    def alone(payload: dict[str, Any], **more: Any) -> Any:
        return align_prompt(payload, profile=profile, strong=STRONG, **more)

    works: dict[str, Callable[[], Any]] = {
        "encode": lambda: tokenizer.encode(text),
        "align": lambda: alone(first, key_passages=passages),
        "guard": lambda: guard.align_payload(first, request=1),
        "align, next turn": lambda: alone(longer, frozen=1),
        "guard, next turn": lambda: guard.align_payload(longer, request=2),
    }
    guard.mark(passages, request=1)
    assert works["guard"]().prompt == works["align"]().prompt
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(RUNS[size]):
        for name, work in works.items():
            times[name].append(timed(work) * 1000)
    middle = {name: median(values) for name, values in times.items()}
    print(f"{size}: " + ", ".join(f"{name} {value:.1f} ms" for name, value in middle.items()))
    for turn in ("", ", next turn"):
        pairs = zip(times[f"guard{turn}"], times[f"align{turn}"], strict=True)
        added = median(guarded - plain for guarded, plain in pairs)
        print(f"  the guard adds{turn}: {added:.2f} ms, {added / middle['encode']:.1%} of one encode")


if __name__ == "__main__":
    for name in sys.argv[1:] or ("4K", "128K"):
        run(name)
