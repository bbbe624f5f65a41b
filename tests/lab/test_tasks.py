"""Drawn tasks are what they say: every answer stands in the context, behind its key, and only once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.lab import tasks
from phaseguard.lab.tasks import SETTINGS, VOCABULARY, Task, draw, standard_tasks


@st.composite
def any_task(draw_: st.DrawFn) -> Task:
    setting = draw_(st.sampled_from(SETTINGS))
    values = draw_(st.integers(1, 3))
    return Task(
        setting,
        draw_(st.integers(72, 160)),
        draw_(st.integers(1, 6)),
        draw_(st.integers(1, 24)),
        values,
        draw_(st.integers(1, 2)) if setting != "sentences" else 1,
        draw_(st.integers(0, 3)) if setting == "records" else 0,
    )


@given(any_task(), st.integers(0, 2**32 - 1))
@settings(max_examples=150, deadline=None)
def test_answers_stand_behind_their_keys(task: Task, seed: int) -> None:
    drawn = draw(task, 3, np.random.default_rng(seed))
    assert drawn.tokens.min() >= 0
    assert drawn.tokens.max() < VOCABULARY - 1, "no task draws the pad"
    for tokens, positions, targets, values, keys in zip(
        drawn.tokens, drawn.positions, drawn.targets, drawn.values, drawn.keys, strict=True
    ):
        context = tokens[: task.context]
        assert np.array_equal(tokens[positions + 1], targets), "answers are teacher forced"
        assert positions.min() >= task.context
        for number, (value, key) in enumerate(zip(values, keys, strict=True)):
            answer = targets[number * task.value_tokens : (number + 1) * task.value_tokens]
            assert np.array_equal(context[value : value + task.value_tokens], answer)
            assert key == value - 1 - (task.gap if task.setting == "records" else 0)
            asked_with = tokens[positions[number * task.value_tokens]]
            assert context[key] == asked_with
        if task.setting == "ask" and task.key_tokens == 1:
            assert all((context == context[key]).sum() == 1 for key in keys)


def test_text_without_a_word_to_ask_is_refused() -> None:
    with pytest.raises(InputError, match="longer context"):
        draw(Task("sentences", 63, 7, 4, 3), 2, np.random.default_rng(0))


def test_equal_seeds_draw_equal_batches() -> None:
    for setting in SETTINGS:
        one, two = (draw(Task(setting, records=4), 2, np.random.default_rng(3)) for _ in range(2))
        other = draw(Task(setting, records=4), 2, np.random.default_rng(4))
        assert np.array_equal(one.tokens, two.tokens)
        assert not np.array_equal(one.tokens, other.tokens)


def test_every_phase_is_asked() -> None:
    for setting in SETTINGS:
        drawn = draw(Task(setting, records=8), 40, np.random.default_rng(0))
        assert set(np.unique(drawn.values % 8)) == set(range(8))


def test_text_is_far_from_uniform() -> None:
    words = np.bincount(tasks._text(20_000, np.random.default_rng(0)), minlength=256)
    assert words.max() > 4 * words.mean()


@pytest.mark.parametrize(
    "fields",
    [
        {"setting": "prose"},
        {"value_tokens": 0},
        {"value_tokens": 4},
        {"key_tokens": 3},
        {"gap": -1},
        {"questions": 0},
        {"records": 0},
        {"setting": "sentences", "records": 40},
    ],
)
def test_impossible_tasks_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Task(**fields)  # type: ignore[arg-type]


def test_standard_tasks_take_key_lengths_and_gaps_where_these_exist() -> None:
    tasks = standard_tasks(("ask", "records", "sentences"), (1, 3), key_tokens=2, gaps=(0, 4))
    told = [(task.setting, task.value_tokens, task.key_tokens, task.gap) for task in tasks]
    assert told == [
        (setting, value, key, gap)
        for value in (1, 3)
        for setting, key, gap in (("ask", 2, 0), ("records", 2, 0), ("records", 2, 4), ("sentences", 1, 0))
    ]
    for task in tasks:
        assert draw(task, 2, np.random.default_rng(0)).targets.shape == (2, 16 * task.value_tokens)
    with pytest.raises(InputError, match="gap=9"):
        standard_tasks(("records",), gaps=(9,))


@pytest.mark.parametrize("setting", SETTINGS)
def test_echoes_ask_again_what_was_asked_just_before(setting: tasks.Setting) -> None:
    task = Task(setting, records=4, questions=8, echoes=3)
    drawn = draw(task, 40, np.random.default_rng(0))
    again = [sum(row[i] in row[max(0, i - 2) : i] for i in range(1, 8)) for row in drawn.values.tolist()]
    assert np.mean(again) > 2
    plain = draw(Task(setting, records=4, questions=8), 40, np.random.default_rng(0))
    assert drawn.tokens.shape == plain.tokens.shape
    right = np.take_along_axis(drawn.tokens, drawn.values, 1) == drawn.targets
    assert right.all(), "an echo has the answer of its own question"
    with pytest.raises(InputError, match="echoes=8"):
        Task(setting, records=4, questions=8, echoes=8)
