"""``phaseguard calibrate``: options, the plan before it, what is printed, exit codes."""

from __future__ import annotations

import json

import pytest

from phaseguard.cli import main
from phaseguard.cli_calibrate_run import parse_periods
from phaseguard.errors import InputError
from phaseguard.profiles import load_profile, read_profile
from phaseguard.testing import ScriptedEngine, Server
from tests.calibrate.planted import PlantedEngine

SECRET = "sk-very-secret-17"
LAB = ("calibrate", "--lab", "chunk4", "--items", "12", "--periods", "2-8", "--no-controls")


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHASEGUARD_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.delenv("PHASEGUARD_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def test_a_run_says_its_plan_its_verdict_and_where_the_profile_is(capsys, tmp_path) -> None:
    assert main([*LAB, "--yes"]) == 0
    out, err = capsys.readouterr()
    assert "12 texts at 8 shifts, judged after 4, 8, 12 texts" in err
    assert "at most 100 calls" in err
    assert "smallest effect" in err
    assert out.startswith("effect: ")
    assert "4 <" in out
    assert "strong" in out
    profile = read_profile(tmp_path / "profiles" / "lab-chunk4-s0.json")
    assert profile.period == 4
    assert profile.provenance.command == "phaseguard calibrate " + " ".join(LAB[1:])
    assert len((tmp_path / "calibrate-lab-chunk4-s0.jsonl").read_text().splitlines()) > 50


def test_the_profile_is_listed_and_looked_at_again(capsys) -> None:
    assert main([*LAB, "--yes"]) == 0
    assert main(["profiles"]) == 0
    assert "measured" in capsys.readouterr().out.partition("lab-chunk4-s0")[2]
    assert main(["calibrate", "--lab", "chunk4", "--revalidate", "lab-chunk4-s0", "--items", "15"]) == 2
    assert "--yes" in capsys.readouterr().err
    again = ["--revalidate", "lab-chunk4-s0", "--items", "15", "--yes"]
    assert main(["calibrate", "--lab", "chunk4", *again]) == 0
    out, err = capsys.readouterr()
    assert "15 texts at 4 shifts" in err
    assert "at most 64 calls" in err
    assert out.startswith("holds: ")
    assert main(["calibrate", "--lab", "full", *again]) == 1
    assert capsys.readouterr().out.startswith("changed: ")


def test_what_is_said_of_using_the_profile_is_what_loads_it(capsys, tmp_path) -> None:
    assert main([*LAB, "--yes"]) == 0
    assert capsys.readouterr().out.split()[-2:] == ["--profile", "lab-chunk4-s0"]
    for name in ("p.json", "folder/p.txt", "p"):
        assert main([*LAB, "--yes", "--out", name, "--name", "mine", "--report", "r.html"]) == 0
        way = capsys.readouterr().out.split()[-1]
        assert load_profile(way) == read_profile(tmp_path / name)
        assert f"--revalidate {way}<" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_json_goes_to_stdout_alone(capsys, tmp_path) -> None:
    assert main([*LAB, "--yes", "--json", "--out", "p.json", "--name", "mine"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["judgement"]["period"] == 4
    assert read_profile(tmp_path / "p.json").name == "mine"


def test_nothing_is_asked_where_nobody_can_confirm(capsys, tmp_path) -> None:
    assert main(LAB) == 2
    err = capsys.readouterr().err
    assert "give --yes" in err
    assert "at most 100 calls" in err
    assert not list(tmp_path.glob("*.jsonl"))


def test_undecided_is_exit_1_and_no_profile(capsys, tmp_path) -> None:
    few = ("calibrate", "--lab", "csa4", "--items", "6", "--periods", "3,5", "--yes")
    assert main(few) == 1
    out = capsys.readouterr().out
    assert out.startswith("undecided: ")
    assert "No profile was written" in out
    assert not (tmp_path / "profiles").exists()


def test_an_endpoint_with_a_known_model(capsys, tmp_path) -> None:
    engine = PlantedEngine(load_profile("deepseek-v4-flash"), (0.3, 1.0))
    with Server(engine, models=["deepseek-v4-flash"], key=SECRET) as server:
        arguments = (
            f"calibrate --base-url {server.url} --model deepseek-v4-flash --context 500 --items 24 "
            "--periods 2,3,4 --no-controls --price-input 0.5 --price-output 1.5 --yes"
        ).split()
        assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "cost: $" in err
    assert SECRET not in out + err + next(tmp_path.glob("*.jsonl")).read_text()
    profile = read_profile(tmp_path / "profiles" / "deepseek-v4-flash.json")
    assert (profile.period, profile.provider, profile.model) == (
        2,
        server.url.split("/")[2],
        "deepseek-ai/DeepSeek-V4-Flash",
    )
    assert profile.strides == (4, 128)
    assert SECRET not in profile.to_json()
    assert load_profile("deepseek-v4-flash") == profile  # from now on it is what aligning uses


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "Give --base-url and --model"),
        ("--base-url http://127.0.0.1:9/v1 --model nothing-known", "--tokenizer"),
        ("--lab nothing", "no on-device model 'nothing'"),
        ("--lab csa4 --periods two", "--periods 'two'"),
        ("--lab csa4 --budget 3", "--price-input"),
        ("--lab csa4 --seed -1", "--seed"),
        ("--lab csa4 --budget 3 --price-input 0.3", "both --price-input and --price-output"),
        ("--lab csa4 --max-calls 10", "are the least"),
        ("--base-url http://127.0.0.1:9/v1 --model deepseek-v4-flash --records none.txt", "cannot be read"),
        ("--lab csa4 --revalidate deepseek-v4-flash", "was not measured"),
        ("--lab csa4 --base-url http://127.0.0.1:9/v1", "--base-url and --lab"),
        ("--lab csa4 --hf folder", "--hf and --lab"),
        ("--lab csa4 --revalidate lab-csa4-s0 --max-calls 10", "--max-calls does nothing with --revalidate"),
        ("--lab csa4 --revalidate lab-csa4-s0 --no-controls", "--no-controls does nothing"),
        (
            "--lab csa4 --revalidate lab-csa4-s0 --report r.html --plot p.png",
            "--report and --plot do nothing",
        ),
        ("--weights folder --report r.html", "--report does nothing with --weights"),
        ("--weights folder --revalidate lab-csa4-s0", "--revalidate does nothing with --weights"),
    ],
)
def test_bad_input_is_one_clear_line(capsys, more, said) -> None:
    assert main(["calibrate", *more.split(), "--yes"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.strip().splitlines()[-1].startswith("phaseguard: error: ")
    assert "Traceback" not in err


def test_a_refused_key_is_not_shown(capsys) -> None:
    with Server(ScriptedEngine("ok"), models=["deepseek-v4-flash"], key="another") as server:
        arguments = f"calibrate --base-url {server.url} --model deepseek-v4-flash --context 500 --yes".split()
        assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "OPENAI_API_KEY" in err
    assert SECRET not in err


def test_a_password_in_the_url_is_kept_nowhere(capsys, tmp_path) -> None:
    with Server(PlantedEngine(load_profile("deepseek-v4-flash"), (0.0, 1.0))) as server:
        url = server.url.replace("://", f"://bob:{SECRET}@")
        arguments = f"calibrate --base-url {url} --model test-model --profile deepseek-v4-flash --context 500"
        more = "--items 12 --periods 2-4 --no-controls --report r.html --yes"
        assert main([*arguments.split(), *more.split()]) == 0
    command = read_profile(tmp_path / "profiles" / "deepseek-v4-flash.json").provenance.command
    assert command is not None
    assert f"--base-url {server.url} --model test-model" in command
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 3
    assert not any(SECRET in path.read_text(encoding="utf-8") for path in written)
    assert SECRET not in "".join(capsys.readouterr())


def test_an_interrupted_run_says_where_its_answers_are(monkeypatch, capsys, tmp_path) -> None:
    from phaseguard.calibrate import LabEndpoint

    ask = LabEndpoint.ask

    def interrupted(self, questions):
        for number, outcome in enumerate(ask(self, questions)):
            yield outcome
            if number == 2:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LabEndpoint, "ask", interrupted)
        assert main([*LAB, "--yes"]) == 130
    said = "interrupted: the answers are kept in calibrate-lab-chunk4-s0.jsonl; the same command goes on"
    assert said in " ".join(capsys.readouterr().err.split())
    assert len((tmp_path / "calibrate-lab-chunk4-s0.jsonl").read_text().splitlines()) == 4
    assert main([*LAB, "--yes"]) == 0


def test_periods_as_numbers_and_ranges() -> None:
    assert parse_periods("2-5, 8,128") == (2, 3, 4, 5, 8, 128)
    for wrong in ("", "a", "2-", "2--4", "-2"):
        with pytest.raises(InputError, match="--periods"):
            parse_periods(wrong)
