"""``phaseguard lab`` as a person uses it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from phaseguard.lab.store import about, find_file, load_model


def phaseguard(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "phaseguard", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return phaseguard("lab", *arguments)


def test_train_and_measure(tmp_path: Path) -> None:
    target = tmp_path / "tiny.safetensors"
    done = lab(
        "train", "--scheme", "pair2", "--setting", "records", "--steps", "2", "--seed", "3", "-o", str(target)
    )
    assert done.returncode == 0, done.stderr
    assert "sha256" in done.stderr
    assert load_model(target).spec.stride == 2
    told = about(target)
    assert told["seed"] == 3
    assert told["command"].endswith("-o tiny.safetensors"), "no folder of this machine in the file"
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.safetensors"]
    measured = lab("measure", str(target), "--json")
    rows = json.loads(measured.stdout)
    assert [(row["setting"], row["context"], len(row["accuracy"])) for row in rows] == [
        ("records", 96, 2),
        ("records", 384, 2),
    ]
    table = lab("measure", str(target))
    assert "phase 1" in table.stdout
    assert "records" in table.stdout


def test_models_are_listed() -> None:
    assert "csa4-s0: phaseguard lab train --scheme csa4" in lab("models").stdout
    assert json.loads(lab("models", "--json").stdout)["csa4-s0"]["spec"]["stride"] == 4


def test_the_demo_prints_a_table_json_and_a_figure(tmp_path: Path) -> None:
    figure = tmp_path / "demo.png"
    done = phaseguard("demo", "--questions", "20", "--json", "--plot", str(figure))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["model"] == "csa4-s0"
    assert {"accuracy", "worst", "calls", "tokens_added"} <= found["rows"][0].keys()
    assert figure.read_bytes().startswith(b"\x89PNG")
    copy = tmp_path / "my pairs.safetensors"
    copy.write_bytes(find_file("pair2-s0").read_bytes())
    table = phaseguard("demo", "--model", str(copy), "--questions", "10")
    assert table.returncode == 0, table.stderr
    assert "my-pairs: 10 questions" in table.stdout
    assert "aligned and isolated" in table.stdout
    assert table.stderr == "", "a progress bar is for terminals"


def test_bad_input_of_the_demo_is_one_line() -> None:
    for arguments in (
        ("demo", "--scheme", "full"),
        ("demo", "--scheme", "csa9"),
        ("demo", "--model", "csa4-s99"),
        ("demo", "--setting", "prose"),
        ("demo", "--questions", "0"),
        ("demo", "--questions", "10", "--plot", "no/such/folder/x.png"),
        ("lab", "prior", "--scheme", "none"),
    ):
        done = phaseguard(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert done.stderr.startswith("phaseguard: error: ")
        assert done.stderr.count("\n") == 1


def test_bad_input_is_one_line() -> None:
    for arguments in (
        ("train", "--scheme", "csa5", "-o", "x.safetensors"),
        ("train", "--scheme", "csa4", "--stride", "1", "-o", "x.safetensors"),
        ("train", "--scheme", "csa4", "--setting", "prose", "-o", "x.safetensors"),
        ("train", "--scheme", "csa4", "--value-tokens", "9", "-o", "x.safetensors"),
        ("train", "--scheme", "csa4", "-o", "no/such/folder/x.safetensors"),
        ("measure", "csa4-s9"),
        ("measure", __file__),
    ):
        done = lab(*arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert done.stderr.startswith("phaseguard: error: ")
        assert done.stderr.count("\n") == 1
