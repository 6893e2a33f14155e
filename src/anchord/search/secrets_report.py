"""Where secrets were replaced in what is indexed, by kind and file.

The marks in the rows are counted: the secrets themselves are not stored anywhere.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from anchord.core.quoting import escape_non_utf8
from anchord.core.types import Row
from anchord.index.session import IndexReader
from anchord.sources.secrets.documents import MOSTLY_SECRETS
from anchord.sources.secrets.redactor import rules_version
from anchord.store.catalog.catalog import SqliteCatalog

_MARK = re.compile(r"\[REDACTED:([a-z0-9-]{1,40})\]")


@dataclass(frozen=True, slots=True)
class SecretsReport:
    """What `anchord privacy report` prints."""

    rules: str
    """The rules that are in use, with their version."""
    files: list[dict[str, Any]]
    """For each file or exchange with a replaced secret: root, path, and counts by kind."""
    left_out: list[dict[str, str]]
    """Files that hold mostly secrets and are not indexed: root and path."""


def report_secrets(reader: IndexReader, catalog: SqliteCatalog) -> SecretsReport:
    """Count the marks of replaced secrets in the rows of an index; reads all rows."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in reader.store.all_rows():
        kinds = [kind for text in _texts_of(row) for kind in _MARK.findall(text)]
        if kinds:
            counts[row.root, row.path].update(kinds)
    files = [
        {"root": root, "path": path, "secrets": dict(sorted(by_kind.items()))}
        for (root, path), by_kind in sorted(counts.items())
    ]
    left_out = [
        {"root": failure.origin.root, "path": escape_non_utf8(failure.origin.path)}
        for failure in catalog.list_failures()
        if failure.problem.reason == MOSTLY_SECRETS
    ]
    return SecretsReport(rules_version(), files, left_out)


def _texts_of(row: Row) -> Iterable[str]:
    """Yield what a row has of its file; what all parts of an exchange share comes once."""
    yield row.text
    if row.part_index == 0:
        yield from (row.project, row.session, row.tools, row.files)
