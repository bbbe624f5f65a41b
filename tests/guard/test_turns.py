"""Earlier turns stay byte-identical although what decided them is gone; aligning again changes nothing."""

from __future__ import annotations

import contextvars
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaseguard import PhaseGuard, align_prompt
from phaseguard.guard import memory as memory_module
from phaseguard.testing import assert_phases, phases_on_wire
from tests.guard.prompts import ASKED, ATTIC, LEAD, STRONG, TEXT, TOOLS, VAULT, call, payload, phases

CODES = ("PROVOCATIVE-8417", "XYLOPHONE-33", "LANTERN-3071", "D-4471", "INC-20817", "OPS-5512")


def record(room: int) -> str:
    return f"The code of room {room} is {CODES[room % 6]}{room}."


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Calls of an agent: the messages that each adds, and what was marked for it, which is gone later."""
    calls: list[dict[str, Any]] = []
    for number in range(draw(st.integers(6, 8))):
        rooms = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))
        asked = draw(st.integers(0, 9))
        question = f"Which is the code of room {asked}?"
        text = "\n\n".join([*map(record, rooms), question])
        blocks = [
            {"type": "text", "text": "\n\n".join(map(record, rooms))},
            {"type": "text", "text": question},
        ]
        content = draw(st.sampled_from([text, blocks, text + " \n\n\n\n"]))
        marked = draw(st.lists(st.sampled_from(rooms), max_size=2))
        said = {"role": "assistant", "content": f"Answer {number}.\n"}
        added = [{"role": "user", "content": content}]
        calls.append({"added": added, "marked": marked, "query": question, "reply": said})
        if draw(st.booleans()):
            found = draw(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
            asks = {"role": "assistant", "content": None, "tool_calls": [call(number, f"rooms {number}")]}
            calls[-1]["reply"] = asks
            result = {
                "role": "tool",
                "tool_call_id": f"c{number}",
                "content": "\n\n".join(map(record, found)),
            }
            marked = draw(st.lists(st.sampled_from(found), max_size=1))
            calls.append({"added": [result], "marked": marked, "query": f"rooms {number}", "reply": said})
    return calls


def run(guard: PhaseGuard, calls: list[dict[str, Any]]) -> list[list[Any]]:
    """Each call in a context of its own, as a new request; the messages that each sent."""
    history: list[Any] = [{"role": "system", "content": "Quote codes exactly."}]
    sent = []
    for one in calls:
        history += one["added"]
        given = {"messages": list(history), "tools": TOOLS}
        sent.append(contextvars.Context().run(request, guard, one, given))
        history.append(one["reply"])
    return sent


def request(guard: PhaseGuard, one: dict[str, Any], given: dict[str, Any]) -> list[Any]:
    """What a request sends; guarded layers inside it, of the same context and of others, change nothing."""
    guard.mark([record(room) for room in one["marked"]], query=one["query"])
    made = guard.align_payload(given)
    assert made.restore() == given
    assert guard.align_payload(made.prompt).prompt == made.prompt
    if made.prompt["messages"][-1] != given["messages"][-1]:
        assert contextvars.Context().run(guard.align_payload, made.prompt).prompt == made.prompt
    return made.prompt["messages"]


@settings(max_examples=12)
@given(calls=turns())
def test_earlier_messages_are_sent_again_to_the_letter_and_marks_count_in_their_turn(calls):
    sent = run(PhaseGuard(strong=STRONG), calls)
    for before, after in pairwise(sent):
        assert after[: len(before)] == before
    for one, messages in zip(calls, sent, strict=True):
        if len(one["marked"]) == 1 and messages[-1]["role"] == "user":
            room = one["marked"][0]
            body = {"messages": messages, "tools": TOOLS}
            assert phases_on_wire(body, f"{CODES[room % 6]}{room}.")[-1].phase in STRONG


def test_the_memory_is_what_keeps_marked_turns(monkeypatch):
    def two_turns():
        guard, history = PhaseGuard(strong=STRONG), payload()["messages"]
        with guard.request():
            guard.mark([ATTIC])
            first = guard.align_payload({"messages": history}).prompt["messages"]
        history = [*history, {"role": "assistant", "content": "."}, {"role": "user", "content": "Why?"}]
        return first, guard.align_payload({"messages": history}).prompt["messages"][: len(first)]

    first, second = two_turns()
    assert second == first
    monkeypatch.setattr(memory_module.Memory, "keep", lambda *_: None)
    first, second = two_turns()
    assert second != first


@settings(max_examples=5)
@given(calls=turns())
def test_what_is_unknown_is_aligned_by_the_content_alone(calls):
    history: list[Any] = []
    for one in calls:
        history += [*one["added"], one["reply"]]
    given = {"messages": history[:-1], "tools": TOOLS}
    assert PhaseGuard(strong=STRONG).align_payload(given).prompt == align_prompt(given, strong=STRONG).prompt


def test_marks_behind_unknown_turns_leave_those_to_their_own_rule():
    answer = {"role": "assistant", "content": "It is PROVOCATIVE-8417."}
    first = {"role": "user", "content": TEXT}
    second = {"role": "user", "content": f"{LEAD}\n\n{VAULT}\n\n{ATTIC}\n\nWhich is the door code?"}
    given = {"messages": [first, answer, second]}
    guard = PhaseGuard(strong=STRONG)
    with guard.request():
        guard.mark([ATTIC])
        out = guard.align_payload(given)
    own = align_prompt({"messages": [first]}, strong=STRONG).prompt["messages"]
    assert out.prompt["messages"][:2] == [*own, answer]
    assert phases(out.report).keys() == {"XYLOPHONE-33"}
    assert phases_on_wire(out.prompt, "XYLOPHONE-33")[-1].phase in STRONG
    assert out.restore() == given


def test_marks_in_a_new_system_prompt_count():
    """Some applications put what they retrieve in front of the history."""
    guard = PhaseGuard(strong=STRONG)
    history = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}]
    system = {"role": "system", "content": f"{LEAD}\n\n{VAULT}\n\n{ATTIC}"}
    guard.mark([ATTIC], query=ASKED)
    out = guard.align_payload({"messages": [system, *history, {"role": "user", "content": ASKED}]})
    assert phases(out.report).keys() == {"XYLOPHONE-33"}
    assert_phases(out.prompt, "XYLOPHONE-33", STRONG)


def test_named_passages_win_in_earlier_turns_too():
    guard = PhaseGuard(strong=STRONG)
    first = payload()
    one = guard.align_payload(first, key_passages=[VAULT]).prompt["messages"]
    more = [*first["messages"], {"role": "assistant", "content": "."}, {"role": "user", "content": ATTIC}]
    same = guard.align_payload({"messages": more}, key_passages=[VAULT])
    assert same.prompt["messages"][:1] == one
    other = guard.align_payload({"messages": more}, key_passages=[ATTIC, LEAD])
    assert_phases({"messages": other.prompt["messages"]}, ["XYLOPHONE-33", "A-17"], STRONG)


def test_a_conversation_with_the_same_words_does_not_decide_the_last_turn():
    guard = PhaseGuard(strong=STRONG)
    plain = PhaseGuard(strong=STRONG).align_payload(payload()).prompt
    with guard.request():
        guard.mark([ATTIC])
        assert guard.align_payload(payload()).prompt != plain
    assert guard.align_payload(payload()).prompt == plain
    # both were sent: later turns recall neither, and go by the content alone
    more = [
        *payload()["messages"],
        {"role": "assistant", "content": "."},
        {"role": "user", "content": "Why?"},
    ]
    assert guard.align_payload({"messages": more}).prompt["messages"][:1] == plain["messages"]


@pytest.mark.parametrize("key", ["user", "safety_identifier", "prompt_cache_key", "tools"])
def test_what_a_payload_says_of_its_user_tells_conversations_apart(key):
    guard = PhaseGuard(strong=STRONG)
    more = [
        *payload()["messages"],
        {"role": "assistant", "content": "."},
        {"role": "user", "content": "Why?"},
    ]
    with guard.request():
        guard.mark([ATTIC])
        sent = guard.align_payload(payload(**{key: TOOLS})).prompt["messages"]
    assert sent != PhaseGuard(strong=STRONG).align_payload(payload(**{key: TOOLS})).prompt["messages"]
    here = guard.align_payload({"messages": more, key: TOOLS}).prompt["messages"]
    there = guard.align_payload({"messages": more}).prompt["messages"]
    assert here[:1] == sent
    assert there[:1] == align_prompt(payload()["messages"], strong=STRONG).prompt


def test_moving_cache_control_changes_nothing():
    guard = PhaseGuard(strong=STRONG)
    block = {"type": "text", "text": TEXT}
    with guard.request():
        guard.mark([ATTIC])
        sent = guard.align_payload(payload([block | {"cache_control": {"type": "ephemeral"}}])).prompt
    more = [
        *payload([block])["messages"],
        {"role": "assistant", "content": "."},
        {"role": "user", "content": "Why?"},
    ]
    again = guard.align_payload({"messages": more}).prompt["messages"][0]["content"][0]
    assert again == {"type": "text", "text": sent["messages"][0]["content"][0]["text"]}


def test_an_aligned_history_stays_as_it_is():
    guard = PhaseGuard(strong=STRONG)
    with guard.request():
        guard.mark([ATTIC])
        sent = guard.align_payload(payload()).prompt["messages"]
    more = [*sent, {"role": "assistant", "content": "."}, {"role": "user", "content": TEXT}]
    out = guard.align_payload({"messages": more})
    assert out.prompt["messages"][:2] == more[:2]


def test_the_memory_is_bounded_and_holds_no_text():
    guard = PhaseGuard(strong=STRONG)
    guard._memory._most = 3
    for number in range(5):
        guard.align_payload(payload(f"{number}. {TEXT}"), key_passages=[VAULT])
    kept = guard._memory._sent
    assert 0 < len(kept) <= 3
    assert "vault" not in "".join(repr(sent.edits) for sent in kept.values())


def test_digests_tell_texts_in_blocks_apart():
    from phaseguard.align.prompt import Prompt

    def last(content):
        prompt = Prompt.read([{"role": "user", "content": content}])
        return memory_module.Thread(prompt, {}, "p").given[-1]

    texts = ["ab", [{"type": "text", "text": "ab"}], [{"type": "text", "text": t} for t in ("a", "b")]]
    assert len({last(content) for content in [*texts, "ab\0", [*texts[1], {"type": "x"}]]}) == 5 - 1
