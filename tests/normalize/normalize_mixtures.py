"""Structured mixtures of everything that people paste into prompts."""

from __future__ import annotations

import re

from hypothesis import strategies as st
from markdown_it import MarkdownIt

BLOCKS = [
    "The supplier must pay within 30 days.",
    "A second paragraph, with `inline  code` and a [link](http://x.y).\nIt goes on. ",
    "Roses are red,  \nviolets are blue.",
    "Question: who wrote it?\nAnswer: ",
    "**Note:** read this twice.",
    "# Heading",
    "## Another one  ",
    "Title\n=====",
    "Title here\n~~~~~~~~~~",
    "==========\nOver title\n==========",
    "==========",
    "---",
    "- - - - -",
    "~~~~~~~~~~~~",
    "####",
    "##########",
    ". . .",
    "- one\n- two \n- three  ",
    "- fruit\n  - apple\n    - sour",
    "- item\n\n  its second paragraph\n\n\n      code in it",
    "1. first\n\n\n   more of it\n\n   ```\n   fenced  \n\n\n   ```",
    "10. ten\n11. eleven",
    "> quoted \n> more",
    "> ```\n> a\n> ```",
    "```python\ndef f():\n    return  1  \n\n\nx = 2\n```",
    "```\nplain fence \n```",
    "  ```\n  indented fence\n\n\n  ```",
    "~~~\ntilde\n\n\n\n~~~",
    "```never closed",
    "    indented code  \n\n\n    more",
    "| a | b |\n|---|---|\n| 1 |  |",
    "name      qty   price\nbolt       12    0.40",
    "src/\n├── app.py\n└── README.md",
    "def f(x):\n    if x:\n        return 1\n\n\n    return 2",
    "import os\n\n\nclass A:\n    pass",
    '"""Module docs.\n\n\nMore docs.\n"""\nimport os',
    '"""\nOnly quoted prose.\n"""',
    'x = """a\n\n\nb"""',
    "#!/bin/sh\nset -e\n\n\ncat <<EOF\nhello \n\n\nworld\nEOF",
    "# a comment\n# and another",
    "/* comment\n\n\n * more\n */\nint main(void) {\n  return 0;\n}",
    '{\n  "a": 1,\n\n\n  "b": [1, 2]\n}',
    '{"a": 1}\n{"a": 2}',
    "key: value\nother_key: 12\nnested:\n  - a",
    "id,name,qty\n1,bolt,12\n2,nut,7",
    "a\tb\tc\n1\t2\t3",
    "2024-05-01 10:00:00,123 INFO started \n2024-05-01 10:00:01,123 ERROR failed",
    "SELECT a,\n       b\nFROM t\nWHERE a = 1;",
    "INSERT INTO t VALUES('a\n\n\nb');",
    "[core]\neditor = vim ",
    "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-a \n+a\n \n \n",
    "<<<<<<< HEAD\nmine \n\n\n=======\nyours\n>>>>>>> branch",
    "$$\na \n\n\nb\n$$",
    "\\begin{verse}\na \n\n\nb\n\\end{verse}",
    "<!-- a\n\n\nb -->",
    "<div>\n\n\n<p>text </p>\n</div>",
    "<pre>\na\n\n\nb</pre>",
    "<context>",
    "<document>\nProse in a tag. \n</document>",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "1\n00:00:01,000 --> 00:00:04,000\nHello there ",
    "From: a@b.c\nTo: d@e.f\nSubject: hi",
    "Yours truly,\n-- \nJohn Smith ",
    "all: build\n\t$(CC) -o app main.c",
    "او کتاب\u200cها را می\u200cخواند.",
    "क्\u200dष और नहीं\u200c ठीक है।",
    "ภาษาไทย\u200bไม่มีช่องว่าง",
    "患者　山田太郎　残量　３０日",
    "中文段落，没有空格。 \n第二行",
    "On call: 👩\u200d💻 and ❤️\u200d🩹 ",
    "The in\u200bvoice\ufeff number is 8417.",
    "Zero\u200b \u200bwidth \u200b\nat\u2060 ends\u200b",
    "Le total est de 1\u202f250\u00a0€ ; merci !",
    "It costs $5 \\ \nand more.",
    "A code `span \nover lines` here. ",
    " /\\_/\\\n( o.o )\n > ^ <",
    "The  supplier   must pay within  30 days.",
    "\u200b",
    "\ufeff# Heading behind a mark",
    "   three blanks in front",
    "\tone tab in front",
    "-",
    "*",
    "word",
    "\\",
    "`",
    "```",
]
PADS = (" \n", "\t \n", " \t \t\n", " \t \t \t\n")
DECORATION = frozenset(" \t\r\n\u200b\u200c\u200d\u2060\ufeff=-*_~#+─━═")
JOINTS = [
    "\n\n",
    "\n\n",
    "\n",
    "\n\n\n",
    "\n\n\n\n\n",
    "\n \n",
    "\n\t\n\n",
    " \n\n",
    "  \n",
    "\r\n\r\n",
    "\r\n",
    " \r\n \r\n",
]
EDGES = ["", "\n", "\n\n\n", "  \n\n", " ", "\r\n", "\ufeff", "\t"]

blocks = st.sampled_from(BLOCKS)
noise = st.text(alphabet="ab A1.,:;`~-*_=#>|<\\$[]{}()\"'/ \t\n\r\u200b\u200d\ufeffé中", max_size=24)


@st.composite
def mixtures(draw: st.DrawFn) -> str:
    """A text of up to eight blocks, joined in many ways, some with noise between."""
    parts = [draw(st.sampled_from(EDGES))]
    for part in draw(st.lists(st.one_of(blocks, blocks, blocks, noise), min_size=1, max_size=8)):
        parts += [part, draw(st.sampled_from(JOINTS))]
    parts[-1] = draw(st.sampled_from(EDGES))
    return "".join(parts)


_MARKDOWN = MarkdownIt("commonmark").enable("table")
_OWN_READING = re.compile(r"~~~|^ {0,3}</?\w[^\n]*\n(?:[^\S\n]*\S[^\n]*\n)*? {0,3}```", re.MULTILINE)


def render(text: str) -> str:
    """What a Markdown reader sees; nothing where a fence is on purpose read otherwise than by CommonMark."""
    return "" if _OWN_READING.search(text.replace("\r", "")) else _MARKDOWN.render(text)
