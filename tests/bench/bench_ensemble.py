"""Four layouts of a prompt against one ``align_prompt`` of it, in one run.

    python tests/bench/bench_ensemble.py [4K 128K]

Prints for each size: tokens, layouts, tokens that all of them share, medians of runs in turn and their ratio.
"""

from __future__ import annotations

import sys
from statistics import median

from bench_align import STRONG, align, prompt, seconds

from phaseguard import load_tokenizer
from phaseguard.ensemble import make_layouts

RUNS = {"4K": 15, "128K": 5}


def measure(size: str) -> None:
    """Print one row."""
    text, keys = prompt(size)
    made = make_layouts(text, key_passages=keys, strong=STRONG)
    once, several = [], []
    for _ in range(RUNS[size]):
        once.append(seconds(lambda: align(text, keys)))
        several.append(seconds(lambda: make_layouts(text, key_passages=keys, strong=STRONG)))
    one, all_of_them = median(once), median(several)
    counts = f"{size:>5}{made.layouts[0].tokens or 0:>10,}{len(made):>9}{made.shared or 0:>10,}"
    print(f"{counts}{one * 1e3:>10.1f}{all_of_them * 1e3:>12.1f}{all_of_them / one:>8.2f}")


def main() -> None:
    """Print the table."""
    load_tokenizer("deepseek-v4", fast=True)
    print(" size    tokens  layouts    shared  align ms  layouts ms   ratio")
    for size in sys.argv[1:] or RUNS:
        measure(size)


if __name__ == "__main__":
    main()
