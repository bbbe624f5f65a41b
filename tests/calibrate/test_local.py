"""A local model as an endpoint: the tokens it reads, its batches, its answers and choices, its errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from phaseguard import load_tokenizer
from phaseguard.align.setting import Setting
from phaseguard.calibrate import StandardLanguage, calibrate
from phaseguard.calibrate.endpoint import Question, margin
from phaseguard.calibrate.local import BLOCK, LocalEndpoint, numbers
from phaseguard.calibrate.shared_prefix import Reader, same_lengths
from phaseguard.errors import InputError, MissingExtraError, TokenizerError
from phaseguard.profiles import PhaseProfile
from tests.calibrate.tiny import EOS, Watched, logprobs, tiny_llama

TOKENIZER = load_tokenizer("deepseek-v4")
RECORDS = "A is 417. B is 459. C is 8803. D is 12.\n\n"
PROMPTS = [RECORDS + end for end in ("A is", "B is", "Tell me that C is", "D is", "Tell me that A is")]
ASKED = [Question(number + 10, prompt, 3) for number, prompt in enumerate(PROMPTS)]


@pytest.fixture(scope="module")
def model():
    return tiny_llama()


def profile(**more) -> PhaseProfile:
    stated = {"kind": "stated", "source": "test"}
    return PhaseProfile(
        **{"name": "tiny", "tokenizer": "deepseek-v4", "period": 1, "provenance": stated, **more}
    )


def ids_of(text: str) -> list[int]:
    return TOKENIZER.encode_ids([text])[0].tolist()


def replies(endpoint: LocalEndpoint, questions=ASKED) -> dict:
    done = list(endpoint.ask(questions))
    assert sorted(one.number for one in done) == sorted(one.number for one in questions)
    return {one.number: one.reply for one in done}


def same(one, other) -> bool:
    """Whether two answers are the same, their log probabilities up to rounding."""
    return one.text == other.text and all(
        mine.text == theirs.text
        and mine.top.keys() == theirs.top.keys()
        and all(abs(mine.top[token] - theirs.top[token]) < 1e-4 for token in mine.top)
        for mine, theirs in zip(one.choices, other.choices, strict=True)
    )


@pytest.mark.parametrize("chat", ["plain", "jinja"])
def test_model_reads_the_tokens_whose_phases_are_counted(chat, tmp_path):
    if chat == "jinja":
        template = "{% for m in messages %}<｜User｜>{{ m.content }}{% endfor %}<｜Assistant｜>"
        path = tmp_path / "chat_template.jinja"
        path.write_text(template, encoding="utf-8")
        tokens = '{"added_tokens": [{"content": "<｜User｜>"}, {"content": "<｜Assistant｜>"}]}'
        (tmp_path / "tokenizer.json").write_text(tokens, encoding="utf-8")
        chat = f"jinja:{path}"
    model = tiny_llama()
    watched = Watched(model)
    endpoint = LocalEndpoint(model, "deepseek-v4", chat=chat)
    reply = replies(endpoint, [Question(0, PROMPTS[0], 1)])[0]
    wanted = Setting.read(profile(chat=chat)).encode([{"role": "user", "content": PROMPTS[0]}], {})
    assert watched.read[0].tolist() == [wanted.encoding.ids.tolist()]
    assert reply.prompt_tokens == wanted.tokens
    assert endpoint.completions is (chat == "plain")
    assert (chat == "plain") == (wanted.encoding.ids[0] != TOKENIZER.special_id("<｜User｜>"))


def test_batches_are_of_one_length_and_change_no_answer():
    for candidates in (None, numbers):
        model = tiny_llama()
        alone = replies(LocalEndpoint(model, "deepseek-v4", candidates=candidates))
        watched = Watched(model)
        together = replies(LocalEndpoint(model, "deepseek-v4", candidates=candidates, batch=3))
        assert max(len(batch) for batch in watched.read) > 1
        assert all(same(alone[number], together[number]) for number in alone)
    assert not same(alone[10], alone[11])


def test_nothing_is_padded():
    model = tiny_llama()
    watched = Watched(model)
    endpoint = LocalEndpoint(model, "deepseek-v4", batch=8)
    replies(endpoint, [Question(n, PROMPTS[n], 0) for n in range(5)])
    whole = {tuple(ids_of(prompt)) for prompt in PROMPTS}
    before: list[int] = []
    seen = set()
    for (
        batch
    ) in watched.read:  # what a batch leaves out is what it shares with the first row of the one before
        missing = {
            len(ids) - batch.shape[1] for ids in whole if ids[-batch.shape[1] :] in map(tuple, batch.tolist())
        }
        (shared,) = missing
        rows = [tuple(before[:shared] + row) for row in batch.tolist()]
        assert whole.issuperset(rows)
        seen |= set(rows)
        before = list(rows[0])
    assert seen == whole


def test_what_prompts_share_is_read_once_and_gives_the_same_answers(model):
    fresh = {one.number: next(iter(LocalEndpoint(model, "deepseek-v4").ask([one]))).reply for one in ASKED}
    shared = replies(LocalEndpoint(model, "deepseek-v4"))
    front = len(ids_of(RECORDS)) - 1
    assert sorted(reply.cached_tokens >= front for reply in shared.values()) == [False] + [True] * 4
    assert all(reply.cached_tokens == 0 for reply in fresh.values())
    assert all(same(fresh[number], shared[number]) for number in fresh)
    again = LocalEndpoint(model, "deepseek-v4")
    replies(again)
    twice = replies(again)
    assert all(same(twice[number], shared[number]) for number in shared)
    assert all(reply.cached_tokens < reply.prompt_tokens for reply in twice.values())


def test_long_prompts_are_read_in_parts(model, monkeypatch):
    rows = np.array([ids_of(RECORDS * 3), ids_of(RECORDS * 3)])
    whole = Reader(model).read(rows).logits
    monkeypatch.setattr("phaseguard.calibrate.shared_prefix.CHUNK", 7)
    assert torch.allclose(Reader(model).read(rows).logits, whole, atol=1e-4)


def test_answer_is_what_greedy_decoding_writes(model):
    endpoint = LocalEndpoint(model, "deepseek-v4", top=5)
    for question in ASKED:
        reply = replies(endpoint, [question])[question.number]
        ids = ids_of(question.prompt)
        for choice in reply.choices:
            scores = logprobs(model, ids)[-1]
            best = scores.topk(5)
            assert choice.text == TOKENIZER.decode([int(best.indices[0])])
            assert len(choice.top) == 5
            assert sorted(choice.top.values()) == pytest.approx(sorted(best.values.tolist()), abs=1e-4)
            ids.append(int(best.indices[0]))
        assert len(reply.choices) == reply.completion_tokens == 3
        assert reply.text == TOKENIZER.decode(ids[-3:])


@pytest.mark.parametrize("where", ["generation", "config"])
def test_answer_ends_at_the_end_token_and_as_many_as_asked(where):
    model = tiny_llama()
    first = int(logprobs(model, ids_of(PROMPTS[0]))[-1].argmax())
    if where == "generation":
        model.generation_config.eos_token_id = [EOS, first]
    else:
        model.generation_config.eos_token_id, model.config.eos_token_id = None, first
    endpoint = LocalEndpoint(model, "deepseek-v4", batch=4)
    done = replies(endpoint, [Question(0, PROMPTS[0], 9), Question(1, PROMPTS[1], 2)])
    assert (done[0].text, done[0].choices, done[0].completion_tokens) == ("", (), 0)
    assert done[1].completion_tokens <= 2


def test_choice_is_the_most_probable_candidate_and_its_margin_the_difference(model):
    done = replies(LocalEndpoint(model, "deepseek-v4", candidates=numbers, batch=2))
    for question in ASKED:
        ids = ids_of(question.prompt)
        by_hand = {}
        for text in ("417", "459", "8803", "12"):
            own = ids_of(f" {text}")
            scores = logprobs(model, ids + own)
            by_hand[text] = sum(float(scores[len(ids) - 1 + n, token]) for n, token in enumerate(own))
        reply = done[question.number]
        (choice,) = reply.choices
        assert dict(choice.top) == pytest.approx(by_hand, abs=1e-4)
        assert reply.text == choice.text == max(by_hand, key=by_hand.get)
        wrong = max(score for text, score in by_hand.items() if text != "459")
        assert margin(reply, "459") == pytest.approx(by_hand["459"] - wrong, abs=1e-4)


def test_questions_are_taken_a_block_at_a_time(model):
    taken = []

    def asked():
        for number in range(2 * BLOCK):
            taken.append(number)
            yield Question(number, f"A is {number}. A is", 0)

    next(iter(LocalEndpoint(model, "deepseek-v4").ask(asked())))
    assert len(taken) == BLOCK


def test_groups_of_one_length_hold_every_prompt_once():
    rng = np.random.default_rng(0)
    prompts = [rng.integers(0, 3, rng.integers(1, 6)) for _ in range(60)]
    for batch, tokens in ((1, 100), (4, 100), (50, 12)):
        groups = same_lengths(prompts, batch, tokens)
        assert sorted(at for group in groups for at in group) == list(range(60))
        for group in groups:
            lengths = {len(prompts[at]) for at in group}
            assert len(lengths) == 1
            assert len(group) <= batch
            assert len(group) == 1 or len(group) * lengths.pop() <= tokens


def test_folder_is_loaded_with_its_tokenizer(model, tmp_path):
    small = tiny_llama()
    small.save_pretrained(tmp_path / "tiny")
    TOKENIZER.slow.full.save(str(tmp_path / "tiny" / "tokenizer.json"))
    endpoint = LocalEndpoint.load(tmp_path / "tiny", candidates=numbers, batch=2)
    assert (endpoint.model, endpoint.provider, endpoint.completions) == ("tiny", "transformers", True)
    assert endpoint.tokenizer.name == str((tmp_path / "tiny" / "tokenizer.json").resolve())
    expected = replies(LocalEndpoint(model, "deepseek-v4", candidates=numbers, batch=2))
    found = replies(endpoint)
    assert all(same(found[number], expected[number]) for number in expected)


@pytest.mark.parametrize("offset", [0, 1])
def test_calibration_runs_and_measures_what_stands_in_front(model, offset):
    endpoint = LocalEndpoint(model, "deepseek-v4", candidates=numbers, prefix=[0] * offset)
    base = profile(window=16)
    language = StandardLanguage(base, context=140, completions=True, tokenizer=endpoint.tokenizer)
    found = calibrate(
        endpoint, base, language=language, items=6, periods=(2, 3), controls=False, save=False, max_tokens=3
    )
    assert found.check.prefix_offset == offset
    assert found.judgement.verdict in ("no effect", "undecided")  # random weights know no record
    assert found.judgement.statistic == "margin"
    assert found.spent.calls == 4 + 6 * 3


def test_prompt_beyond_the_context_ends_the_run(model):
    endpoint = LocalEndpoint(tiny_llama(positions=40), "deepseek-v4")
    short, long = Question(0, "A is", 3), Question(1, RECORDS * 3, 3)
    done = list(endpoint.ask([long, short]))
    assert [one.fatal for one in done].count(True) == 1
    (failed,) = [one for one in done if one.fatal]
    assert failed.number == 1
    assert "the model 40: give a smaller context" in failed.error


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda path: LocalEndpoint.load(path / "none"), InputError, "There is no model"),
        (lambda path: LocalEndpoint.load(path / "weights.bin"), InputError, "is no .gguf file"),
        (LocalEndpoint.load, InputError, "cannot load a causal LM"),
        (lambda path: LocalEndpoint.load(path, dtype="float"), InputError, "give float32"),
        (lambda path: LocalEndpoint(tiny_llama(), "deepseek-v4", batch=0), InputError, "batch=0"),
        (lambda path: LocalEndpoint(tiny_llama(), "deepseek-v4", chat="plane"), InputError, "plain"),
        (
            lambda path: replies(LocalEndpoint(tiny_llama(vocabulary=100), "deepseek-v4")),
            TokenizerError,
            "beyond the 100",
        ),
        (
            lambda path: replies(LocalEndpoint(tiny_llama(), "deepseek-v4", candidates=lambda prompt: ())),
            InputError,
            "No candidate answer",
        ),
        (
            lambda path: Reader(tiny_llama()).read(np.empty((1, 0), np.int64)),
            InputError,
            "at least one",
        ),
    ],
)
def test_bad_input_says_what_to_do(make, error, says, tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"no weights")
    with pytest.raises(error, match=says):
        make(tmp_path)


@pytest.mark.parametrize(
    "fault",
    [ImportError("gguf>=0.10.0 is missing."), ValueError("accelerate is required when loading a GGUF.")],
)
def test_packages_that_a_gguf_file_needs_are_named(fault, monkeypatch, tmp_path):
    def refuse(*args, **given):
        raise fault

    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", refuse)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(MissingExtraError, match=r"pip install 'phaseguard\[gguf\]'"):
        LocalEndpoint.load(tmp_path / "model.gguf")
