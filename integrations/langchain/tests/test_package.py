"""What the package offers, and what it says when an extra is missing."""

from __future__ import annotations

import subprocess
import sys

import langchain_phaseguard
import pytest


def test_every_name_is_there() -> None:
    for name in langchain_phaseguard.__all__:
        assert getattr(langchain_phaseguard, name).__name__ == name
    with pytest.raises(AttributeError, match="PhaseGuardChatLlama"):
        _ = langchain_phaseguard.PhaseGuardChatLlama


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        ("PhaseGuardMiddleware", "langchain", "agents"),
        ("PhaseGuardChatOpenAI", "langchain_openai", "openai"),
        ("PhaseGuardChatDeepSeek", "langchain_deepseek", "deepseek"),
    ],
)
def test_a_missing_extra_is_named_and_nothing_else_needs_it(name: str, missing: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{missing!r}] = None
import langchain_phaseguard
assert not [one for one in ("langchain", "langchain_openai", "langchain_deepseek") if sys.modules.get(one)]
try:
    langchain_phaseguard.{name}
except ImportError as fault:
    print(fault)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{name} needs {missing}: pip install 'langchain-phaseguard[{extra}]'."
