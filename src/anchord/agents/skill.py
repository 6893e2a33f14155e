"""The skill that anchord ships, and how a shipped text differs from one of the user's own."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

PLUGIN_FOLDER = Path(__file__).parent / "plugin"
"""The plugin for Claude Code."""
SKILL_FILE = PLUGIN_FOLDER / "skills" / "anchord" / "SKILL.md"
"""Its last line is a digest of the others."""

_DIGEST_LINE = re.compile(r"<!-- anchord skill ([0-9a-f]{16}) -->\s*\Z")
_WITHOUT_DIGEST = frozenset({"25de0f3d012ac8d6"})
"""Digests of shipped texts without such a line."""


def is_shipped(text: str) -> bool:
    """Return whether a version of anchord shipped this text, and nobody changed it."""
    text = text.replace("\r\n", "\n")
    found = _DIGEST_LINE.search(text)
    if found is None:
        return _digest(text) in _WITHOUT_DIGEST
    return _digest(text[: found.start()]) == found[1]


def with_digest(text: str) -> str:
    """Return a skill's text with the line of its digest."""
    body = _DIGEST_LINE.sub("", text)
    return f"{body}<!-- anchord skill {_digest(body)} -->\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
