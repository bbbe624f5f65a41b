"""The table of a checkpoint's compressors shows what the report says."""

from io import StringIO

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from phaseguard.calibrate.compressors import LayerCompression
from phaseguard.calibrate.favour import Favour
from phaseguard.calibrate.schedule import Schedule
from phaseguard.calibrate.weights import HYPOTHESIS, WeightsReport
from phaseguard.show.weights import render_weights, schedule_words


def shown(*layers, source="a/b"):
    console = Console(file=StringIO(), width=120, markup=True)
    console.print(render_weights(WeightsReport(source, layers, Schedule()).to_dict()))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_shares_of_both_chunks_in_per_cent():
    bias = np.log([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 3.0]])
    lines = shown(LayerCompression(2, "entries", 4, True, Favour.of(bias, overlap=True), 0.5))
    assert lines[0] == "a/b: stride 4, overlapping"
    cells = "2 entries 4 3 20.0 20.0 20.0 40.0 10.0 10.0 10.0 30.0 10.0 10.0 10.0 10.0 0.36 / 0.50"
    assert " ".join(lines[3].split()) == cells
    assert " ".join(lines[4:]) == HYPOTHESIS


def test_rows_without_a_bias_long_ones_and_unknown_strides():
    flat = Favour.of(np.zeros((128, 2)), overlap=False)
    steep = Favour.of(np.repeat(np.arange(128.0)[:, None], 2, axis=1), overlap=False)
    lines = shown(
        LayerCompression(0, "entries", None, False, None),
        LayerCompression(1, "entries", 2, False, None, 1.25),
        LayerCompression(2, "entries", 128, False, flat),
        LayerCompression(3, "entries", 128, False, steep),
    )
    rows = [" ".join(line.split()) for line in lines[3:7]]
    assert rows[0] == "0 entries ? no position bias"
    assert rows[1] == "1 entries 2 no position bias - / 1.25"
    assert rows[2] == "2 entries 128 none: flat 0.78 to 0.78 0.78 to 0.78 - 0.00 / ?"
    assert rows[3].startswith("3 entries 128 127, 126, 125, 124,")
    assert "120" not in rows[3]


def test_a_name_is_text_and_not_markup():
    assert shown(LayerCompression(0, "entries", None, True, None), source="[red]x")[0].startswith(
        "[red]x: stride unknown"
    )


@given(st.lists(st.sampled_from([0, 1, 4, 128]), max_size=12))
def test_schedules_in_words_can_be_read_back(schedule):
    assert expand(schedule_words(schedule)) == schedule


def expand(words):
    """The strides that words stand for."""
    found, rest = [], words
    while rest:
        times = 1
        if " x " in rest.split(",")[0]:
            count, rest = rest.split(" x ", 1)
            times = int(count)
        end = rest.index(")") + 1 if rest.startswith("(") else len(rest.split(",")[0])
        found += times * [int(stride) for stride in rest[:end].strip("()").split(",")]
        rest = rest[end:].removeprefix(", ")
    return found
