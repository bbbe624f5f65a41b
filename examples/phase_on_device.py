"""Does moving an answer help? Asked of a small model with DeepSeek V4's compression kernel, on this machine.

Every question is asked with its record as it stands, then with a few pads in front of the record that
put its answer on each phase, and with as many pads somewhere else, which tells what the pads alone do.
"""

import sys

import numpy as np

from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import PAD, Batch, Task, draw
from phaseguard.stats import wilson

QUESTIONS = 1200


def padded(model, asked: Batch, pads: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Whether each question is answered when so many pads stand in front of so many tokens."""
    right = np.zeros(len(pads), bool)
    for count in np.unique(pads):
        rows = np.flatnonzero(pads == count)
        tokens = np.stack([np.insert(asked.tokens[row], places[row], np.full(count, PAD)) for row in rows])
        answers = model.predict(tokens, asked.positions[rows] + count)
        right[rows] = (answers == asked.targets[rows])[:, 0]
    return right


def show(name: str, right: np.ndarray) -> None:
    """Print a share with its 95% interval."""
    low, high = wilson(int(right.sum()), len(right))
    print(f"{name:<39}{right.mean():6.3f}  [{low:.3f} {high:.3f}]")


name = sys.argv[1] if sys.argv[1:] else "csa4-s0"
model = load_model(name)
stride = model.spec.stride
rng = np.random.default_rng(5)
asked = draw(Task("ask", questions=1), QUESTIONS, rng)
answer, key = asked.values[:, 0], asked.keys[:, 0]
nothing = np.zeros(QUESTIONS, np.int64)
print(f"{name}: {QUESTIONS} questions, one a text of 96 tokens in which anything may be asked")
raw = padded(model, asked, nothing, key)
show("as it stands", raw)
for phase in range(stride):
    show(f"  of these, answer at phase {phase}", raw[answer % stride == phase])
for phase in range(stride):
    show(f"answer moved to phase {phase}", padded(model, asked, (phase - answer) % stride, key))
last = (stride - 1 - answer) % stride
elsewhere = rng.integers(0, 96, QUESTIONS)
show(f"as many pads as for phase {stride - 1}, anywhere", padded(model, asked, last, elsewhere))
