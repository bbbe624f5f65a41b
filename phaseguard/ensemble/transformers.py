"""Asking a causal language model of ``transformers`` in this process; nothing of it is imported here."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

from phaseguard.ensemble.said import probability
from phaseguard.ensemble.votes import Answer
from phaseguard.errors import InputError


def transformers_ask(
    model: Any, tokenizer: Any, *, chat: bool | None = None, max_new_tokens: int = 256, **options: Any
) -> Callable[[Any], Answer]:
    """A function for :class:`phaseguard.ensemble.Ensemble` that generates greedily, one prompt at a time.

    Prompts are not batched: padding one on the left would move every token of it to another phase.

    Args:
        model: with ``generate`` and ``device``, such as ``AutoModelForCausalLM`` gives.
        tokenizer: the model's own.
        chat: whether a string is a user message in the tokenizer's chat template; None where it has one. The
            profile has to say the same in ``chat`` for phases to be right.
        max_new_tokens: most tokens of an answer.
        options: further keywords of ``generate``; ``tools`` of a payload and ``chat_template_kwargs`` go to
            the template.

    Returns:
        A plain function from a string, messages or a payload to an answer with the probability that the model
        gave to its tokens; those called from several threads wait for each other. Its ``raw`` is what
        ``generate`` returned.

    Raises:
        InputError: for options that would make it another answer than the model's one greedy one.
    """
    refused = [name for name in ("do_sample", "num_beams", "num_return_sequences") if name in options]
    if refused:
        raise InputError(f"{refused[0]}: the model is asked for its one greedy answer; leave it out.")
    template = options.pop("chat_template_kwargs", {})
    templated = bool(getattr(tokenizer, "chat_template", None)) if chat is None else chat
    one_at_a_time = threading.Lock()

    def ask(prompt: Any) -> Answer:
        inputs = _encoded(tokenizer, prompt, template, templated=templated).to(model.device)
        with one_at_a_time:
            made = model.generate(
                **inputs,
                **options,
                do_sample=False,
                num_beams=1,
                max_new_tokens=max_new_tokens,
                return_dict_in_generate=True,
                output_logits=True,
            )
        return _answer(model, tokenizer, made, inputs["input_ids"].shape[1])

    return ask


def _encoded(tokenizer: Any, prompt: Any, template: Mapping[str, Any], *, templated: bool) -> Any:
    """The request as tensors.

    Raises:
        InputError: for messages without a chat template.
    """
    if isinstance(prompt, str) and not templated:
        return tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
    if not getattr(tokenizer, "chat_template", None):
        raise InputError("The tokenizer has no chat template: set one, or ask with a string and chat=False.")
    tools = None
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    if isinstance(prompt, Mapping):
        messages, tools = prompt["messages"], prompt.get("tools")
    return tokenizer.apply_chat_template(
        messages, tools=tools, add_generation_prompt=True, return_dict=True, return_tensors="pt", **template
    )


def _answer(model: Any, tokenizer: Any, made: Any, prompt_tokens: int) -> Answer:
    """What was generated, without the token that ends it."""
    ids = made.sequences[0, prompt_tokens:].tolist()
    logprobs = model.compute_transition_scores(made.sequences, made.logits, normalize_logits=True)[0].tolist()
    ends = model.generation_config.eos_token_id
    if ids and ids[-1] in (ends if isinstance(ends, list) else [ends]):
        del ids[-1], logprobs[-1]
    return Answer(
        tokenizer.decode(ids, skip_special_tokens=True),
        probability=probability(min(0.0, one) for one in logprobs if not math.isnan(one)),
        tokens=len(ids),
        prompt_tokens=prompt_tokens,
        raw=made,
    )
