"""Asking on padded prompts: the questions, where pads go, and what is measured."""

from __future__ import annotations

import numpy as np
import pytest

from phaseguard.errors import InputError
from phaseguard.lab.ask import ask
from phaseguard.lab.cases import draw_cases
from phaseguard.lab.padded import by_target, calibrated, questions
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import CODE, FIRST_FORM, FIRST_VALUE, IS, OF, PAD, SETTINGS, STOP, THE, Task
from phaseguard.lab.words import WordTokenizer

TASKS = [
    Task(setting, records=4, value_tokens=tokens, key_tokens=1 if setting == "sentences" else keys)
    for setting in SETTINGS
    for tokens in (1, 2, 3)
    for keys in (1, 2)
]


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_questions_stand_outside_the_window_and_are_answered_in_the_text(task: Task) -> None:
    drawn = questions(task, 40, np.random.default_rng(0), window=8)
    assert len(drawn) == 40
    for row in range(40):
        start, value, end = int(drawn.starts[row]), int(drawn.values[row]), int(drawn.ends[row])
        assert 0 <= start <= value < end <= task.context - 8
        assert drawn.texts[row, value : value + task.value_tokens].tolist() == drawn.answers[row].tolist()
        prompt = drawn.prompt(row, pads=3, at=start)
        assert prompt[start : start + 3].tolist() == [PAD] * 3
        assert prompt[value + 3] == drawn.answers[row, 0]
        assert prompt[-len(drawn.asked[row]) :].tolist() == drawn.asked[row].tolist()


def test_a_context_without_room_is_refused() -> None:
    with pytest.raises(InputError, match="last 8 tokens"):
        questions(Task(context=9, records=1), 1, np.random.default_rng(0))


def test_full_attention_reads_every_phase_and_repeats_by_seed() -> None:
    model = load_model("full-s0")
    found = by_target(model, Task(), n=60)
    assert [phase.n for phase in found] == [60] * 4
    assert min(phase.mean for phase in found) > 0.95
    assert by_target(model, Task(), n=60) == found
    with pytest.raises(InputError, match="multiple of 4"):
        by_target(model, Task(), extra=3)


def test_answers_of_several_words_are_decoded_word_by_word() -> None:
    model = load_model("pair2-s0")
    task = Task(value_tokens=2)
    drawn = questions(task, 30, np.random.default_rng(1))
    prompts = [drawn.prompt(row) for row in range(30)]
    replies = ask(model, prompts, 2)
    for row in range(30):
        first = ask(model, [prompts[row]]).answers[0]
        second = ask(model, [np.append(prompts[row], first)]).answers[0]
        assert replies.answers[row].tolist() == [first[0], second[0]]
    with pytest.raises(InputError, match="empty"):
        ask(model, [np.empty(0, np.int64)])


def test_a_calibrated_profile_has_what_was_measured() -> None:
    model = load_model("csa4-s0")
    profile = calibrated(model, "csa4-s0", (Task(),), n=80)
    assert profile.strengths is not None
    assert profile.strengths["1"].mean == tuple(round(a.mean, 4) for a in by_target(model, Task(), n=80))
    assert (profile.period, profile.window, profile.provenance.kind) == (4, 8, "on-device")
    assert calibrated(load_model("full-s0"), "full-s0", (Task(),)).strengths is None


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_cases_are_prompts_whose_tokens_are_the_words(task: Task) -> None:
    tokenizer = WordTokenizer()
    cases = draw_cases(task, 30, period=4, window=8, seed=3)
    assert {case.decoration for case in cases} == {0, 1, 2, 3}
    for case in cases:
        ids = tokenizer.encode(case.prompt).ids.tolist()
        assert ids == [PAD] * case.decoration + case.context.tolist() + case.asked.tolist()
        at = case.decoration + case.value
        assert ids[at : at + task.value_tokens] == case.answer.tolist()
        assert case.phase(4) == at % 4
        assert case.prompt.count(case.record) == 1
        assert all(end <= case.start or start >= case.start for start, end in case.others)


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_other_records_have_the_form_of_the_asked_one(task: Task) -> None:
    def form(words: np.ndarray) -> list[int]:
        fixed = (THE, CODE, OF, IS, STOP)
        return [
            int(w) if w in fixed else 1000 + (w >= FIRST_VALUE) + (w >= FIRST_FORM) for w in words.tolist()
        ]

    cases = draw_cases(task, 20, period=4, window=8, seed=4)
    found = [(case, other) for case in cases for other in case.others]
    assert len(found) >= 20, "other records are there"
    for case, (start, end) in found:
        assert form(case.context[start:end]) == form(case.context[case.start : case.end])
