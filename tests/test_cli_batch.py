"""``phaseguard batch``: options reach the library, one summary, exit codes as documented."""

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from phaseguard import align_prompt, load_profile
from phaseguard.cli import main
from tests.batch.rows import CHAT, KEY, NO_PHASE, TEXT, V41, read_rows, write_rows


@pytest.fixture
def run(capsysbinary, monkeypatch) -> Callable[..., tuple[int, bytes, str]]:
    def call(*args: object, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(["batch", *map(str, args)])
        seen = capsysbinary.readouterr()
        return code, seen.out, seen.err.decode()

    return call


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_rows(
        tmp_path / "in.jsonl",
        [{"prompt": TEXT, "key_passages": [KEY], "q": "Which is the vault code?"}] * 2,
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def test_rows_and_summary(run, source, out):
    assert run(source, out, "-p", V41) == (
        0,
        b"",
        "phaseguard: 2 rows: 2 verified, 0 not verified, 0 errors\n",
    )
    expected = align_prompt(TEXT, key_passages=[KEY], profile=V41).prompt
    assert [row["aligned_prompt"] for row in read_rows(out)] == [expected] * 2
    assert set(read_rows(out)[0]) == {
        *("prompt", "key_passages", "q", "aligned_prompt", "phaseguard_error"),
        *("phaseguard_verified", "phaseguard_tokens_added", "phaseguard_warnings"),
    }


def test_options_reach_the_library(run, source, out):
    chosen = ("--strong", "2,3", "--pads", "visible", "--level", "off", "--no-isolate", "--reasoning", "high")
    assert run(source, out, *chosen, "--fields", "report", "--report", "none") == (0, b"", "")
    profile = load_profile("deepseek-v4-flash").with_(reasoning="high")
    expected = align_prompt(
        TEXT, key_passages=[KEY], profile=profile, strong={2, 3}, pads="visible", level="off", isolate=False
    )
    (row, _) = read_rows(out)
    assert row["aligned_prompt"] == expected.prompt
    assert json.loads(row["phaseguard_report"]) == json.loads(json.dumps(expected.report.to_dict()))


@pytest.mark.parametrize("options", [("--query-field", "q"), ("--find",)])
def test_passages_are_found_where_no_key_field_is_named(run, source, out, options):
    run(source, out, *options, "-p", V41, "--fields", "report")
    query = "Which is the vault code?" if "q" in options else None
    expected = align_prompt(TEXT, query=query, profile=V41)
    found = json.loads(read_rows(out)[0]["phaseguard_report"])["passages"]
    assert [passage["text"] for passage in found] == [passage.text for passage in expected.report.passages]
    assert found[0]["why"] != "given"


def test_requests_are_aligned_in_place(run, tmp_path, out):
    body = {"model": "m", "messages": CHAT}
    source = write_rows(tmp_path / "in.jsonl", [{"custom_id": "1", "body": body, "k": KEY}])
    fields = ("--prompt-field", "body", "--output-field", "body", "--key-field", "k", "--fields", "none")
    assert run(source, out, *fields, "-p", V41)[0] == 0
    (row,) = read_rows(out)
    assert row == {
        "custom_id": "1",
        "body": align_prompt(body, key_passages=[KEY], profile=V41).prompt,
        "k": KEY,
    }


def test_failed_rows_are_listed_and_exit_code_1(run, tmp_path, out):
    source = write_rows(tmp_path / "in.jsonl", [{"prompt": "a"}, *[b"\x1b[31m{"] * 7])
    code, _, said = run(source, out, "--find", "-p", NO_PHASE)
    assert code == 1
    first, *lines = said.splitlines()
    assert first == "phaseguard: 8 rows: 1 verified, 0 not verified, 7 errors"
    assert lines[0].startswith("  line 2: not JSON: ")
    assert len(lines) == 6
    assert lines[-1] == "  ... and 2 more"
    assert len(read_rows(out)) == 8


def test_a_failed_proof_is_exit_code_1(run, source, out, monkeypatch):
    def unproven(prompt, **options):
        made = align_prompt(prompt, **options)
        object.__setattr__(made.report, "verified", False)
        return made

    monkeypatch.setattr("phaseguard.batch.aligner.align_prompt", unproven)
    code, _, said = run(source, out, "-p", V41)
    assert code == 1
    assert "2 not verified, 0 errors" in said


def test_report_as_json(run, source, out):
    report = json.loads(run(source, out, "-p", V41, "--report", "json")[2])
    assert report["counts"] == {"rows": 2, "verified": 2, "unverified": 0, "errors": 0, "first_errors": []}
    assert report["resumed"] == 0


def test_stdin_and_stdout(run, source, out, tmp_path):
    run(source, out, "-p", V41)
    assert run("-", "-", "-p", V41, stdin=source.read_bytes())[:2] == (0, out.read_bytes())
    assert run(source, os.devnull, "-p", V41)[:2] == (0, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_rows_from_stdin_go_on_too(run, source, tmp_path):
    from phaseguard.batch.shards import ShardFolder

    out = tmp_path / "new.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShardFolder, "merge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        code, _, said = run("-", out, "-p", V41, stdin=source.read_bytes())
    assert code == 130
    assert said == "phaseguard: interrupted; the same command goes on from what is finished.\n"
    assert not out.exists()
    code, _, said = run("-", out, "-p", V41, stdin=source.read_bytes())
    assert (code, said) == (
        0,
        "phaseguard: 2 rows, 2 of them in an earlier run: 2 verified, 0 not verified, 0 errors\n",
    )


def test_restart_throws_shards_of_another_run_away(run, source, out):
    from phaseguard.batch.shards import ShardFolder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShardFolder, "merge", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        run(source, out, "-p", V41)
    code, _, said = run(source, out, "-p", NO_PHASE)
    assert code == 2
    assert "holds shards of another run, with another profile" in said
    assert run(source, out, "-p", NO_PHASE, "--restart")[0] == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("missing.jsonl", "out.jsonl"), "missing.jsonl cannot be read"),
        (("{in}", "{in}"), "is the input"),
        (
            ("{in}", "{out}", "--key-field", "keys"),
            "no field 'keys'. Known names: key_passages, prompt, q. Name",
        ),
        (("{in}", "{out}", "--fields", "verifed"), "Did you mean 'verified'?"),
        (("{in}", "{out}", "-p", "deepseek-v4-flsh"), "Did you mean"),
        (("{in}", "{out}", "--jobs", "0"), "--jobs"),
        (("{in}",), "OUT"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, source, out, args, words):
    code, printed, said = run(*(arg.format(**{"in": source, "out": out}) for arg in args))
    assert (code, printed) == (2, b"")
    assert words in said
    assert said.count("\n") == 1
    assert not out.exists()
