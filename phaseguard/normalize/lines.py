r"""What single lines give away: patterns that tell code, logs and markup from prose.

Every pattern starts at a newline, so a block is searched as ``"\n" + block``. Wrapped prose must survive
them, so a pattern asks for the whole shape of a statement, never for a keyword alone. Patterns that need a
certain character are kept apart by it: most blocks of prose lack it, and are done after a few look-ups.
"""

from __future__ import annotations

import re

_LEAD = r"\n[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?"
_END = r"[ \t]*(?=\n|\Z)"

_CODE_WITH_COLON = rf"""
    class[ ]\w+(?:[ ]*\([^\n]*\))?: | (?:el)?if[ ][^\n]*:{_END} | for[ ][^\n]*[ ]in[ ][^\n]*:{_END}
  | while[ ][^\n]*:{_END} | with[ ][^\n]*\([^\n]*:{_END} | (?:try|else|finally):{_END} | except\b[^\n]*:{_END}
  | In[ ]\[\d+\]: | Out\[\d+\]: | \w[\w.]*Error:[ ] | ::
"""
_CODE_WITH_PARENTHESIS = rf"""
    (?:async[ ])?def[ ]\w+[ ]*[(\[] | [\w.]+\([^\n]*\)[;,]?{_END} | [a-z_][\w.]*\([^)\n]*{_END}
  | (?:return|raise|yield|del|assert)[ ][\w.]+\( | \)[;,)]*{_END} | Traceback[ ]\( | [\w-]+\(\)[ ]*{_END}
  | call[ ][<\w:]+\( | at[ ][\w$.<>]+\(
"""
_CODE_WITH_EQUALS = r"""
    \*{0,2}[A-Za-z_$][\w.$]*(?:\[[^\]\n]*\])*(?:,[ ]?[A-Za-z_][\w.]*)*
        (?::[ ]?[\w\[\]., |"']+)?[ ]*(?:[-+*/|&%^:?]|\*\*|//|<<|>>)?=(?![=>])[ ]*\S
"""
_CODE_WITH_SEMICOLON = rf"""
    (?:return|break|continue|goto|throw|use|using|import|package|namespace|include)\b[^\n]*;{_END}
"""
_CODE_LOWER = rf"""
    from[ ][\w.]+[ ]import[ ] | import[ ][\w.]+(?:[ ]as[ ]\w+)?(?:,[ ]?[\w.]+(?:[ ]as[ ]\w+)?)*{_END}
  | (?:return|raise|yield|del|assert)[ ](?:[\w.]+\[[^\n]*|[^\n]*[)\]}}]|[\w.]+[ ][-+*/%<>=!]+[ ][^\n]*){_END}
  | (?:return|raise|global|nonlocal|del)[ ][\w.'"]+{_END}(?=\n[ ]|\Z) | print[ ]["']
  | (?:pass|break|continue|return|fi|done|esac|then|do|end|endif|endfunction|begin){_END}
  | (?:public|private|protected|static|const|let|var|export|extern|typedef|struct|enum|union|inline
      |unsigned|void|int|char|float|double|bool|auto|template|namespace|fn|func|function|impl|pub|mod
      |module|interface|trait|type|abstract|final|signed|long|short|sub)\b[^\n]*[(){{;=<>]{_END}
  | (?:ifdef|ifndef|ifeq|ifneq|endif|endef|override|vpath|undefine)\b | include[ ]\$ | rem[ ]
  | (?:syn|syntax|hi|highlight|unlet|runtime|autocmd|setlocal|command|augroup)!?
        [ ](?:[\w:/.]+[ ]?){{1,3}}[^\n.]*{_END}
  | (?:export|alias|unset|source|sudo|echo|cd|mkdir|rm|cp|mv|apt|apt-get|pip|npm|git|docker|curl|wget|chmod
      |cat|grep|sed|awk|set|local|readonly|shift|trap|exec|eval|printf|test)[ ]
        (?:[^\n]*[-$/"'=|\\][^\n]*|\w+){_END}
  | (?:if|while|until|elif)[ ](?:\[|!|test[ ]) | case[ ][^\n]*[ ]in{_END}
  | [a-z]\w*[ ](?:[-+*/%]|//|\*\*)[ ][\w.]+{_END}
"""
_CODE_UPPER = rf"""
    File[ ]"[^"\n]*",[ ]line | REM[ ] | [A-Z][a-z]+-[A-Z][A-Za-z]+[ ]["'$-]
  | (?:FROM|RUN|CMD|COPY|ADD|ENV|WORKDIR|EXPOSE|ENTRYPOINT|LABEL|ARG|VOLUME|USER)[ ][^\n]*[/:$\[="]
  | SELECT[ ] | INSERT[ ]INTO[ ] | UPDATE[ ]\S+[ ]SET\b | DELETE[ ]FROM[ ] | FROM[ ][\w."]+[;,)]?{_END}
  | (?:CREATE|DROP|ALTER|TRUNCATE)[ ](?:OR|TABLE|VIEW|INDEX|UNIQUE|TRIGGER|FUNCTION|PROCEDURE|SCHEMA|TYPE|ROLE
      |USER|DATABASE|SEQUENCE|EXTENSION|TEMP|TEMPORARY|MATERIALIZED|VIRTUAL|AGGREGATE|OPERATOR|CAST|DOMAIN|RULE
      |POLICY)\b
  | WHERE[ ][^\n]*[=<>(] | (?:GROUP|ORDER)[ ]BY[ ] | VALUES[ ]*\( | (?:BEGIN|COMMIT|ROLLBACK|END)\b;?{_END}
  | (?:(?:LEFT|RIGHT|INNER|OUTER|CROSS|FULL)[ ])+JOIN[ ] | JOIN[ ]\S+[ ] | PRAGMA[ ] | GRANT[ ] | REVOKE[ ]
  | EXPLAIN[ ] | DECLARE[ ] | RETURNS[ ] | COMMENT[ ]ON[ ] | (?:AND|OR|ON|SET|WITH)[ ][^\n]*[=<>(]
"""
_CODE_MARKS = rf"""
    @\w | __[A-Z]+__{_END} | >>>[ ] | \.\.\.[ ] | [}}\]] | _\w*[ ](?:[-+*/%]|//|\*\*)[ ][\w.]+{_END}
  | \#[ ]*(?:include|define|undef|ifdef|ifndef|if|endif|else|elif|pragma|error)\b[^\n]*[<"(_A-Z]
  | \#(?:endif|else)\b | \#! | \#[^\s\#] | // | --\w | /\* | \*/ | --[ ] | --{_END} | ;[;]? | %[ %\w]
  | "[ ] | [$%>][ ]\S | \$[({{\w]
"""
_LOGS_WITH_COLON = r"""
    [\[(<]?\d{4}[-/.]\d\d[-/.]\d\d[T ,_]+\d\d:\d\d | [\[(]?\d\d:\d\d:\d\d\b
  | [\[<]\d+(?:\.\d+)?[\]>][ ]*(?:\w+[\[:]|<|\S+:)
  | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ ]+\d+[ ]\d\d:\d\d | Caused[ ]by:
  | \d+:\d+: | [\w./-]+:\d+(?::\d+)?: | ["'][\w.-]+["'][ ]*: | \[[^\]\n]+\]: | :[\w-]+:
"""
_LEVELS = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE"
_LEVEL_END = r"(?:\]|:|[ ]*[-|\[]|[ ]+\d|[ ]{2,})"
_TEXT_LOWER = rf"""
    (?:{_LEVELS.lower()}){_LEVEL_END} | (?=[a-f]+\d)[0-9a-f]{{6,}}(?:[ :]|{_END}) | diff[ ] | index[ ][0-9a-f]
"""
_TEXT_UPPER = rf"""
    (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[ ](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ ]
  | (?:{_LEVELS}){_LEVEL_END} | [VDIWEF]/\w | WEBVTT\b | HTTP/\d | (?:GET|POST|PUT)[ ]/ | Index:[ ]
"""
_TEXT_MARKS = rf"""
    \[[ ]*\d+\.\d+\] | \[(?:{_LEVELS}|{_LEVELS.lower()})\] | \d{{1,3}}(?:\.\d{{1,3}}){{3}}\b
  | \d[0-9a-f]{{5,}}(?:[ :]|{_END}) | 0x[0-9a-fA-F]+
  | <[/!?A-Za-z] | \\[a-zA-Z]+ | \$\$ | \.\.[ ] | \.[\w\\] | [{{](?![\w|., ]+\}}) | \[{_END}
  | \[[^\]\n]+\]{_END} | \| | @@ | \+\+\+ | <{{7}} | >{{7}} | -----(?:BEGIN|END) | `{{3}} | ~{{3}}
  | \+[-=+]+\+ | [&^/;,?\\] | [!](?!\[) | \*[A-Za-z_]\w*(?![\w*\s.,'’-])
"""


def _lines_like(*patterns: str) -> re.Pattern[str]:
    return re.compile(_LEAD + "(?:" + "|".join(patterns) + ")", re.VERBOSE)


_ENDS = re.compile(
    r"""\n(?:(?<=[{|]\n)|(?<=[ ]\\\n)|(?<=[ ]\.\.\.\n)|(?<=[)}\]"'=>];\n)|(?<=\)[ ];\n)|(?<=-->\n))"""
)
_ALWAYS = _lines_like(
    f"(?=[a-z])(?:{_CODE_LOWER}|{_TEXT_LOWER})",
    f"(?=[A-Z])(?:{_CODE_UPPER}|{_TEXT_UPPER})",
    f"(?![A-Za-z])(?:{_CODE_MARKS}|{_TEXT_MARKS})",
)
_BY_CHARACTER = (
    (":", _lines_like(_CODE_WITH_COLON, _LOGS_WITH_COLON)),
    ("(", _lines_like(_CODE_WITH_PARENTHESIS)),
    ("=", _lines_like(_CODE_WITH_EQUALS)),
    (";", _lines_like(_CODE_WITH_SEMICOLON)),
    ("@", re.compile(r"\n[\w-]+@[\w.-]+[:~][^\n]*[$#]")),
    ("-->", re.compile(r"--> ?\d")),
)
_PICTURE = re.compile(r"[─-▟←-⇿]")
_PICTURE_BYTES = (b"\xe2\x94", b"\xe2\x95", b"\xe2\x96", b"\xe2\x86", b"\xe2\x87")

CODE_LINE = _lines_like(
    _CODE_LOWER,
    _CODE_UPPER,
    _CODE_MARKS,
    _CODE_WITH_COLON,
    _CODE_WITH_PARENTHESIS,
    _CODE_WITH_EQUALS,
    _CODE_WITH_SEMICOLON,
)
"""A line that is a statement of a programming language."""

RULE_LINE = re.compile(r" {0,3}(?P<rule>(?P<char>[=\-*_~#+─━═])(?:(?P=char){2,}|(?: (?P=char)){2,}))[ \t]*")
"""A line of one repeated rule character, set tight or with single spaces."""

LIST_LINE = re.compile(r"[ \t]*(?:[-*+•]|\d{1,9}[.)]|\[\w{1,4}\])(?:[ \t]+|$)")
"""A line that opens a list item."""


def has_zone_line(padded: str) -> bool:
    r"""Whether one of the lines puts its whole block out of bounds: it is code, markup or an entry of a log.

    Args:
        padded: lines without trailing blanks, a newline in front of the first and behind each.

    >>> has_zone_line("\nfor x in y:\n"), has_zone_line("\nFor all of them:\n")
    (True, False)
    """
    if _ENDS.search(padded) or _ALWAYS.search(padded):
        return True
    return any(mark in padded and pattern.search(padded) for mark, pattern in _BY_CHARACTER)


def has_picture(padded: str) -> bool:
    """Whether box drawing, blocks or arrows stand in a text.

    >>> has_picture("├── app.py"), has_picture("a “quoted” word")
    (True, False)
    """
    if padded.isascii():
        return False
    raw = padded.encode("utf-8", "surrogatepass")
    return any(map(raw.__contains__, _PICTURE_BYTES)) and _PICTURE.search(padded) is not None
