"""A guarded LlamaIndex LLM against the same call without it, over HTTP to a server that answers at once.

    python tests/bench/bench_llama_index.py [4K 128K]

Prints for each size and way of guarding medians of runs in turn: one plain ``tokenizers`` encode of the
prompt, ``align_prompt`` alone, the call without the guard, and what the guard adds to it beyond
``align_prompt``. That should stay below 3 ms and 15 % of the plain encode. Times are processor time, of the
server's thread too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from typing import Any

from bench_align import RUNS, STRONG, plain_tokenizer, prompt
from bench_guard import timed
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from llama_index.postprocessor.phaseguard import PhaseGuardLLM, guard_llm

from phaseguard import PhaseGuard, align_prompt, load_profile, load_tokenizer
from phaseguard.testing import ScriptedEngine, Server

MODEL = "deepseek-v4-flash"


def run(size: str, url: str) -> None:
    """Measure one size and print a line for each way."""
    text, passages = prompt(size)
    profile, tokenizer = load_profile(MODEL), plain_tokenizer()
    load_tokenizer(profile.tokenizer, fast=True)
    guard = PhaseGuard(profile, strong=STRONG, marks=len(passages))
    plain = OpenAILike(model=MODEL, api_base=url, api_key="none", is_chat_model=True, timeout=600)
    copy, wrapper = guard_llm(plain, guard), PhaseGuardLLM(plain, guard)
    payload = {"model": MODEL, "messages": [{"role": "user", "content": text}]}

    works: dict[str, Callable[[], Any]] = {
        "encode": lambda: tokenizer.encode(text),
        "align": lambda: align_prompt(payload, profile=profile, strong=STRONG, key_passages=passages),
        "call": lambda: plain.chat([ChatMessage(text)]),
        "guarded copy": lambda: copy.chat([ChatMessage(text)]),
        "wrapper": lambda: wrapper.chat([ChatMessage(text)]),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    with guard.request():
        guard.mark(passages)
        for number in range(RUNS[size] + 1):
            for name, work in works.items():
                took = timed(work) * 1000
                if number:  # the first round loads what is loaded once
                    times[name].append(took)
    middle = {name: median(values) for name, values in times.items()}
    shown = ", ".join(f"{name} {middle[name]:.1f} ms" for name in ("encode", "align", "call"))
    print(f"{size}: {shown}")
    for name in ("guarded copy", "wrapper"):
        rounds = zip(times[name], times["call"], times["align"], strict=True)
        added = median(guarded - call - align for guarded, call, align in rounds)
        print(f"  {name}: {middle[name]:.1f} ms, {added:+.2f} ms beyond call and align")
        print(f"    {added / middle['encode']:+.1%} of one encode")


if __name__ == "__main__":
    with Server(ScriptedEngine("A-17"), models=(MODEL,)) as server:
        for name in sys.argv[1:] or ("4K", "128K"):
            run(name, server.url)
