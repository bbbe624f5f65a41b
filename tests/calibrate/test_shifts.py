"""Records moved by pads: every index is that of the whole request, encoded anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaseguard.align.setting import Setting
from phaseguard.calibrate.items import Item
from phaseguard.calibrate.ondevice import LabLanguage, lab_profile
from phaseguard.calibrate.shifts import Shifted, Shifter
from phaseguard.calibrate.standard import StandardLanguage
from phaseguard.errors import InputError
from phaseguard.profiles import PhaseProfile, load_profile
from phaseguard.text import Span
from phaseguard.tokens import TokenizerLike

CHAT = load_profile("deepseek-v4-flash")
PLAIN = CHAT.with_(chat="plain", prefix_offset=3)
THINKING = CHAT.with_(reasoning="high")
LAB = LabLanguage.of("csa4-s0")
ENGLISH = StandardLanguage(CHAT, context=500)


def index_of(prompt: str, at: int, profile: PhaseProfile, tokenizer: TokenizerLike | None) -> int:
    """Token index of a character, from the request encoded as a whole."""
    request = Setting.read(profile, tokenizer=tokenizer).encode([{"role": "user", "content": prompt}], {})
    start = request.rendered.locate(0, at)
    return request.offset + request.token_range(Span(start, start + 1))[0]


def check(item: Item, moved: Shifted, profile: PhaseProfile, tokenizer: TokenizerLike | None) -> None:
    behind = item.moved != item.record
    start = moved.prompt.index(item.record.of(item.text))
    answer = start + item.answer.start - item.record.start
    key = start + item.key.start - item.record.start
    pads = moved.shift if behind else 0  # pads behind the record do not move it
    assert index_of(moved.prompt, answer, profile, tokenizer) + pads == moved.position
    assert index_of(moved.prompt, key, profile, tokenizer) + pads == moved.key
    before, after = item.text[: item.moved.start].rstrip(), item.text[item.moved.start :]
    assert moved.prompt.startswith(before)
    assert moved.prompt.endswith(after)


@given(
    st.integers(0, 15),
    st.integers(0, 40),
    st.sampled_from([CHAT, PLAIN, THINKING]),
    st.sampled_from(["records", "inside", "behind"]),
)
def test_english_records_stand_where_they_are_said_to(shift, number, profile, probe) -> None:
    item = ENGLISH.draw(number, probe)
    moved = Shifter(item, profile, 16).at(shift)
    assert moved is not None
    assert moved.shift == shift
    check(item, moved, profile, None)


@given(st.integers(0, 15), st.integers(0, 40), st.sampled_from(["records", "inside", "behind"]))
def test_words_of_on_device_models_too(shift, number, probe) -> None:
    item, profile = LAB.draw(number, probe), lab_profile("csa4-s0").with_(prefix_offset=2)
    moved = Shifter(item, profile, 16, LAB.tokenizer).at(shift)
    assert moved is not None
    assert moved.shape == 1
    check(item, moved, profile, LAB.tokenizer)
    assert moved.tokens == 2 + len(LAB.tokenizer.encode(moved.prompt))


def test_the_comparison_sees_a_wrong_index() -> None:
    item = ENGLISH.draw(0, "records")
    moved = Shifter(item, CHAT, 16).at(3)
    assert moved is not None
    with pytest.raises(AssertionError):
        check(item, moved, PLAIN, None)


def test_each_shift_is_one_phase_further() -> None:
    shifter = Shifter(ENGLISH.draw(3, "records"), CHAT, 16)
    positions = [moved.position for shift in range(16) if (moved := shifter.at(shift)) is not None]
    assert positions == list(range(positions[0], positions[0] + 16))


def test_a_measured_profile_counts_shifts_too() -> None:
    phases = {"mean": [0.5, 1.0], "low": [0.4, 0.9], "high": [0.6, 1.0], "n": 9}
    measured = CHAT.with_(
        period=2,
        strengths={"2": phases},
        provenance={"kind": "measured", "source": "here", "date": "2026-01-01"},
    )
    moved = Shifter(ENGLISH.draw(0, "records"), measured, 8).at(5)
    assert moved is not None
    assert moved.shift == 5


def test_no_pad_that_fits_is_no_prompt() -> None:
    shifter = Shifter(ENGLISH.draw(0, "records"), CHAT, 4)
    assert shifter.at(1, [" = = =\n"]) is None
    assert shifter.at(0, [" =\n"]) is not None


def test_an_answer_that_its_record_holds_twice_is_refused() -> None:
    text = "One.\n\nRoom 17 has code 17.\n\nWhich?"
    item = Item(0, "records", text, Span(6, 26), Span(6, 10), Span(23, 25), Span(6, 26))
    with pytest.raises(InputError, match="more than once"):
        Shifter(item, CHAT, 4).at(1)
