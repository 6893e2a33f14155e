"""Search filters -> SQL conditions. `sql_literal` is the only place that quotes a text for SQL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from anchord.core.query_syntax import phrase_regex
from anchord.core.quoting import ESCAPED_CHARACTER, unescape_line
from anchord.core.types import DatedFiles, SearchFilters
from anchord.errors import UsageError

MAX_HEADINGS = 32
"""Of a section: its condition grows with their square."""
MAX_TEXT_CONDITIONS = 100
"""Phrases, prefixes and excluded words together: each is looked for in every row."""
MAX_PATH_WILDCARDS = 50
_MAX_VALUES = 1_000
_MAX_EXPANDED_WORDS = 30
_GLOB_TOKEN = re.compile(r"(\*\*/|\*\*|\*|\?)")
_GLOB_REGEX = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_WILDCARD_IN_LAST_PART = re.compile(r"[*?][^/]*$")


def refuse_unknown_columns(filters: SearchFilters, columns: Collection[str]) -> None:
    """Refuse filters that need a column which a table of an older version lacks.

    Args:
        filters: The filters.
        columns: The table's columns.

    Raises:
        UsageError: A column is missing.
    """
    if (filters.chunk_type or filters.languages) and "chunk_type" not in columns:
        raise UsageError(
            "the index is of an older version: it does not know types and languages yet",
            "`anchord index` updates it",
        )


def sql_condition(filters: SearchFilters) -> str:
    """Return the SQL condition of some filters; "" if they let every row through.

    Raises:
        UsageError: A filter has more parts than the limits above.
    """
    _check_limits(filters)
    clauses = []
    for column in ("root", "kind", "room", "session", "chunk_type", "branch"):
        value = getattr(filters, column)
        if value:
            clauses.append(f"{column} = {sql_literal(value)}")
    clauses += _conversation_clauses(filters)
    if filters.languages:
        names = "|".join(map(re.escape, filters.languages))
        clauses.append(_matches("language", f"(^| )({names})( |$)"))
    if filters.since or filters.until:
        clauses.append(f"({_exchange_was_then(filters)} OR {_file_changed_then(filters)})")
    if filters.section:
        headings = [heading.strip() for heading in filters.section.split(">")]
        clauses.append(_in_section(headings))
    if filters.path_glob:
        clauses.append(_matches("path", _glob_regex(filters.path_glob)))
    clauses += [_has_text(phrase_regex(phrase)) for phrase in filters.required_phrases]
    clauses += [
        _has_text(phrase_regex(prefix, is_prefix=True)) for prefix in filters.required_prefixes
    ]
    clauses += [f"NOT {_has_text(phrase_regex(phrase))}" for phrase in filters.excluded_phrases]
    return " AND ".join(clauses)


def _conversation_clauses(filters: SearchFilters) -> list[str]:
    clauses: list[str] = []
    if filters.agent:
        clauses.append(_matches("source", f"(?i){re.escape(filters.agent)}"))
    if filters.tool:
        clauses.append(_matches("tools", rf"(?im)^\[{re.escape(filters.tool)}\]"))
    if filters.projects is not None:
        listed = " OR ".join(sql_in_conditions("project", filters.projects))
        clauses.append(f"({listed})" if listed else "false")
    if filters.touched:
        end = re.escape(filters.touched)
        is_changed = _matches("files", rf"(?m)(^|[/\\]){end}$")
        is_named = _matches("tools", rf"(?m)(^|[^\w.-]){end}($|[^\w/-])")
        clauses.append(f"({is_changed} OR {is_named})")
    return clauses


def _exchange_was_then(filters: SearchFilters) -> str:
    conditions = ["at != ''"]
    if filters.since:
        conditions.append(f"until >= {sql_literal(filters.since)}")
    if filters.until:
        conditions.append(f"at < {sql_literal(filters.until)}")
    return f"({' AND '.join(conditions)})"


def _file_changed_then(filters: SearchFilters) -> str:
    files = filters.dated_files or DatedFiles(())
    if not files.doc_ids:
        return "(source = '')" if files.is_complement else "false"
    listed = _is_one_of("doc_id", files.doc_ids)
    return f"(source = '' AND {'NOT ' if files.is_complement else ''}{listed})"


def _is_one_of(column: str, values: Sequence[str]) -> str:
    return f"{column} IN ({', '.join(map(sql_literal, values))})"


def _check_limits(filters: SearchFilters) -> None:
    text_conditions = (
        *filters.required_phrases,
        *filters.required_prefixes,
        *filters.excluded_phrases,
    )
    counted = (
        (filters.section.count(">") + 1, MAX_HEADINGS, "a section of {} headings"),
        (len(text_conditions), MAX_TEXT_CONDITIONS, "a query of {} phrases, prefixes and -words"),
        (len(_GLOB_TOKEN.findall(filters.path_glob)), MAX_PATH_WILDCARDS, "a path of {} wildcards"),
    )
    for count, limit, description in counted:
        if count > limit:
            raise UsageError(description.format(f"{count:,}"), f"use at most {limit}")


def sql_in_conditions(column: str, values: Sequence[str]) -> list[str]:
    """Return conditions that together match each row whose column has one of some values.

    Args:
        column: The column's name.
        values: The values; repeats count once.

    Returns:
        One `column IN (...)` for each 1,000 values; empty if there are no values.
    """
    unique = list(dict.fromkeys(values))
    parts = (unique[start : start + _MAX_VALUES] for start in range(0, len(unique), _MAX_VALUES))
    return [_is_one_of(column, part) for part in parts]


def frequent_words_with_prefix(texts: Sequence[str], prefixes: Sequence[str]) -> set[str]:
    """Return the 30 most frequent words that start with a prefix, in lower case."""
    patterns = [re.compile(phrase_regex(prefix, is_prefix=True) + r"\w*") for prefix in prefixes]
    counts: Counter[str] = Counter()
    for text in texts:
        for pattern in patterns:
            counts.update(map(str.lower, pattern.findall(text)))
    return {word for word, _ in counts.most_common(_MAX_EXPANDED_WORDS)}


def sql_literal(text: str) -> str:
    """Quote a text as a SQL literal: the quote is the only character with a meaning inside."""
    return "'" + text.replace("'", "''") + "'"


def _in_section(headings: Sequence[str]) -> str:
    """Return the condition that a chunk lies in a section.

    A chunk can lie below all headings (its `header_path` has them), or hold the last of them in its
    own text, because short sections share a chunk. So there is one alternative for each place where
    the path can be divided into headings above the chunk and headings inside it.

    Args:
        headings: The section's path, outermost heading first.
    """
    alternatives = [_below_headings(headings)]
    for count in range(len(headings)):
        above, inside = headings[:count], headings[count:]
        condition = _holds_headings(inside)
        if above:
            condition = f"({_below_headings(above)} AND {condition})"
        alternatives.append(condition)
    return f"({' OR '.join(alternatives)})"


def _below_headings(headings: Sequence[str]) -> str:
    path = re.escape(" > ".join(headings))
    return _matches("header_path", rf"(?i)(^|> ){path}($| >)")


def _holds_headings(headings: Sequence[str]) -> str:
    lines = [rf"^#{{1,6}}[ \t]+{re.escape(heading)}[ \t#]*$" for heading in headings]
    return _matches("text", f"(?ims){'.*'.join(lines)}")


def _has_text(pattern: str) -> str:
    return _matches("search_text", pattern)


def _matches(column: str, pattern: str) -> str:
    return f"regexp_like({column}, {sql_literal(pattern)})"


def _glob_regex(glob: str) -> str:
    """Return the regular expression of a glob, by the rules of .gitignore.

    `*` stays in a folder, `**` does not. A glob without "/" matches the name in any folder. A
    folder's name matches everything in the folder, unless the name has a wildcard.
    """
    path = glob.removesuffix("/")
    parts = _GLOB_TOKEN.split(path.removeprefix("/"))
    regexes = [_GLOB_REGEX.get(part) or _literal_regex(part) for part in parts]
    body = "".join(regexes)
    if path != glob:
        inside = "/.*"  # A "/" at the end: only what is in the folder.
    elif _WILDCARD_IN_LAST_PART.search(path):
        inside = ""
    else:
        inside = "(/.*)?"
    if "/" in path:
        return f"^{body}{inside}$"
    return f"(^|/){body}{inside}$"


def _literal_regex(text: str) -> str:
    r"""Match a text as it is. An escape such as `\u{1b}` also matches its character.

    Answers show the character so, and a path from an answer must find its file.
    """
    regexes: list[str] = []
    end = 0
    for escape in re.finditer(ESCAPED_CHARACTER, text):
        before = re.escape(text[end : escape.start()])
        character = re.escape(unescape_line(escape[0]))
        end = escape.end()
        literal = re.escape(escape[0])
        regexes.append(f"{before}({character}|{literal})")
    rest = re.escape(text[end:])
    return "".join([*regexes, rest])
