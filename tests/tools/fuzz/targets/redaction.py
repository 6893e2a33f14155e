"""Secrets out of texts: all of an input is a text."""

from __future__ import annotations

import re

from tools.fuzz.laws import hold

from anchord.sources.documents.normalize import normalize_text
from anchord.sources.secrets.redactor import find_secrets, redact

_MARK = re.compile(r"\[REDACTED:[a-z0-9-]+\]\n*")
"""A mark, and the lines that a secret of several lines leaves."""


def redaction(data: bytes) -> None:
    """Redact secrets: the text around them stays, and a second run finds nothing."""
    text = normalize_text(data.decode("utf-8", "replace"))
    once = redact(text)
    spans = find_secrets(text)
    hold(once.text.count("\n") == text.count("\n"), "the lines stay", once.text)
    hold(bool(spans) == bool(once.counts_by_kind), "what is found is counted", once.counts_by_kind)
    hold(
        all(0 <= start < end <= len(text) for start, end, _ in spans),
        "a secret stands in the text",
        spans,
    )
    hold(spans or once.text == text, "a text without secrets stays as it is", text)
    hold(
        _stays(_MARK.split(once.text), text) or "[REDACTED:" in text,
        "the words around a secret stay",
        once.text,
    )
    again = redact(once.text)
    hold(again.text == once.text, "a second time finds nothing more", once.text, again.text)


def _stays(parts: list[str], text: str) -> bool:
    """Whether a text contains the parts in their order."""
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True
