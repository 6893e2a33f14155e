"""Conversations that are kept and not indexed, as lines of text with rich's markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from anchord.cli.output.markup import escape_markup
from anchord.core.counted import counted
from anchord.core.quoting import escape_gaps, sanitize_line
from anchord.ipc.messages.searching import DetachedHit
from anchord.ipc.messages.status import DetachedCounts

_REASONS = {
    "root": "its root was removed or changed",
    "reader": "its file does not contain it any more",
    "excluded": "your rules exclude its file; it returns when they include it",
    "trash": "deleted; kept for 30 days",
}
_MAX_QUESTION_CHARS = 74


def detached_group_lines(groups: Sequence[DetachedCounts]) -> Iterator[str]:
    """Yield a line for each group, as `status` reports them."""
    for group in groups:
        counts = (
            f"{counted(group.sessions, 'conversation')}, {counted(group.exchanges, 'exchange')}"
        )
        root = _escape(group.root)
        yield f"  kept, not indexed: {counts} of {root} [dim]({_REASONS[group.reason]})[/]"


def detached_hit_lines(hit: DetachedHit) -> Iterator[str]:
    """Yield the lines of a hit of `search --detached`."""
    name = _escape(hit.title or hit.project or hit.session)
    place = _escape(hit.transcript or hit.path)
    yield f"[green]{name}[/]  {place} [dim](not indexed: {_REASONS[hit.reason]})[/]"
    question = " ".join(hit.question.split())[:_MAX_QUESTION_CHARS]
    yield f"    [bold]{_escape(question)}[/]"
    yield f"    {_escape(hit.snippet)}"


def _escape(text: str) -> str:
    return escape_markup(escape_gaps(sanitize_line(text)))
