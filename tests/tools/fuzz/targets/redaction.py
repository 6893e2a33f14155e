"""Secrets out of texts: all of an input is a text."""

from __future__ import annotations

import re
from functools import cache

from tools.fuzz.laws import hold

from anchord.sources.conversations import redaction as under_test
from anchord.sources.conversations.redaction import Redactor
from anchord.sources.documents.normalize import normalize_text

_MARK = re.compile(r"\[REDACTED:[a-z-]+\]")


@cache
def redactor() -> Redactor:
    """Return the one redactor: its rules take a moment to compile."""
    return Redactor()


def redaction(data: bytes) -> None:
    """Take secrets out: what stays is the text around them, and a second time finds nothing more."""
    text = normalize_text(data.decode("utf-8", "replace"))
    ours = redactor()
    once = ours.redact(text)
    spans = list(ours._spans(text))
    is_asked = bool(under_test._PREFILTER.search(text))
    hold(
        is_asked or not spans,
        "what a rule finds the first look does not miss",
        [(text[a:b], kind) for a, b, kind in spans],
    )
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
    again = ours.redact(once.text)
    hold(again.text == once.text, "a second time finds nothing more", once.text, again.text)


def _stays(parts: list[str], text: str) -> bool:
    """Whether parts stand in a text in their order."""
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True
