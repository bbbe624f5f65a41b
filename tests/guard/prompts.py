"""Prompts that the tests of the guard share."""

from __future__ import annotations

from typing import Any

VAULT = "The vault code is PROVOCATIVE-8417."
ATTIC = "The attic code is XYLOPHONE-33."
ASKED = "Which is the vault code?"
STRONG = {0, 1}  # every code of TEXT stands at phase 2 by itself
LEAD = "The door code is A-17."
TEXT = f"{LEAD}\n\n{VAULT}\n\n{ATTIC}\n\n{ASKED}"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Looks up records.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
]


def payload(text: Any = TEXT, **more: Any) -> dict[str, Any]:
    return {"model": "deepseek-v4-flash", "messages": [{"role": "user", "content": text}]} | more


def phases(report: Any) -> dict[str, int | None]:
    """The phase of every answer span by its text."""
    return {span.text: span.phase_after for passage in report.passages for span in passage.spans}


def call(number: int, query: str) -> dict[str, Any]:
    function = {"name": "look_up", "arguments": f'{{"query": "{query}"}}'}
    return {"id": f"c{number}", "type": "function", "function": function}
