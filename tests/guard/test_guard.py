"""What a guard does with a payload: its shape, its model, what cannot be aligned, and what it tells."""

import copy
import logging
import pickle
import warnings

import pytest

from phaseguard import PhaseGuard, PhaseGuardError, align_prompt, load_profile
from phaseguard.errors import InputError, PassageNotFoundError, PhaseGuardWarning, ProfileError
from phaseguard.testing import assert_phases, phases_on_wire
from tests.guard.prompts import ASKED, ATTIC, STRONG, TEXT, TOOLS, VAULT, payload, phases

CODE = "PROVOCATIVE-8417"
BLOCKS = [
    {"type": "text", "text": TEXT, "cache_control": {"type": "ephemeral"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
]
FORMAT = {"type": "json_schema", "json_schema": {"name": "out", "schema": {"type": "object"}}}


@pytest.fixture
def guard():
    return PhaseGuard(strong=STRONG)


def test_a_payload_keeps_its_shape_and_is_not_changed():
    given = payload(
        BLOCKS, tools=TOOLS, tool_choice="auto", response_format=FORMAT, temperature=0.5, x_own=[1]
    )
    before = copy.deepcopy(given)
    (stands,) = phases_on_wire(
        {"messages": payload()["messages"], "tools": TOOLS, "response_format": FORMAT}, CODE
    )
    goal = {(stands.phase + 1) % 4}
    out = PhaseGuard(strong=goal).align_payload(given, key_passages=[VAULT])
    assert_phases(
        {
            "messages": [{"role": "user", "content": out.prompt["messages"][0]["content"][:1]}],
            "tools": TOOLS,
            "response_format": FORMAT,
        },
        CODE,
        goal,
    )
    assert given == before
    assert out.report.verified
    assert {key: value for key, value in out.prompt.items() if key != "messages"} == {
        key: value for key, value in before.items() if key != "messages"
    }
    text, image = out.prompt["messages"][0]["content"]
    assert image == BLOCKS[1]
    assert text["cache_control"] == {"type": "ephemeral"}
    assert text["text"] != TEXT
    assert text["text"].split() == TEXT.split()
    assert out.restore() == before


@pytest.mark.parametrize("prompt", [TEXT, [{"role": "user", "content": TEXT}], payload()])
def test_align_gives_back_what_align_prompt_gives(guard, prompt):
    own = align_prompt(prompt, key_passages=[VAULT], strong=STRONG)
    out = guard.align(prompt, key_passages=[VAULT])
    assert out.prompt == own.prompt
    assert out.edits == own.edits
    assert out.report == own.report


def test_without_marks_the_question_decides(guard):
    assert guard.align(TEXT).prompt == align_prompt(TEXT, strong=STRONG).prompt
    asked = guard.align(TEXT, query="Which is the attic code?")
    assert asked.prompt == align_prompt(TEXT, query="Which is the attic code?", strong=STRONG).prompt


def test_tools_and_formats_of_extra_body_count(guard):
    inside = guard.align_payload(payload(extra_body={"tools": TOOLS, "top_k": 3}), key_passages=[VAULT])
    beside = guard.align_payload(payload(tools=TOOLS), key_passages=[VAULT])
    assert inside.prompt["messages"] == beside.prompt["messages"]
    assert inside.prompt["extra_body"] == {"tools": TOOLS, "top_k": 3}
    assert_phases({**payload(tools=TOOLS), "messages": inside.prompt["messages"]}, CODE, STRONG)


@pytest.mark.parametrize("name", ["deepseek-v4-flash", "DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Flash"])
def test_names_of_the_own_model(guard, name):
    assert guard.align_payload(payload() | {"model": name}, key_passages=[VAULT]).report.verified


def test_another_model_is_normalized_only_and_told_of_once(guard):
    other = payload("One. \n\n\n\n" + TEXT, tools=TOOLS) | {"model": "gpt-5"}
    with pytest.warns(PhaseGuardWarning, match=r"'gpt-5' is none .* models="):
        out = guard.align_payload(other, key_passages=[VAULT])
    assert out.prompt["messages"][0]["content"] == "One.\n\n" + TEXT
    assert not out.report.verified
    assert "gpt-5" in out.report.warnings[0]
    assert guard.align_payload(other).prompt == out.prompt  # a second warning would be an error here
    with pytest.warns(PhaseGuardWarning, match="gpt-6"):
        guard.align_payload(other | {"model": "gpt-6"})


def test_unknown_models_can_be_ignored_or_refused(caplog):
    caplog.set_level(logging.INFO, "phaseguard")
    out = PhaseGuard(unknown_model="ignore").align_payload(payload() | {"model": "gpt-5"})
    assert out.prompt["messages"] == payload()["messages"]
    assert [record.levelname for record in caplog.records] == ["INFO"]
    with pytest.raises(PhaseGuardError, match="gpt-5"):
        PhaseGuard(unknown_model="raise").align_payload(payload() | {"model": "gpt-5"})


def test_models_name_other_profiles_and_other_names():
    guard = PhaseGuard(strong=STRONG, models={"prod": "deepseek-v4-flash", "next": "deepseek-v4.1-flash"})
    for model, profile in (("prod", "deepseek-v4-flash"), ("next", "deepseek-v4.1-flash")):
        out = guard.align_payload(payload() | {"model": model}, key_passages=[VAULT])
        assert out.report.profile == profile
        assert (
            out.prompt["messages"]
            == align_prompt(
                payload()["messages"],
                key_passages=[VAULT],
                profile=profile,
            ).prompt
        )


BROKEN = [
    [{"role": "alien", "content": "Hi. \n"}],
    [{"role": "developer", "content": "Hi. \n"}, {"role": "user", "content": "Hi."}],
    [
        {
            "role": "user",
            "content": [{"type": "input_audio", "input_audio": {}}, {"type": "text", "text": "Hi."}],
        }
    ],
    [{"role": "tool", "tool_call_id": "lost", "content": "Hi."}],
    [{"role": "user", "content": "\ud800 is a lone surrogate"}],
]
UNREADABLE = [[], None, "Hi", [{"content": "no role"}], [{"role": "user", "content": 5}], [7]]


@pytest.mark.parametrize("messages", BROKEN)
def test_what_cannot_be_rendered_goes_out_normalized(guard, messages):
    with pytest.warns(PhaseGuardWarning, match="only normalized"):
        out = guard.align_payload({"messages": messages})
    assert [message["role"] for message in out.prompt["messages"]] == [m["role"] for m in messages]
    assert not out.report.verified
    with pytest.raises(PhaseGuardError):
        PhaseGuard(unknown_model="raise").align_payload({"messages": messages})


@pytest.mark.parametrize("messages", UNREADABLE)
def test_what_cannot_be_read_goes_out_as_it_is(guard, messages):
    with pytest.warns(PhaseGuardWarning, match="goes out as it is"):
        out = guard.align_payload({"messages": messages})
    assert out.prompt == out.restore() == {"messages": messages}
    with pytest.raises(PhaseGuardError) as caught:
        PhaseGuard(unknown_model="raise").align_payload({"messages": messages})
    assert str(caught.value) in out.report.warnings[0]


def test_images_alone_are_no_matter(guard):
    given = payload([BLOCKS[1]])
    out = guard.align_payload(given)
    assert out.prompt == out.restore() == given
    assert guard.survives(out).survives
    assert PhaseGuard(unknown_model="raise").align_payload(given).prompt == given


def test_a_fault_of_its_own_does_not_cost_the_call(guard, monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("phaseguard.guard.core.align_turn", broken)
    with pytest.warns(PhaseGuardWarning, match="ZeroDivisionError: a bug"):
        out = guard.align_payload(payload())
    assert out.prompt == payload()
    assert caplog.records[0].exc_info
    with pytest.raises(ZeroDivisionError):
        PhaseGuard(unknown_model="raise").align_payload(payload())


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        ({"key_passages": ["Not there."]}, PassageNotFoundError),
        ({"key_passages": [5]}, InputError),
        ({"query": 5}, InputError),
        ({"frozen": -1}, InputError),
        ({"frozen": 9}, InputError),
    ],
)
def test_wrong_arguments_are_errors(guard, ask, error):
    with pytest.raises(error):
        guard.align_payload(payload(), **ask)
    with pytest.raises(InputError, match="use align"):
        guard.align_payload(TEXT)


@pytest.mark.parametrize(
    ("choice", "error"),
    [
        ({"profile": "deepseek-v5"}, ProfileError),
        ({"models": {"a": "nope"}}, ProfileError),
        ({"models": ["a"]}, InputError),
        ({"level": "some"}, InputError),
        ({"pads": "pink"}, InputError),
        ({"pads": ["no line end"]}, InputError),
        ({"unknown_model": "wran"}, InputError),
        ({"marks": 0}, InputError),
        ({"strong": 5}, InputError),
        ({"max_added_tokens": -1}, InputError),
        ({"isolate": "maybe"}, InputError),
    ],
)
def test_wrong_choices_are_errors_at_once(choice, error):
    with pytest.raises(error):
        PhaseGuard(**choice)


def test_frozen_messages_stay(guard):
    given = payload("One. \n\n\n\n" + TEXT)
    assert guard.align_payload(given, key_passages=[VAULT], frozen=1).prompt == given


def test_every_report_is_told_and_a_broken_callback_is_logged(caplog):
    told = []
    PhaseGuard(on_report=told.append).align(TEXT)
    assert [report.profile for report in told] == ["deepseek-v4-flash"]

    def broken(report):
        raise ValueError("mine")

    assert PhaseGuard(on_report=broken, strong=STRONG).align(TEXT, key_passages=[VAULT]).report.verified
    assert "on_report raised" in caplog.text


def test_a_pickled_guard_is_configured_the_same():
    guard = PhaseGuard(load_profile("deepseek-v4.1-flash"), strong=[1], pads="visible", marks=3)
    guard.mark([VAULT], request="a")
    again = pickle.loads(pickle.dumps(guard))
    assert repr(again) == repr(guard)
    assert again.align(TEXT, key_passages=[VAULT]).prompt == guard.align(TEXT, key_passages=[VAULT]).prompt
    assert again.marked(TEXT, request="a") == ()


def test_choices_cannot_be_changed(guard):
    with pytest.raises(AttributeError):
        guard.level = "off"


def test_normalize_is_the_guards_level():
    assert PhaseGuard(level="off").normalize("One. \n") == "One. \n"
    assert PhaseGuard().normalize("One. \n") == "One.\n"


def test_repeat_leaves_out_marks_that_do_not_fit():
    guard = PhaseGuard(strong=STRONG, repeat=True)
    long = " ".join(f"Room {n} has code C-{n}." for n in range(200))
    with guard.request():
        guard.mark([long])
        out = guard.align_payload(payload(f"{long}\n\n{VAULT}\n\n{ASKED}"))
    assert out.report.verified
    assert "C-7" not in phases(out.report)


def test_explicit_passages_win_over_marks(guard):
    with guard.request():
        guard.mark([VAULT])
        assert phases(guard.align(TEXT, key_passages=[ATTIC]).report).keys() == {"XYLOPHONE-33"}
        assert phases(guard.align(TEXT).report).keys() == {"PROVOCATIVE-8417"}


def test_no_warning_is_left_over(guard):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        guard.align_payload(payload())
    assert said == []
