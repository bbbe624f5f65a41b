"""Reading prompts with a causal LM of ``transformers``, where each reuses what it begins like the last one.

Rows of one batch have one length, so nothing is padded and every token stands where the request has it.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaseguard.calibrate.pooled import Pooling, pooled_cache
from phaseguard.errors import InputError, MissingExtraError

try:
    import torch
    from torch import Tensor
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer
except ImportError as error:
    raise MissingExtraError(
        "A local model needs transformers and torch: pip install 'phaseguard[transformers,torch]'."
    ) from error

__all__ = ["CHUNK", "Ids", "Reader", "State", "same_lengths", "torch"]

CHUNK = 512  # tokens of a prompt read at once: what is in memory beside the cache does not grow with it
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What a model knows after reading.

    Attributes:
        cache: keys and values of all tokens; :meth:`Reader.extend` leaves it as it is.
        logits: ``[B, n, V]`` float32, after each of the last n tokens.
    """

    cache: Any
    logits: Tensor


class Reader:
    """Reads prompts of one length at a time, and keeps the first of them for the next call.

    Args:
        model: a causal LM in evaluation mode.
        pooling: how its cache is pooled, or None.
    """

    def __init__(self, model: Any, pooling: Pooling | None = None) -> None:
        self.model, self._pooling = model, pooling
        known = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in known else "past_key_values"
        self._kept: tuple[Ids, Any] | None = None
        self.reused = 0

    def read(self, rows: Ids) -> State:
        """Read prompts ``[B, T]``, T >= 1; logits are those after the last token.

        Raises:
            InputError: for prompts without a token.
        """
        if rows.ndim != 2 or not rows.size:
            raise InputError(f"Prompts of shape {rows.shape}: give [B, T] token ids, at least one.")
        cache, self.reused = self._start(rows)
        state = self._forward(cache, rows[:, self.reused :], 1)
        first = _fork(state.cache)
        if len(rows) > 1:
            first.batch_select_indices(torch.tensor([0]))
        self._kept = (rows[0], first) if _shareable(first) else None
        return state

    def extend(self, state: State, row: int, rows: Ids) -> State:
        """What follows one row of a state when it goes on with each of these tokens ``[C, n]``."""
        cache = _fork(state.cache)
        cache.batch_select_indices(torch.full((len(rows),), row))
        return self._forward(cache, rows, rows.shape[1])

    def step(self, state: State, tokens: Ids) -> State:
        """Each row of the state with one more token, ``[B, 1]``."""
        return self._forward(_fork(state.cache), tokens, 1)

    def _start(self, rows: Ids) -> tuple[Any, int]:
        """A cache of the tokens that all rows share with what is kept, and how many they are."""
        if self._kept is not None:
            ids, kept = self._kept
            most = min(len(ids), rows.shape[1] - 1)  # the last token is read again: its logits are wanted
            same = (rows[:, :most] == ids[:most]).all(0)
            shared = int(most if same.all() else same.argmin())
            if shared:
                cache = _fork(kept)
                if shared < len(ids):
                    cache.crop(shared - len(ids))
                cache.batch_select_indices(torch.zeros(len(rows), dtype=torch.long))
                return cache, shared
        return DynamicCache(config=self.model.config), 0

    @torch.inference_mode()
    def _forward(self, cache: Any, rows: Ids, keep: int) -> State:
        tokens = torch.from_numpy(np.ascontiguousarray(rows, np.int64)).to(self.model.device)
        given = {self._cache_name: cache, "use_cache": True, "logits_to_keep": keep}
        with nullcontext() if self._pooling is None else pooled_cache(self.model, self._pooling):
            parts = torch.split(tokens, CHUNK, dim=1)
            logits = [self.model(input_ids=part, **given).logits.float() for part in parts]
        return State(cache, torch.cat(logits, dim=1)[:, -keep:])


def _shareable(cache: Any) -> bool:
    """Whether every layer keeps every token, so that what is cut off leaves what was there before."""
    return all(type(layer) is DynamicLayer for layer in cache.layers)


def _fork(cache: Any) -> Any:
    """A cache that grows by itself; plain layers are replaced as they grow, and need no copy."""
    if not _shareable(cache):
        return copy.deepcopy(cache)
    fork = copy.copy(cache)
    fork.layers = [copy.copy(layer) for layer in cache.layers]
    return fork


def same_lengths(prompts: Sequence[Ids], batch: int, batch_tokens: int) -> list[list[int]]:
    """Groups of prompts of one length, those that begin alike next to each other.

    Args:
        prompts: token ids.
        batch: most prompts of a group.
        batch_tokens: most tokens of a group, but for a single prompt.

    >>> same_lengths([np.arange(3), np.arange(2), np.ones(3, int)], 2, 100)
    [[1], [0, 2]]
    """
    keys = [(len(ids) if batch > 1 else 0, ids.tolist()) for ids in prompts]
    groups: list[list[int]] = []
    for at in sorted(range(len(prompts)), key=keys.__getitem__):
        last = groups[-1] if groups else []
        length = len(prompts[at])
        fits = len(last) < batch and (len(last) + 1) * length <= batch_tokens
        if last and fits and len(prompts[last[0]]) == length:
            last.append(at)
        else:
            groups.append([at])
    return groups
