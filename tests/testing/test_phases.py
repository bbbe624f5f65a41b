"""Where passages stood on the wire, proven against the aligner's own report and seen to fail."""

from __future__ import annotations

from typing import Any

import pytest

from phaseguard import align_prompt
from phaseguard.errors import InputError, PassageNotFoundError
from phaseguard.lab.words import WordTokenizer
from phaseguard.profiles import PhaseProfile
from phaseguard.testing import ScriptedEngine, Server, assert_phases, phases_on_wire
from tests.testing.clients import MODEL, client

TEXT = "The door code is A-17.\n\nThe vault code is B-8417.\n\nWhich is the vault code?"
LAB = PhaseProfile(name="lab", tokenizer="words", period=4, provenance={"kind": "stated", "source": "test"})
WORDS: Any = {"profile": LAB, "tokenizer": WordTokenizer()}
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]


def sent(messages: Any, **more: Any) -> Any:
    with Server(ScriptedEngine("B-8417")) as server, client(server) as asking:
        asking.chat.completions.create(model=MODEL, messages=messages, **more)
        (call,) = server.calls
    return call


@pytest.mark.parametrize("more", [{}, {"tools": TOOLS}, {"reasoning_effort": "high"}])
@pytest.mark.parametrize("strong", [{0}, {1}, {2}, {3}])
def test_what_was_aligned_stands_there_on_the_wire(strong: set[int], more: dict[str, Any]) -> None:
    payload = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TEXT}]}
    aligned = align_prompt({**payload, **more}, key_passages=["B-8417"], strong=strong)
    call = sent(**aligned.prompt)
    (span,) = aligned.report.passages[0].spans
    (found,) = phases_on_wire(call, span.text)
    assert (found.text, found.index, found.phase) == (span.text, span.index_after, span.phase_after)
    assert_phases(call, span.text, strong)
    with pytest.raises(AssertionError, match=f"stands at token {found.index}, phase {found.phase}"):
        assert_phases(call, span.text, {0, 1, 2, 3} - strong)


def test_every_place_counts() -> None:
    body = {"messages": [{"role": "user", "content": "A-17 or else A-17, A-17"}]}
    found = phases_on_wire(body, "A-17")
    assert len({place.index for place in found}) == 3
    first, *_ = found
    with pytest.raises(AssertionError):
        assert_phases(body, "A-17", {first.phase})


def test_places_are_in_order_and_overlap() -> None:
    found = phases_on_wire({"prompt": "bena\n\nbena\n\nbena\n\nkosi"}, ["kosi", "bena\n\nbena"], **WORDS)
    assert [(place.text, place.index, place.phase) for place in found] == [
        ("kosi", 3, 3),
        ("bena\n\nbena", 0, 0),
        ("bena\n\nbena", 1, 1),
    ]


def test_prefixes_of_the_engine_count() -> None:
    shifted = LAB.with_(prefix_offset=5)
    (found,) = phases_on_wire({"prompt": "kosi"}, "kosi", shifted, tokenizer=WordTokenizer())
    assert (found.index, found.phase) == (5, 1)


def test_a_passage_that_is_not_there() -> None:
    body = {"messages": [{"role": "user", "content": TEXT}]}
    for check in (lambda: phases_on_wire(body, "C-1"), lambda: assert_phases(body, "C-1", {0, 1, 2, 3})):
        with pytest.raises(PassageNotFoundError, match="'C-1' does not stand in the request"):
            check()


@pytest.mark.parametrize("passages", [[], "", ["A-17", ""]])
def test_nothing_to_look_for(passages: Any) -> None:
    with pytest.raises(InputError, match="at least one passage"):
        phases_on_wire({"messages": [{"role": "user", "content": TEXT}]}, passages)
