"""align_batch: row by row what align_prompt gives, whatever a framework wraps around the rows."""

import copy
import enum
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard import PhaseGuardError, align_prompt, load_profile, load_tokenizer
from phaseguard.batch import BatchAligner, align_batch
from phaseguard.errors import InputError, ProfileError, TokenizerError
from tests.align.helpers import PARAGRAPHS
from tests.batch.rows import CHAT, KEY, TEXT, V41

EVERYTHING = ("verified", "tokens_added", "warnings", "report")


def one_by_one(prompts, keys, **options):
    """The oracle: one call a row."""
    rows = []
    for prompt, key in zip(prompts, keys, strict=True):
        try:
            out = align_prompt(prompt, key_passages=key, **options)
        except PhaseGuardError as fault:
            rows.append((prompt, str(fault), False, 0, "", ""))
            continue
        warnings, told = " ".join(out.report.warnings), json.dumps(out.report.to_dict(), ensure_ascii=False)
        rows.append((out.prompt, "", out.report.verified, out.report.tokens_added, warnings, told))
    return rows


def as_rows(done):
    names = ("aligned_prompt", "phaseguard_error", *(f"phaseguard_{name}" for name in EVERYTHING))
    return list(zip(*(done[name] for name in names), strict=True))


def test_warm_up_loads_the_fast_reader_once():
    BatchAligner(profile=V41).warm_up()
    assert load_tokenizer("deepseek-v4").reader == "fastokens"


texts = st.lists(
    st.sampled_from([*PARAGRAPHS[:12], f"The code is {KEY}.", "---", "x  \n\n\n"]), max_size=5
).map("\n\n".join)
prompts = st.one_of(
    texts,
    texts.map(lambda text: [{"role": "user", "content": text}]),
    texts.map(lambda text: {"model": "m", "messages": [{"role": "user", "content": text}]}),
    st.sampled_from([None, 5, [], "a \ud800 b", {"messages": "no"}]),
)
keys = st.sampled_from([None, KEY, [KEY], [], [" "], ["nowhere"], [5]])


@given(
    st.lists(st.tuples(prompts, keys), max_size=4), st.sampled_from([{}, {"strong": {0}}, {"level": "off"}])
)
def test_rows_are_what_align_prompt_gives(rows, options):
    columns = {
        "prompt": [row[0] for row in rows],
        "key_passages": [row[1] for row in rows],
        "id": [*range(len(rows))],
    }
    before = copy.deepcopy(columns)
    done = align_batch(columns, profile=V41, report_columns=EVERYTHING, **options)
    assert as_rows(done) == one_by_one(*list(columns.values())[:2], profile=V41, **options)
    assert columns == before
    assert all(done[name] is columns[name] for name in columns)


def test_the_oracle_sees_another_row():
    done = align_batch(
        {"prompt": [TEXT, CHAT], "key_passages": [[KEY], [KEY]]}, profile=V41, report_columns=EVERYTHING
    )
    assert as_rows(done) == one_by_one([TEXT, CHAT], [[KEY], [KEY]], profile=V41)
    assert as_rows(done) != one_by_one([CHAT, TEXT], [[KEY], [KEY]], profile=V41)
    assert done["aligned_prompt"][0] != TEXT


def test_questions_and_answers_have_columns_of_their_own():
    columns = {"text": [TEXT], "question": ["What is the vault code?"], "reply": ["8417"]}
    done = align_batch(
        columns,
        profile=V41,
        prompt_column="text",
        key_column=None,
        query_column="question",
        answer_column="reply",
        report_columns="report",
    )
    expected = align_prompt(TEXT, query="What is the vault code?", answer="8417", profile=V41)
    assert done["aligned_prompt"] == [expected.prompt]
    assert json.loads(done["phaseguard_report"][0]) == json.loads(json.dumps(expected.report.to_dict()))


class Text(str):
    __slots__ = ()


class Kind(enum.StrEnum):
    PROMPT = TEXT


def object_array(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    "columns",
    [
        {"prompt": object_array(TEXT, TEXT), "key_passages": object_array(object_array(KEY), None)},
        {"prompt": np.array([TEXT, TEXT]), "key_passages": object_array([KEY], float("nan"))},
        {"prompt": (Text(TEXT), Kind.PROMPT), "key_passages": [[Text(KEY)], None]},
        {"prompt": [np.str_(TEXT)] * 2, "key_passages": [np.array([KEY]), None]},
    ],
    ids=["object arrays", "string array and NaN", "subclasses of str", "NumPy strings"],
)
def test_what_frameworks_hand_over_is_plain_values(columns):
    expected = align_batch({"prompt": [TEXT, TEXT], "key_passages": [[KEY], None]}, profile=V41)
    done = align_batch(columns, profile=V41)
    for name in ("aligned_prompt", "phaseguard_error", "phaseguard_verified"):
        assert done[name] == expected[name]
    assert {type(text) for text in done["aligned_prompt"]} == {str}
    assert done["phaseguard_error"] == ["", ""]


class Column(list):
    """Has what a pyarrow array has: values of its own kind, and a way to plain ones."""

    def __iter__(self):
        raise AssertionError("scalars of pyarrow are no strings")

    def to_pylist(self):
        return self[:]


def test_pyarrow_arrays_are_read_and_passed_on():
    given = {"prompt": Column([TEXT]), "key_passages": Column([[KEY]])}
    done = align_batch(given, profile=V41)
    assert done["phaseguard_error"] == [""]
    assert done["prompt"] is given["prompt"]


def test_messages_in_nested_arrays_stay_messages():
    message = {"role": "user", "content": TEXT, "tool_calls": None}
    done = align_batch({"prompt": object_array(object_array(message)), "key_passages": [[KEY]]}, profile=V41)
    assert done["aligned_prompt"] == [align_prompt([message], key_passages=[KEY], profile=V41).prompt]
    assert done["prompt"] == [[message]]


def test_object_arrays_come_back_as_lists_and_other_arrays_as_they_are():
    numbers = np.arange(2)
    columns = {"prompt": [TEXT] * 2, "tags": object_array(np.array(["a"]), None), "n": numbers}
    done = align_batch(columns, profile=V41, key_column=None)
    assert done["tags"] == [["a"], None]
    assert done["n"] is numbers


def test_an_unknown_fault_of_one_row_stops_nothing(monkeypatch):
    def breaks(prompt, **options):
        if prompt == "break":
            raise RecursionError("too deep")
        return align_prompt(prompt, **options)

    monkeypatch.setattr("phaseguard.batch.aligner.align_prompt", breaks)
    done = align_batch({"prompt": ["break", TEXT]}, profile=V41, key_column=None)
    assert done["phaseguard_error"] == ["RecursionError: too deep", ""]
    assert done["aligned_prompt"][0] == "break"


def test_columns_have_one_type_whatever_happens():
    done = align_batch({"prompt": [TEXT, ""]}, profile=V41, key_column=None, report_columns=EVERYTHING)
    for values in done.values():
        assert len({type(value) for value in values}) == 1


def test_an_empty_batch_has_the_same_columns():
    columns = {"prompt": [], "key_passages": [], "id": np.array([])}
    done = align_batch(columns, profile=V41)
    full = align_batch({"prompt": [TEXT], "key_passages": [[KEY]], "id": [1]}, profile=V41)
    assert list(done) == list(full)
    assert not any(map(len, done.values()))


def test_the_prompt_column_may_be_replaced():
    columns = {"prompt": [TEXT], "key_passages": [[KEY]]}
    done = align_batch(columns, profile=V41, output_column="prompt")
    assert done["prompt"] == [align_prompt(TEXT, key_passages=[KEY], profile=V41).prompt]
    assert columns["prompt"] == [TEXT]


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"promt": [TEXT]}, {}, "prompt_column=.... Did you mean 'promt'"),
        ({"prompt": [TEXT]}, {}, "key_column=..., or key_column=None when there is none"),
        ({"prompt": [TEXT], "key_passages": []}, {}, "'prompt' has 1, 'key_passages' has 0 rows"),
        ({"prompt": TEXT}, {"key_column": None}, "Column 'prompt' is str.*batched=True"),
        ({"prompt": 5}, {"key_column": None}, "Column 'prompt' is int"),
        ([TEXT], {}, "dict of columns, not list"),
        (
            {"prompt": [TEXT], "aligned_prompt": [""]},
            {"key_column": None},
            "already has a column 'aligned_prompt'",
        ),
        (
            {"prompt": [TEXT], "phaseguard_error": [""]},
            {"key_column": None},
            "already has a column 'phaseguard_error'",
        ),
        ({}, {}, "There is no column 'prompt'"),
    ],
)
def test_batches_that_cannot_be_read_say_what_to_do(columns, options, words):
    with pytest.raises(InputError, match=words):
        align_batch(columns, profile=V41, **options)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"profile": "deepseek-v4-flsh"}, ProfileError, "Did you mean"),
        ({"pads": "soft"}, InputError, "pads='soft'"),
        ({"pads": 5}, InputError, "pads=5"),
        ({"report_columns": 5}, InputError, "report_columns=5"),
        ({"prompt_column": None}, InputError, "prompt_column=None"),
        ({"key_column": ["keys"]}, InputError, r"key_column=\['keys'\]"),
        ({"level": "most"}, InputError, "most"),
        ({"strong": {9}}, InputError, "phases from 0"),
        ({"occurrence": "last"}, InputError, "occurrence"),
        ({"report_columns": ["verifed"]}, InputError, "Did you mean 'verified'"),
        ({"output_column": "phaseguard_error"}, InputError, "Two new columns"),
    ],
)
def test_options_that_cannot_be_used_are_refused_at_once(options, error, words):
    with pytest.raises(error, match=words):
        BatchAligner(**options)


def test_a_tokenizer_that_cannot_be_loaded_is_no_fault_of_the_rows():
    aligner = BatchAligner(profile=V41, key_column=None, tokenizer="no such tokenizer")
    assert aligner({"prompt": []})["phaseguard_error"] == []
    with pytest.raises(TokenizerError, match="no such tokenizer"):
        aligner({"prompt": [TEXT]})


def test_a_pickled_aligner_aligns_to_the_same_profile(tmp_path, monkeypatch):
    profile = load_profile(V41).with_strong([0])
    aligner = BatchAligner(profile=profile, pads=["\n"], strong={np.int64(1), 0}, isolate=False)
    again = pickle.loads(pickle.dumps(aligner))
    assert again == aligner
    assert again.profile == profile
    assert again.strong == (0, 1)
    named = pickle.dumps(BatchAligner(profile=V41))
    monkeypatch.setenv("PHASEGUARD_PROFILES", str(tmp_path))  # another machine, whose user has profiles
    (tmp_path / f"{V41}.json").write_text(profile.with_(name=V41).to_json(), encoding="utf-8")
    assert load_profile(V41) != load_profile(pickle.loads(named).profile)
    assert pickle.loads(named).profile.strong == {1}


def test_it_pickles_to_the_same_bytes_in_every_process_and_loads_no_tokenizer():
    code = (
        "import pickle, sys; from phaseguard.batch import BatchAligner; "
        "from phaseguard.tokens import registry; "
        "aligner = pickle.loads(pickle.dumps(BatchAligner(strong={0, 2, 3}, level='full'))); "
        "sys.stdout.write(pickle.dumps(aligner).hex()); assert not registry._named"
    )
    pickles = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(pickles) == 1
    assert pickles != {""}
