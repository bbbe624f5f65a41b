"""``phaseguard ask`` against a real server: what is sent, what is shown, exit codes, and no key anywhere."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from phaseguard.cli import main
from phaseguard.cli_ask import with_question
from phaseguard.ensemble import make_layouts
from phaseguard.errors import InputError
from phaseguard.testing import Completion, Fault, ScriptedEngine, Server, ToolCall, assert_phases

SECRET = "sk-secret-0123456789abcdef"
TEXT = "The door code is A-17.\n\nThe vault code is B-8417.\n"
QUESTION = "Which is the vault code?"
ASKED = f"{TEXT.rstrip()}\n\n{QUESTION}"
MODEL = ("--model", "test-model")
KEYED = ("--question", QUESTION, "--key", "The vault code is B-8417.", "--strong", "2,3", *MODEL)
SURE = Completion("B-8417", tokens=("B-", "8417"), logprobs=(-0.01, -0.01))
UNSURE = Completion("A-17", tokens=("A-", "17"), logprobs=(-0.7, -0.7))


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def verdict(self) -> Any:
        return json.loads(self.out)["verdict"]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OTHER_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PHASEGUARD_API_KEY", SECRET)


@pytest.fixture
def prompt(tmp_path: Path) -> str:
    path = tmp_path / "prompt.md"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    shown: list[str] = []

    def call(server: Server | str, *args: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(["ask", "--base-url", server if isinstance(server, str) else server.url, *args])
        seen = capsysbinary.readouterr()
        shown.extend((seen.out.decode(), seen.err.decode()))
        return Outcome(code, *shown[-2:])

    yield call
    assert all(SECRET not in one for one in shown), "the key was shown"


def test_the_strongest_layouts_are_asked_and_vote(run: Run, prompt: str) -> None:
    with Server(ScriptedEngine("B-8417"), key=SECRET) as server:
        done = run(server, prompt, *KEYED)
        layouts = make_layouts(ASKED, key_passages="The vault code is B-8417.", strong={2, 3}).layouts
        assert [call.texts for call in server.calls] == [(layout.prompt,) for layout in layouts[:2]]
        for call in server.calls:
            assert_phases(call, "The vault code is B-8417.", {2, 3}, "deepseek-v4-flash")
            assert (call.body["model"], call.body["temperature"]) == ("test-model", 0)
    assert done.code == 0
    assert done.out.endswith("answer  B-8417\n")
    assert "2 calls; no further ballot changes the winner" in done.out
    assert done.err.splitlines() == [
        "phaseguard: 4 layouts, phase of the answer 2, 3, 0, 1 of 4; strong phases: 2, 3",
        "phaseguard: calls    2 at least, 4 at most",
        *[line for line in done.err.splitlines() if line.startswith("phaseguard: tokens")],
        "phaseguard: answer   B-8417 in 'The vault code is B-8417.', given",
        "1 of 4 calls: answered",
        "2 of 4 calls: answered",
    ]


def test_json_holds_forecast_ballots_and_verdict(run: Run, prompt: str) -> None:
    replies = ["The code: B-8417", "The code: A-17", "No idea.", "The code: b-8417."]
    with Server(ScriptedEngine(replies, profile="deepseek-v4-flash")) as server:
        done = run(server, prompt, *KEYED, "--json", "--stop", "all", "--extract", r"code: (\S+)")
    verdict = done.verdict
    assert (verdict["answer"], verdict["support"], verdict["counted"], verdict["tie"]) == (
        "B-8417",
        2,
        3,
        False,
    )
    assert [vote["answer"] for vote in verdict["votes"]] == ["B-8417", "A-17", None, "b-8417."]
    assert [vote["phase"] for vote in verdict["votes"]] == [2, 3, 0, 1]
    assert verdict["votes"][2]["error"] == "a reply without an answer"
    assert verdict["cost"]["tokens"] == sum(vote["tokens"] for vote in verdict["votes"])
    forecast = json.loads(done.out)["forecast"]
    assert forecast["calls"] == {"least": 4, "expected": None, "most": 4}
    assert [one["tokens"] for one in forecast["layouts"]] == [27, 28, 29, 30]


def test_layouts_without_a_key_passage_are_not_passed_off_as_phases_of_an_answer(
    run: Run, prompt: str
) -> None:
    said = "no key passage was found"
    assert said in run("http://127.0.0.1:9", prompt, "--question", "Why?", *MODEL, "--dry-run").err
    assert said not in run("http://127.0.0.1:9", prompt, "--question", QUESTION, *MODEL, "--dry-run").err
    without = ("--question", "Why?", "--profile", "llama-3", *MODEL, "--dry-run")
    assert said not in run("http://127.0.0.1:9", prompt, *without).err


def test_a_dry_run_asks_nothing_and_needs_no_key(
    run: Run, prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PHASEGUARD_API_KEY")
    prices = ("--price-input", "1000", "--price-output", "2000", "--answer-tokens", "5")
    with Server(ScriptedEngine("B-8417")) as server:
        plain = run(server, prompt, *KEYED, *prices, "--dry-run")
        made = run(server, prompt, *KEYED, *prices, "--dry-run", "--json")
        assert server.calls == ()
    found = "phaseguard: answer   B-8417 in 'The vault code is B-8417.', given\n"
    assert (plain.code, plain.err, made.err) == (0, found, found)
    assert "cost     0.075000 at least, 0.154000 at most" in plain.out
    forecast = json.loads(made.out)["forecast"]
    assert forecast["cost"] == {"least": 0.075, "expected": None, "most": 0.154}


def test_agreement_that_cannot_be_had_is_said(run: Run, prompt: str) -> None:
    with Server(ScriptedEngine("B-8417")) as server:
        done = run(server, prompt, "--question", QUESTION, *MODEL, "--stop", "agree")
        assert done.code == 0
        assert "--stop agree can do nothing here: it needs two strong phases, and 0 are known" in done.err
        assert len(server.calls) == 2, "it settles instead"
        server.reset()
        told = run(server, prompt, *KEYED, "--stop", "agree")
        assert "can do nothing" not in told.err
        assert "two strong phases agree" in told.out


def test_a_probability_stops_and_is_asked_for(run: Run, prompt: str) -> None:
    with Server(ScriptedEngine([UNSURE, SURE])) as server:
        done = run(
            server, prompt, *KEYED, "--json", "--rule", "probability", "--stop", "0.9", "--stop", "agree"
        )
        assert [call.body["logprobs"] for call in server.calls] == [True, True]
    assert (done.verdict["answer"], done.verdict["ended"]) == ("B-8417", "probability")
    assert done.verdict["confidence"]["kind"] == "probability"


def test_an_endpoint_without_probabilities_is_one_line(run: Run, prompt: str) -> None:
    with Server(ScriptedEngine(SURE), faults=lambda call: Fault("no-logprobs")) as server:
        done = run(server, prompt, *KEYED, "--stop", "0.9")
    assert (done.code, done.out) == (2, "")
    assert "has no probability" in done.err


def test_a_tie_is_reported_only_when_asked(run: Run, prompt: str) -> None:
    for more, code, ending in (((), 0, "answer  A\n"), (("--report-ties",), 1, "tie between: A; B\n")):
        with Server(ScriptedEngine(["A", "B", "B", "A"])) as server:
            done = run(server, prompt, *KEYED, "--stop", "all", *more)
        assert done.code == code
        assert done.out.endswith(ending)


def test_a_failed_call_is_a_row_and_all_failed_is_exit_code_1(run: Run, prompt: str) -> None:
    with Server(ScriptedEngine("B-8417"), faults=lambda call: Fault("empty-choices")) as server:
        done = run(server, prompt, *KEYED)
        assert done.code == 1
        assert "layouts 0, 1, 2, 3: InputError: The completion has no choices" in done.out
        assert done.err.endswith("phaseguard: error: none of 4 calls gave an answer.\n")
        made = run(server, prompt, *KEYED, "--json")
        assert made.code == 1
        assert (made.verdict, len(json.loads(made.out)["votes"])) == (None, 4)
    some = ScriptedEngine("B-8417")
    with Server(some, faults=lambda call: Fault("empty-choices") if call.number == 1 else None) as server:
        done = run(server, prompt, *KEYED, "--stop", "all")
    assert done.code == 0
    assert "3 of 3 ballots" in done.out


def test_the_key_is_sent_and_never_shown(run: Run, prompt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", SECRET)
    monkeypatch.delenv("PHASEGUARD_API_KEY")
    echo = f"The key is {SECRET}."

    def told(body: Any) -> str:
        return echo

    with Server(ScriptedEngine(told), key=SECRET) as server:
        for more in ((), ("--json",)):
            done = run(server, prompt, *KEYED, "--api-key-env", "OTHER_KEY", *more)
            assert done.code == 0
            assert "The key is (hidden)." in done.out
        refused = run(server, prompt, *KEYED)
        assert refused.code == 1
        assert "no key in PHASEGUARD_API_KEY or OPENAI_API_KEY" in refused.err
        assert "401" in refused.out


def test_an_error_that_repeats_the_key_is_shown_without_it(run: Run, prompt: str) -> None:
    def refuse(body: Any) -> str:
        raise InputError(f"Incorrect API key provided: {SECRET}, also written {SECRET[:6]}****{SECRET[-4:]}.")

    with Server(ScriptedEngine(refuse)) as server:
        for more in ((), ("--json",)):
            done = run(server, prompt, *KEYED, *more)
            assert done.code == 1
            assert SECRET[-4:] not in done.out + done.err
            assert "(hidden)" in done.out


def test_messages_and_payloads_are_asked_as_they_are(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "payload.json"
    tools = [
        {"type": "function", "function": {"name": "open", "parameters": {"type": "object", "properties": {}}}}
    ]
    messages = [{"role": "user", "content": TEXT}]
    more = {"model": "test-model", "stream": True, "stream_options": {"include_usage": True}, "seed": 7}
    path.write_text(
        json.dumps({"messages": messages, "tools": tools, "thinking": {"type": "disabled"}, **more})
    )
    engine = ScriptedEngine(Completion(None, tool_calls=(ToolCall("open", '{"code": "B-8417", "a": 1}'),)))
    with Server(engine) as server:
        options = ("--option", "max_tokens=20", "--option", "user=me", "--option", "temperature=0.5")
        done = run(server, str(path), "--messages", "--question", QUESTION, *options, "--json")
        body = server.calls[0].body
    assert done.verdict["answer"] == '[["open",{"a":1,"code":"B-8417"}]]'
    (message,) = body["messages"]
    assert message["content"].endswith(f"\n\n{QUESTION}")
    assert {vote["phase"] for vote in done.verdict["votes"]} == {0, 1}, "the passage was found"
    assert (body["tools"], body["thinking"], body["seed"], body["max_tokens"]) == (
        tools,
        {"type": "disabled"},
        7,
        20,
    )
    assert (body["user"], body["temperature"]) == ("me", 0.5)
    assert "stream_options" not in body
    assert not body.get("stream")


def test_options_reach_the_ensemble(run: Run, prompt: str) -> None:
    with Server(ScriptedEngine(list("ABCD"))) as server:
        done = run(server, prompt, *KEYED, "--layouts", "3", "--max-calls", "2", "--stop", "all", "--json")
        assert (len(done.verdict["votes"]), done.verdict["ended"]) == (2, "budget")
        assert len(json.loads(done.out)["forecast"]["layouts"]) == 3
    with Server(ScriptedEngine("A"), faults=lambda call: Fault.delay(5.0)) as server:
        late = run(server, prompt, *KEYED, "--max-calls", "1", "--timeout", "0.05")
        assert late.code == 1
        assert "no answer within 0.05 s" in late.out
    with Server(ScriptedEngine("A")) as server:
        run(server, prompt, *KEYED, "--repeat", "--max-calls", "1")
        assert server.calls[0].texts[0].count("The vault code is B-8417.") == 1, "the window holds it already"
        assert run(server, "-", *KEYED, stdin=TEXT.encode()).code == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--question", "x"), "--model: say which model"),
        ((*MODEL, "--extract", "answer-si"), "Did you mean 'answer-is'?"),
        ((*MODEL, "--extract", "("), "is no pattern"),
        ((*MODEL, "--stop", "setled"), "Did you mean 'settled'?"),
        ((*MODEL, "--stop", "2"), "a probability above 0"),
        ((*MODEL, "--option", "max_tokens"), "give NAME=JSON"),
        ((*MODEL, "--price-input", "1"), "both --price-input and --price-output"),
        ((*MODEL, "--api-key-env", "OTHER_KEY"), "the environment has no key of that name"),
        ((*MODEL, "--base-url", "127.0.0.1:80"), "starts with http"),
        ((*MODEL, "--rule", "loudest"), "'loudest'"),
        ((*MODEL, "--key", "not there"), "--key"),
        ((*MODEL, "--profile", "deepseek"), "deepseek"),
    ],
)
def test_bad_input_is_one_line_and_asks_nothing(
    run: Run, prompt: str, args: tuple[str, ...], words: str
) -> None:
    with Server(ScriptedEngine("A")) as server:
        done = run(server, prompt, *args)
        assert server.calls == ()
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.splitlines()[-1].startswith("phaseguard: error: ")


def test_a_missing_client_names_its_extra(run: Run, prompt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    done = run("http://127.0.0.1:9/v1", prompt, *KEYED)
    assert done.code == 2
    assert "pip install 'phaseguard[openai]'" in done.err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "Why?"),
        ("A.\n\n\n", "A.\n\nWhy?"),
        (
            [{"role": "system", "content": "S"}],
            [{"role": "system", "content": "S"}, {"role": "user", "content": "Why?"}],
        ),
        (
            [{"role": "user", "content": "A.", "name": "x"}],
            [{"role": "user", "content": "A.\n\nWhy?", "name": "x"}],
        ),
        (
            [{"role": "user", "content": []}],
            [{"role": "user", "content": [{"type": "text", "text": "Why?"}]}],
        ),
        ({"messages": [], "seed": 1}, {"messages": [{"role": "user", "content": "Why?"}], "seed": 1}),
        ({"seed": 1}, {"seed": 1}),
    ],
)
def test_a_question_stands_behind_the_prompt(before: Any, after: Any) -> None:
    assert with_question(before, "Why?") == after
    assert with_question(before, None) is before


def test_as_a_process_nothing_but_the_server_sees_the_key(prompt: str, tmp_path: Path) -> None:
    environment = {**os.environ, "OPENAI_API_KEY": SECRET, "OPENAI_LOG": "debug", "HOME": str(tmp_path)}
    environment.pop("PHASEGUARD_API_KEY")
    with Server(ScriptedEngine("B-8417"), key=SECRET) as server:
        command = [sys.executable, "-m", "phaseguard", "ask", prompt, *KEYED, "--stop", "agree"]
        done = subprocess.run(
            [*command, "--base-url", server.url],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert len(server.calls) == 2
    assert done.returncode == 0
    assert done.stdout.decode().endswith("answer  B-8417\n")
    assert SECRET.encode() not in done.stdout + done.stderr
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_help_says_what_exit_codes_mean_and_has_no_option_for_a_key(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["ask", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no call gave an answer, or a tie is reported" in said
    assert "--api-key-env" in said
    assert "--api-key " not in said
