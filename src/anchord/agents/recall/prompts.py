"""Which prompts are worth a search, and the search for one."""

from __future__ import annotations

import re

_MIN_WORDS = 3
_MAX_CHARS = 1_000
"""A model reads 256 tokens of a query; the rest of a long prompt is mostly a pasted text."""
_WORD = re.compile(r"\w[\w'-]*")
_NOT_ASKED = ("/", "!", "#", "<", "[Request interrupted")
"""Slash commands, shell commands, notes, and messages of the program itself."""
_OPERATORS = re.compile(r'["*]|(?<!\S)-')
"""What has a meaning in a query and none in a prompt: quotes, asterisks, minus signs."""


def query_of(prompt: str) -> str:
    """Return the search for a prompt; "" where nothing should be searched.

    Args:
        prompt: What the user typed. "ok" or "continue", a command and everything of fewer than
            three words asks nothing.
    """
    text = prompt.strip()
    if text.startswith(_NOT_ASKED) or len(set(_WORD.findall(text[:_MAX_CHARS]))) < _MIN_WORDS:
        return ""
    return " ".join(_OPERATORS.sub(" ", text[:_MAX_CHARS]).split())
