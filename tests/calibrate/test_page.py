"""The page of a calibration: its figures are those of the data, also in a real browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from phaseguard.calibrate import LabEndpoint, LabLanguage, calibrate, lab_profile
from phaseguard.errors import InputError
from phaseguard.show.calibration_figure import save_calibration
from phaseguard.show.calibration_page import render_calibration_page

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    made = calibrate(
        LabEndpoint("chunk4-s0"),
        lab_profile("chunk4-s0"),
        language=LabLanguage.of("chunk4-s0"),
        items=20,
        periods=range(2, 9),
        save=False,
    )
    return json.loads(json.dumps(made.to_dict()))


class Figures(HTMLParser):
    """Texts of all elements with a ``data-key``, and the data in the page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.told: dict[str, str] = {}
        self.data = ""
        self._key: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self._key = "data" if named.get("id") == "calibration" else named.get("data-key")

    def handle_data(self, data: str) -> None:
        if self._key == "data":
            self.data += data
        elif self._key is not None:
            self.told[self._key] = data
            self._key = None

    def handle_endtag(self, tag: str) -> None:
        self._key = None


def value_at(data: Any, key: str) -> Any:
    for part in key.split("."):
        data = data[int(part)] if isinstance(data, list) else data[part]
    return data


def wrong_figures(page: str, found: Mapping[str, Any]) -> list[str]:
    """Keys whose text is not what the data says, to the digits that are shown."""
    return list(_wrong(Figures(page).told, found))


def _wrong(told: Mapping[str, str], found: Mapping[str, Any]) -> Iterator[str]:
    for key, text in told.items():
        value = value_at(found, key)
        if isinstance(value, str):
            same = text == value
        else:
            digits = len(text.partition(".")[2])
            same = float(text) == pytest.approx(value, abs=0.5001 * 10**-digits, rel=0.05)
        if not same:
            yield key


def test_every_figure_is_that_of_the_data(found: dict[str, Any]) -> None:
    page = render_calibration_page(found)
    figures = Figures(page)
    assert json.loads(figures.data) == found
    assert wrong_figures(page, found) == []
    assert {f"judgement.phases.{phase}.mean" for phase in range(4)} <= figures.told.keys()
    assert {"judgement.verdict", "judgement.gap", "spent.calls", "strengths.1.2.mean"} <= figures.told.keys()
    for outside in ("http://", "https://", "src=", "url("):
        assert outside not in page.replace("http-equiv", "")


def test_a_wrong_figure_is_noticed(found: dict[str, Any]) -> None:
    page = render_calibration_page(found)
    other = json.loads(json.dumps(found))
    other["judgement"]["phases"][2]["mean"] -= 0.1
    other["judgement"]["verdict"] = "no effect"
    assert set(wrong_figures(page, other)) == {"judgement.phases.2.mean", "judgement.verdict"}


def test_a_slice_without_records_has_no_point(found: dict[str, Any]) -> None:
    other = json.loads(json.dumps(found))
    other["depths"][3] = {"right": 0, "n": 0, "mean": None, "low": 0.0, "high": 1.0}
    page = render_calibration_page(other)
    assert "depths.3.mean" not in Figures(page).told
    assert wrong_figures(page, other) == []


@pytest.mark.parametrize("verdict", ["no effect", "undecided"])
def test_each_verdict_says_what_to_do_next(found: dict[str, Any], verdict: str) -> None:
    other = json.loads(json.dumps(found))
    other["judgement"] |= {"verdict": verdict, "phases": other["judgement"]["phases"][:1]}
    other |= {"strengths": {}, "controls": {}}
    if verdict == "undecided":
        other["profile"] = None
    page = render_calibration_page(other)
    assert wrong_figures(page, other) == []
    assert ("Ask more items" in page) == (verdict == "undecided")
    assert ("nothing to align for" in page) == (verdict == "no effect")


def test_text_of_an_endpoint_is_no_markup(found: dict[str, Any]) -> None:
    other = json.loads(json.dumps(found))
    other["endpoint"]["model"] = "<script>alert(1)</script>"
    other["notes"] = ["</script><b>bold</b>"]
    page = render_calibration_page(other)
    assert page.count("<script") == 1
    assert "<b>bold</b>" not in page
    assert json.loads(Figures(page).data) == other


def test_the_figure_is_written_or_refused(found: dict[str, Any], tmp_path: Path) -> None:
    save_calibration(found, str(tmp_path / "found.png"))
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="no figure that can be drawn"):
        save_calibration(found, str(tmp_path / "found.doc"))


@pytest.mark.browser
def test_a_browser_renders_it_with_the_same_figures(found: dict[str, Any], tmp_path: Path) -> None:
    assert CHROMIUM is not None, "install Chromium, as .ci/run does"
    page, shot = tmp_path / "found.html", tmp_path / "found.png"
    page.write_text(render_calibration_page(found), encoding="utf-8")

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *more, page.as_uri()]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)

    dom = run("--dump-dom").stdout
    assert wrong_figures(dom, found) == []
    assert Figures(dom).told.keys() == Figures(page.read_text(encoding="utf-8")).told.keys()
    assert (
        "Refused"
        not in run("--enable-logging=stderr", f"--screenshot={shot}", "--window-size=900,2600").stderr
    )
    assert shot.stat().st_size > 40_000, "an empty page is smaller"
