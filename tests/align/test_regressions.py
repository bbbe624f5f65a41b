"""Contracts that once broke, each by the smallest prompt that showed it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from phaseguard import align_prompt
from phaseguard.align import setting
from phaseguard.chat import load_renderer
from tests.align.helpers import PARAGRAPHS, profile

LLAMA3 = Path(__file__).parents[1] / "chat" / "templates" / "llama3.jinja"


def document(seed: int, code: str) -> str:
    before, after = random.Random(seed).sample(PARAGRAPHS, 2)
    return f"{before}\n\nThe code is {code}.\n\n{after}"


@pytest.mark.parametrize("budget", [None, 3])
@pytest.mark.parametrize("strong", range(4))
def test_a_later_system_message_leaves_earlier_messages_as_they_are(strong: int, budget: int | None) -> None:
    """V4 hoists it in front of them; its pads must not count for messages that came before it."""
    for seed in range(5):
        codes = [f"Kx-{seed}7{n}" for n in range(4)]
        roles = ("system", "user", "system", "user")
        messages = [{"role": r, "content": document(seed, c)} for r, c in zip(roles, codes, strict=True)]
        given: dict[str, Any] = {"strong": {strong}, "max_added_tokens": budget}
        whole = align_prompt(messages, key_passages=codes, **given)
        assert whole.report.verified
        for stop in (1, 2, 3):
            part = align_prompt(messages[:stop], key_passages=codes[:stop], **given)
            assert part.prompt == whole.prompt[:stop]


@pytest.fixture
def llama3(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that strips every message, without tokens that DeepSeek's vocabulary does not have."""
    renderer = load_renderer("jinja", template=LLAMA3)
    monkeypatch.setattr(setting, "load_renderer", lambda *a, **k: renderer)


@pytest.mark.usefixtures("llama3")
@pytest.mark.parametrize("strong", range(4))
def test_where_blanks_are_stripped_other_pads_open_a_message(strong: int) -> None:
    codes = [f"Kx-{n}77{n}" for n in range(20)]
    messages = [{"role": "user", "content": f"Code {code} here.\n\nWhat now?"} for code in codes]
    out = align_prompt(messages, key_passages=codes, profile=profile(chat="jinja"), strong={strong})
    assert out.report.verified
    assert {span.phase_after for p in out.report.passages for span in p.spans} == {strong}


@pytest.mark.usefixtures("llama3")
@pytest.mark.parametrize("strong", range(4))
def test_a_pad_at_a_stripped_edge_changes_no_earlier_message(strong: int) -> None:
    for seed in range(5):
        first = document(seed, "Kx-1") + "\n\n" + document(seed + 1, "Kx-2")
        messages = [{"role": "user", "content": first}, {"role": "user", "content": "Kx-3 is it\n\nWhich?"}]
        given: dict[str, Any] = {"profile": profile(chat="jinja"), "strong": {strong}}
        whole = align_prompt(messages, key_passages=["Kx-1", "Kx-2", "Kx-3"], **given)
        part = align_prompt(messages[:1], key_passages=["Kx-1", "Kx-2"], **given)
        assert part.prompt == whole.prompt[:1]
