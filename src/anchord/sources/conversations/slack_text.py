"""Slack's markup as it was meant to be read: mentions by name, links with their labels, the three signs that are escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_MARKUP = re.compile(r"<([^<>\n]+)>")
_SIGNS = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
"""Nothing else is escaped; the ampersand comes last, as it is the sign of the others."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names by id."""

    users: Mapping[str, str]
    channels: Mapping[str, str]


def readable(text: str, names: Names) -> str:
    """Return a message's text without markup; what is no markup stays."""
    found = _MARKUP.sub(lambda match: _meant(match[1], names), text)
    for escaped, sign in _SIGNS:
        found = found.replace(escaped, sign)
    return found


def _meant(inside: str, names: Names) -> str:
    to, _, label = inside.partition("|")
    kind, name = to[0], to[1:]
    if kind == "@":
        return "@" + (names.users.get(name) or label or name)
    if kind == "#":
        return "#" + (label or names.channels.get(name) or name)
    if kind == "!":
        return label or "@" + name.partition("^")[0]
    if not label or label == to:
        return to
    return label if to.endswith(label) else f"{label} ({to})"
