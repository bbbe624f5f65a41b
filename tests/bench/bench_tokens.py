"""Reading a request of 128K DeepSeek tokens: each way against one plain ``tokenizers`` encode, in one run.

Run ``pytest tests/bench/bench_tokens.py --benchmark-enable -s`` for pytest-benchmark's table, or
``python tests/bench/bench_tokens.py`` for the ratios.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pydoc_data.topics import topics

import pytest

from phaseguard.tokens import load_tokenizer
from phaseguard.tokens.huggingface import HuggingFaceTokenizer
from phaseguard.tokens.plain import PlainReader

TOKENS = 131_072
CJK = "中文文档：钥匙串服务。カタカナとひらがな、漢字。한국어 문장입니다. "


WAYS = (
    "tokenizers, plain encode",
    "tokenizers, with numpy offsets",
    "tokenizers, pieces in parallel",
    "fast reader, ids and offsets",
    "fast reader, ids alone",
    "tiktoken cl100k, ids and offsets",
    "2,000 short strings, tokenizers",
    "2,000 short strings, fast reader",
    "2,000 short strings with offsets",
)


def request_text(kind: str, size: int = TOKENS) -> str:
    """About ``size`` tokens that no word cache has seen: every paragraph is numbered."""
    paragraphs = "\n\n".join(topics.values()).split("\n\n")
    if kind == "ascii":
        paragraphs = [part.encode("ascii", "ignore").decode() for part in paragraphs]
    elif kind == "mixed":
        paragraphs = [part + CJK if at % 2 else part for at, part in enumerate(paragraphs)]
    parts, count = [], 0
    while count < size:
        for part in paragraphs:
            parts.append(f"{part}\n\nRecord {len(parts) * 7919 % 1_000_003} of {len(parts)}.")
            count += len(part) // (4 if kind == "ascii" else 3)
    tokenizer = load_tokenizer("deepseek-v4")
    text = "\n\n".join(parts)
    return text[: int(tokenizer.encode(text).ends[size - 1])] if len(tokenizer.encode(text)) > size else text


def readers(text: str) -> dict[str, Callable[[], object]]:
    """The ways of reading ``text``, the plain encode first."""
    fast = load_tokenizer("deepseek-v4", fast=True)
    tiktoken = load_tokenizer("cl100k_base")
    assert isinstance(fast, HuggingFaceTokenizer)
    slow = PlainReader(fast.slow.full)
    plain = slow.plain
    strings = [text[at : at + 60] for at in range(0, 120_000, 60)]
    return dict(
        zip(
            WAYS,
            (
                lambda: plain.encode(text),
                lambda: slow.encode_whole(text),
                lambda: slow.encode(text),
                lambda: fast.encode(text),
                lambda: fast.encode_ids([text]),
                lambda: tiktoken.encode(text),
                lambda: slow.encode_ids(strings),
                lambda: fast.encode_ids(strings),
                lambda: fast.encode_batch(strings),
            ),
            strict=True,
        )
    )


@pytest.mark.parametrize("kind", ["ascii", "mixed"])
@pytest.mark.parametrize("way", WAYS)
def test_read(benchmark, kind, way):
    text = request_text(kind)
    benchmark(readers(text)[way])


def main() -> None:
    """Print milliseconds and ratios: the first call, then the best of seven."""
    for kind in ("ascii", "mixed"):
        text = request_text(kind)
        ways = readers(text)
        rounds = {way: [] for way in ways}
        for _ in range(8):
            for way, read in ways.items():
                began = time.perf_counter()
                read()
                rounds[way].append((time.perf_counter() - began) * 1e3)
        base = min(rounds[WAYS[0]][1:])
        lines = [
            f"{kind}: {len(text):,} characters, {len(load_tokenizer('deepseek-v4').encode(text)):,} tokens"
        ]
        for way, taken in rounds.items():
            best = min(taken[1:])
            lines.append(
                f"  {way:<34} first {taken[0]:8.2f} ms  best {best:8.2f} ms  {best / base:7.4f} of plain"
            )
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
