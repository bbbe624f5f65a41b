"""The adapter for transformers: a tiny model with random weights, and a tokenizer made here."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from phaseguard.ensemble import Ensemble
from phaseguard.ensemble.transformers import transformers_ask
from phaseguard.errors import InputError
from tests.ensemble.scripted import COMMON, PROMPT, WHERE

WORDS = [
    "<unk>",
    "<eos>",
    "<user>",
    "<model>",
    *["Hello", "there", ".", "Some", "text", "The", "code", "is", "A17", "Which", "?", "blue", "red"],
]
TEMPLATE = "{% for m in messages %}<user> {{ m.content }} {% endfor %}<model>"


def tokenizer(template: str | None = TEMPLATE) -> Any:
    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit()])
    made = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="<eos>")
    made.chat_template = template
    return made


@pytest.fixture(scope="module")
def model() -> Any:
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=1,
        eos_token_id=1,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    torch.manual_seed(5)
    return LlamaForCausalLM(config).eval()


def by_hand(model: Any, ids: list[int], most: int) -> tuple[list[int], float]:
    """Greedy decoding without a cache, token by token."""
    said, logprob = [], 0.0
    for _ in range(most):
        with torch.no_grad():
            scores = model(torch.tensor([[*ids, *said]])).logits[0, -1].log_softmax(-1)
        best = int(scores.argmax())
        if best == 1:
            break
        said.append(best)
        logprob += float(scores[best])
    return said, float(torch.tensor(logprob).exp())


@pytest.mark.parametrize(
    ("prompt", "chat", "text"),
    [
        ("The code is A17 .", None, "<user> The code is A17 . <model>"),
        ("The code is A17 .", True, "<user> The code is A17 . <model>"),
        ("The code is A17 .", False, "The code is A17 ."),
        ([{"role": "user", "content": "Some text"}], None, "<user> Some text <model>"),
        ({"messages": [{"role": "user", "content": "Some text"}]}, None, "<user> Some text <model>"),
    ],
)
def test_the_answer_is_the_greedy_one_with_its_probability(
    model: Any, prompt: Any, chat: Any, text: str
) -> None:
    words = tokenizer()
    answer = transformers_ask(model, words, chat=chat, max_new_tokens=5)(prompt)
    ids = words(text)["input_ids"]
    said, probability = by_hand(model, ids, 5)
    assert (answer.text, answer.tokens, answer.prompt_tokens) == (words.decode(said), len(said), len(ids))
    assert said
    assert answer.probability == pytest.approx(probability, rel=1e-3)


def test_the_token_that_ends_an_answer_is_no_part_of_it(model: Any) -> None:
    words = tokenizer()
    answers = []
    for lift in (1e9, 0.0):
        ended = LlamaForCausalLM(model.config).eval()
        ended.load_state_dict(model.state_dict())
        ended.lm_head.bias = torch.nn.Parameter(torch.zeros(len(WORDS)))
        ended.lm_head.bias.data[1] = lift
        answers.append(transformers_ask(ended, words, max_new_tokens=3)("Some text"))
    assert (answers[0].text, answers[0].tokens, answers[0].probability) == ("", 0, None)
    assert answers[1].tokens == 3


def test_an_ensemble_asks_every_layout_one_at_a_time(model: Any) -> None:
    ask = transformers_ask(model, tokenizer(), max_new_tokens=2)
    plain = Ensemble(ask, **COMMON, stop="all", rule="probability").ask(PROMPT, **WHERE)
    threads = Ensemble(ask, **COMMON, stop="all", rule="probability")
    awaited = asyncio.run(threads.aask(PROMPT, **WHERE))
    assert [vote.answer for vote in plain.votes] == [vote.answer for vote in awaited.votes]
    assert plain.counted == 4
    assert plain.confidence.kind == "probability"


def test_messages_need_a_template(model: Any) -> None:
    ask = transformers_ask(model, tokenizer(None), max_new_tokens=1)
    assert ask("The code is A17 .").prompt_tokens == 5
    with pytest.raises(InputError, match="no chat template"):
        ask([{"role": "user", "content": "Some text"}])


@pytest.mark.parametrize("name", ["do_sample", "num_beams", "num_return_sequences"])
def test_options_that_ask_for_another_answer_are_refused(model: Any, name: str) -> None:
    with pytest.raises(InputError, match=name):
        transformers_ask(model, tokenizer(), **{name: 2})
