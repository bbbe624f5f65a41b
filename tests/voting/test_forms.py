"""Forms of answers: what is the same, and what is not."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.errors import InputError
from phaseguard.voting import Form
from phaseguard.voting.quantities import number

CASES = json.loads((Path(__file__).parents[1] / "cases/answers.json").read_text(encoding="utf-8"))


def named(case: dict) -> str:
    return f"{case['kind']}: {case['why']}"


@pytest.mark.parametrize("case", CASES["same"], ids=named)
def test_answers_that_are_the_same(case):
    form = Form(case["kind"])
    assert {answer: form(answer) for answer in case["answers"]} == dict.fromkeys(
        case["answers"], form(case["answers"][0])
    )


@pytest.mark.parametrize("case", CASES["different"], ids=named)
def test_answers_that_differ(case):
    form = Form(case["kind"])
    for one, other in combinations(case["answers"], 2):
        assert form(one) != form(other), (one, other)


def test_no_group_of_the_corpus_equals_another():
    """The groups of ``auto`` that do not name a common answer stay apart."""
    form = Form()
    forms: dict[str, set[str]] = {}
    for case in CASES["same"]:
        if case["kind"] == "auto":
            forms.setdefault(form(case["answers"][0]), set()).add(case["why"])
    shared = [whys for whys in forms.values() if len(whys) > 1]
    assert sorted(map(sorted, shared)) == [
        ["LaTeX around it", "digits of other scripts", "labels"],
        ["case, blanks and a full stop", "invisible marks", "wrapping marks"],
    ]


def test_the_form_says_what_was_found():
    assert Form()("1,000") == "number 1000"
    assert Form()("[1]").startswith("json ")
    assert Form("choice")("(c)") == "choice C"


def test_options_count_as_their_letters():
    form = Form("choice", letters="abc", options=("London", "Paris"))
    assert form("paris.") == form("B") == "choice B"
    assert form("Rome") == "text rome"
    assert form("D") == "text d"


def test_case_can_count():
    assert Form(keep_case=True)("aB") != Form(keep_case=True)("Ab")
    assert Form("set", keep_case=True)("a, B") != Form("set", keep_case=True)("A, b")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"kind": "autp"}, "Did you mean 'auto'"),
        ({"letters": "AA"}, "one Latin letter"),
        ({"letters": "12"}, "one Latin letter"),
        ({"letters": "AB", "options": ("x", "y", "z")}, "3 options for 2 letters"),
    ],
)
def test_wrong_forms_are_refused(wrong, says):
    with pytest.raises(InputError, match=says):
        Form(**wrong)


@pytest.mark.parametrize("kind", ["auto", "text", "number", "choice", "list", "set"])
@given(text=st.text(max_size=60))
def test_every_text_has_a_form_and_blanks_around_do_not_change_it(kind, text):
    form = Form(kind)
    assert form(text) == form(f"  {text}\n")


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "{" * 5_000 + "}" * 5_000, "9" * 5_000, "1e999999", f"[{'9' * 5_000}]", "$" * 9_999,
     "1 " * 9_999, "`" * 9_999, "[" * 900 + "]" * 900, "12e45678", "\\frac{1}{0}", "*" * 301],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["auto", "number", "choice", "set"])
def test_extreme_texts_have_a_form(kind, text):
    form = Form(kind)
    assert form(text) == form(text)
    assert form(text) != form(text + "x")


@given(st.fractions(), st.sampled_from(["", "+"]))
def test_fractions_are_read_exactly(value, sign):
    plain = str(value)
    assert number(plain if plain[0] == "-" else sign + plain) == value


@given(st.integers(-(10**12), 10**12), st.integers(0, 6), st.sampled_from([",", " ", "_", "'"]))
def test_decimals_are_read_exactly_with_every_separator(units, places, separator):
    value = Fraction(units, 10**places)
    whole, digits = divmod(abs(units), 10**places)
    text = f"{'-' * (units < 0)}{whole:,}".replace(",", separator) + (
        f".{digits:0{places}d}" if places else ""
    )
    assert number(text) == value
    assert number(text + "%") == value / 100
    assert Form()(text) == f"number {value}"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=3), json_values, min_size=1, max_size=4), st.randoms())
def test_json_is_the_same_in_any_key_order_and_spacing(value, random):
    keys = list(value)
    random.shuffle(keys)
    shuffled = json.dumps({key: value[key] for key in keys}, indent=2, ensure_ascii=False)
    assert Form()(json.dumps(value)) == Form()(shuffled)


def test_strings_in_json_are_compared_as_they_are():
    curly, straight = '{"a": "so “said”"}', '{"a": "so \\"said\\""}'
    assert Form()(curly) == Form()('{ "a": "so \\u201csaid\\u201d" }')
    assert Form()(curly) != Form()(straight)
    assert Form()('{"a": "1\\\\%"}') != Form()('{"a": "1%"}')
    assert Form()("{“a”: 1}") == Form()('{"a": 1}')
    assert Form("list")('["“red”", "blue"]') == Form("list")("red, blue")


@given(st.lists(json_values, max_size=4), st.lists(json_values, max_size=4))
def test_json_that_differs_has_another_form(one, other):
    def typed(value: object) -> object:  # Python takes True for 1
        if isinstance(value, list):
            return [typed(item) for item in value]
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        return (type(value).__name__, value)

    forms = [Form()(json.dumps(value)) for value in (one, other)]
    assert (forms[0] == forms[1]) == (typed(one) == typed(other))


@given(st.lists(st.sampled_from(["red", "green", "1,000", "Blue sky"]), min_size=2, max_size=5), st.randoms())
def test_sets_are_the_same_in_any_order(items, random):
    shuffled = list(items)
    random.shuffle(shuffled)
    assert Form("set")(", ".join(items)) == Form("set")("\n".join(f"- {item}" for item in shuffled))
    assert (Form("list")("; ".join(items)) == Form("list")(json.dumps(shuffled))) == (items == shuffled)
