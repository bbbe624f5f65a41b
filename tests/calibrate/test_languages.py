"""Texts: what is asked is in them once, where the probe wants it, and no two prompts are the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

from phaseguard.calibrate.facts import PassageFacts, digit_counts
from phaseguard.calibrate.items import PROBES, Item, Language
from phaseguard.calibrate.ondevice import LabEndpoint, LabLanguage
from phaseguard.calibrate.shifts import Shifter
from phaseguard.calibrate.standard import StandardLanguage
from phaseguard.errors import InputError
from phaseguard.profiles import load_profile
from phaseguard.tokens import load_tokenizer

CHAT = load_profile("deepseek-v4-flash")
LANGUAGES = {
    "load": StandardLanguage(CHAT, context=700),
    "text": StandardLanguage(CHAT, context=700, filler="text", seed=4),
    "ask": StandardLanguage(CHAT, context=700, filler="ask"),
    "continued": StandardLanguage(CHAT, context=700, completions=True),
    "lab": LabLanguage.of("csa4-s0"),
    "lab records": LabLanguage.of("csa4-records-s0"),
}
PASSAGES = (
    "Order [[48213]] was shipped to Lyon in week 17.\n\nThe invoice of Mrs Okafor is about 1,250 euros.\n\n"
    "Ticket 7731 was closed by [[Jana Novak]]."
)


@pytest.fixture(params=LANGUAGES)
def language(request) -> Language:
    return LANGUAGES[request.param]


def test_a_number_gives_one_item(language) -> None:
    for probe in PROBES:
        assert language.draw(3, probe) == language.draw(3, probe)
        texts = {language.draw(number, probe).text for number in range(6)}
        assert len(texts) == 6


def test_spans_are_what_they_say(language) -> None:
    for probe in PROBES:
        for number in range(4):
            item = language.draw(number, probe)
            record = item.record.of(item.text)
            assert item.text.count(record) == 1
            assert (
                item.record.start <= item.key.start < item.answer.start < item.answer.end <= item.record.end
            )
            assert record.count(item.expected) == 1
            assert language.right(item.expected, item)
            assert not language.right("nothing", item)
            assert (item.moved == item.record) == (probe != "behind")
            assert item.moved.start >= item.record.start


def test_another_record_is_no_answer() -> None:
    language = LANGUAGES["load"]
    item = language.draw(0, "records")
    assert not language.right(f"{item.expected}9", item)
    assert not language.right(item.expected[:-1], item)
    assert language.right(f"The number is\n**{item.expected}**.", item)


@pytest.mark.parametrize(("name", "window"), [("load", 128), ("text", 128), ("ask", 128), ("lab", 8)])
def test_records_stand_outside_the_raw_window_or_inside(name, window) -> None:
    language = LANGUAGES[name]
    profile = CHAT if name != "lab" else CHAT.with_(chat="plain")
    for probe in ("records", "inside"):
        for number in range(8):
            item = language.draw(number, probe)
            moved = Shifter(item, profile, 16, language.tokenizer).at(15)
            assert moved is not None
            inside = moved.key >= moved.tokens - window
            assert inside == (probe == "inside")


def test_depths_and_lengths_differ() -> None:
    items = [LANGUAGES["load"].draw(number, "records") for number in range(12)]
    depths = np.array([item.record.start / len(item.text) for item in items])
    lengths = [len(item.text) for item in items]
    assert depths.min() < 0.2
    assert depths.max() > 0.6
    assert max(lengths) > 1.15 * min(lengths)
    assert len({item.answer.start - item.key.end for item in items}) > 2


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_answers_have_the_tokens_that_were_asked_for(tokens) -> None:
    language = StandardLanguage(CHAT, context=600, answer_tokens_of=(tokens,))
    for number in range(4):
        moved = Shifter(language.draw(number, "records"), CHAT, 4).at(0)
        assert moved is not None
        assert moved.shape == tokens


def test_no_number_is_long_enough() -> None:
    with pytest.raises(InputError, match="No number has"):
        digit_counts(lambda numbers: [1] * len(numbers), [2])


def test_context_and_filler_are_checked() -> None:
    with pytest.raises(InputError, match="beyond the raw window"):
        StandardLanguage(CHAT, context=200)
    with pytest.raises(InputError, match="seed=-1"):
        StandardLanguage(CHAT, seed=-1)
    with pytest.raises(InputError, match="Unknown filler"):
        StandardLanguage(CHAT, filler="noise")  # type: ignore[arg-type]


def passages(tmp_path, text: str, name: str = "records.txt") -> PassageFacts:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return PassageFacts.read(path)


def test_the_users_passages_are_asked_with_fresh_numbers(tmp_path) -> None:
    facts = passages(tmp_path, PASSAGES)
    assert [fact.answer.of(fact.text) for fact in facts.passages] == ["48213", "1,250", "Jana Novak"]
    language = StandardLanguage(CHAT, context=600, facts=facts)
    items: list[Item] = [language.draw(number, "records") for number in range(12)]
    answers = {item.expected for item in items}
    assert "Jana Novak" in answers
    assert len(answers) > 6  # numbers change, names do not
    for item in items:
        assert item.text.count(item.record.of(item.text)) == 1
        assert item.text.rstrip().endswith("alone.")
        assert "___" in item.text.rpartition("\n\n")[2]
        assert item.expected not in item.text.rpartition("\n\n")[2]


def test_fresh_numbers_never_repeat_the_answer(tmp_path) -> None:
    facts = passages(tmp_path, "Order 4417 of shelf 2031 is in bay [[7]].")
    for number in range(60):
        (fact,) = facts.draw(np.random.default_rng(number), 1)
        assert fact.text.count(fact.answer.of(fact.text)) == 1


@pytest.mark.parametrize("reply", ["{}", "门禁码是{}。", "{}号", "南门{}です"])
def test_a_chinese_reply_needs_no_blanks_around_the_answer(tmp_path, reply) -> None:
    for text in ("南门的门禁码是[[8417]]。", "图书馆的管理员是[[王小明]]，八点上班。"):
        language = StandardLanguage(CHAT, context=600, facts=passages(tmp_path, text))
        item = language.draw(0, "records")
        assert language.right(reply.format(item.expected), item)
        assert not language.right(reply.format(item.expected[1:]), item)
    assert not language.right("王小", item)


def test_passages_as_json_lines_with_questions_of_their_own(tmp_path) -> None:
    rows = [{"text": "Gate 12 opens at 17:30.", "answer": "17:30", "question": "When does gate 12 open?"}]
    facts = passages(tmp_path, "\n".join(map(json.dumps, rows)), "records.jsonl")
    item = StandardLanguage(CHAT, context=600, facts=facts).draw(0, "records")
    gate = item.record.of(item.text).split()[1]
    assert item.text.endswith(f"When does gate {gate} open?")
    assert item.expected in item.record.of(item.text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no passage"),
        ('{"text": "A is 1.", "answer": "2"}', "does not hold its answer"),
        ('{"text": "A is 1."}\nno', "line 2, is not JSON"),
        ('{"words": "A is 1."}', "has no 'text'"),
        ("Ticket 8417: its code is [[8417]].", "more than once: give passages"),
        ("Green, the [[Green]] door.", "more than once: give passages"),
    ],
)
def test_passages_that_cannot_be_used(tmp_path, text, said) -> None:
    with pytest.raises(InputError, match=said):
        passages(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        PassageFacts.read(tmp_path / "none.txt")


def test_on_device_endpoint_answers_as_the_model_does() -> None:
    from phaseguard.calibrate.endpoint import Question
    from phaseguard.testing import lab_ask

    language, ask = LANGUAGES["lab"], lab_ask("csa4-s0")
    items = [language.draw(number, "records") for number in range(6)]
    questions = [Question(item.number, item.text, 1) for item in items]
    outcomes = {outcome.number: outcome for outcome in LabEndpoint("csa4-s0").ask(questions)}
    for item in items:
        reply = outcomes[item.number].reply
        assert reply is not None
        assert reply.text == ask(item.text).text
        assert reply.prompt_tokens == len(language.tokenizer.encode(item.text))


def test_tokens_are_about_as_many_as_announced() -> None:
    language, tokenizer = LANGUAGES["load"], load_tokenizer("deepseek-v4")
    lengths = [len(tokenizer.encode(language.draw(number, "records").text)) for number in range(12)]
    assert abs(np.mean(lengths) / language.tokens - 1) < 0.15
    assert max(lengths) <= language.context
