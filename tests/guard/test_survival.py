"""Whether pads outlive a server that strips texts."""

import pytest

from phaseguard import PhaseGuard
from phaseguard.testing import phases_on_wire
from tests.guard.prompts import TEXT, VAULT, payload

CODE = "PROVOCATIVE-8417"


def stripped(prompt):
    return {"messages": [{**m, "content": m["content"].strip()} for m in prompt["messages"]]}


@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize("text", [TEXT, f"{VAULT}\n\nWhich is the vault code?"])
@pytest.mark.parametrize("pads", ["auto", "visible"])
def test_the_answer_is_what_the_model_would_see(phase, text, pads):
    guard = PhaseGuard(strong={phase}, pads=pads)
    out = guard.align_payload(payload(text), key_passages=[VAULT])
    before, after = phases_on_wire(out.prompt, CODE), phases_on_wire(stripped(out.prompt), CODE)
    found = guard.survives(out)
    assert found.survives == (before == after)
    assert bool(found.moved) == (before != after)
    assert bool(found.advice) != found.survives
    if pads == "visible":
        assert found.survives


def test_lost_pads_and_moved_answers_are_named():
    guard = PhaseGuard(strong={3})
    found = guard.survives(VAULT, key_passages=[CODE])
    (lost,), (moved,) = found.lost, found.moved
    assert lost.offset == 0
    assert (moved.text, moved.phase_before) == (CODE, 3)
    assert moved.phase_after != 3
    assert "visible" in found.advice


def test_other_late_steps():
    guard = PhaseGuard(strong={3})
    out = guard.align(TEXT, key_passages=[VAULT])
    assert guard.survives(out, str).survives
    collapsed = guard.survives(out, lambda text: "\n\n".join(text.split()))
    assert not collapsed.survives
    assert collapsed.lost == out.report.pads
    gone = guard.survives(out, lambda text: text.replace("PROVOCATIVE", "…"))
    assert [span.phase_after for span in gone.moved] == [None]


def test_without_phases_all_survives():
    guard = PhaseGuard(unknown_model="ignore")
    out = guard.align_payload(payload() | {"model": "gpt-5"})
    assert guard.survives(out).survives
