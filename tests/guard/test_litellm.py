"""The LiteLLM hook really runs: in acompletion and in a Router. Needs litellm: ``-m frameworks``."""

from __future__ import annotations

import importlib.util
import inspect
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from phaseguard import PhaseGuard
from phaseguard.testing import ScriptedEngine, Server, assert_phases

EXAMPLE = Path(__file__).parents[2] / "examples" / "frameworks" / "litellm_hook.py"
MODEL = "deepseek-v4-flash"
CODE = "B-8417"
MESSAGES = [
    {
        "role": "user",
        "content": f"The door code is A-17.\n\nThe vault code is {CODE}.\n\nWhich is the vault code?",
    }
]
TOOL = {"type": "function", "function": {"name": "open", "parameters": {"type": "object", "properties": {}}}}

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]  # warnings of theirs


@pytest_asyncio.fixture
async def litellm(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv(
        "TIKTOKEN_CACHE_DIR", os.environ.get("TIKTOKEN_CACHE_DIR", "")
    )  # litellm overwrites it
    import litellm

    spec = importlib.util.spec_from_file_location("litellm_hook", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(litellm, "callbacks", [example.PhaseGuardHook(PhaseGuard(MODEL, strong={3}))])
    yield litellm
    for client in litellm.in_memory_llm_clients_cache.cache_dict.values():
        closed = client.close()  # it keeps its clients, and a server that stops would find them open
        if inspect.isawaitable(closed):
            await closed
    litellm.in_memory_llm_clients_cache.flush_cache()


@pytest.mark.parametrize("options", [{}, {"stream": True}, {"tools": [TOOL]}])
async def test_acompletion(litellm: Any, options: dict[str, Any]) -> None:
    with Server(ScriptedEngine(CODE), models=(MODEL,)) as server:
        reply = await litellm.acompletion(
            model=f"openai/{MODEL}", messages=MESSAGES, api_base=server.url, api_key="none", **options
        )
        if options.get("stream"):
            said = "".join([piece.choices[0].delta.content or "" async for piece in reply])
        else:
            said = reply.choices[0].message.content
        assert said == CODE
        assert_phases(server.calls[0], CODE, {3}, MODEL)
        assert MESSAGES[0]["content"] not in server.calls[0].texts


async def test_a_router(litellm: Any) -> None:
    """The hook sees the deployment's own model, not the name that the router gives it."""
    with Server(ScriptedEngine(CODE), models=(MODEL,)) as server:
        params = {"model": f"openai/{MODEL}", "api_base": server.url, "api_key": "none"}
        router = litellm.Router([{"model_name": "chat", "litellm_params": params}])
        await router.acompletion(model="chat", messages=MESSAGES)
        assert_phases(server.calls[0], CODE, {3}, MODEL)


def test_the_synchronous_call_is_not_hooked(litellm: Any) -> None:
    """As the example says: if this fails, LiteLLM has learnt it, and the example's text is to change."""
    with Server(ScriptedEngine(CODE), models=(MODEL,)) as server:
        litellm.completion(model=f"openai/{MODEL}", messages=MESSAGES, api_base=server.url, api_key="none")
        assert server.calls[0].texts == (MESSAGES[0]["content"],)


def test_the_example_is_short_and_runs() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 60
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    assert "as it is: PROVOCATIVE-8417 at token 2844, phase 0" in done.stdout
    assert "phaseguard: PROVOCATIVE-8417 at token 2841, phase 1" in done.stdout
