"""A process that parsing a poisonous file kills."""

from __future__ import annotations

import os
import signal

from anchord.core.types import Document, Problem
from anchord.index import rows
from anchord.sources.documents.parse import parse_document


def prepare_poison() -> None:
    """Make this process end by SIGKILL where it parses a file with the word poison."""
    rows.parse_document = _parse_or_die  # type: ignore[attr-defined]


def _parse_or_die(data: bytes, path: str) -> Document | Problem:
    if b"poison" in data:
        os.kill(os.getpid(), signal.SIGKILL)
    return parse_document(data, path)
