"""A causal LM of ``transformers`` in this process as an endpoint (extras ``transformers`` and ``torch``)."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Self

import numpy as np

from phaseguard.align.request import encode_request
from phaseguard.calibrate.endpoint import Outcome, Question, Reply, TokenChoice
from phaseguard.calibrate.local_files import load_files
from phaseguard.calibrate.pooled import Pooling, pooled_cache
from phaseguard.calibrate.shared_prefix import Ids, Reader, State, same_lengths, torch
from phaseguard.chat import Renderer, load_renderer
from phaseguard.errors import InputError, TokenizerError
from phaseguard.tokens import Tokenizer, TokenizerLike, load_tokenizer

BLOCK = 256  # questions that are put into an order together
_ROWS = 8  # continuations read at once
_TOP = 64
Candidates = Callable[[str], Iterable[str]]


class LocalEndpoint:
    """Answers greedily, or chooses among candidates, with the log-probabilities that the model gives.

    Prompts are rendered and encoded as for aligning: the model reads the very tokens whose phases are
    counted. Only prompts of one length share a batch, so nothing is ever padded.

    Args:
        model: as ``AutoModelForCausalLM`` gives it.
        tokenizer: anything that :func:`phaseguard.tokens.load_tokenizer` takes: best the one the profile
            names, or the model's own object, given to the language too.
        chat: ``plain`` for a base model, which continues the prompt, or ``jinja:PATH`` for a template.
        candidates: gives, for a prompt, the answers to choose from, the right one among them, as
            :func:`numbers` does; best of one length in tokens. Without, the answer is written token by token,
            and the vocabulary's most probable tokens stand beside each.
        prefix: token ids in front of every request, such as a BOS; calibrating measures how many.
        batch: most prompts at once. With 1, those that begin alike follow each other and what they share is
            read once; best on a CPU. ``batch_tokens``: most tokens of a batch of several.
        top: alternatives beside each token of an answer.
        name: of the model; its own by default.

    Raises:
        InputError: for a chat encoding or numbers that cannot be used.
        TokenizerError: for a tokenizer that cannot be loaded, or with ids that the model does not have.

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> config = LlamaConfig(vocab_size=129_280, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
    ...     num_attention_heads=1, eos_token_id=1)
    >>> endpoint = LocalEndpoint(LlamaForCausalLM(config), "deepseek-v4", candidates=numbers)
    >>> (outcome,) = endpoint.ask([Question(7, "A is 17. B is 45. A is", 4)])
    >>> sorted(outcome.reply.choices[0].top), outcome.reply.text in ("17", "45"), outcome.reply.prompt_tokens
    (['17', '45'], True, 12)
    """

    provider = "transformers"

    def __init__(
        self,
        model: Any,
        tokenizer: TokenizerLike,
        *,
        chat: str | Renderer = "plain",
        candidates: Candidates | None = None,
        prefix: Sequence[int] = (),
        batch: int = 1,
        batch_tokens: int = 16_384,
        top: int = _TOP,
        name: str | None = None,
    ) -> None:
        if min(batch, batch_tokens, top) < 1:
            raise InputError(f"batch={batch}, batch_tokens={batch_tokens}, top={top}: give 1 or more.")
        self.tokenizer: Tokenizer = load_tokenizer(tokenizer)
        self.model = name or str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
        self._renderer = load_renderer(chat)
        self.completions = self._renderer.name == "plain"
        self._candidates, self._top = candidates, top
        self._prefix = np.array(prefix, np.int64).reshape(-1)
        self._batch, self._batch_tokens = batch, batch_tokens
        self._reader = Reader(model.eval())
        self._spell = lru_cache(maxsize=1 << 16)(lambda token: self.tokenizer.decode([token]))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        tokenizer: TokenizerLike | None = None,
        device: str = "cpu",
        dtype: str = "float32",
        **settings: Any,
    ) -> LocalEndpoint:
        """Load a folder as transformers saves it, or a .gguf file; nothing is downloaded.

        Args:
            path: the folder or file.
            tokenizer: the one beside the weights by default.
            device: where it runs.
            dtype: of its weights.
            settings: further keywords of the class.

        Raises:
            InputError: when there is no model, or transformers cannot read it.
            MissingExtraError: when a package is missing that reads the file.
        """
        found = load_files(path, tokenizer=tokenizer, device=device, dtype=dtype)
        return cls(found.model, found.tokenizer, **{"name": found.name, **settings})

    @property
    def lm(self) -> Any:
        """The model itself."""
        return self._reader.model

    def pooled(self, pooling: Pooling) -> Self:
        """The same model, which now reads a pooled cache; the two share weights and may be asked in turn.

        Its name tells the pooling, so that the results of both are kept apart.

        Raises:
            KernelError: for a model whose cache cannot be pooled; see
                :func:`phaseguard.calibrate.pooled.pooled_cache`.
        """
        with pooled_cache(self.lm, pooling):
            other = copy.copy(self)
        other._reader = Reader(self.lm, pooling)
        other.model = f"{self.model} ({pooling})"
        return other

    def ask(self, questions: Iterable[Question]) -> Iterator[Outcome]:
        """Ask in an order that shares most; a prompt beyond the model's context ends it."""
        rest = iter(questions)
        while block := list(islice(rest, BLOCK)):
            prompts = [self._encode(question.prompt) for question in block]
            for group in same_lengths(prompts, self._batch, self._batch_tokens):
                asked = [block[at] for at in group]
                error = self._too_long(len(prompts[group[0]]), asked)
                if error:
                    yield Outcome(asked[0].number, None, error, fatal=True)
                    return
                start = time.perf_counter()
                replies = self._answer(asked, np.stack([prompts[at] for at in group]))
                seconds = (time.perf_counter() - start) / len(group)
                for question, reply in zip(asked, replies, strict=True):
                    yield Outcome(question.number, reply, seconds=seconds)

    def _encode(self, prompt: str) -> Ids:
        rendered = self._renderer.render([{"role": "user", "content": prompt}], {})
        ids = encode_request(rendered, self.tokenizer).encoding.ids
        whole = np.concatenate([self._prefix, ids.astype(np.int64)])
        known = self.lm.get_input_embeddings().weight.shape[0]
        if len(whole) and not 0 <= whole.min() <= whole.max() < known:
            raise TokenizerError(
                f"Tokenizer {self.tokenizer.name!r} or the chat encoding has tokens beyond the {known} of "
                f"{self.model}: give the model's own."
            )
        return whole

    def _too_long(self, tokens: int, asked: Sequence[Question]) -> str | None:
        most = self._context
        wanted = tokens + max(question.max_tokens for question in asked)
        if most is None or wanted <= most:
            return None
        return f"A prompt with its answer has {wanted} tokens, the model {most}: give a smaller context."

    @cached_property
    def _context(self) -> int | None:
        return getattr(self.lm.config.get_text_config(), "max_position_embeddings", None)

    def _answer(self, asked: Sequence[Question], rows: Ids) -> list[Reply]:
        state = self._reader.read(rows)
        reused = self._reader.reused
        if self._candidates is None:
            return self._written(asked, state, rows.shape[1], reused)
        return [
            self._chosen(question.prompt, state, row, rows.shape[1], reused)
            for row, question in enumerate(asked)
        ]

    def _written(self, asked: Sequence[Question], state: State, tokens: int, reused: int) -> list[Reply]:
        """The most probable token after each other, until the end or as many as are asked for."""
        ids: list[list[int]] = [[] for _ in asked]
        choices: list[list[TokenChoice]] = [[] for _ in asked]
        going = [question.max_tokens > 0 for question in asked]
        while any(going):
            best, tops = self._alternatives(state)
            for row, question in enumerate(asked):
                if going[row] and best[row] not in self._ends:
                    ids[row].append(best[row])
                    choices[row].append(TokenChoice(self._spell(best[row]), tops[row]))
                going[row] = (
                    going[row] and best[row] not in self._ends and len(ids[row]) < question.max_tokens
                )
            if any(going):
                state = self._reader.step(state, np.array(best, np.int64)[:, None])
        return [
            Reply(self.tokenizer.decode(said), tuple(chosen), tokens, reused, len(said))
            for said, chosen in zip(ids, choices, strict=True)
        ]

    def _alternatives(self, state: State) -> tuple[list[int], list[dict[str, float]]]:
        logprobs = state.logits[:, -1].log_softmax(-1)
        values, tokens = logprobs.topk(min(self._top, logprobs.shape[-1]))
        tops: list[dict[str, float]] = []
        for row_values, row_tokens in zip(values.tolist(), tokens.tolist(), strict=True):
            top: dict[str, float] = {}
            for value, token in zip(row_values, row_tokens, strict=True):
                top.setdefault(self._spell(token), value)  # the more probable of two that are spelt alike
            tops.append(top)
        return tokens[:, 0].tolist(), tops

    @cached_property
    def _ends(self) -> frozenset[int]:
        given = self.lm.generation_config.eos_token_id
        if given is None:
            given = self.lm.config.get_text_config().eos_token_id
        return frozenset(given if isinstance(given, list) else [] if given is None else [given])

    def _chosen(self, prompt: str, state: State, row: int, tokens: int, reused: int) -> Reply:
        """The most probable candidate as one choice among all of them."""
        assert self._candidates is not None  # noqa: S101 - the caller looked
        options = list(dict.fromkeys(self._candidates(prompt)))
        if not options:
            raise InputError(f"No candidate answer for the prompt that ends in {prompt[-60:]!r}.")
        blank = " " if self.completions and not prompt[-1:].isspace() else ""
        ids = [one.astype(np.int64) for one in self.tokenizer.encode_ids([blank + text for text in options])]
        scores = dict(zip(options, self._scores(state, row, ids), strict=True))
        best = max(scores, key=scores.__getitem__)
        return Reply(best, (TokenChoice(best, scores),), tokens, reused, len(ids[options.index(best)]))

    def _scores(self, state: State, row: int, options: Sequence[Ids]) -> list[float]:
        """Log probability of each candidate: candidates that differ in the last token alone are read once."""
        first = state.logits[row, -1].log_softmax(-1)
        scores = [float(first[ids[0]]) for ids in options]
        fronts = {tuple(ids[:-1].tolist()): ids[:-1] for ids in options if len(ids) > 1}
        known: dict[tuple[int, ...], Any] = {}
        prompts = list(fronts.values())
        for group in same_lengths(prompts, _ROWS, self._batch_tokens):
            read = self._reader.extend(state, row, np.stack([prompts[at] for at in group]))
            for at, logits in zip(group, read.logits, strict=True):
                known[tuple(prompts[at].tolist())] = logits.log_softmax(-1)
        for number, ids in enumerate(options):
            if len(ids) > 1:
                after = known[tuple(ids[:-1].tolist())]
                scores[number] += float(after[torch.arange(len(ids) - 1), torch.from_numpy(ids[1:])].sum())
        return scores


def numbers(prompt: str) -> tuple[str, ...]:
    """Candidates among which a record's answer stands: every run of digits of the prompt, once.

    >>> numbers("A is 17. B is 45, C is 17.")
    ('17', '45')
    """
    found: dict[str, None] = {}
    for run in "".join(char if char.isascii() and char.isdigit() else " " for char in prompt).split():
        found[run] = None
    return tuple(found)
