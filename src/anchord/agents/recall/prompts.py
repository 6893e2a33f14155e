"""Which prompts are worth a search, and the search for one."""

from __future__ import annotations

import re

_MIN_WORDS = 3
_MAX_WORDS_CHARS = 1_000
_MAX_CHARS = 2_000
"""The daemon redacts this and searches for its first half, so that no secret is cut there."""
_WORD = re.compile(r"\w[\w'-]*")
_NOT_ASKED = ("/", "!", "#", "<", "[Request interrupted")
"""Slash commands, shell commands, notes, and messages of the program itself."""


def query_of(prompt: str) -> str:
    """Return what the daemon is asked about a prompt; "" where nothing should be searched.

    Args:
        prompt: What the user typed. "ok" or "continue", a command and everything of fewer than
            three words asks nothing.
    """
    text = prompt.strip()
    if text.startswith(_NOT_ASKED) or len(set(_WORD.findall(text[:_MAX_WORDS_CHARS]))) < _MIN_WORDS:
        return ""
    return text[:_MAX_CHARS]
