"""A measured profile against the endpoint as it is now."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from phaseguard.calibrate import (
    LabEndpoint,
    LabLanguage,
    OpenAIEndpoint,
    Plan,
    Prices,
    Revalidation,
    calibrate,
    lab_profile,
    revalidate,
)
from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile
from phaseguard.testing import LabEngine, Server

FRESH = LabLanguage.of("chunk4-s0", seed=1)


@pytest.fixture(scope="module")
def chunk4() -> PhaseProfile:
    found = calibrate(
        LabEndpoint("chunk4-s0"),
        lab_profile("chunk4-s0"),
        language=LabLanguage.of("chunk4-s0"),
        items=18,
        periods=range(2, 9),
        controls=False,
        save=False,
    )
    assert found.profile is not None
    return found.profile


@pytest.fixture(scope="module")
def full() -> PhaseProfile:
    found = calibrate(
        LabEndpoint("full-s0"),
        lab_profile("full-s0"),
        language=LabLanguage.of("full-s0"),
        items=30,
        periods=(2, 4),
        save=False,
    )
    assert found.profile is not None
    return found.profile


def again(model: str, profile: PhaseProfile, **more: Any) -> Revalidation:
    return revalidate(LabEndpoint(model), profile, FRESH, **{"items": 15, **more})


def test_the_same_model_holds(chunk4) -> None:
    found = again("chunk4-s0", chunk4)
    assert found.verdict == "holds", found.reason
    assert 0 not in found.strong
    assert found.date == chunk4.provenance.date
    assert found.spent.calls == 4 + 15 * 4  # only the shifts that aligning makes


def test_a_model_without_the_effect_has_changed(chunk4) -> None:
    found = again("full-s0", chunk4)
    assert found.verdict == "changed"
    assert "Phase 0" in found.reason


def test_strong_phases_that_moved_have_changed(chunk4) -> None:
    strengths = chunk4.strengths or {}
    turned = {
        key: {
            "mean": (*row.mean[1:], row.mean[0]),
            "low": (*row.low[1:], row.low[0]),
            "high": (*row.high[1:], row.high[0]),
            "n": row.n,
        }
        for key, row in strengths.items()
    }
    found = again("chunk4-s0", chunk4.with_(strengths=turned))
    assert found.verdict == "changed"


def test_a_prefix_that_came_has_changed(chunk4) -> None:
    with (
        Server(LabEngine("chunk4-s0", prefix=3)) as server,
        OpenAIEndpoint(server.url, "test-model") as endpoint,
    ):
        found = revalidate(endpoint, chunk4, FRESH, items=12)
    assert found.verdict == "changed"
    assert "3 tokens more" in found.reason


def test_no_effect_holds_until_there_is_one(full) -> None:
    assert again("full-s0", full, items=40).verdict == "holds"
    found = again("chunk4-s0", full)
    assert found.verdict == "changed"
    assert "there is one" in found.reason


def test_too_few_answers_decide_nothing(chunk4) -> None:
    wide = {
        key: {"mean": row.mean, "low": (0.0,) * 4, "high": (1.0,) * 4, "n": 3}
        for key, row in (chunk4.strengths or {}).items()
    }
    found = revalidate(
        LabEndpoint("csa4-s0"), chunk4.with_(strengths=wide), LabLanguage.of("csa4-s0", seed=1), items=6
    )
    assert found.verdict == "undecided"


def test_nothing_is_asked_before_the_plan_is_confirmed(chunk4) -> None:
    plans: list[Plan] = []
    endpoint = _Never("chunk4-s0")
    with pytest.raises(InputError, match="not confirmed"):
        revalidate(
            endpoint,
            chunk4,
            FRESH,
            items=15,
            prices=Prices(1.0, 1.0),
            confirm=lambda p: bool(plans.append(p)),
        )
    assert (plans[0].calls, plans[0].looks) == (64, (15,))
    assert plans[0].cost is not None


class _Never(LabEndpoint):
    def ask(self, questions: Any) -> Any:
        raise AssertionError("asked before the plan was confirmed")


def test_what_was_never_measured_is_refused() -> None:
    with pytest.raises(InputError, match="was not measured"):
        again("chunk4-s0", lab_profile("chunk4-s0"))


def test_the_sample_is_kept_and_belongs_to_its_profile(chunk4, tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    first = again("chunk4-s0", chunk4, results=path)
    second = again("chunk4-s0", chunk4, results=path)
    assert second.spent.resumed == first.spent.calls
    assert dataclasses.replace(second, spent=first.spent) == first
    with pytest.raises(InputError, match="another run"):
        again("chunk4-s0", chunk4.with_(name="other"), results=path)
    assert json.loads(json.dumps(first.to_dict()))["verdict"] == "holds"
