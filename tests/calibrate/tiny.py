"""A tiny Llama with random weights that reads DeepSeek's vocabulary, and what it was given to read."""

from __future__ import annotations

from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

EOS = 1


def tiny_llama(*, layers: int = 2, vocabulary: int = 129_280, positions: int = 2048, seed: int = 0) -> Any:
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=positions,
        bos_token_id=0,
        eos_token_id=EOS,
        initializer_range=0.4,
    )
    torch.manual_seed(seed)
    return LlamaForCausalLM(config).eval()


class Watched:
    """Every batch of token ids that a model reads, and that no other mask or positions come with it.

    As a context manager it ends with the block.
    """

    def __init__(self, model: Any) -> None:
        self.read: list[torch.Tensor] = []
        self._hook = model.register_forward_pre_hook(self._note, with_kwargs=True)

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _note(self, module: Any, args: tuple[Any, ...], given: dict[str, Any]) -> None:
        assert not args
        assert given.keys() <= {"input_ids", "logits_to_keep", "use_cache", "cache", "past_key_values"}
        self.read.append(given["input_ids"])


@torch.no_grad()
def logprobs(model: Any, ids: list[int]) -> torch.Tensor:
    """Log probabilities ``[T, V]`` after each token, read at once without a cache."""
    return model(torch.tensor([ids]), use_cache=False).logits[0].float().log_softmax(-1)
