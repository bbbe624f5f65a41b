"""The corpus of real-world cases: positives and negatives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phaseguard.normalize import normalize

CASES: list[dict[str, Any]] = [
    case
    for path in sorted((Path(__file__).parent.parent / "cases").glob("normalize*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    texts = [case["text"]] if isinstance(case["text"], str) else case["text"]
    outs = [normalize(text, case["level"]) for text in texts]
    if case["expect"] == "all equal":
        assert len({out.text for out in outs}) == 1
    else:
        expected = case["text"] if case["expect"] == "unchanged" else case["expect"]
        assert outs[0].text == expected
    for text, out in zip(texts, outs, strict=True):
        assert out.restore() == text
        assert normalize(out.text, case["level"]).edits == ()
