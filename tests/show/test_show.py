"""Showing: the token map is the request, marks stand where the report says, pages escape everything."""

import hashlib
import re
import unicodedata
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from phaseguard import align_prompt, inspect_prompt
from phaseguard.errors import InputError
from phaseguard.show.changes import change_lines, unified_diff
from phaseguard.show.html import render_page
from phaseguard.show.report import SpanTable, render_report
from phaseguard.show.terminal import render_inspection, render_map
from phaseguard.show.tokens import token_map, windows
from phaseguard.show.words import brief, picture, quoted, visible
from phaseguard.text import apply_edits, make_edit

TEXT = (
    "The code is <b>&amp; PROVOCATIVE-8417</b>, family 👨‍👩‍👧 and 🏳️‍🌈.\n\nPort 8080 is used.\n"
    + "More words.\n" * 80
)
KEYS = ["PROVOCATIVE-8417", "8080"]


def seen(text=TEXT, keys=KEYS, profile="deepseek-v4.1-flash", **more):
    return inspect_prompt(text, key_passages=keys, profile=profile, **more)


class Page(HTMLParser):
    """Collects what a browser would: text of tokens, tags, attributes."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.tokens, self.marks, self.ids, self.links = [], [], [], set(), set()
        self._open = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self._open.append((tag, attrs))
        if tag == "i" and any(name == "div" and a.get("class") == "chunk" for name, a in self._open):
            self.tokens.append("")
        if tag == "mark" and "id" in attrs:
            self.marks.append((attrs["class"], len(self.tokens)))
        if "id" in attrs:
            assert attrs["id"] not in self.ids
            self.ids.add(attrs["id"])
        if tag == "a":
            self.links.add(attrs["href"].removeprefix("#"))
        if tag == "meta":
            self._open.pop()

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self._open and self._open[-1][0] == "i" and self.tokens:
            self.tokens[-1] += data


def test_tokens_are_the_request_cut_in_pieces():
    inspection = seen()
    tokens = token_map(inspection)
    assert "".join(tokens.texts) == inspection.text
    assert len(tokens) == len(inspection.request.encoding)
    assert "" in tokens.texts  # the later tokens of an emoji


def test_marks_are_where_the_report_says():
    tokens = token_map(seen())
    assert ["".join(tokens.texts[m.start : m.stop]).strip() for m in tokens.marks] == KEYS
    for mark in tokens.marks:
        assert tokens.phase(mark.start) == mark.span.phase_after
        assert mark.start + tokens.first == mark.span.index_after
        assert mark.verdict == ("strong" if mark.span.phase_after == 1 else "weak")


def test_a_profile_with_a_prefix_shifts_phases():
    tokens = token_map(seen(profile="deepseek-v4-flash-base", strong={2, 3}))
    assert tokens.first == 1
    assert [tokens.phase(mark.start) for mark in tokens.marks] == [m.span.phase_after for m in tokens.marks]


def test_verdicts_without_evidence_and_in_the_window():
    assert {mark.verdict for mark in token_map(seen(profile="deepseek-v4-flash")).marks} == {"unknown"}
    assert token_map(seen(text="The code is 4711.", keys=["4711"])).marks[0].verdict == "raw"


def test_runs_and_windows_cover_what_they_should():
    tokens = token_map(seen())
    runs = list(tokens.runs(0, len(tokens)))
    assert [r.start for r in runs[1:]] == [r.stop for r in runs[:-1]]
    assert (runs[0].start, runs[-1].stop) == (0, len(tokens))
    assert [r.mark.number for r in runs if r.mark] == [1, 2]
    shown = windows(tokens, 10)
    assert shown[0][0] == 0
    assert shown[-1][1] == len(tokens)
    assert all(any(a <= m.start and m.stop <= b for a, b in shown) for m in tokens.marks)
    assert sum(b - a for a, b in shown) < len(tokens)
    assert windows(tokens, 10_000) == ((0, len(tokens)),)


def test_terminal_map_shows_every_token_when_asked():
    tokens = token_map(seen())
    plain = "".join(line.plain for line in render_map(tokens, everything=True))
    assert plain.count("More words.⏎") == 80
    assert "⟦ PRO|V|OC|ATIVE|-|841|7⟧" in plain
    assert len(list(render_inspection(tokens))) > 5


def test_page_holds_every_token_in_order_and_every_mark():
    tokens = token_map(seen())
    page = Page(render_page(tokens, "a <title> & more"))
    shown = ["".join("⏎\n" if c == "\n" else picture(c) for c in text) for text in tokens.texts]
    assert page.tokens == shown
    assert page.marks == [(mark.verdict, mark.start) for mark in tokens.marks]
    assert page.links <= page.ids


def test_page_is_self_contained_and_its_script_is_the_only_one_allowed():
    source = render_page(token_map(seen()), "x")
    page = Page(source)
    assert not [
        tag
        for tag, attrs in page.tags
        if {"src", "srcset"} & attrs.keys() or tag in {"link", "img", "iframe"}
    ]
    assert not re.search(r"https?:|url\(|@import", source)
    script = source.partition("<script>")[2].partition("</script>")[0]
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in source
    assert source.count("<script>") == 1


HOSTILE = '</i></div><script>alert(1)</script><img src=x onerror="alert(2)">'


def test_page_escapes_everything():
    text = f"The code {HOSTILE} is A-4711.\n\n" + HOSTILE
    inspection = seen(text=text, keys=[f"{HOSTILE} is A-4711"], answer=HOSTILE)
    report = replace(inspection.report, notes=(HOSTILE,), profile=HOSTILE)
    source = render_page(token_map(replace(inspection, report=report)), HOSTILE)
    assert "<script>alert" not in source
    assert "<img" not in source
    assert [tag for tag, attrs in Page(source).tags if "onerror" in attrs] == []


def test_page_keeps_the_blanks_around_an_answer():
    source = render_page(
        token_map(seen(text="In 17.3 the cap is EUR 5,000 net.\n", keys=["17.3", "5,000"])), "x"
    )
    assert "In <b>17.3</b> the cap" in source
    assert "EUR <b>5,000</b> net." in source


WIDE = (
    "1. The aggregate liability of Northwind Traders GmbH & Co. KG under contract MSA-2024-00871-B shall not "
    "exceed EUR 2,450,000.00 in any period of twelve months, whatever its cause.\n\n"
)


@pytest.mark.parametrize("width", [64, 80, 110, 200])
@pytest.mark.parametrize("after", [True, False])
def test_table_shows_answers_and_phases_whole_at_any_width(width, after):
    report = align_prompt(
        WIDE + "More words.\n" * 80, key_passages=[WIDE.strip()], profile="deepseek-v4.1-flash"
    ).report
    console = Console(width=width, file=StringIO())
    console.print(SpanTable(report, after=after))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.startswith("MSA-2024-00871-B ") for line in lines)
    assert any(line.startswith("2,450,000.00 ") for line in lines)
    rows = [line for line in lines[2:] if line.strip()]
    assert len(rows) == len(report.passages[0].spans)
    assert all(re.search(r"\d (strong|weak)", row) for row in rows)
    assert ("in passage" in lines[0]) == (width > 64)
    assert sum("aggre" in row or "1. The" in row for row in rows) == (width > 64)


def test_report_says_why_a_passage_was_found_and_in_which_message():
    messages = [
        {"role": "system", "content": "The vault code is PROVOCATIVE-8417.\n\n" + "More words.\n" * 80},
        {"role": "user", "content": "The vault is blue.\n\nWhich is the vault code?"},
    ]
    report = align_prompt(messages, key_passages=["8417", "blue"], profile="deepseek-v4.1-flash").report
    assert shown(report).splitlines()[2].split()[:2] == ["answer", "message"]
    found = shown(align_prompt(messages, profile="deepseek-v4.1-flash").report)
    assert "found  'The vault code is PROVOCATIVE-8417.': shares 'code', 'vault'" in found
    assert "found  " not in shown(report)


def test_report_of_a_model_without_phases_says_so():
    report = align_prompt(TEXT, key_passages=KEYS, profile="llama-3").report
    assert "a model without phases" in shown(report)
    assert "llama-3 has no phase: nothing to align" in shown(report)


def test_report_counts_strangers_where_answers_were_isolated():
    text = "so so\n\nPROVOCATIVE-8417\n\n" + "More words here. " * 20
    report = align_prompt(text, key_passages=["8417"], profile="deepseek-v4-flash").report
    (span,) = report.passages[0].spans
    lines = shown(report).splitlines()
    assert "strangers" in lines[2]
    assert f" {span.strangers_before} → {span.strangers_after} " in lines[4]
    assert f"isolated  {span.strangers_before} → {span.strangers_after} strangers" in shown(report)
    assert "not measured on deepseek-v4-flash" in shown(report)
    off = align_prompt(text, key_passages=["8417"], profile="deepseek-v4-flash", isolate=False).report
    assert "strangers" not in shown(off)


def shown(report):
    console = Console(width=200, file=StringIO())
    console.print(render_report(report))
    return console.file.getvalue()


def test_long_page_leaves_out_what_surrounds_nothing(monkeypatch):
    monkeypatch.setattr("phaseguard.show.html.MOST", 10)
    monkeypatch.setattr("phaseguard.show.html.CONTEXT", 5)
    tokens = token_map(seen())
    page = Page(render_page(tokens, "x"))
    assert len(page.tokens) < len(tokens)
    assert len(page.marks) == 2
    assert len(Page(render_page(tokens, "x", everything=True)).tokens) == len(tokens)


@pytest.mark.parametrize("profile", ["llama-3", "deepseek-v3"])
def test_a_model_without_phases_is_not_inspected(profile):
    with pytest.raises(InputError, match=f"{profile} has no phase"):
        seen(profile=profile)


def test_page_of_100k_tokens_is_small_and_quick():
    tokens = token_map(seen(text=TEXT + "Words and more words.\n" * 20_000))
    assert len(tokens) > 100_000
    assert len(render_page(tokens, "x")) < 40 * len(tokens)


@given(st.text(max_size=60))
def test_words_never_act(text):
    for shown in (visible(text), brief(text), quoted(text)):
        acting = {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
        assert acting <= {"\u200c", "\u200d"}
        assert "\n" not in shown
        assert "\x1b" not in shown
    assert len(brief(text, 20)) <= 20 or "<" in brief(text, 20)


@given(
    st.lists(st.sampled_from(["a", " ", "\r\n", "\n", "\f", "b\u2028"]), max_size=12).map("".join), st.data()
)
def test_diff_holds_both_texts(old, data):
    at = data.draw(st.integers(0, len(old)))
    new = apply_edits(old, [make_edit(old, at, min(at + 1, len(old)), "x\n", "r")])
    lines = unified_diff("f", old, new).split("\n")
    body = [line for line in lines[2:] if line[:1] in {"+", "-"}]
    assert bool(body) == (old != new)
    removed = sum(line[0] == "-" for line in body)
    added = sum(line[0] == "+" for line in body)
    assert (new.count("\n") + (not new.endswith("\n") and bool(new))) - (
        old.count("\n") + (not old.endswith("\n") and bool(old))
    ) == added - removed


def test_change_lines_point_behind_what_stays():
    text = "a\n\n\n\nb \n"
    edits = [
        make_edit(text, 1, 5, "\n\n", "surplus-blank-lines"),
        make_edit(text, 6, 7, "", "trailing-blanks"),
    ]
    assert list(change_lines("f", text, edits)) == [
        "f:3: surplus-blank-lines: '\\n\\n\\n\\n' becomes '\\n\\n'",
        "f:5: trailing-blanks: drop ' '",
    ]


@pytest.mark.parametrize(
    ("char", "shown"), [("\u200d", "\u200d"), ("\u200b", "<200B>"), ("\ud800", "<D800>")]
)
def test_pictures(char, shown):
    assert picture(char) == shown
