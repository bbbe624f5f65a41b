"""Inference in numpy equals the torch module; weights of another shape are refused; files round-trip."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from phaseguard.errors import InputError
from phaseguard.lab.measure import by_phase
from phaseguard.lab.model import LabModel, weight_shapes
from phaseguard.lab.network import Network
from phaseguard.lab.spec import SCHEMES, Spec, make_spec
from phaseguard.lab.store import about, load_model, save_model
from phaseguard.lab.tasks import Task, draw

SPECS = [
    *(make_spec(name) for name in SCHEMES),
    make_spec("csa4", rope=True),
    make_spec("csa4", scalar_gate=True),
    make_spec("csa4", uniform_gate=True),
    make_spec("chunk4", stride=6),
    make_spec("chunk4", bias=False),
]


def random_network(spec: Spec, seed: int = 0) -> Network:
    torch.manual_seed(seed)
    network = Network(spec)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return network


def in_numpy(network: Network) -> LabModel:
    return LabModel(network.spec, {k: v.detach().numpy() for k, v in network.state_dict().items()})


@pytest.mark.parametrize(
    "spec", SPECS, ids=lambda spec: f"{spec.scheme}-{spec.gate}-{spec.stride}-{spec.rope}"
)
@pytest.mark.parametrize("context", [16, 61])
def test_numpy_equals_torch(spec: Spec, context: int) -> None:
    network = random_network(spec)
    drawn = draw(Task(context=context, records=2, questions=5), 3, np.random.default_rng(0))
    with torch.no_grad():
        expected = network(torch.from_numpy(drawn.tokens), torch.from_numpy(drawn.positions)).numpy()
    found = in_numpy(network).logits(drawn.tokens, drawn.positions)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-4)
    other = in_numpy(random_network(spec, seed=1)).logits(drawn.tokens, drawn.positions)
    assert np.abs(other - expected).max() > 0.1, "the comparison must be able to fail"
    assert set(network.state_dict()) == set(weight_shapes(spec))


def test_what_follows_a_position_changes_nothing_at_it() -> None:
    model = in_numpy(random_network(make_spec("csa4")))
    drawn = draw(Task(context=64), 2, np.random.default_rng(0))
    early = drawn.positions[:, :1]
    changed = drawn.tokens.copy()
    changed[:, int(early.max()) + 1 :] = 5
    np.testing.assert_allclose(
        model.logits(drawn.tokens, early), model.logits(changed, early), rtol=1e-5, atol=1e-5
    )


def test_bad_input_is_refused() -> None:
    model = in_numpy(random_network(make_spec("chunk4")))
    tokens, positions = np.zeros((2, 20), np.int64), np.full((2, 1), 19)
    for wrong in (
        (tokens + 999, positions),
        (tokens, positions + 1),
        (tokens[0], positions),
        (tokens, positions[:1]),
    ):
        with pytest.raises(InputError):
            model.logits(*wrong)
    with pytest.raises(InputError, match="another model"):
        LabModel(make_spec("chunk4", stride=8), model.weights)
    with pytest.raises(InputError, match="lack"):
        LabModel(make_spec("csa4"), {})
    with pytest.raises(InputError, match="shorter than the period"):
        by_phase(model, Task(context=3, records=1), period=4)
    for arguments in ({"scheme": "csa5"}, {"scheme": "csa4", "stride": 1}, {"scheme": "full", "stride": 4}):
        with pytest.raises(InputError):
            make_spec(**arguments)  # type: ignore[arg-type]


def test_weights_round_trip(tmp_path: Path) -> None:
    model = in_numpy(random_network(make_spec("csa4")))
    path = tmp_path / "csa4.safetensors"
    first = save_model(path, model, {"seed": 0})
    assert first == save_model(path, model, {"seed": 0}), "the same model gives the same file"
    read = load_model(path)
    assert read.spec == model.spec
    assert about(path) == {"seed": 0}
    halves = {key: value.astype(np.float16) for key, value in model.weights.items()}
    assert all(np.array_equal(read.weights[key], value) for key, value in halves.items())
    assert [file.name for file in tmp_path.iterdir()] == ["csa4.safetensors"]
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read"):
        load_model(path)
    with pytest.raises(InputError, match=r"Did you mean .csa4-s"):
        load_model("csa4-s")
