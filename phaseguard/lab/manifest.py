"""The manifest of shipped models: command, seed, digest, licence, and what each model reached.

``python -m phaseguard.lab.manifest FOLDER`` measures every model in a folder and writes its manifest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phaseguard.errors import InputError
from phaseguard.lab.measure import by_phase
from phaseguard.lab.model import LabModel
from phaseguard.lab.spec import Spec
from phaseguard.lab.store import WEIGHTS, about, digest, load_file, load_model, shipped
from phaseguard.lab.tasks import Setting, Task

QUESTIONS, SEED = 4000, 1
LICENCE = "Apache-2.0"


def measured(model: LabModel, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Accuracy by phase on tasks, with Wilson 95% intervals clustered by sequence.

    >>> from phaseguard.lab.store import load_model
    >>> from phaseguard.lab.tasks import standard_tasks
    >>> row = measured(load_model("csa4-s0"), standard_tasks())[0]
    >>> row["setting"], len(row["accuracy"])
    ('ask', 4)
    """
    rows = []
    for task in tasks:
        phases = by_phase(model, task, questions=QUESTIONS, seed=SEED)
        rows.append(
            {
                "setting": task.setting,
                "context": task.context,
                "value_tokens": task.value_tokens,
                "n": [phase.n for phase in phases],
                "accuracy": [round(phase.mean, 4) for phase in phases],
                "low": [round(phase.low, 4) for phase in phases],
                "high": [round(phase.high, 4) for phase in phases],
            }
        )
    return rows


def trained_on(described: Mapping[str, Any]) -> tuple[Task, ...]:
    """The tasks of a model's training, and each of them at four times the length."""
    tasks = tuple(Task(**task) for task in described["tasks"])
    return (*tasks, *(task.scaled(4) for task in tasks))


def trained_for(spec: Spec) -> dict[str, tuple[LabModel, tuple[Task, ...]]]:
    """The shipped models of exactly this spec, by name, each with the tasks it was trained on.

    Raises:
        InputError: when there is none.

    >>> from phaseguard.lab.spec import SCHEMES
    >>> "csa4-s0" in trained_for(SCHEMES["csa4"])
    True
    """
    found = {
        name: (load_model(name), tuple(Task(**task) for task in entry["tasks"]))
        for name, entry in shipped().items()
        if Spec(**entry["spec"]) == spec
    }
    if not found:
        raise InputError(f"No shipped model is of scheme {spec.scheme!r}: see `phaseguard lab models`.")
    return found


def leading_name(spec: Spec, setting: Setting) -> str:
    """The shipped model that stands for a scheme in a setting: that of seed 0.

    Raises:
        InputError: when none was trained for that.

    >>> from phaseguard.lab.spec import SCHEMES
    >>> leading_name(SCHEMES["csa4"], "ask"), leading_name(SCHEMES["csa4"], "records")
    ('csa4-s0', 'csa4-records-s0')
    """
    name = f"{spec.scheme}{'' if setting == 'ask' else f'-{setting}'}-s0"
    if name not in shipped():
        raise InputError(f"No shipped model is {name!r}: see `phaseguard lab models`, or train one.")
    return name


def build(folder: Path) -> dict[str, Any]:
    """The manifest of all models in a folder."""
    models = {}
    for path in sorted(folder.glob("*.safetensors")):
        model, described = load_file(path), about(path)
        models[path.stem] = {
            "file": path.name,
            "sha256": digest(path),
            "licence": LICENCE,
            "spec": model.spec.to_dict(),
            **described,
            "measured": measured(model, trained_on(described)),
        }
    return {"questions": QUESTIONS, "seed": SEED, "models": models}


if __name__ == "__main__":
    target = Path(sys.argv[1]) if sys.argv[1:] else WEIGHTS
    (target / "manifest.json").write_text(json.dumps(build(target), indent=1) + "\n", encoding="utf-8")
