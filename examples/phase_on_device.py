"""Does moving an answer help? Asked of a small model with DeepSeek V4's compression kernel, on this machine.

Every question is asked with its record as it stands, then with a few pads in front of the record that put its
answer on each phase, and with as many pads somewhere else, which tells what the pads alone do. Which phase is
the strongest is measured on other texts.

python examples/phase_on_device.py [MODEL]    # one with a compressed cache, such as chunk4-s0
"""

import sys

import numpy as np

from phaseguard.lab.ask import ask
from phaseguard.lab.padded import by_target, calibrated, questions
from phaseguard.lab.store import load_model
from phaseguard.lab.tasks import Task
from phaseguard.stats import Accuracy, clustered

N, SEED = 600, 5


def show(what: str, accuracy: Accuracy) -> None:
    """Print a share of right answers with its 95% interval."""
    print(f"{what:<39}{accuracy.mean:6.3f}  [{accuracy.low:.3f} {accuracy.high:.3f}]")


name = sys.argv[1] if sys.argv[1:] else "csa4-s0"
model, task = load_model(name), Task("ask")
(measured,) = calibrated(model, name, (task,), n=N // 2, seed=SEED + 1).strengths.values()
period, best = len(measured.mean), int(np.argmax(measured.mean))
rng, each = np.random.default_rng(SEED), np.arange(N)
drawn = questions(task, N, rng, window=model.spec.raw)

print(f"{name}: {N} questions, one a text of {task.context} tokens in which anything may be asked")
raw = ask(model, [drawn.prompt(row) for row in each]).right(drawn.answers)
show("as it stands", clustered(raw, each))
for phase in range(period):
    here = drawn.values % period == phase
    show(f"  of these, answer at phase {phase}", clustered(raw[here], each[here]))
for phase, accuracy in enumerate(by_target(model, task, n=N, seed=SEED)):  # the same questions
    show(f"answer moved to phase {phase}" + ", the strongest" * (phase == best), accuracy)
pads = (best - drawn.values) % period
places = rng.integers(0, task.context, N)
control = ask(model, [drawn.prompt(row, pads[row], places[row]) for row in each]).right(drawn.answers)
show(f"as many pads as for phase {best}, anywhere", clustered(control, each))
