"""The sessions of the archive as a table of a terminal's width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from anchord.cli.output.markup import escape_markup
from anchord.cli.output.wrapping import cell_width, truncate
from anchord.core.quoting import escape_gaps
from anchord.ipc.messages.sessions import SessionAnswer
from anchord.sources.conversations.programs import program_name

_WIDE = 106
"""From so many columns on a session takes one line, below it two."""
_LEAST_ID_CHARS = 8
_RECENT = timedelta(days=300)
_STATES = {
    "here": "[green]here[/]",
    "deleted": "[yellow]deleted[/]",
    "detached": "[dim]detached[/]",
    "prompts-only": "[dim]prompts only[/]",
}
_STATE_WIDTH = 8
_INDENT = "    "


def session_lines(sessions: Sequence[SessionAnswer], width: int, now: datetime) -> Iterator[str]:
    """Yield the lines of a table with rich's markup.

    Texts are cut to the width; times, counts and ids are not.

    Args:
        sessions: In the order in which they are shown.
        width: Columns of the terminal.
        now: The time, with a zone.
    """
    ids = short_ids([each.id for each in sessions])
    wide = width >= _WIDE
    for session, short_id in zip(sessions, ids, strict=True):
        yield from (
            _wide_line(session, short_id, width, now)
            if wide
            else _two_lines(session, short_id, width, now)
        )


def short_ids(ids: Sequence[str]) -> list[str]:
    """Return the beginning of each id, of eight characters or as many as tell it from the others.

    An id that is in the list twice, or that a shell would take apart, is returned whole.
    """
    return [_short_id(each, ids) for each in ids]


def _short_id(wanted: str, ids: Sequence[str]) -> str:
    for length in range(_LEAST_ID_CHARS, len(wanted)):
        if sum(each.startswith(wanted[:length]) for each in ids) == 1:
            return wanted[:length]
    return wanted


def short_time(at: str, now: datetime) -> str:
    """Return a time of the local zone in eleven or twelve characters; "" for an unknown one."""
    try:
        local = datetime.fromisoformat(at).astimezone(now.tzinfo)
    except (ValueError, OverflowError):
        return ""
    if abs(now - local) < _RECENT:
        return f"{local:%d %b %H:%M}"
    return f"{local:%d %b %Y}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _wide_line(session: SessionAnswer, short_id: str, width: int, now: datetime) -> Iterator[str]:
    when = f"{short_time(session.last_at, now):<12}"
    program = _cell(program_name(session.agent), 11)
    project = _cell(session.project, 16)
    counts = f"{count(session.turns, 'turn'):>9} {count(session.files, 'file'):>8}"
    used = 12 + 2 + 11 + 2 + 16 + 2 + 2 + cell_width(counts) + 2 + _STATE_WIDTH + 2 + len(short_id)
    title = _cell(session.title, max(width - used, 10))
    state = _STATES[session.state] + " " * max(_STATE_WIDTH - len(session.state), 0)
    yield (
        f"{when}  [dim]{program}[/]  {project}  [bold]{title}[/]  {counts}  {state}  "
        f"[cyan]{_shown(short_id)}[/]"
    )


def _two_lines(session: SessionAnswer, short_id: str, width: int, now: datetime) -> Iterator[str]:
    facts = [
        short_time(session.last_at, now),
        _text(session.project, 16),
        _text(program_name(session.agent), 12),
        count(session.turns, "turn"),
    ]
    line = "  ".join(filter(None, facts))
    yield f"{line}  {_STATES[session.state]}  [cyan]{_shown(short_id)}[/]"
    title = _text(session.title, width - len(_INDENT))
    yield f"{_INDENT}[bold]{title}[/]"


def _cell(text: str, width: int) -> str:
    shown = truncate(escape_gaps(text), width)
    return escape_markup(shown) + " " * (width - cell_width(shown))


def _text(text: str, width: int) -> str:
    return escape_markup(truncate(escape_gaps(text), width))


def _shown(text: str) -> str:
    return escape_markup(escape_gaps(text))
