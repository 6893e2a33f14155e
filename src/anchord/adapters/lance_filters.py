"""Filters -> SQL. Their text comes from paths and people: `quoted` is the one place that makes it SQL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from anchord.core.wording import phrase_pattern
from anchord.model import Filters

_MOST = 1_000
_BEGINNING_WORDS = 30


def condition(filters: Filters) -> str:
    """Return the condition of a search, "" when all rows are meant."""
    clauses = [
        f"{name} = {quoted(wanted)}" for name in ("root", "kind", "room", "session") if (wanted := getattr(filters, name))
    ]
    if filters.since:
        clauses.append(f"until >= {quoted(filters.since)}")
    if filters.until:
        clauses.append(f"at < {quoted(filters.until)} AND at != ''")
    if filters.section:
        clauses.append(_below([part.strip() for part in filters.section.split(">")]))
    if filters.path_glob:
        clauses.append(_like("path", _glob_pattern(filters.path_glob)))
    clauses += [_like("search_text", phrase_pattern(phrase)) for phrase in filters.phrases]
    clauses += [_like("search_text", phrase_pattern(prefix, begins=True)) for prefix in filters.prefixes]
    clauses += [f"NOT {_like('search_text', phrase_pattern(phrase))}" for phrase in filters.without]
    return " AND ".join(clauses)


def among(column: str, values: Sequence[str]) -> list[str]:
    """Return the condition that a column has one of some values: several, where one would be too long."""
    unique = list(dict.fromkeys(values))
    parts = (unique[at : at + _MOST] for at in range(0, len(unique), _MOST))
    return [f"{column} IN ({', '.join(map(quoted, part))})" for part in parts]


def beginning(texts: Sequence[str], prefixes: Sequence[str]) -> set[str]:
    """Return the words of some texts that begin in one of these ways, the most frequent of very many."""
    patterns = [re.compile(phrase_pattern(prefix, begins=True) + r"\w*") for prefix in prefixes]
    found = (word.lower() for text in texts for pattern in patterns for word in pattern.findall(text))
    return {word for word, _ in Counter(found).most_common(_BEGINNING_WORDS)}


def quoted(text: str) -> str:
    """Return a text as a SQL literal: the only character with a meaning inside is the quote."""
    return "'" + text.replace("'", "''") + "'"


def _below(titles: Sequence[str]) -> str:
    """Return the condition that a chunk is below headings, or that the last of them begin in it: short sections share one."""

    def path(above: Sequence[str]) -> str:
        return _like("header_path", rf"(?i)(^|> ){re.escape(' > '.join(above))}($| >)")

    found = [path(titles)]
    for at in range(len(titles)):
        lines = r".*".join(rf"^#{{1,6}}[ \t]+{re.escape(title)}[ \t#]*$" for title in titles[at:])
        inside = _like("text", f"(?ims){lines}")
        found.append(f"({path(titles[:at])} AND {inside})" if at else inside)
    return f"({' OR '.join(found)})"


def _like(column: str, pattern: str) -> str:
    return f"regexp_like({column}, {quoted(pattern)})"


def _glob_pattern(glob: str) -> str:
    """`*` stays in a folder, `**` does not; a glob without "/" fits the name in any folder, as in .gitignore.

    A folder that is named, without wildcards in its own name, takes in all that is in it.
    """
    named = glob.removesuffix("/")
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", named.removeprefix("/"))
    words = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = "".join(words.get(piece) or re.escape(piece) for piece in pieces)
    inside = "/.*" if named != glob else "" if re.search(r"[*?][^/]*$", named) else "(/.*)?"
    return f"^{body}{inside}$" if "/" in named else f"(^|/){body}{inside}$"
