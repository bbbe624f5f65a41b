"""Models with random weights, for tests of what does not depend on training."""

from __future__ import annotations

import numpy as np

from phaseguard.lab.model import LabModel, weight_shapes
from phaseguard.lab.spec import Spec


def untrained(spec: Spec, seed: int = 0) -> LabModel:
    """Random weights, norms near one."""
    rng = np.random.default_rng(seed)
    return LabModel(
        spec,
        {
            name: (rng.normal(0, 0.2, shape) + name.endswith("scale")).astype(np.float32)
            for name, shape in weight_shapes(spec).items()
        },
    )
