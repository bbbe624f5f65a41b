"""``align_batch`` beside a loop of ``align_prompt``, and two processes beside one, in one run.

    python tests/bench/bench_batch.py [ROWS]

Rows are RAG prompts of about 1,200 characters, one key passage each. Prints rows a second, medians of runs in
turn. ``phaseguard batch`` is timed as a whole: each process starts and loads its reader, two to three
seconds, which is the price of the second one on small files.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from pydoc_data import topics
from statistics import median

from phaseguard import align_prompt, load_profile
from phaseguard.batch import BatchAligner

RUNS = 3
CHARACTERS = 1_200
PROFILE = "deepseek-v4.1-flash"


def make_columns(rows: int) -> dict[str, list]:
    """Prompts with the passage somewhere inside."""
    rng = random.Random(0)
    source = [
        part.strip() for topic in topics.topics.values() for part in topic.split("\n\n") if part.strip()
    ]
    columns: dict[str, list] = {"prompt": [], "key_passages": []}
    for row in range(rows):
        passage = f"The access code is PROVOCATIVE-{rng.randrange(10_000)}."
        parts = [f"Request {row}."]
        while sum(map(len, parts)) < CHARACTERS:
            parts.append(rng.choice(source))
        parts.insert(rng.randrange(1, len(parts) + 1), passage)
        columns["prompt"].append("\n\n".join([*parts, "Which code opens the door?"]))
        columns["key_passages"].append([passage])
    return columns


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def loop(columns: dict[str, list]) -> None:
    """What a user would write without align_batch."""
    for prompt, keys in zip(columns["prompt"], columns["key_passages"], strict=True):
        align_prompt(prompt, key_passages=keys, profile=PROFILE)


def command(source: Path, out: Path, jobs: int) -> None:
    """The command as a whole process; 1 says that some row's proof failed, which counts as done."""
    run = [sys.executable, "-m", "phaseguard", "batch", str(source), str(out), "--jobs", str(jobs)]
    done = subprocess.run([*run, "--profile", PROFILE], check=False, stderr=subprocess.DEVNULL)
    assert done.returncode in (0, 1)


def main() -> None:
    """Print the table."""
    rows = int(sys.argv[1]) if sys.argv[1:] else 2_000
    columns = make_columns(rows)
    aligner = BatchAligner(profile=load_profile(PROFILE))
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "in.jsonl", Path(folder) / "out.jsonl"
        lines = zip(columns["prompt"], columns["key_passages"], strict=True)
        source.write_text(
            "".join(json.dumps({"prompt": prompt, "key_passages": keys}) + "\n" for prompt, keys in lines),
            encoding="utf-8",
        )
        calls = {
            "loop of align_prompt": lambda: loop(columns),
            "align_batch": lambda: aligner(columns),
            "command, 1 job": lambda: command(source, out, 1),
            "command, 2 jobs": lambda: command(source, out, 2),
        }
        times: dict[str, list[float]] = {name: [] for name in calls}
        aligner({name: column[:50] for name, column in columns.items()})  # loads what is loaded once
        for _ in range(RUNS):
            for name, call in calls.items():
                times[name].append(seconds(call))
    base = median(times["loop of align_prompt"])
    print(f"{rows:,} rows             rows/s   of the loop")
    for name, taken in times.items():
        print(f"{name:<22}{rows / median(taken):>8,.0f}{base / median(taken):>12.2f}")


if __name__ == "__main__":
    main()
