"""What single lines give away: patterns that tell code, logs and markup from prose.

Every pattern starts at a newline, so a block is searched as ``"\\n" + block``. Wrapped prose must survive
them, so a pattern asks for the whole shape of a statement, never for a keyword alone.
"""

from __future__ import annotations

import re

_LEAD = r"\n[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?"
_END = r"[ \t]*(?=\n|\Z)"

_PYTHON = rf"""
    (?:async[ ])?def[ ]\w+[ ]*[(\[]
  | class[ ]\w+(?:[ ]*\([^\n]*\))?:
  | from[ ][\w.]+[ ]import[ ]
  | import[ ][\w.]+(?:[ ]as[ ]\w+)?(?:,[ ]?[\w.]+(?:[ ]as[ ]\w+)?)*{_END}
  | (?:el)?if[ ][^\n]*:{_END}
  | for[ ][^\n]*[ ]in[ ][^\n]*:{_END}
  | while[ ][^\n]*:{_END}
  | with[ ][^\n]*\([^\n]*:{_END}
  | (?:try|else|finally):{_END}
  | except\b[^\n]*:{_END}
  | (?:return|raise|yield|del|assert)[ ](?:[\w.]+[(\[][^\n]*|[^\n]*[)\]}}]|[\w.]+[ ][-+*/%<>=!]+[ ][^\n]*){_END}
  | (?:return|raise|global|nonlocal|del)[ ][\w.'"]+{_END}(?=\n[ ]|\Z) | print[ ]["']
  | (?:pass|break|continue|return|fi|done|esac|then|do|end|endif|endfunction|begin){_END}
  | @\w | __[A-Z]+__{_END}
  | >>>[ ] | \.\.\.[ ] | In[ ]\[\d+\]: | Out\[\d+\]:
  | Traceback[ ]\( | File[ ]"[^"\n]*",[ ]line
  | [\w.]*Error:[ ]
"""

_STATEMENTS = rf"""
    \*{{0,2}}[A-Za-z_$][\w.$]*(?:\[[^\]\n]*\])*(?:,[ ]?[A-Za-z_][\w.]*)*
        (?::[ ]?[\w\[\]., |"']+)?[ ]*(?:[-+*/|&%^:?]|\*\*|//|<<|>>)?=(?![=>])[ ]*\S
  | [\w.]+\([^\n]*\)[;,]?{_END}
  | [a-z_][\w.]*\([^)\n]*{_END}
  | [}}\]] | \)[;,)]*{_END}
  | (?:return|break|continue|goto|throw|use|using|import|package|namespace|include)\b[^\n]*;{_END}
  | (?:public|private|protected|static|const|let|var|export|extern|typedef|struct|enum|union|inline
      |unsigned|void|int|char|float|double|bool|auto|template|namespace|fn|func|function|impl|pub|mod
      |module|interface|trait|type|abstract|final|signed|long|short)\b[^\n]*[(){{;=<>]{_END}
  | \#[ ]*(?:include|define|undef|ifdef|ifndef|if|endif|else|elif|pragma|error)\b[^\n]*[<"(_A-Z]
  | \#(?:endif|else)\b
  | [a-z_]\w*[ ](?:[-+*/%]|//|\*\*)[ ][\w.]+{_END}
  | \#! | \#[^\s\#] | // | --\w | /\* | \*/ | --[ ] | --{_END} | ;[;]? | %[ %\w]
"""

_SHELL = rf"""
    (?:ifdef|ifndef|ifeq|ifneq|endif|endef|override|vpath|undefine)\b | include[ ]\$ | REM[ ] | rem[ ] | ::
  | (?:syn|syntax|hi|highlight|unlet|runtime|autocmd|setlocal|command|augroup)!?[ ](?:[\w:/.]+[ ]?){{1,3}}[^\n.]*{_END}
  | "[ ] | [A-Z][a-z]+-[A-Z][A-Za-z]+[ ]["'$-] | call[ ][<\w:]+\( | sub[ ]\w+[ ]*[{{;]
  |
    [$%>][ ]\S | \$[({{\w] | [\w-]+@[\w.-]+[:~][^\n]*[$\#]
  | (?:export|alias|unset|source|sudo|echo|cd|mkdir|rm|cp|mv|apt|apt-get|pip|npm|git|docker|curl|wget|chmod
      |cat|grep|sed|awk|set|local|readonly|shift|trap|exec|eval|printf|test)[ ]
        (?:[^\n]*[-$/"'=|\\][^\n]*|\w+){_END}
  | (?:if|while|until|elif)[ ](?:\[|!|test[ ])
  | case[ ][^\n]*[ ]in{_END} | [\w-]+\(\)[ ]*{_END}
  | (?:FROM|RUN|CMD|COPY|ADD|ENV|WORKDIR|EXPOSE|ENTRYPOINT|LABEL|ARG|VOLUME|USER)[ ][^\n]*[/:$\[="]
"""

_SQL = rf"""
    SELECT[ ] | INSERT[ ]INTO[ ] | UPDATE[ ]\S+[ ]SET\b | DELETE[ ]FROM[ ] | FROM[ ][\w."]+[;,)]?{_END}
  | (?:CREATE|DROP|ALTER|TRUNCATE)[ ](?:OR|TABLE|VIEW|INDEX|UNIQUE|TRIGGER|FUNCTION|PROCEDURE|SCHEMA|TYPE|ROLE|USER
      |DATABASE|SEQUENCE|EXTENSION|TEMP|TEMPORARY|MATERIALIZED|VIRTUAL|AGGREGATE|OPERATOR|CAST|DOMAIN|RULE|POLICY)\b
  | WHERE[ ][^\n]*[=<>(] | (?:GROUP|ORDER)[ ]BY[ ] | VALUES[ ]*\( | (?:BEGIN|COMMIT|ROLLBACK|END)\b;?{_END}
  | (?:(?:LEFT|RIGHT|INNER|OUTER|CROSS|FULL)[ ])+JOIN[ ] | JOIN[ ]\S+[ ] | PRAGMA[ ] | GRANT[ ] | REVOKE[ ]
  | EXPLAIN[ ] | DECLARE[ ] | RETURNS[ ] | COMMENT[ ]ON[ ] | (?:AND|OR|ON|SET|WITH)[ ][^\n]*[=<>(]
"""

_LOGS = rf"""
    [\[(<]?\d{{4}}[-/.]\d\d[-/.]\d\d[T ,_]+\d\d:\d\d
  | [\[(]?\d\d:\d\d:\d\d\b | [\[<]\d+(?:\.\d+)?[\]>][ ]*(?:\w+[\[:]|<|\S+:) | \[[ ]*\d+\.\d+\]
  | (?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[ ](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ ]
  | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ ]+\d+[ ]\d\d:\d\d
  | \[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE|debug|info|warn|warning|error|fatal)
        (?:\]|:|[ ]*[-|\[]|[ ]+\d|[ ]{{2,}}) | [VDIWEF]/\w
  | \d{{1,3}}(?:\.\d{{1,3}}){{3}}\b | at[ ][\w$.<>]+\( | Caused[ ]by: | WEBVTT\b
  | [0-9a-f]{{6,}}(?:[ :]|{_END}) | 0x[0-9a-fA-F]+ | \d+:\d+: | [\w./-]+:\d+(?::\d+)?: | HTTP/\d | (?:GET|POST|PUT)[ ]/
"""

_MARKUP = rf"""
    <[/!?A-Za-z] | \\[a-zA-Z]+ | \$\$ | :[\w-]+: | \.\.[ ] | \.[\w\\] | [{{](?![\w|., ]+\}}) | \[{_END}
  | \[[^\]\n]+\]{_END} | \[[^\]\n]+\]: | \| | @@ | \+\+\+ | diff[ ] | index[ ][0-9a-f]
  | Index:[ ] | ={{7}}{_END}(?=\n[^\n]*\n>{{7}}) | <{{7}} | >{{7}} | -----(?:BEGIN|END) | `{{3}} | ~{{3}}
  | \+[-=+]+\+ | ["'][\w.-]+["'][ ]*: | [&^/;,?\\] | [!](?!\[) | \*[A-Za-z_]\w*(?![\w*\s.,'’-])
"""

_ZONE_ENDS = (
    "{\n", "|\n", " \\\n", " ...\n", ");\n", "};\n", "];\n", '";\n', "';\n", "=;\n", ">;\n", ") ;\n", "-->\n"
)
_ZONE_ANYWHERE = re.compile(r"[─-▟←-⇿]|--> ?\d")

ZONE_LINE = re.compile(
    _LEAD + "(?:" + "|".join((_PYTHON, _STATEMENTS, _SHELL, _SQL, _LOGS, _MARKUP)) + ")", re.VERBOSE
)
"""A line that puts its whole block out of bounds."""


def has_zone_line(padded: str) -> bool:
    """Whether a line of ``padded``, lines without trailing blanks behind a newline each, is not prose.

    >>> has_zone_line("\\nfor x in y:\\n"), has_zone_line("\\nFor all of them:\\n")
    (True, False)
    """
    if any(map(padded.__contains__, _ZONE_ENDS)) or ZONE_LINE.search(padded):
        return True
    return (not padded.isascii() or "-->" in padded) and _ZONE_ANYWHERE.search(padded) is not None


CODE_LINE = re.compile(r"\n[ \t]*(?:" + "|".join((_PYTHON, _STATEMENTS, _SHELL)) + ")", re.VERBOSE)
"""A line that is a statement of a programming language."""

RULE_LINE = re.compile(r" {0,3}(?P<rule>(?P<char>[=\-*_~#+─━═])(?:(?P=char){2,}|(?: (?P=char)){2,}))[ \t]*")
"""A line of one repeated rule character, set tight or with single spaces."""

LIST_LINE = re.compile(r"[ \t]*(?:[-*+•]|\d{1,9}[.)]|\[\w{1,4}\])(?:[ \t]+|$)")
"""A line that opens a list item."""
