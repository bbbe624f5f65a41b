"""The command line: bytes in, bytes out, one clear line for bad input, exit codes as documented."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from phaseguard import __version__, align_prompt
from phaseguard.cli import main
from phaseguard.normalize import normalize

TEXT = "The door code is A-17.\n\nThe vault code is PROVOCATIVE-8417.\n\nWhich is the vault code?\n"
V41 = ("--profile", "deepseek-v4.1-flash")
KEY = ("--key", "PROVOCATIVE-8417")
UNTIDY = "One line. \n\n\n\nAnother line.\n"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: bytes
    err: str


@pytest.fixture
def run(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    def call(*args: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(args)
        seen = capsysbinary.readouterr()
        return Outcome(code, seen.out, seen.err.decode())

    return call


@pytest.fixture
def prompt(tmp_path: Path) -> str:
    path = tmp_path / "prompt.md"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


def process(*args: str, **kwargs) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "phaseguard", *args], check=False, **kwargs)


# align


def test_align_writes_what_the_library_returns(run, prompt):
    done = run("align", prompt, *KEY, *V41)
    expected = align_prompt(TEXT, key_passages=["PROVOCATIVE-8417"], profile="deepseek-v4.1-flash")
    assert done.code == 0
    assert done.out.decode() == expected.prompt
    assert "verified" in done.err
    assert "0 weak → 1 strong" in done.err
    assert "reported (arXiv:2609.36322)" in done.err


@pytest.mark.parametrize("name", [(), ("-",)])
def test_align_reads_stdin(run, name):
    assert (
        run("align", *name, *KEY, *V41, stdin=TEXT.encode()).out
        == run("align", "-", *KEY, *V41, stdin=TEXT.encode()).out
    )


def test_align_report_as_json_is_the_report(run, prompt):
    done = run("align", prompt, *KEY, *V41, "--report", "json")
    report = json.loads(done.err)
    assert report["verified"] is True
    assert report["passages"][0]["spans"][0]["phase_after"] == 1


def test_align_without_report_says_nothing(run, prompt):
    assert run("align", prompt, *KEY, *V41, "--report", "none").err == ""


def test_align_options_reach_the_library(run, prompt):
    done = run("align", prompt, *KEY, "--strong", "2, 3", "--pads", "visible", "--report", "json")
    report = json.loads(done.err)
    assert report["provenance"]["kind"] == "stated"
    assert report["passages"][0]["spans"][0]["phase_after"] in {2, 3}
    assert {pad["kind"] for pad in report["pads"]} <= {"visible", "separator"}
    budget = run("align", prompt, *KEY, *V41, "--max-added-tokens", "0", "--report", "json")
    assert json.loads(budget.err)["tokens_added"] == 0
    thinking = run("align", prompt, *KEY, *V41, "--reasoning", "high", "--report", "json")
    assert json.loads(thinking.err)["tokens_before"] > report["tokens_before"]


def test_align_isolates_by_default_where_no_phase_is_known(run, tmp_path):
    path = tmp_path / "prompt.md"
    path.write_text("so so\n\nPROVOCATIVE-8417\n\n" + "More words here. " * 20, encoding="utf-8")
    isolated = {}
    for option in ((), ("--isolate",), ("--no-isolate",)):
        report = json.loads(run("align", str(path), *KEY, *option, "--report", "json").err)
        isolated[option] = report["isolation"]
    assert isolated[()] == isolated["--isolate",]
    assert isolated[()]["kind"] == "on-device"
    assert isolated[()]["strangers_after"] < isolated[()]["strangers_before"]
    assert isolated["--no-isolate",] is None
    text = run("align", str(path), *KEY).err
    assert "strangers" in text
    assert "isolated" in text


def test_align_repeats_in_front_of_the_question(run, tmp_path):
    path = tmp_path / "prompt.md"
    path.write_text("PROVOCATIVE-8417\n\n" + "More words here. " * 80 + "\n\nWhich?", encoding="utf-8")
    prompt = str(path)
    done = run("align", prompt, *KEY, *V41, "--repeat", "--report", "json")
    report = json.loads(done.err)
    assert [passage["outcome"] for passage in report["repeated"]] == ["repeated"]
    assert done.out.endswith(b"\n\nPROVOCATIVE-8417\n\nWhich?")
    assert report["tokens_after"] == sum(
        report[f"tokens_{part}"] for part in ("normalized", "repeated", "added")
    )
    text = run("align", prompt, *KEY, *V41, "--repeat").err
    assert "repeat  'PROVOCATIVE-8417': once more in front of the question" in text
    assert f"{report['tokens_repeated']} repeated, " in text
    assert "repeat" not in run("align", prompt, *KEY, *V41).err


def test_align_finds_passages_by_query(run, prompt):
    done = run("align", prompt, "--query", "vault code?", "--answer", "8417", *V41, "--report", "json")
    spans = [span["text"] for p in json.loads(done.err)["passages"] for span in p["spans"]]
    assert "8417" in spans


def test_align_keeps_windows_line_ends_and_bom(run):
    text = "\ufeffThe door code is A-17.\r\n\r\nThe vault code is PROVOCATIVE-8417.\r\n"
    done = run("align", *KEY, *V41, "--level", "off", stdin=text.encode())
    assert done.out.decode().startswith("\ufeffThe door code is A-17.\r\n")
    assert done.out.endswith(b"8417.\r\n")


def test_align_messages_keep_their_shape(run, tmp_path):
    messages = [
        {"role": "system", "content": "Answer, s'il vous plaît."},
        {"role": "user", "content": [{"type": "text", "text": TEXT}, {"type": "text", "text": "Now?"}]},
    ]
    path = tmp_path / "messages.json"
    path.write_text(json.dumps({"model": "m", "messages": messages}, indent=4), encoding="utf-8")
    done = run("align", str(path), "--messages", *KEY, *V41)
    returned = json.loads(done.out)
    assert done.code == 0
    assert returned["model"] == "m"
    assert returned["messages"][0] == messages[0]
    assert "plaît" in done.out.decode()
    compact = run("align", "--messages", *KEY, *V41, stdin=json.dumps(messages).encode())
    assert isinstance(json.loads(compact.out), list)
    assert b"\n" not in compact.out


def test_align_failed_proof_is_exit_code_1(run, prompt, monkeypatch):
    from dataclasses import replace

    import phaseguard.align

    def refuse(*args, **kwargs):
        out = align_prompt(*args, **kwargs)
        return replace(out, report=replace(out.report, verified=False, warnings=("It failed.",)))

    monkeypatch.setattr(phaseguard.align, "align_prompt", refuse)
    done = run("align", prompt, *KEY, *V41)
    assert done.code == 1
    assert "FAILED" in done.err
    assert "It failed." in done.err


# writing


def test_output_file_is_whole_keeps_its_mode_and_follows_links(run, prompt, tmp_path):
    target, link = tmp_path / "out.md", tmp_path / "link.md"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    done = run("align", prompt, *KEY, *V41, "-o", str(link))
    assert (done.code, done.out) == (0, b"")
    assert "PROVOCATIVE-8417" in target.read_text()
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.md", "out.md", "prompt.md"]


def test_new_output_file_follows_the_umask(run, prompt, tmp_path):
    before = os.umask(0o027)
    try:
        run("align", prompt, *KEY, *V41, "-o", str(tmp_path / "new.md"))
    finally:
        os.umask(before)
    assert (tmp_path / "new.md").stat().st_mode & 0o777 == 0o640


def test_output_can_be_a_device(run, prompt):
    assert run("align", prompt, *KEY, *V41, "-o", os.devnull).code == 0


# bad input

BAD = {
    "missing file": (("align", "no-such-file.md"), "no-such-file.md cannot be read: No such file"),
    "a folder": (("align", "."), ". cannot be read: Is a directory"),
    "unknown profile": (("align", "FILE", "-p", "deepseek-v4-flsh"), "Did you mean 'deepseek-v4-flash'"),
    "passage not found": (("align", "FILE", "--key", "vault code is 9"), "The nearest text is"),
    "key, not found": (("align", "FILE", "--key", "zzz"), "error: --key does not occur in the prompt: 'zzz'"),
    "answer not found": (("align", "FILE", *KEY, "--answer", "99999"), "stands in no key passage"),
    "phases": (("align", "FILE", "--strong", "2,x"), "--strong '2,x': give phases separated by commas"),
    "no phases": (("align", "FILE", "--strong", ""), "--strong ''"),
    "phase out of range": (("align", "FILE", "--strong", "7"), "give phases from 0 to 3"),
    "budget": (("align", "FILE", *KEY, "--max-added-tokens", "-1"), "max_added_tokens=-1"),
    "frozen": (("align", "FILE", *KEY, "--frozen", "5"), "frozen=5"),
    "reasoning": (("align", "FILE", *KEY, *V41, "--reasoning", "hgh"), "hgh"),
    "occurrence": (("align", "FILE", *KEY, "--occurrence", "4"), "occurrence=4"),
    "unwritable": (
        ("align", "FILE", *KEY, *V41, "-o", "no/such/folder/x"),
        "x cannot be written: No such file",
    ),
    "onto a folder": (("align", "FILE", *KEY, *V41, "-o", "."), ". cannot be written: Is a directory"),
    "not json": (("align", "FILE", "--messages"), "is not JSON: Expecting value at line 1, column 1"),
    "inspect, missing": (("inspect", "no-such-file.md"), "cannot be read"),
    "inspect, unwritable": (("inspect", "FILE", *KEY, "--html", "no/such/x.html"), "cannot be written"),
    "normalize, missing": (("normalize", "--check", "FILE", "nope.md"), "nope.md cannot be read"),
    "normalize, two files": (("normalize", "FILE", "FILE"), "several files need"),
    "normalize, check in place": (("normalize", "-i", "--check", "FILE"), "give one of them"),
    "normalize, output and diff": (("normalize", "--diff", "FILE", "-o", "x"), "--output is for"),
    "normalize, stdin in place": (("normalize", "-i"), "cannot be written back"),
    "normalize, stdin twice": (("normalize", "--check", "-", "-"), "only once"),
    "profiles, unknown": (("profiles", "lama-3"), "Did you mean 'llama-3'"),
    "NUL in a name": (("align", "a\0b"), "not a file name"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_2(run, prompt, name, tmp_path):
    args, words = BAD[name]
    before = sorted(tmp_path.iterdir())
    done = run(*(prompt if arg == "FILE" else arg for arg in args))
    assert done.code == 2
    assert done.out == b""
    assert done.err.startswith("phaseguard: error: ")
    assert done.err.count("\n") == 1
    assert words in done.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("stdin", "args", "words"),
    [
        (b"", (), "empty"),
        (b"ok\n\xff\xfe", (), "not UTF-8: byte 0xff at offset 3, line 2"),
        (b'{"messages": [\n  {"role" "user"}]}', ("--messages",), "line 2, column 11"),
        (b"[]", ("--messages",), "no messages"),
        (b'{"a": 1}', ("--messages",), "'messages' key"),
        (b'[{"content": "x"}]', ("--messages",), "has no 'role'"),
        (b"[" * 100_000, ("--messages",), "JSON"),
        (b'[{"role": "user", "content": "' + b"\\ud800" + b'"}]', ("--messages",), "surrogate"),
        (b"17", ("--messages",), "not int"),
    ],
)
def test_bad_stdin_is_one_line_and_exit_code_2(run, stdin, args, words):
    done = run("align", *args, *V41, stdin=stdin)
    assert done.code == 2
    assert done.out == b""
    assert done.err.startswith("phaseguard: error: ")
    assert done.err.count("\n") == 1
    assert words in done.err


def test_error_lines_carry_no_control_characters(run):
    done = run("align", "--key", "\x1b[31mred\u202e", stdin=TEXT.encode())
    assert done.code == 2
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err


@pytest.mark.parametrize(
    "args",
    [
        ("align", "--nope"),
        ("align", "--pads", "blue"),
        ("align", "--frozen", "x"),
        ("align", "a.md", "b.md"),
        ("align", "--key"),
        ("frob",),
        ("normalize", "--level", "x"),
    ],
)
def test_usage_errors_are_one_line_and_exit_code_2(run, args):
    done = run(*args)
    assert done.code == 2
    assert done.out == b""
    assert re.fullmatch(r"phaseguard: error: .+\. See phaseguard.* --help\.\n", done.err)
    assert "Value error" not in done.err


def test_help_and_version_are_exit_code_0_and_no_arguments_are_not(run):
    for args in (("--help",), ("align", "-h"), ("--version",)):
        done = run(*args)
        assert (done.code, done.err) == (0, "")
        assert b"phaseguard" in done.out
    done = run()
    assert done.code == 2
    assert b"align" in done.out


def test_messages_that_are_read_as_text_are_pointed_out(run):
    messages = json.dumps([{"role": "user", "content": TEXT}]).encode()
    assert "give --messages" in run("align", *KEY, *V41, stdin=messages).err
    assert "give --messages" not in run("align", "--messages", *KEY, *V41, stdin=messages).err
    assert "give --messages" not in run("align", *KEY, *V41, stdin=b"[1] PROVOCATIVE-8417").err
    json.loads(run("align", *KEY, *V41, "--report", "json", stdin=messages).err)


@pytest.mark.parametrize("name", ["llama-3", "deepseek-v3"])
@pytest.mark.parametrize("report", ["text", "json"])
def test_align_for_a_model_without_phases_only_normalizes(run, name, report):
    done = run("align", "--key", "line", "-p", name, "--report", report, stdin=UNTIDY.encode())
    assert (done.code, done.out) == (0, normalize(UNTIDY).text.encode())
    assert f"{name} has no phase" in done.err


def test_no_traceback_for_an_unwritable_stdout(prompt):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with Path("/dev/full").open("wb") as full:
        done = process("align", prompt, *KEY, *V41, "--report", "none", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1
    assert b"cannot be written: No space left" in done.stderr


# inspect


def test_inspect_marks_answers_and_leaves_out_the_rest(run, tmp_path):
    filler = "Nothing of interest stands in this line.\n\n"
    path = tmp_path / "long.md"
    path.write_text(filler * 100 + TEXT + filler * 100)
    done = run("inspect", str(path), *KEY, *V41)
    text = done.out.decode()
    assert done.code == 0
    assert "⟦ PRO|V|OC|ATIVE|-|841|7⟧ phase" in text
    assert " tokens …" in text
    assert len(text) < 6000
    assert len(run("inspect", str(path), *KEY, *V41, "--all").out) > len(filler) * 200


def test_inspect_lets_no_control_character_through(run):
    done = run("inspect", *KEY, *V41, stdin=("\x1b[31m \x07[bold]x[/bold] " + TEXT).encode())
    assert b"\x1b" not in done.out
    assert b"\x07" not in done.out
    assert b"[bold]x[/bold]" in done.out


def test_inspect_page_is_written_whole(run, prompt, tmp_path):
    page = tmp_path / "page.html"
    done = run("inspect", prompt, *KEY, *V41, "--html", str(page))
    assert (done.code, done.out) == (0, b"")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert run("inspect", prompt, *KEY, *V41, "--html", "-").out.startswith(b"<!DOCTYPE html>")


def test_inspect_messages(run):
    messages = json.dumps([{"role": "user", "content": TEXT}])
    assert "⟦" in run("inspect", "--messages", *KEY, *V41, stdin=messages.encode()).out.decode()


def test_colours_only_for_a_terminal_that_wants_them(prompt):
    command = ("inspect", prompt, *KEY, *V41)
    plain = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}
    piped = process(*command, stdout=subprocess.PIPE, env=plain)
    forced = process(
        *command, stdout=subprocess.PIPE, env={**plain, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    )
    without = process(
        *command, stdout=subprocess.PIPE, env={**plain, "FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm"}
    )
    assert b"\x1b[" not in piped.stdout
    assert b";48;" in forced.stdout or b"[48;" in forced.stdout
    assert b"48;5" not in without.stdout
    assert b"48;2" not in without.stdout


# normalize


def test_normalize_writes_the_normalized_text(run):
    done = run("normalize", stdin=UNTIDY.encode())
    assert done.out.decode() == normalize(UNTIDY).text != UNTIDY
    assert (done.code, done.err) == (0, "")
    assert run("normalize", "--level", "off", stdin=UNTIDY.encode()).out.decode() == UNTIDY


def test_normalize_check_lists_lines_and_rules(run, tmp_path):
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("Tidy.\n")
    bad.write_text(UNTIDY)
    done = run("normalize", "--check", str(good), str(bad))
    lines = done.out.decode().splitlines()
    assert done.code == 1
    assert len(lines) == len(normalize(UNTIDY).edits)
    assert all(line.startswith(f"{bad}:") for line in lines)
    assert "1 of 2 files would change" in done.err
    assert bad.read_text() == UNTIDY
    assert run("normalize", "--check", str(good)).code == 0


def test_normalize_diff_applies(run, tmp_path):
    path = tmp_path / "bad.md"
    path.write_text(UNTIDY)
    done = run("normalize", "--diff", str(path))
    assert done.code == 0
    patched = subprocess.run(["patch", "-o", "-", str(path)], input=done.out, capture_output=True, check=True)
    assert patched.stdout.decode() == normalize(UNTIDY).text
    assert run("normalize", "--diff", "--check", str(path)).code == 1


def test_normalize_in_place_touches_only_what_changes(run, tmp_path):
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("Tidy.\n")
    bad.write_bytes(UNTIDY.encode())
    inode = good.stat().st_ino
    done = run("normalize", "-i", str(good), str(bad))
    assert (done.code, done.out) == (0, b"")
    assert bad.read_text() == normalize(UNTIDY).text
    assert good.stat().st_ino == inode
    assert run("normalize", "--check", str(good), str(bad)).code == 0


def test_normalize_in_place_writes_nothing_when_one_file_is_bad(run, tmp_path):
    bad = tmp_path / "bad.md"
    bad.write_text(UNTIDY)
    assert run("normalize", "-i", str(bad), str(tmp_path / "missing.md")).code == 2
    assert bad.read_text() == UNTIDY


# profiles, version, process


def test_profiles_tell_apart_how_they_are_known(run):
    text = run("profiles").out.decode()
    rows = {line.split()[0]: line for line in text.splitlines() if line[:1].isalpha()}
    assert "reported order" in rows["deepseek-v4.1-flash"]
    assert "only a gap" in rows["deepseek-v4-flash"]
    assert "no phase" in rows["llama-3"]
    assert "shipped" in rows["llama-3"]


def test_profiles_tell_whether_entries_overlap(run):
    assert "4, 128, an entry pools the chunk before" in run("profiles", "deepseek-v4-flash").out.decode()
    assert "2, without overlap" in run("profiles", "deepseek-v4.1-flash").out.decode()
    assert "overlap" not in run("profiles", "llama-3").out.decode()


def test_profiles_of_the_user_are_marked_and_broken_ones_named(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PHASEGUARD_PROFILES", str(tmp_path))
    strength = {"mean": [0.2, 0.9], "low": [0.1, 0.8], "high": [0.3, 0.95], "n": 50}
    mine = {
        "name": "mine",
        "tokenizer": "deepseek-v4",
        "period": 2,
        "strengths": {"1": strength},
        "provenance": {"kind": "measured", "source": "my endpoint", "date": "2026-11-01"},
    }
    (tmp_path / "mine.json").write_text(json.dumps(mine))
    (tmp_path / "broken.json").write_text("{")
    text = run("profiles").out.decode()
    assert "measured on an endpoint on 2026-11-01" in " ".join(text.split())
    assert "broken" in text
    assert "0.90 [0.80, 0.95]" in run("profiles", "mine").out.decode()
    listed = {row["name"]: row for row in json.loads(run("profiles", "--json").out)}
    assert listed["mine"]["origin"] == "user"
    assert listed["broken"]["profile"] is None
    assert json.loads(run("profiles", "mine", "--json").out)["period"] == 2


def test_version_and_help(run):
    assert run("--version").out.decode().strip() == f"phaseguard {__version__}"
    for command in ((), ("align",), ("inspect",), ("normalize",), ("profiles",)):
        done = run(*command, "--help")
        assert done.code == 0
        assert b"Exit codes" in done.out
    assert run().code == 2


def test_help_shows_brackets_as_they_are_typed(run):
    assert b"[[so]]" in run("calibrate", "--help").out


def test_a_reader_that_goes_away_is_no_error(prompt):
    code = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, '-m', 'phaseguard', *sys.argv[1:]],"
        "stdout=subprocess.PIPE, stderr=subprocess.PIPE); p.stdout.close(); print(p.stderr.read())"
    )
    command = [sys.executable, "-c", code, "inspect", prompt, *KEY, *V41, "--all"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "b''"


def test_a_terminal_without_unicode_stops_nothing(prompt):
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = process("inspect", prompt, *KEY, *V41, capture_output=True, env=env)
    assert done.returncode == 0
    assert done.stderr == b""


def test_an_error_of_our_own_is_no_finding(prompt):
    code = (
        "import phaseguard.cli as cli\n"
        "def fail(args=None): raise RuntimeError('a bug')\n"
        "cli.main = fail\n"
        "cli.run()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 3
    assert b"RuntimeError: a bug" in done.stderr


def test_installed_script_runs(prompt):
    script = Path(sys.executable).with_name("phaseguard")
    if not script.exists():
        pytest.skip("phaseguard is not installed beside this Python")
    done = subprocess.run([script, "--version"], capture_output=True, check=True, text=True)
    assert done.stdout == f"phaseguard {__version__}\n"
