"""The command for weights: a table or JSON on stdout, a profile when asked for, nothing else."""

import json

import numpy as np
import pytest

from phaseguard.cli_calibrate_weights import weights_command
from phaseguard.errors import InputError, ProfileError
from phaseguard.profiles import load_profile
from tests.calibrate.checkpoints import biased, save, v41


@pytest.fixture
def folder(tmp_path):
    bias = np.zeros((4, 6), np.float32)
    bias[1] = 1
    return save(tmp_path / "ckpt", biased(bias, layer=1), {"compress_ratios": [0, 4], "sliding_window": 128})


def test_a_table_the_schedule_and_the_statement(folder, capfd):
    weights_command(str(folder))
    out, err = capfd.readouterr()
    assert "stride 4, without overlap" in out
    assert "A hypothesis only" in out
    assert out.endswith("Stride by layer in config.json: 0, 4\n")
    assert err == ""


def test_json_is_the_report(folder, capfd):
    weights_command(str(folder), as_json=True)
    told = json.loads(capfd.readouterr().out)
    assert told["strides"] == [4]
    assert told["layers"][0]["favour"]["favoured"] == [1]


def test_no_compressors(tmp_path, capfd):
    weights_command(str(save(tmp_path, {"a": np.zeros(1, np.float32)}, {})))
    assert capfd.readouterr().out.startswith("No chunked compression found")


def test_a_profile_under_a_name(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("PHASEGUARD_PROFILES", str(tmp_path / "own"))
    folder = v41(tmp_path / "my ckpt")
    weights_command(str(folder), name="mine", tokenizer="deepseek-v4", chat="deepseek-v4.1")
    profile = load_profile("mine")
    assert (profile.period, profile.strengths, profile.provenance.kind) == (2, None, "weights")
    assert profile.provenance.date is not None
    assert profile.provenance.command == f"phaseguard calibrate --weights '{folder}'"
    assert "mine.json" in capfd.readouterr().err
    with pytest.raises(ProfileError, match="exists"):
        weights_command(str(folder), name="mine", tokenizer="deepseek-v4", chat="deepseek-v4.1")
    weights_command(str(folder), name="mine", tokenizer="deepseek-v4", chat="plain", overwrite=True)
    assert load_profile("mine").chat == "plain"


def test_a_profile_in_a_file_is_named_after_it(folder, tmp_path, capfd):
    target = tmp_path / "measured-later.json"
    weights_command(str(folder), output=str(target), tokenizer="deepseek-v4", chat="plain", as_json=True)
    assert load_profile(target).name == "measured-later"
    json.loads(capfd.readouterr().out)


def test_a_profile_needs_its_tokenizer(folder, tmp_path):
    with pytest.raises(ProfileError, match="tokenizer and chat"):
        weights_command(str(folder), output=str(tmp_path / "p.json"))


def test_a_tokenizer_without_a_profile_to_write(folder):
    with pytest.raises(InputError, match="--name or --out"):
        weights_command(str(folder), tokenizer="deepseek-v4")
