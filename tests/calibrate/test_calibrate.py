"""Calibrating from the first call to the saved profile, mostly over HTTP."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from phaseguard import align_prompt
from phaseguard.calibrate import (
    Calibration,
    LabEndpoint,
    LabLanguage,
    OpenAIEndpoint,
    Outcome,
    Plan,
    Prices,
    Reply,
    StandardLanguage,
    calibrate,
    lab_profile,
    make_plan,
)
from phaseguard.calibrate.endpoint import TokenChoice
from phaseguard.calibrate.record import Results
from phaseguard.calibrate.runner import Run
from phaseguard.calibrate.shifts import Shifter
from phaseguard.errors import EndpointError, InputError
from phaseguard.lab.cases import draw_cases
from phaseguard.profiles import load_profile, read_profile, user_folder
from phaseguard.testing import Call, Completion, Fault, LabEngine, ScriptedEngine, Server
from tests.calibrate.planted import PlantedEngine

MODEL = "test-model"
PROVIDER = "here"  # whatever port it has: a run goes on with it
FEW = {"periods": range(2, 9), "items": 12}
SMALL = {"prompt_tokens": 100, "answer_tokens": 1, "periods": range(2, 9), "controls": False}
CHAT = load_profile("deepseek-v4-flash")


def over_http(
    model: str, engine: Any = None, *, faults: Any = None, timeout: float = 30.0, **more: Any
) -> Calibration:
    with (
        Server(engine or LabEngine(model), faults=faults) as server,
        OpenAIEndpoint(server.url, MODEL, timeout=timeout, provider=PROVIDER) as endpoint,
    ):
        return calibrate(
            endpoint,
            lab_profile(model),
            language=LabLanguage.of(model),
            **{"save": False, "controls": False, **more},
        )


def in_process(model: str, **more: Any) -> Calibration:
    language = LabLanguage.of(model)
    return calibrate(
        LabEndpoint(model), lab_profile(model), language=language, **{"save": False, **FEW, **more}
    )


def prompts(server: Server) -> list[str]:
    return [text for call in server.calls for text in call.texts]


def test_stride_4_is_found_over_http_through_a_prefix_with_wrong_answers_and_faults() -> None:
    faults = {
        3: Fault.rate_limited(),
        20: Fault("disconnect"),
        30: Fault.delay(4.0),
        40: Fault.status(500, 0.01),
    }
    engine = LabEngine("chunk4-s0", prefix=3, wrong=0.05)
    found = over_http("chunk4-s0", engine, faults=lambda call: faults.get(call.number), timeout=2.0, **FEW)
    assert (found.judgement.verdict, found.judgement.period) == ("effect", 4)
    assert found.check.unexplained == 3
    assert found.profile is not None
    assert found.profile.prefix_offset == 3
    means = [accuracy.mean for accuracy in found.strengths["1"]]
    assert means[0] < 0.3
    assert min(means[1:]) > 0.6
    assert 0 not in found.strong
    assert 2 in found.strong


def test_no_effect_of_full_attention_over_http_is_period_1() -> None:
    found = over_http("full-s0", periods=(2, 4), items=30)
    assert (found.judgement.verdict, found.judgement.period) == ("no effect", 1)
    assert found.profile is not None
    assert (found.profile.period, found.profile.strengths) == (1, None)
    assert found.profile.provenance.kind == "measured"
    assert found.judgement.excluded < 20
    assert any("little room" in note for note in found.notes)


def test_a_planted_effect_of_period_2_is_found_in_english_by_chat_with_reasoning() -> None:
    """No shipped model of stride 2 shows an effect with short answers: this one is planted."""
    base = CHAT.with_(reasoning="high")
    language = StandardLanguage(base, context=500)
    with (
        Server(PlantedEngine(base, (0.4, 1.0), extra=2)) as server,
        OpenAIEndpoint(server.url, MODEL) as endpoint,
    ):
        found = calibrate(
            endpoint, base, language=language, periods=(2, 3, 4), items=24, save=False, controls=False
        )
        body = server.calls[0].body
    assert (found.judgement.verdict, found.judgement.period) == ("effect", 2)
    assert found.check.prefix_offset == 2
    # the engine knows nothing of its two hidden tokens, so phases agree only as they are even
    assert found.strong == (1,)
    assert body["thinking"] == {"type": "enabled"}
    assert body["reasoning_effort"] == "high"
    assert found.profile is not None
    assert set(found.profile.strengths or {}) == {"2"}
    assert found.profile.reasoning == "high"


def test_every_prompt_is_asked_once_in_random_order() -> None:
    with (
        Server(LabEngine("chunk4-s0")) as server,
        OpenAIEndpoint(server.url, MODEL, concurrency=1) as endpoint,
    ):
        language = LabLanguage.of("chunk4-s0")
        calibrate(
            endpoint,
            lab_profile("chunk4-s0"),
            language=language,
            save=False,
            controls=True,
            items=9,
            periods=(2, 4),
        )
        asked = prompts(server)
    assert max(Counter(asked).values()) == 1
    lengths = [len(text) for text in asked[4:16]]
    assert lengths != sorted(lengths)


def test_a_profile_is_saved_and_used_from_then_on(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PHASEGUARD_PROFILES", str(tmp_path))
    found = in_process("chunk4-s0", save=True, name="My lab", command="phaseguard calibrate ...")
    assert found.path == user_folder() / "My-lab.json"
    saved = read_profile(found.path)
    assert saved == found.profile
    assert saved.provenance.kind == "measured"
    assert saved.provenance.command == "phaseguard calibrate ..."
    assert "chunk4-s0 at phaseguard-lab, reasoning off" in saved.provenance.source
    assert saved.strengths is not None
    assert saved.strengths["1"].n == 12
    language = LabLanguage.of("chunk4-s0", seed=5)
    item = language.draw(0, "records")
    out = align_prompt(
        item.text,
        key_passages=[item.record.of(item.text)],
        answer=item.expected,
        profile="My-lab",
        tokenizer=language.tokenizer,
    )
    assert out.report.passages[0].spans[0].phase_after in found.strong
    assert out.report.provenance.kind == "measured"


def test_undecided_writes_no_profile_over_an_older_one(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PHASEGUARD_PROFILES", str(tmp_path))
    older = in_process("chunk4-s0", save=True, name="mine")
    assert older.path is not None
    before = older.path.read_bytes()
    found = in_process("csa4-s0", save=True, name="mine", items=6, periods=(3, 5))
    assert found.judgement.verdict == "undecided"
    assert found.profile is None
    assert found.path is None
    assert older.path.read_bytes() == before


def test_a_profile_of_another_provider_or_mode_is_never_replaced(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PHASEGUARD_PROFILES", str(tmp_path))
    model = "chunk4-s0"
    older = in_process(model, save=True, name="mine")
    assert older.path is not None
    before = older.path.read_bytes()
    endpoint, language, base = LabEndpoint(model), LabLanguage.of(model), lab_profile(model)
    with pytest.raises(InputError, match=r"measured at phaseguard-lab, reasoning off.*another name"):
        calibrate(endpoint, base.with_(reasoning="high"), language=language, name="mine", **FEW)
    endpoint.provider = "elsewhere"
    with pytest.raises(InputError, match="by one of elsewhere"):
        calibrate(endpoint, base, language=language, name="mine", **FEW)
    assert older.path.read_bytes() == before
    assert in_process(model, save=True, name="mine", seed=1).path == older.path


def test_controls_are_asked_after_an_effect() -> None:
    found = in_process("csa4-s0", items=40)
    assert found.judgement.period == 4
    assert set(found.controls) == {"inside", "behind", "filler"}
    assert found.controls["behind"].verdict != "effect"
    assert found.controls["inside"].verdict != "effect"
    assert found.strong[-1] == 3
    assert found.spent.calls <= found.plan.calls


def test_the_result_is_json() -> None:
    found = in_process("chunk4-s0", prices=Prices(1.0, 2.0))
    told = json.loads(json.dumps(found.to_dict()))
    assert told["judgement"]["period"] == 4
    assert told["profile"]["period"] == 4
    assert told["strong"] == list(found.strong)
    assert told["strengths"]["1"][2]["mean"] == found.strengths["1"][2].mean
    assert told["spent"]["cost"] == pytest.approx(
        found.spent.prompt_tokens / 1e6 + 2 * found.spent.calls / 1e6
    )
    assert sum(depth["n"] for depth in told["depths"]) == sum(1 for _ in range(12)) * 8 - _saved_calls(found)


def _saved_calls(found: Calibration) -> int:
    """Prompts that were not needed: after a verdict, items are asked at fewer shifts."""
    asked = found.plan.looks[1] * 8 + (12 - found.plan.looks[1]) * 4
    return 12 * 8 - asked


def test_the_plan_is_confirmed_before_anything_is_asked() -> None:
    plans: list[Plan] = []

    def refuse(plan: Plan) -> bool:
        plans.append(plan)
        return False

    with Server(LabEngine("full-s0")) as server, OpenAIEndpoint(server.url, MODEL) as endpoint:
        with pytest.raises(InputError, match="not confirmed"):
            calibrate(endpoint, lab_profile("full-s0"), language=LabLanguage.of("full-s0"), confirm=refuse)
        assert not server.calls
    assert plans[0].items == 60


def test_progress_is_told_of_every_answer() -> None:
    seen: list[tuple[int, int, str]] = []
    found = in_process("chunk4-s0", progress=lambda *told: seen.append(told))
    assert [done for done, _, _ in seen] == list(range(1, found.spent.calls + 1))
    assert {what for _, _, what in seen} >= {"check", "look 1 of 3", "strengths", "inside"}


def test_a_finished_run_is_not_asked_again(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    first = over_http("chunk4-s0", results=path, **FEW)
    lines = path.read_text()
    with (
        Server(LabEngine("chunk4-s0")) as server,
        OpenAIEndpoint(server.url, MODEL, provider=PROVIDER) as endpoint,
    ):
        again = calibrate(
            endpoint,
            lab_profile("chunk4-s0"),
            language=LabLanguage.of("chunk4-s0"),
            results=path,
            save=False,
            controls=False,
            **FEW,
        )
        assert not server.calls
    assert path.read_text() == lines
    assert again.judgement == first.judgement
    assert again.strengths == first.strengths
    assert any("No call was made" in note for note in again.notes)


def test_another_engine_on_the_same_machine_is_another_run(tmp_path) -> None:
    def found(model: str) -> Calibration:
        with Server(LabEngine(model)) as server, OpenAIEndpoint(server.url, MODEL) as endpoint:
            language, base = LabLanguage.of(model), lab_profile("chunk4-s0")
            return calibrate(
                endpoint, base, language=language, results=tmp_path / "r", save=False, controls=False, **FEW
            )

    assert found("chunk4-s0").judgement.verdict == "effect"
    with pytest.raises(InputError, match="another run: provider differ"):
        found("chunk4-s0")


def test_results_of_another_run_are_refused_before_anything_is_asked(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    over_http("chunk4-s0", results=path, **FEW)
    for change in ({"seed": 3}, {"periods": range(2, 8)}):
        with pytest.raises(InputError, match="another run"):
            over_http("chunk4-s0", results=path, **{**FEW, **change})


CHILD = """
import sys
from phaseguard.calibrate import LabLanguage, OpenAIEndpoint, calibrate, lab_profile
url, path = sys.argv[1:]
with OpenAIEndpoint(url, "test-model", concurrency=2) as endpoint:
    calibrate(endpoint, lab_profile("chunk4-s0"), language=LabLanguage.of("chunk4-s0"), results=path,
              save=False, controls=False, items=12, periods=range(2, 9))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL is of POSIX")
def test_a_killed_run_goes_on_without_asking_twice(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    whole = over_http("chunk4-s0", **FEW)
    with Server(LabEngine("chunk4-s0"), faults=lambda _: Fault.delay(0.03)) as server:
        child = subprocess.Popen([sys.executable, "-c", CHILD, server.url, str(path)], env={**os.environ})
        while len(server.calls) < 25 and child.poll() is None:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        assert child.wait(20) == -signal.SIGKILL
        kept = {json.loads(line)["request"] for line in path.read_bytes().split(b"\n")[1:-1]}
        assert 15 < len(kept) < 40
        server.wait_idle()
        before = len(server.calls)
        with OpenAIEndpoint(server.url, MODEL) as endpoint:
            found = calibrate(
                endpoint,
                lab_profile("chunk4-s0"),
                language=LabLanguage.of("chunk4-s0"),
                results=path,
                save=False,
                controls=False,
                **FEW,
            )
        later = prompts_of(server.calls[before:])
    assert found.spent.resumed == len(kept)
    assert len(later) == found.spent.calls - len(kept)  # what was kept is not asked again
    assert len(set(later)) == len(later)
    assert found.judgement == whole.judgement  # and the verdict is that of an undisturbed run
    assert found.strengths == whole.strengths


def prompts_of(calls: tuple[Call, ...]) -> list[str]:
    return [text for call in calls for text in call.texts]


def test_an_endpoint_that_goes_away_loses_nothing(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    with (
        Server(
            LabEngine("chunk4-s0"), faults=lambda call: Fault.status(500) if call.number > 15 else None
        ) as server,
        OpenAIEndpoint(server.url, MODEL, retries=0, provider=PROVIDER) as endpoint,
        pytest.raises(EndpointError, match=r"in a row failed.*answers are kept in"),
    ):
        calibrate(
            endpoint,
            lab_profile("chunk4-s0"),
            language=LabLanguage.of("chunk4-s0"),
            results=path,
            save=False,
            **FEW,
        )
    found = over_http("chunk4-s0", results=path, controls=True, **FEW)
    assert found.spent.resumed == 16
    assert found.judgement.period == 4


def test_a_key_that_is_refused_half_way_loses_nothing(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    faults = lambda call: Fault.status(401) if call.number > 30 else None  # noqa: E731
    with pytest.raises(EndpointError, match=r"key.*answers are kept in"):
        over_http("chunk4-s0", results=path, faults=faults, **FEW)
    assert len(path.read_text().splitlines()) > 20


def test_a_prompt_length_that_varies_stops_the_run() -> None:
    class Varying:
        def reply(self, body: Mapping[str, Any], path: str) -> Completion:
            done = LabEngine("full-s0").reply(body, path)
            return dataclasses.replace(done, prompt_tokens=(done.prompt_tokens or 0) * 2)

    with pytest.raises(EndpointError, match="varies"):
        over_http("full-s0", Varying(), **FEW)


def test_without_usage_it_goes_on_and_says_so() -> None:
    found = over_http("chunk4-s0", faults=lambda _: Fault("no-usage"), **FEW)
    assert found.check.unexplained is None
    assert found.judgement.period == 4
    assert "not checked" in found.notes[0]


def test_answers_without_text_stop_at_the_check() -> None:
    with pytest.raises(EndpointError, match="no text"):
        over_http("full-s0", ScriptedEngine(Completion("")), **FEW)


def test_an_endpoint_is_any_object_that_answers() -> None:
    class Own:
        model, provider, completions = "own", None, False

        def ask(self, questions):
            for question in questions:
                yield Outcome(question.number, Reply("never", (), None))

    language = StandardLanguage(CHAT, context=500)
    found = calibrate(Own(), CHAT, language=language, items=6, periods=(2, 3), save=False)
    assert found.judgement.phases[0].right == 0
    assert found.judgement.verdict != "effect"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "period", "strong", "weak", "items"),
    [("chunk4-s0", 4, 2, 0, 30), ("csa4-s0", 4, 3, 1, 60), ("chunk8-s0", 8, 6, 0, 60)],
)
def test_strides_and_strong_phases_over_http(model, period, strong, weak, items) -> None:
    engine = LabEngine(model, prefix=5, wrong=0.05)
    faults = lambda call: Fault.rate_limited() if call.number % 97 == 3 else None  # noqa: E731
    found = over_http(model, engine, faults=faults, items=items)
    assert (found.judgement.verdict, found.judgement.period) == ("effect", period)
    assert strong in found.strong
    assert weak not in found.strong
    assert found.check.prefix_offset == 5


@pytest.mark.slow
def test_full_attention_has_no_effect_over_http() -> None:
    found = over_http("full-s0", LabEngine("full-s0", wrong=0.05), items=80)
    assert found.judgement.verdict == "no effect"
    assert found.judgement.excluded < 20


@pytest.mark.slow
def test_the_gap_closes_with_the_profile_that_was_found() -> None:
    model = "csa4-s0"
    found = over_http(model, LabEngine(model, prefix=2), items=60)
    language = LabLanguage.of(model)
    cases = draw_cases(language.task, 200, period=4, window=8, seed=77)

    def prompt(case, **more) -> str:
        return align_prompt(
            case.prompt,
            key_passages=[case.record],
            answer=case.answer_text,
            profile=found.profile,
            isolate=False,
            tokenizer=language.tokenizer,
            **more,
        ).prompt

    with Server(LabEngine(model, prefix=2)) as server, OpenAIEndpoint(server.url, MODEL) as endpoint:
        from phaseguard.calibrate import Question

        def right(texts: list[str]) -> float:
            asked = [Question(n, text, 1) for n, text in enumerate(texts)]
            outcomes = {outcome.number: outcome.reply for outcome in endpoint.ask(asked)}
            return sum(outcomes[n].text == case.answer_text for n, case in enumerate(cases)) / len(cases)

        raw, aligned = right([case.prompt for case in cases]), right([prompt(case) for case in cases])
        worst = right([prompt(case, strong={1}) for case in cases])
    assert aligned > raw + 0.08
    assert aligned > worst + 0.12


class RefusesOne(LabEndpoint):
    """Never answers the first prompt of the first look."""

    refused: str | None = None

    def ask(self, questions):
        for question in questions:
            if self.refused is None and self.asked >= 4:  # behind the check
                self.refused = question.prompt
            self.asked += 1
            if question.prompt == self.refused:
                self.times += 1
                yield Outcome(question.number, None, "no")
            else:
                yield from super().ask([question])

    asked = times = 0


def test_a_prompt_without_an_answer_counts_once_however_often_it_is_asked() -> None:
    endpoint = RefusesOne("full-s0")
    found = calibrate(
        endpoint,
        lab_profile("full-s0"),
        language=LabLanguage.of("full-s0"),
        save=False,
        controls=False,
        **FEW,
    )
    assert endpoint.times > 2, "each look asks again"
    assert any(note.startswith("1 prompts have no answer") for note in found.notes)


class RefusesSome(LabEndpoint):
    """Never answers some prompts."""

    refused: frozenset[str] = frozenset()

    def ask(self, questions):
        for question in questions:
            if question.prompt in self.refused:
                yield Outcome(question.number, None, "no")
            else:
                yield from super().ask([question])


def test_prompts_that_stay_without_an_answer_do_not_end_a_run_whose_rest_is_there() -> None:
    """Behind the last look only these are left to ask: three of three fail, and of 480 that is few."""
    model = "csa4-s0"
    language, endpoint = LabLanguage.of(model), RefusesSome(model)
    base = lab_profile(model)
    shifters = [Shifter(language.draw(n, "records"), base, 8, language.tokenizer) for n in range(3)]
    endpoint.refused = frozenset(shifter.at(1).prompt for shifter in shifters)
    run = Run(endpoint, language, base, make_plan(items=60, **SMALL), Results(None, {}), max_tokens=1)
    run.check()
    for number in range(3):
        run.look(number)
    run.strengths(4)
    assert run.missing == 3


def test_a_resumed_run_lives_with_the_failures_that_a_whole_one_lives_with(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    in_process("full-s0", results=path, controls=False)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"item": 0, "shift": 1,' not in line))
    endpoint, language, base = RefusesSome("full-s0"), LabLanguage.of("full-s0"), lab_profile("full-s0")
    shifter = Shifter(language.draw(0, "records"), base, 8, language.tokenizer)
    endpoint.refused = frozenset([shifter.at(1).prompt])
    found = calibrate(endpoint, base, language=language, results=path, save=False, controls=False, **FEW)
    assert any(note.startswith("1 prompts have no answer") for note in found.notes)


class SureByPhase(LabEndpoint):
    """Always right with full attention, and surer at phase 0 of 4."""

    def ask(self, questions):
        for question in questions:
            (ids,) = LabLanguage.of("full-s0").tokenizer.encode_ids([question.prompt])
            phase = (ids.tolist().index(ids[-1]) + 1) % 4
            (outcome,) = super().ask([question])
            text = outcome.reply.text
            choice = TokenChoice(text, {text: -0.1, "other": 2.0 * phase - 9})
            yield dataclasses.replace(outcome, reply=dataclasses.replace(outcome.reply, choices=(choice,)))


def test_an_effect_that_accuracy_does_not_show_is_said_not_to_tell_phases_apart() -> None:
    base, language = lab_profile("full-s0"), LabLanguage.of("full-s0")
    found = calibrate(SureByPhase("full-s0"), base, language=language, save=False, controls=False, **FEW)
    assert (found.judgement.verdict, found.strong) == ("effect", (0, 1, 2, 3))
    assert any("no phase is told from the best" in note for note in found.notes)
    assert not any("told from the best" in note for note in in_process("chunk4-s0", controls=False).notes)


def test_a_prefix_that_comes_later_stops_the_run() -> None:
    class Later:
        def __init__(self) -> None:
            self.asked = 0

        def reply(self, body: Mapping[str, Any], path: str) -> Completion:
            self.asked += 1
            done = LabEngine("chunk4-s0").reply(body, path)
            more = 3 if self.asked > 20 else 0
            return dataclasses.replace(done, prompt_tokens=(done.prompt_tokens or 0) + more)

    with pytest.raises(EndpointError, match=r"in a row failed.*unlike in the check calls"):
        over_http("chunk4-s0", Later(), **FEW)


def test_a_resumed_run_sees_that_the_prefix_changed(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    over_http("chunk4-s0", LabEngine("chunk4-s0", prefix=2), results=path, **FEW)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:30]))
    with pytest.raises(EndpointError, match=r"unlike in the check calls"):
        over_http("chunk4-s0", LabEngine("chunk4-s0", prefix=3), results=path, **FEW)


def test_a_run_interrupted_while_it_keeps_an_answer_keeps_those_under_way(tmp_path) -> None:
    path, told = tmp_path / "r.jsonl", []

    def interrupt(done: int, most: int, what: str) -> None:
        told.append(done)
        if len(told) == 20:
            raise KeyboardInterrupt

    with Server(LabEngine("chunk4-s0"), faults=lambda _: Fault.delay(0.05)) as server:
        with OpenAIEndpoint(server.url, MODEL, concurrency=4) as endpoint, pytest.raises(KeyboardInterrupt):
            calibrate(
                endpoint,
                lab_profile("chunk4-s0"),
                language=LabLanguage.of("chunk4-s0"),
                results=path,
                progress=interrupt,
                save=False,
                **FEW,
            )
        server.wait_idle()
        asked = len(server.calls)
    assert len(path.read_text().splitlines()) - 1 == asked > 20


def test_failures_in_a_row_lose_no_answer_under_way(tmp_path) -> None:
    """A slow answer comes while all others fail."""
    path = tmp_path / "r.jsonl"
    with (
        Server(
            LabEngine("chunk4-s0"),
            faults=lambda call: {0: None, 1: Fault.delay(1.0)}.get(
                max(0, call.number - 3), Fault.status(500)
            ),
        ) as server,
        OpenAIEndpoint(server.url, MODEL, retries=0) as endpoint,
        pytest.raises(EndpointError, match="in a row failed"),
    ):
        calibrate(
            endpoint,
            lab_profile("chunk4-s0"),
            language=LabLanguage.of("chunk4-s0"),
            results=path,
            save=False,
            **FEW,
        )
    assert sum('"kind": "answer"' in line for line in path.read_text().splitlines()) == 5
