"""A loopback endpoint that answers what LangChain's standard tests ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

from phaseguard.testing import Completion, ScriptedEngine, ToolCall

MODEL = "deepseek-v4.1-flash"
CODE = "PROVOCATIVE-8417"


@dataclass(frozen=True)
class Clients:
    """HTTP clients that chat models share: a model does not close its own."""

    sync: DefaultHttpxClient
    asynchronous: DefaultAsyncHttpxClient

    @property
    def arguments(self) -> dict[str, Any]:
        """What a chat model takes."""
        return {"http_client": self.sync, "http_async_client": self.asynchronous}


def engine() -> ScriptedEngine:
    return ScriptedEngine(answer, profile=MODEL)


def answer(body: Mapping[str, Any]) -> str | Completion:
    """Calls the first tool once, fills a schema, repeats what it is asked to repeat."""
    last = body["messages"][-1]
    tools = body.get("tools") or ()
    if tools and last["role"] != "tool" and body.get("tool_choice") != "none":
        function = _chosen(tools, body.get("tool_choice"))
        return Completion(None, (ToolCall(function["name"], json.dumps(filled(function["parameters"]))),))
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return json.dumps(filled(form["json_schema"]["schema"]))
    if form.get("type") == "json_object":
        return json.dumps({"setup": "Why?", "punchline": "So."})
    text = _text(last)
    return text if re.search(r"[^\x00-\x7f]", text) else f"Hello! The code is {CODE}."


def _chosen(tools: Sequence[Mapping[str, Any]], choice: Any) -> Mapping[str, Any]:
    """The tool that must be called, or the last one."""
    named = choice["function"]["name"] if isinstance(choice, Mapping) else None
    return next((t["function"] for t in tools if t["function"]["name"] == named), tools[-1]["function"])


def filled(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every property of a JSON schema."""
    return {name: _value(one) for name, one in schema.get("properties", {}).items()}


def _value(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    return {"integer": 3, "number": 3.0, "boolean": True, "array": [], "object": {}}.get(
        kind, "text 你好 こんにちは"
    )


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)
