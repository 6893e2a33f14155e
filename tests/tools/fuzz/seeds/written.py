"""How seeds are written: a first line, and a body of records, of one value, or of text."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
DAY = "2026-01-02T10:00:00.000Z"
SECOND = 1_767_348_000


def lines(head: str, *records: object) -> bytes:
    """Write an input whose body has a record a line."""
    return (
        head.encode() + b"\n" + b"".join(json.dumps(record).encode() + b"\n" for record in records)
    )


def value(head: str, whole: object) -> bytes:
    """Write an input whose body is one value."""
    return f"{head}\n{json.dumps(whole)}".encode()


def text(head: str, body: str) -> bytes:
    """Write an input whose body is a text."""
    return f"{head}\n{body}".encode()
