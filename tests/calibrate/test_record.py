"""The results file: what is in it is kept, whatever happens to the process that writes."""

from __future__ import annotations

import json

import pytest

from phaseguard.calibrate.items import PROBES
from phaseguard.calibrate.record import Answered, Place, Results, observed
from phaseguard.errors import InputError

RUN = {"model": "m", "looks": (1, 2)}


def answered(item: int, shift: int = 0, probe="records", **more) -> Answered:
    fields = {
        "request": "0", "position": 100 + shift, "key": 95 + shift, "shape": 1, "tokens": 200, "right": True,
        "answer": "7", "expected": "7", "margin": 1.0, "seconds": 0.1, "at": "2026-12-01T00:00:00+00:00",
    }  # fmt: skip
    return Answered(probe=probe, item=item, shift=shift, **fields | more)


def test_answers_come_back(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    with Results(path, RUN) as results:
        results.add(answered(0))
        results.add(answered(1, 3, "inside", right=False, margin=None))
        results.failed(Place("records", 2, 0), "No answer came in time.")
    with Results(path, RUN) as again:
        assert again.answers == results.answers
        assert again.resumed == 2
        assert Place("records", 2, 0) not in again  # what failed is asked again
        assert tuple(probe for probe in PROBES if again.of(probe)) == ("records", "inside")
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == [
        "run", "answer", "answer", "failure",
    ]  # fmt: skip


def test_each_answer_is_on_disk_at_once(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    with Results(path, RUN) as results:
        results.add(answered(0))
        assert json.loads(path.read_text().splitlines()[-1])["item"] == 0


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_line_that_was_being_written_is_dropped(tmp_path, cut) -> None:
    path = tmp_path / "r.jsonl"
    with Results(path, RUN) as results:
        results.add(answered(0))
        results.add(answered(1))
    path.write_bytes(path.read_bytes()[:-cut])
    with Results(path, RUN) as again:
        assert [place.item for place in again.answers] == [0]
        again.add(answered(1))
    with Results(path, RUN) as whole:
        assert [place.item for place in whole.answers] == [0, 1]


def test_a_run_killed_at_its_first_line_begins_again(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    with Results(path, RUN):
        whole = path.read_bytes()
    for cut in (1, 20, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with Results(path, RUN) as again:
            assert again.resumed == 0
        assert path.read_bytes() == whole


def test_a_run_that_brought_no_answer_stands_in_nobodys_way(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    with Results(path, {**RUN, "reasoning": "medium"}) as results:
        results.failed(Place("records", -1, 0), "Unknown model.")
    with Results(path, RUN) as again:
        again.add(answered(0))
    with Results(path, RUN) as whole:
        assert whole.resumed == 1
    assert "medium" not in path.read_text()


def test_results_of_another_run_are_refused(tmp_path) -> None:
    path = tmp_path / "r.jsonl"
    with Results(path, RUN) as results:
        results.add(answered(0))
    path.write_bytes(path.read_bytes() + b'{"kind": "ans')
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"another run: model differ"):
        Results(path, {**RUN, "model": "other"})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"kind": "run"}\n', "no results of this version"),
        ("hello\n", "line 1, is not JSON"),
        ("[1]\n", "no JSON object"),
        ("notes\nwithout an end", "line 1, is not JSON"),
        ('{"notes": "without an end"}', "no results of this version"),
        (
            '{"kind": "run", "format": "phaseguard-calibrate-1", "run": {"model": "m", "looks": [1, 2]}}\n'
            '{"kind": "answer", "probe": "records"}\n',
            "lacks answer, at",
        ),
    ],
)
def test_files_that_are_something_else(tmp_path, text, said) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        Results(path, RUN)
    assert path.read_text() == text


def test_a_file_that_cannot_be_written(tmp_path) -> None:
    with pytest.raises(InputError, match="cannot be used for results"):
        Results(tmp_path / "none" / "r.jsonl", RUN)


def test_answers_are_chosen_by_probe_item_and_shift() -> None:
    results = Results(None, RUN)
    for item in (-1, 0, 1):
        for shift in (0, 5):
            results.add(answered(item, shift))
    results.add(answered(0, 0, "behind"))
    assert [(a.item, a.shift) for a in results.of("records")] == [(0, 0), (0, 5), (1, 0), (1, 5)]
    assert [a.shift for a in results.of("records", items=1, below=5)] == [0]
    assert len(results.of("behind")) == 1


def test_margins_are_observed_only_where_all_have_one() -> None:
    both = observed((answered(0), answered(1, margin=-2.0, right=False)))
    assert both.margins is not None
    assert both.margins.tolist() == [1.0, -2.0]
    assert both.right.tolist() == [True, False]
    assert both.positions.tolist() == [100, 100]
    assert both.keys.tolist() == [95, 95]
    assert observed((answered(0), answered(1, margin=None))).margins is None
    assert len(observed(())) == 0
