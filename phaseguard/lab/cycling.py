"""Gate cycling: what moves the phase profile of a trained model? Three interventions, nothing trained again.

- ``bias``: the gate's position bias goes round by d slots. What the gates read of the content stays.
- ``gates``: the whole gate map, bias and content, goes round inside each chunk
  (:func:`phaseguard.kernels.gates.cycle`): token p + d is weighed as token p was.
- ``grid``: the chunks start d tokens later, and the weights stay with their slots.

A profile that is made by the place in a chunk moves by d with the grid; one that is made by the bias alone
moves with the bias. "Periodic Weak Spots" (arXiv:2609.36322) reports that cycling moves it by d.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaseguard.errors import InputError
from phaseguard.kernels import gates
from phaseguard.lab.measure import by_phase
from phaseguard.lab.model import Floats, Ints, LabModel
from phaseguard.lab.tasks import Task
from phaseguard.stats import Accuracy

Part = Literal["bias", "gates", "grid"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One profile, after the part was moved.

    Attributes:
        by: slots moved.
        phases: accuracy by phase of the answer's first token.
        shift: phases by which the unmoved profile must be rolled to be likest to this one.
        correlation: of this profile with the unmoved one rolled by ``by``; 0 where one of them is flat.
    """

    by: int
    phases: tuple[Accuracy, ...]
    shift: int
    correlation: float


@dataclass(frozen=True, slots=True)
class Cycling:
    """Profiles with one part moved by 0, 1, ... slots.

    Attributes:
        part: what was moved.
        cycled: one a move, the first by none.
    """

    part: Part
    cycled: tuple[Turn, ...]

    @property
    def follows(self) -> bool:
        """Whether the profile moved by just as many phases each time."""
        return all(turn.shift == turn.by and turn.correlation > 0 for turn in self.cycled)


@dataclass(frozen=True, eq=False)
class CycledModel(LabModel):
    """A model one part of whose kernel is moved by some slots.

    Attributes:
        part: what is moved.
        by: slots, 0 to the stride minus one.
    """

    part: Part = "bias"
    by: int = 0

    def _pool_gates(self, hidden: Floats) -> Floats:
        found = super()._pool_gates(hidden)
        return gates.cycle(found, self.by, self.spec.stride) if self.part == "gates" else found

    def _entries(self, hidden: Floats) -> Floats:
        return super()._entries(hidden[:, self.by :] if self.part == "grid" else hidden)

    def _complete(self, positions: Ints) -> Ints:
        return super()._complete(positions - self.by if self.part == "grid" else positions)


def parts_of(model: LabModel) -> tuple[Part, ...]:
    """What can be moved in a model: nothing in full attention, no gates where they are uniform.

    >>> from phaseguard.lab.store import load_model
    >>> parts_of(load_model("pair2-s0")), parts_of(load_model("full-s0"))
    (('gates', 'grid'), ())
    """
    spec = model.spec
    if spec.full:
        return ()
    moves: dict[Part, bool] = {"bias": spec.bias, "gates": spec.gate != "uniform", "grid": True}
    return tuple(part for part, there in moves.items() if there)


def cycle_model(model: LabModel, part: Part, by: int) -> CycledModel:
    """The model with one part moved by some slots.

    Args:
        model: a trained model with a compressed cache.
        part: what to move; one of :func:`parts_of`.
        by: slots; the stride moves nothing.

    Raises:
        InputError: for a part that the model has not.

    >>> from phaseguard.lab.store import load_model
    >>> model = load_model("csa4-s0")
    >>> moved = cycle_model(model, "bias", 1).weights["pool_bias"]
    >>> bool((moved[1] == model.weights["pool_bias"][0]).all())
    True
    """
    if part not in parts_of(model):
        lacks = {"bias": "position bias", "gates": "gates", "grid": "chunks"}
        what = "chunks" if model.spec.full else lacks[part]
        raise InputError(f"Scheme {model.spec.scheme!r} has no {what} to move: see parts_of.")
    weights, by = dict(model.weights), by % model.spec.stride
    if "pool_bias" in weights and part != "grid":
        weights["pool_bias"] = gates.cycle(weights["pool_bias"], by, model.spec.stride).astype(np.float32)
    return CycledModel(model.spec, weights, part, by)


def cycle_gates(model: LabModel, task: Task, part: Part, *, questions: int = 1000, seed: int = 1) -> Cycling:
    """Accuracy by phase with one part moved by 0, 1, ... slots, on the same questions.

    Args:
        model: a trained model with a compressed cache.
        task: what to ask.
        part: what to move; one of :func:`parts_of`.
        questions: least number of questions for each.
        seed: of the texts.

    Raises:
        InputError: for a part that the model has not.

    >>> from phaseguard.lab.store import load_model
    >>> found = cycle_gates(load_model("csa4-s0"), Task(), "grid", questions=400)
    >>> [turn.by for turn in found.cycled], found.cycled[0].shift
    ([0, 1, 2, 3], 0)
    """
    stride = model.spec.stride
    turns: list[Turn] = []
    for by in range(max(1, stride)):
        moved = cycle_model(model, part, by)
        phases = by_phase(moved, task, questions=questions, seed=seed)
        still = turns[0].phases if turns else phases
        shift, correlation = _likeness(_means(still), _means(phases), by)
        turns.append(Turn(by, phases, shift, correlation))
    return Cycling(part, tuple(turns))


def _means(phases: tuple[Accuracy, ...]) -> NDArray[np.float64]:
    return np.array([phase.mean for phase in phases])


def _likeness(still: NDArray[np.float64], moved: NDArray[np.float64], by: int) -> tuple[int, float]:
    """The roll of the unmoved profile that is likest to the moved one, and the correlation at ``by``."""
    before, after = still - still.mean(), moved - moved.mean()
    size = float(np.linalg.norm(before) * np.linalg.norm(after))
    if size < 1e-12:
        return 0, 0.0
    fits = [float(np.roll(before, shift) @ after) / size for shift in range(len(before))]
    return int(np.argmax(fits)), fits[by]
