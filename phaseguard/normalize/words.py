"""Word lists: what HTML calls its elements, and how statements and log entries begin."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HTML_NAMES = _words(
    """
    a abbr address article aside audio b base blockquote body br button canvas caption center code col
    colgroup dd del details dialog dir div dl dt em embed fieldset figcaption figure font footer form
    frame frameset h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend li link
    main map menu meta nav noscript object ol optgroup option p param picture pre s samp script section
    select small span strong style sub summary sup svg table tbody td template textarea tfoot th thead
    title tr track tt u ul var video
    """
)
"""Elements of HTML; tags of other names are those of a prompt's author."""

PAIRED_TAGS = _words(
    """
    article aside blockquote body center details div dl fieldset figure footer form head header html
    main nav object ol pre script section select style svg table tbody template textarea thead tr ul
    """
)
"""Elements that hold blocks and are protected from the opening tag to the closing one."""

STATEMENT_STARTS = _words(
    """
    ADD ALTER AND ARG Apr Aug BEGIN CMD COMMENT COMMIT COPY CREATE CRITICAL CROSS Caused D DEBUG DECLARE
    DELETE DROP Dec E END ENTRYPOINT ENV ERROR EXPLAIN EXPOSE F FATAL FROM FULL Feb File Fri GET GRANT
    GROUP HAVING HTTP I INFO INNER INSERT Index JOIN Jan Jul Jun LABEL LEFT Mar May Mon NOTICE Nov ON OR
    ORDER OUTER Oct POST PRAGMA PUT RETURNS REVOKE RIGHT ROLLBACK RUN SELECT SET SEVERE Sat Sep Sun
    TRACE TRUNCATE Thu Traceback Tue UPDATE USER V VALUES VOLUME W WARN WARNING WEBVTT WHERE WITH
    WORKDIR Wed alias apt assert async at awk case cat cd char chmod class const cp curl debug def del
    diff docker echo elif else error eval except exec export extern fatal finally fn for from func
    function git global grep if import include index info int let local match mkdir module mv namespace
    nonlocal npm package pip print private protected public raise return rm sed set shift source static
    sudo switch test trap try type unset use using var void warn warning wget while with yield
    """
)
"""First words that make a line worth a closer look."""

TEXT_FENCES = _words(
    """
    console csv diff json jsonl log markdown md output patch rst text tsv txt
    """
)
"""Languages of fences that hold no code with comments."""

COLON_STARTS = _words("if elif for while with try except else finally match case switch")
"""Those of them that open a statement only with a colon at the end of their line."""
