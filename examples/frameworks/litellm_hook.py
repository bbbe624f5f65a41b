"""A LiteLLM hook that aligns every chat completion: of acompletion, of a Router, and so of the proxy.

pip install 'phaseguard[testing]' litellm
python examples/frameworks/litellm_hook.py

For the proxy: litellm_settings: {callbacks: litellm_hook.hook}. Hooks see keyword arguments alone, and the
synchronous completion() has none that may change messages: call guard.align_payload() in front of it.
Importing litellm sets TIKTOKEN_CACHE_DIR to a folder of its own; CUSTOM_TIKTOKEN_CACHE_DIR names another one.
"""

import asyncio
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network for prices

import litellm
from litellm.integrations.custom_logger import CustomLogger

from phaseguard import PhaseGuard
from phaseguard.testing import ScriptedEngine, Server, phases_on_wire

MODEL, ANSWER = "deepseek-v4.1-flash", "PROVOCATIVE-8417"
READ = ("model", "messages", "tools", "response_format")


class PhaseGuardHook(CustomLogger):
    """Aligns what is about to be sent to a deployment; other calls go on as they are."""

    def __init__(self, guard: PhaseGuard) -> None:
        self.guard = guard
        super().__init__()

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict | None:
        """The arguments with aligned messages; in a thread, since a long prompt would hold up the others."""
        if getattr(call_type, "value", call_type) != "acompletion" or not kwargs.get("messages"):
            return None
        told = {key: kwargs[key] for key in READ if kwargs.get(key)}
        made = await asyncio.to_thread(self.guard.align_payload, told)
        return {**kwargs, "messages": made.prompt["messages"]}


hook = PhaseGuardHook(PhaseGuard(MODEL))


async def main() -> None:
    """Ask twice: as it is, and with the hook."""
    text = (Path(__file__).parents[1] / "rag_prompt.md").read_text(encoding="utf-8")
    with Server(ScriptedEngine(ANSWER), models=(MODEL,)) as server:
        for name, callbacks in (("as it is", []), ("phaseguard", [hook])):
            litellm.callbacks = callbacks
            where = {"model": f"openai/{MODEL}", "api_base": server.url, "api_key": "none"}
            await litellm.acompletion(messages=[{"role": "user", "content": text}], **where)
            (place,) = phases_on_wire(server.calls[-1], ANSWER, MODEL)
            print(f"{name}: {place.text} at token {place.index}, phase {place.phase}")


if __name__ == "__main__":
    asyncio.run(main())
