"""Marks reach the request that made them, and no other: threads, tasks, copied contexts, scopes, keys."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from phaseguard import PhaseGuard
from phaseguard.errors import InputError, PhaseGuardWarning
from tests.guard.prompts import ASKED, ATTIC, LEAD, STRONG, TEXT, VAULT, payload, phases


@pytest.fixture
def guard():
    return PhaseGuard(strong=STRONG)


def clean(guard):
    return contextvars.Context().run(guard.marked, TEXT)


def test_marks_count_where_their_query_stands(guard):
    guard.mark([VAULT, "Not there."], query=ASKED)
    assert guard.marked(TEXT) == (VAULT,)
    assert guard.marked(payload()) == (VAULT,)
    assert guard.marked(TEXT.replace("vault code?", "code of it?")) == ()
    assert guard.marked(TEXT.replace(ASKED, ""), query=ASKED) == (VAULT,)
    assert guard.marked(None) == ()
    assert clean(guard) == ()


def test_marks_of_the_same_query_add_up_until_a_prompt_was_aligned(guard):
    guard.mark([VAULT], query=ASKED)
    guard.mark([ATTIC], query=ASKED)
    assert set(guard.marked(TEXT)) == {VAULT, ATTIC}
    guard.align_payload(payload())
    guard.mark([LEAD], query=ASKED)
    assert guard.marked(TEXT) == (LEAD,)
    guard.mark([ATTIC], query="Which is the attic code?")
    assert guard.marked(TEXT) == ()


def test_a_query_in_a_tool_call_counts(guard):
    function = {"name": "look_up", "arguments": '{"query": "code of the \\"vault\\""}'}
    messages = [
        {"role": "user", "content": "Open it."},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "1", "content": VAULT},
    ]
    guard.mark([VAULT], query='code of the "vault"')
    assert guard.marked(messages) == (VAULT,)
    guard.mark([VAULT], query="vault")
    assert guard.marked(messages[:1]) == ()


def test_marks_without_anything_to_find_them_by_are_told_of(guard):
    with pytest.warns(PhaseGuardWarning, match="never used"):
        guard.mark([VAULT])
    assert guard.marked(TEXT) == ()


def test_a_scope_has_marks_of_its_own(guard):
    guard.mark([ATTIC], query=ASKED)
    with guard.request():
        assert guard.marked(TEXT) == ()
        guard.mark([VAULT])
        with guard.request():
            guard.mark([LEAD], query="Something else?")
            assert guard.marked(TEXT) == (LEAD,)
        # a retriever that runs in a copied context, as in a parallel step of a chain
        contextvars.copy_context().run(guard.mark, [LEAD])
        assert set(guard.marked(TEXT)) == {VAULT, LEAD}
    assert guard.marked(TEXT) == (ATTIC,)


def test_marks_by_key_until_they_are_forgotten(guard):
    guard.mark([VAULT], request="one")
    guard.mark([ATTIC], request="one")
    guard.mark([LEAD], request="two")
    assert clean(guard) == ()
    assert set(guard.marked(TEXT, request="one")) == {VAULT, ATTIC}
    assert phases(guard.align_payload(payload(), request="two").report).keys() == {"A-17"}
    guard.forget("one")
    guard.forget("never seen")
    assert guard.marked(TEXT, request="one") == ()


def test_two_guards_do_not_share_marks(guard):
    other = PhaseGuard(strong=STRONG)
    guard.mark([VAULT], query=ASKED)
    other.mark([ATTIC], query=ASKED)
    assert (guard.marked(TEXT), other.marked(TEXT)) == ((VAULT,), (ATTIC,))


def test_marks_are_bounded():
    guard = PhaseGuard(marks=2)
    with guard.request():
        guard.mark([LEAD, VAULT])
        guard.mark([ATTIC])
        assert guard.marked(TEXT) == (ATTIC, LEAD)


@pytest.mark.parametrize("passages", [[5], [None]])
def test_marks_are_strings(guard, passages):
    with pytest.raises(InputError, match="mark strings"):
        guard.mark(passages, query=ASKED)
    with pytest.raises(InputError, match="query"):
        guard.mark([VAULT], query=5)


def test_packing_may_break_lines_and_cut(guard):
    with guard.request():
        guard.mark(["The vault code is\nPROVOCATIVE-8417.", f"{ATTIC}\nThe rest was cut off."])
        assert phases(guard.align_payload(payload()).report).keys() == {"PROVOCATIVE-8417", "XYLOPHONE-33"}


def test_marks_that_stand_nowhere_leave_it_to_the_question(guard):
    with guard.request():
        guard.mark(["Not there."])
        marked = guard.align(TEXT)
    assert marked.prompt == PhaseGuard(strong=STRONG).align(TEXT).prompt


def user(guard, number, barrier=None):
    """One user's request: the same words for all but the number; returns what was aligned for."""
    question = f"Which is the code of room {number}?"
    rooms = [f"The code of room {n} is KEY-{n}{n}." for n in range(8)]
    if number % 3:  # some users retrieve nothing
        guard.mark([rooms[number % 8]], query=question)
    if barrier:
        barrier.wait()
    return guard.align_payload(payload("\n\n".join([*rooms, question]))).prompt["messages"][0]["content"]


@pytest.fixture(scope="module")
def alone():
    """What each user gets with a guard of their own."""
    return [contextvars.Context().run(user, PhaseGuard(strong=STRONG), number) for number in range(24)]


def test_threads_that_are_reused_do_not_mix_users(guard, alone):
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda number: user(guard, number), range(24))) == alone


def test_users_at_the_same_time_do_not_mix(guard, alone):
    barrier = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: user(guard, number, barrier), range(24)))
    assert made == alone


def test_tasks_do_not_mix_users(guard, alone):
    async def one(number):
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(None, context.run, user, guard, number)

    async def all_of_them():
        guard.mark([VAULT], query="a question of the task that starts them")
        return await asyncio.gather(*(one(number) for number in range(24)))

    assert asyncio.run(all_of_them()) == alone


def test_the_check_would_see_a_mixture(guard, alone):
    question = "Which is the code of room 3?"
    guard.mark(["The code of room 5 is KEY-55."], request="leak")
    rooms = [f"The code of room {n} is KEY-{n}{n}." for n in range(8)]
    leaked = guard.align_payload(payload("\n\n".join([*rooms, question])), request="leak")
    assert leaked.prompt["messages"][0]["content"] != alone[3]
