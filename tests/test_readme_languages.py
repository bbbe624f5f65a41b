"""README.md and README.zh-CN.md say the same: structure, figures, commands, code and links agree."""

import re
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
FIGURE = re.compile(r"\d+(?:[.,]\d+)*(?:[KMG]\b|%)?", re.ASCII)
HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class Block:
    """What a translation must keep of one heading, paragraph, list item, cell, row, code block or comment."""

    kind: str
    literal: str = ""
    empty: bool = False
    figures: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def inline_block(kind: str, token: Token) -> Block:
    """Sorted, since a sentence may order its words otherwise in another language."""
    inner = token.children or []
    words = " ".join(child.content for child in inner if child.type == "text")
    return Block(
        kind,
        empty=not token.content.strip(),
        figures=tuple(sorted(FIGURE.findall(words))),
        codes=tuple(sorted(child.content for child in inner if child.type == "code_inline")),
        links=tuple(sorted(str(child.attrs["href"]) for child in inner if child.type == "link_open")),
    )


def outline(text: str) -> list[Block]:
    """All blocks in order; the line that leads to the other language is left out."""
    found: list[Block] = []
    kind = ""
    for token in parsed(text):
        if token.type == "inline":
            found.append(inline_block(kind, token))
        elif token.type in {"fence", "code_block", "html_block"}:
            found.append(Block(token.type, literal=f"{token.info}\n{token.content}"))
        elif token.nesting == 1:
            kind = token.tag
            if token.type in {"table_open", "tr_open", "list_item_open"}:
                found.append(Block(token.type))
    return [block for block in found if block.links not in {("README.md",), ("README.zh-CN.md",)}]


def differences(one: str, other: str) -> list[str]:
    """What the second text does not keep of the first, as a diff of their blocks."""
    before, after = ([repr(block) for block in outline(text)] for text in (one, other))
    return list(unified_diff(before, after, "README.md", "README.zh-CN.md", n=1, lineterm=""))


def anchors(text: str) -> set[str]:
    """The names a link may lead to: those written out, and those GitHub makes of headings."""
    heads = [match.strip().lower() for match in re.findall(r"^#+ (?:<a [^>]*></a>)?(.*)$", text, re.M)]
    slugs = {re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in heads}
    return slugs | set(re.findall(r'<a id="([^"]+)"></a>', text))


def untranslated(text: str) -> list[str]:
    """Headings, paragraphs, items and cells with English words side by side and no Chinese character."""
    plain = ("".join(c.content for c in t.children or [] if c.type == "text") for t in parsed(text))
    return [words for words in plain if re.search("[A-Za-z]{2,} [a-z]{2,}", words) and not HAN.search(words)]


def test_the_chinese_readme_keeps_structure_figures_code_and_links() -> None:
    assert differences(ENGLISH, CHINESE) == []


def test_the_outline_sees_all_there_is() -> None:
    blocks = outline(ENGLISH)
    kinds = [block.kind for block in blocks]
    assert kinds.count("h2") == len(re.findall(r"^## ", ENGLISH, re.M))
    assert kinds.count("fence") == ENGLISH.count("\n```") // 2
    assert kinds.count("html_block") == ENGLISH.count("<!--")
    assert kinds.count("table_open") == len(re.findall(r"^\|(?:---\|)+$", ENGLISH, re.M))
    assert kinds.count("tr_open") + kinds.count("table_open") == len(re.findall(r"^\|", ENGLISH, re.M))
    assert sum(len(block.links) for block in blocks) == ENGLISH.count("](") - 1
    figures = {figure for block in blocks for figure in block.figures}
    assert figures >= {"40.2", "4,900", "128K", "26.4%", "3.11", "0.804", "0910"}


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("40.2 ", "42.0 "),
        ("4,900", "4,800"),
        ("| 0.804 | 0.748 |", "| 0.748 | 0.804 |"),
        ("26.4%", "26.4"),
        ("128K", "128"),
        ("pip install .\n", "pip install phaseguard\n"),
        ("  # a string, a list", "  # 字符串, a list"),
        ("```sh\npython tests", "```\npython tests"),
        ("| DeepSeek-V4-Pro-Base | 4 | 34.8 ", "\n"),
        ("\n## ", "\n### "),
        ("\n- `frozen=", "\n  `frozen="),
        ("`max_added_tokens=`", "`max_tokens=`"),
        ("`max_added_tokens=`", "max_added_tokens="),
        ("<!-- demo: end -->", "<!-- demo: stop -->"),
        ("(docs/lab.md)", "(docs/lab.zh-CN.md)"),
        ("\n| 3 | ", "\n| 3 | | "),
        ("V4.1 ", "V4 "),
    ],
)
def test_a_difference_is_found(written: str, wrong: str) -> None:
    assert written in CHINESE
    assert differences(CHINESE, CHINESE.replace(written, wrong, 1))


def test_missing_parts_are_found() -> None:
    lines = CHINESE.splitlines(keepends=True)
    row = next(number for number, line in enumerate(lines) if line.startswith("| DeepSeek-V4-Pro-0813"))
    assert differences(CHINESE, "".join(lines[:row] + lines[row + 1 :]))
    assert differences(CHINESE, "".join(lines[:-1]))
    assert differences(CHINESE, CHINESE + "\n还有一段。\n")


def test_the_order_of_figures_within_a_sentence_is_free() -> None:
    assert differences("40.2 of 128K, `a` and `b`.\n", "128K 中的 40.2：`b` 与 `a`。\n") == []
    assert differences("- 40.2\n- 128K\n", "- 128K\n- 40.2\n")


def test_each_readme_leads_to_the_other() -> None:
    assert ENGLISH.splitlines()[2] == "[简体中文](README.zh-CN.md)"
    assert CHINESE.splitlines()[2] == "[English](README.md)"


@pytest.mark.parametrize("text", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_links_lead_somewhere(text: str) -> None:
    targets = {link for block in outline(text) for link in block.links if not link.startswith("http")}
    assert {link[1:] for link in targets if link.startswith("#")} <= anchors(text)
    assert [link for link in targets if not (ROOT / link.split("#")[0]).exists()] == []


def test_an_anchor_that_is_missing_is_found() -> None:
    assert "calibrate" in anchors(CHINESE)
    assert "calibrate" not in anchors(CHINESE.replace('<a id="calibrate"></a>', ""))
    assert "calibrate" not in anchors(ENGLISH.replace("## Calibrate", "## Measure"))


def test_everything_is_translated() -> None:
    assert untranslated(CHINESE) == []
    assert len(untranslated(ENGLISH)) > 50
    assert untranslated("| 做 | 不做 |\n|---|---|\n| leaves tokens alone | 不动 |\n")


def test_one_word_stands_for_normalizing() -> None:
    assert CHINESE.count("规范化") >= 8
    assert not re.search("规整|归一|正规化|标准化", CHINESE)
