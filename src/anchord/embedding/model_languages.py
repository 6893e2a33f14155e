"""The languages that a model knows, as the card in its folder says."""

from __future__ import annotations

import re
from pathlib import Path

from anchord.core.text_language import code_of_language

_CARD = "README.md"
_MAX_CARD_CHARS = 1_000_000
_KEY = re.compile(r"^(?:language|languages):[ \t]*(.*)$", re.MULTILINE)
_ITEMS = re.compile(r"(?:[ \t]*-[ \t]+(.*)\n?)+")
_ITEM = re.compile(r"^[ \t]*-[ \t]+(.*)$", re.MULTILINE)


def languages_of_model(folder: Path) -> frozenset[str]:
    """Return the codes of the languages that a model knows; none if its card does not say.

    Args:
        folder: The model's folder. `language` in the front matter of its README.md counts: a word,
            a list in brackets, or one item a line.
    """
    try:
        with (folder / _CARD).open(encoding="utf-8", errors="replace") as file:
            card = file.read(_MAX_CARD_CHARS)
    except OSError:
        return frozenset()
    start, _, rest = card.partition("---\n")
    front_matter, end, _ = rest.partition("\n---")
    if start.strip() or not end:
        return frozenset()
    return frozenset(filter(None, map(code_of_language, _listed(front_matter + "\n"))))


def _listed(front_matter: str) -> list[str]:
    key = _KEY.search(front_matter)
    if key is None:
        return []
    inline = key[1].partition(" #")[0].strip()
    if inline:
        names = inline.strip("[]").split(",")
    else:
        items = _ITEMS.match(front_matter, key.end() + 1)
        names = _ITEM.findall(items[0]) if items else []
    return [name.strip().strip("\"'") for name in names]
