"""Slack's markup as plain text: mentions as names, links with their labels, signs unescaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anchord.core.lazy_re import lazy_re

_MARKUP = lazy_re(r"<([^<>|\n][^<>\n]*)>")
"""A tag has a target: `<|endoftext|>` is text."""
_ESCAPES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
"""All that Slack escapes. The ampersand comes last, because the others begin with it."""


@dataclass(frozen=True, slots=True)
class SlackNames:
    """The names of a workspace, by id."""

    users: Mapping[str, str]
    channels: Mapping[str, str]


def strip_markup(text: str, names: SlackNames) -> str:
    """Return a message's text as its reader sees it; names that are not in `names` stay ids."""
    plain = _MARKUP.sub(lambda match: _render_tag(match[1], names), text)
    for escaped, sign in _ESCAPES:
        plain = plain.replace(escaped, sign)
    return plain


def _render_tag(tag: str, names: SlackNames) -> str:
    """Return what a tag shows: a user, a channel, a command or a link, each with a label or not."""
    target, _, label = tag.partition("|")
    sigil, name = target[0], target[1:]
    if sigil == "@":
        return "@" + (names.users.get(name) or label or name)
    if sigil == "#":
        return "#" + (label or names.channels.get(name) or name)
    if sigil == "!":
        return label or "@" + name.partition("^")[0]
    return _render_link(target, label)


def _render_link(url: str, label: str) -> str:
    if not label or label == url:
        return url
    # The label of an address is often its own end: `https://example.org` and `example.org`.
    return label if url.endswith(label) else f"{label} ({url})"
