"""On-device models as a language and as an endpoint: a calibration that costs nothing, and tests this one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import islice

import numpy as np

from phaseguard.calibrate.endpoint import Outcome, Question, Reply
from phaseguard.calibrate.items import PROBES, Item, Probe
from phaseguard.errors import InputError
from phaseguard.lab.ask import ask
from phaseguard.lab.cases import Case, draw_cases
from phaseguard.lab.model import LabModel
from phaseguard.lab.store import load_model, shipped
from phaseguard.lab.tasks import Task, draw
from phaseguard.lab.words import WordTokenizer, write
from phaseguard.profiles import PhaseProfile, Provenance
from phaseguard.text import Span

_DECORATION = 16  # up to so many blank lines in front: records start at every phase
_LENGTHS = (0.75, 1.25)  # of the trained context, so that depth and phase are not one
_BATCH = 128
_MOST_DRAWS = 100
_TOKENIZER = WordTokenizer()


@dataclass(frozen=True, slots=True)
class LabLanguage:
    """Texts of an on-device model's words.

    Attributes:
        task: what the contexts look like, as the model was trained.
        window: tokens of its raw window.
        seed: of all texts.

    >>> item = LabLanguage.of("csa4-s0").draw(0, "records")
    >>> item.text.endswith(item.key.of(item.text)), item.text.count(item.record.of(item.text))
    (True, 1)
    """

    task: Task = field(default_factory=Task)
    window: int = 8
    seed: int = 0

    @classmethod
    def of(cls, model: str, *, seed: int = 0) -> LabLanguage:
        """That of a shipped model, with the first task it was trained on.

        Raises:
            InputError: for an unknown name.
        """
        spec = load_model(model).spec
        return cls(Task(**shipped()[model]["tasks"][0]), spec.raw, seed)

    @property
    def name(self) -> str:
        """``lab``."""
        return "lab"

    @property
    def tokenizer(self) -> WordTokenizer:
        """Reads the words."""
        return _TOKENIZER

    @property
    def tokens(self) -> int:
        """Mean length of a prompt."""
        return self.task.context + _DECORATION // 2 + self.task.key_tokens

    @property
    def answer_tokens(self) -> int:
        """Words of an answer."""
        return self.task.value_tokens

    @property
    def settings(self) -> dict[str, object]:
        """What the texts depend on."""
        return {"task": asdict(self.task), "window": self.window, "seed": self.seed}

    def draw(self, number: int, probe: Probe) -> Item:
        """A text whose record ends before the raw window, or for ``inside`` lies in it.

        Raises:
            InputError: when no record of the task fits into the window.
        """
        rng = np.random.default_rng([self.seed, PROBES.index(probe), number])
        task = self.task.scaled(float(rng.uniform(*_LENGTHS)))
        if probe == "inside":
            case = self._inside(task, rng)
        else:
            seed = int(rng.integers(2**31))
            (case,) = draw_cases(task, 1, period=_DECORATION, window=self.window, seed=seed)
        moved = case.start
        if probe == "behind":
            moved = case.end + (len(case.context) - case.end) // 2
        return _item(case, number, probe, moved)

    def right(self, answer: str, item: Item) -> bool:
        """Whether the words are those of the answer."""
        return answer.split() == item.expected.split()

    def _inside(self, task: Task, rng: np.random.Generator) -> Case:
        one = replace(task, questions=1, echoes=0)
        for _ in range(_MOST_DRAWS):
            drawn = draw(one, 64, rng)
            last = int(drawn.positions[0, 0]) + 1
            starts = drawn.values[:, 0] - task.record_front
            inside = np.flatnonzero(starts >= last - self.window)
            if len(inside):
                row, value = int(inside[0]), int(drawn.values[inside[0], 0])
                return Case(
                    int(rng.integers(_DECORATION)),
                    drawn.tokens[row, : task.context],
                    drawn.tokens[row, task.context : last],
                    int(starts[row]),
                    value,
                    int(starts[row]) + task.record_tokens,
                    drawn.targets[row],
                    (),
                )
        raise InputError(f"No record of {task.setting!r} fits into a raw window of {self.window} tokens.")


def _item(case: Case, number: int, probe: Probe, moved: int) -> Item:
    def span(start: int, end: int) -> Span:
        before = case.decoration + len(case.text(0, start))
        return Span(before, before + len(case.text(start, end).rstrip()))

    answer = span(case.value, case.value + len(case.answer))
    key = span(case.value - 1, case.value)
    record = span(case.start, case.end)
    aim = record if moved == case.start else span(moved, moved + 1)
    return Item(number, probe, case.prompt, record, key, answer, aim)


class LabEndpoint:
    r"""An on-device model in this process, asked in batches.

    Args:
        name_or_model: a shipped model's name, the path of one, or a loaded model.

    Raises:
        InputError: for an unknown model.

    >>> endpoint = LabEndpoint("full-s0")
    >>> [outcome.reply.text for outcome in endpoint.ask([Question(0, "bena\n\nkosi\n\n" * 3 + "bena", 1)])]
    ['kosi']
    """

    completions = True
    provider = "phaseguard-lab"

    def __init__(self, name_or_model: str | os.PathLike[str] | LabModel) -> None:
        given = name_or_model
        self._model = given if isinstance(given, LabModel) else load_model(given)
        self.model = self._model.spec.scheme if isinstance(given, LabModel) else os.fspath(given)

    def ask(self, questions: Iterable[Question]) -> Iterator[Outcome]:
        """Ask in batches; nothing can fail on the way."""
        rest = iter(questions)
        while batch := list(islice(rest, _BATCH)):
            start = time.perf_counter()
            prompts = [ids.astype(np.int64) for ids in _TOKENIZER.encode_ids([q.prompt for q in batch])]
            replies = ask(self._model, prompts, max(q.max_tokens for q in batch))
            seconds = (time.perf_counter() - start) / len(batch)
            for question, ids, words in zip(batch, prompts, replies.answers, strict=True):
                text = write(words[: question.max_tokens]).rstrip()
                reply = Reply(text, (), len(ids), None, question.max_tokens)
                yield Outcome(question.number, reply, seconds=seconds)


def lab_profile(model: str) -> PhaseProfile:
    """A profile that says how prompts of on-device models are read, and nothing of their phases.

    >>> lab_profile("csa4-s0").period
    1
    """
    return PhaseProfile(
        name=f"lab-{model}",
        model=model,
        provider="phaseguard-lab",
        tokenizer=_TOKENIZER.name,
        period=1,
        provenance=Provenance(kind="stated", source="nothing is known before calibrating"),
    )
