"""The profile as a value: validation, exact round trip, derived profiles."""

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import ProfileError
from phaseguard.profiles import PhaseProfile, ShapeStrength

STATED = {"kind": "stated", "source": "me"}


def fields(**changes):
    return {"name": "mine", "tokenizer": "deepseek-v4", "period": 2, "provenance": STATED, **changes}


def shape(*means, n=10):
    return {
        "mean": means,
        "low": [max(0.0, m - 0.1) for m in means],
        "high": [min(1.0, m + 0.1) for m in means],
        "n": n,
    }


MEASURED = {"kind": "measured", "source": "http://x", "date": "2026-01-02", "command": "phaseguard calibrate"}


@st.composite
def profiles(draw):
    period = draw(st.integers(1, 6))
    number = st.floats(0, 1)

    def one():
        columns = [sorted(draw(st.tuples(number, number, number))) for _ in range(period)]
        low, mean, high = zip(*columns, strict=True)
        return {"mean": mean, "low": low, "high": high, "n": draw(st.integers(0, 10**6))}

    shapes = {key: one() for key in draw(st.sets(st.sampled_from("123"), min_size=1))}
    strong = draw(st.one_of(st.none(), st.lists(st.integers(0, period - 1), min_size=1, max_size=3)))
    text = st.one_of(st.none(), st.text(st.characters(exclude_categories=("Cs",)), max_size=5))
    return PhaseProfile(
        name=draw(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True)),
        model=draw(text),
        provider=draw(text),
        tokenizer="deepseek-v4",
        strides=tuple(draw(st.lists(st.integers(1, 200), max_size=2))),
        overlap=draw(st.sampled_from([None, True, False])),
        period=period,
        window=draw(st.one_of(st.none(), st.integers(0, 500))),
        strengths=draw(st.sampled_from([None, shapes])),
        provenance=STATED,
        reported={
            "source": "p",
            "gap_points": draw(st.one_of(st.none(), st.floats(0, 100))),
            "strong": strong,
        },
    )


@given(profiles())
def test_json_round_trip_is_exact(profile):
    data = json.loads(profile.to_json())
    assert PhaseProfile(**data) == profile
    assert PhaseProfile(**data).to_json() == profile.to_json()
    assert hash(PhaseProfile(**data)) == hash(profile)
    assert profile.with_() == profile
    order = [
        "schema",
        "name",
        "model",
        "provider",
        "reasoning",
        "tokenizer",
        "chat",
        "prefix_offset",
        "strides",
        "overlap",
    ]
    assert list(data) == [*order, "period", "window", "strengths", "provenance", "reported"]


@given(profiles(), st.integers(1, 9))
def test_a_missing_shape_takes_the_nearest(profile, tokens):
    found = profile.strength(tokens)
    if profile.strengths is None:
        assert found is None
        return
    distances = {abs(int(key) - min(tokens, 3)) for key in profile.strengths}
    key = next(key for key, value in profile.strengths.items() if value is found or value == found)
    assert found is profile.strengths[key] or found == profile.strengths[key]
    assert min(distances) in {
        abs(int(k) - min(tokens, 3)) for k, v in profile.strengths.items() if v == found
    }


def test_ties_between_shapes_take_the_shorter():
    profile = PhaseProfile(**fields(strengths={"3": shape(0.3, 0.4), "1": shape(0.1, 0.2)}))
    assert profile.strength(2) == profile.strengths["1"]
    assert profile.strength(100) == profile.strengths["3"]


def test_schema_by_both_names():
    assert PhaseProfile(**fields(), schema=1) == PhaseProfile(**fields(), schema_version=1)
    for key in ("schema", "schema_version"):
        with pytest.raises(ProfileError, match="schema 2; this version reads schema 1"):
            PhaseProfile(**fields(**{key: 2}))


BAD = [
    ({"nam": "x"}, "'nam' is unknown; Did you mean 'name'"),
    ({"period": 0}, "'period'"),
    ({"period": "two"}, "'period'"),
    ({"name": "../x"}, "'name'"),
    ({"strides": [0]}, r"'strides\.0'"),
    ({"prefix_offset": -1}, "'prefix_offset'"),
    ({"strengths": {}}, "'strengths'.*must have an answer length"),
    ({"strengths": {"4": shape(0.1, 0.2)}}, "'strengths"),
    ({"strengths": {"1": shape(0.1)}}, "1 phases, not period=2"),
    (
        {"strengths": {"1": {"mean": [0.1, 0.2], "low": [0, 0], "high": [0, 1], "n": 3}}},
        "phase 0 .*low <= mean",
    ),
    ({"strengths": {"1": {"mean": [0.1, 0.2], "low": [0], "high": [1, 1], "n": 3}}}, "same length"),
    ({"strengths": {"1": shape(0.1, 0.2, n=-1)}}, "n'"),
    ({"strengths": {"1": {"mean": [0.1, 2], "low": [0, 0], "high": [1, 1], "n": 3}}}, "mean"),
    ({"strengths": {"1": {"mean": [0.1, float("nan")], "low": [0, 0], "high": [1, 1], "n": 3}}}, "mean"),
    ({"provenance": {"kind": "guessed", "source": "x"}}, r"provenance\.kind"),
    ({"provenance": {"kind": "measured", "source": "x"}}, "needs the date"),
    ({"provenance": MEASURED}, "needs strengths"),
    ({"provenance": {**MEASURED, "date": "yesterday"}}, r"provenance\.date"),
    ({"reported": {"source": "p", "strong": [2]}}, r"strong phases \[2\]"),
    ({"reported": {"source": "p", "strong": []}}, r"reported\.strong"),
    ({"reported": {"source": "p", "gap": 3}}, r"reported\.gap"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_faults_name_the_field(change, words):
    with pytest.raises(ProfileError, match=words):
        PhaseProfile(**fields(**change))


def test_a_missing_field_is_named():
    with pytest.raises(ProfileError, match="'provenance' is missing"):
        PhaseProfile(name="x", tokenizer="t", period=1)
    with pytest.raises(ProfileError, match=r"and \d more"):
        PhaseProfile(a=1, b=2)


def test_a_measurement_without_effect_needs_no_strengths():
    assert PhaseProfile(**fields(period=1, provenance=MEASURED)).has_phases is False


def test_frozen():
    profile = PhaseProfile(**fields())
    with pytest.raises(Exception, match="frozen"):
        profile.period = 3


def test_only_an_order_of_answers_can_be_aligned_to():
    gap = {"source": "p", "gap_points": 19.1}
    assert PhaseProfile(**fields(reported=gap)).strong is None
    assert PhaseProfile(**fields(reported={**gap, "strong": [1]})).strong == {1}
    assert PhaseProfile(**fields(reported={**gap, "strong": [1], "of": "key"})).strong is None


def test_strengths_do_not_carry_over_to_another_mode():
    measured = PhaseProfile(**fields(strengths={"1": shape(0.1, 0.9)}, provenance=MEASURED))
    assert measured.with_(name="other").strengths == measured.strengths
    high = measured.with_(reasoning="high")
    assert (high.strengths, high.provenance.kind) == (None, "stated")
    assert "another reasoning" in high.provenance.source
    fresh = measured.with_(reasoning="high", strengths={"1": shape(0.5, 0.6)})
    assert fresh.provenance.kind == "measured"
    with pytest.raises(ProfileError, match="'resoning' is unknown"):
        measured.with_(resoning="high")


def test_strong_phases_by_hand():
    measured = PhaseProfile(**fields(strengths={"1": shape(0.1, 0.9)}, provenance=MEASURED))
    stated = measured.with_strong({1})
    assert (stated.strong, stated.strengths, stated.provenance.kind) == ({1}, None, "stated")
    for phases in ([], [2], [-1], ["a"]):
        with pytest.raises(ProfileError):
            measured.with_strong(phases)


def test_shapes_are_values():
    one = ShapeStrength(mean=[0.5], low=[0.4], high=[0.6], n=3)
    assert one == ShapeStrength(**one.model_dump())


def test_importing_profiles_loads_pydantic_only():
    heavy = {
        "numpy",
        "tokenizers",
        "torch",
        "transformers",
        "tiktoken",
        "phaseguard.tokens",
        "phaseguard.chat",
    }
    code = f"import phaseguard.profiles, sys; print(*{heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
