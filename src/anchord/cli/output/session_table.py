"""The sessions of the archive as a table of a terminal's width."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta

from anchord.cli.output.markup import escape_markup
from anchord.cli.output.wrapping import cell_width, truncate
from anchord.core.counted import counted
from anchord.core.quoting import escape_gaps
from anchord.ipc.messages.sessions import SessionAnswer
from anchord.sources.conversations.programs import program_name

_WIDE = 106
"""From so many columns on a session takes one line, below it two."""
_LEAST_ID_CHARS = 8
_MOST_ID_CHARS = 24
_RECENT = timedelta(days=300)
_STATES = {
    "here": "[green]here[/]",
    "shorter": "[red]shorter[/]",
    "damaged": "[red]damaged[/]",
    "deleted": "[yellow]deleted[/]",
    "detached": "[dim]detached[/]",
    "prompts-only": "[dim]prompts only[/]",
}
_STATE_WIDTH = 8
_NO_PROGRAM = "unknown program"
_INDENT = "    "
_LEAST_PLACE = 5
_NO_TITLE = "(nothing was asked)"


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


def transcript_lines(
    transcripts: Sequence[SessionAnswer], width: int, now: datetime
) -> Iterator[str]:
    """Yield the lines of a list of transcripts without a conversation of their own.

    Paths are not cut: they are what `anchord session` takes.

    Args:
        transcripts: In the order in which they are shown; `note` says why each has none.
        width: Columns of the terminal.
        now: The time, with a zone.
    """
    for each in transcripts:
        when = short_time(each.last_at, now) or "no time"
        program = program_name(each.agent) if each.agent else _NO_PROGRAM
        yield f"{when}  [dim]{_shown(program)}[/]  {_STATES[each.state]}"
        yield f"{_INDENT}[cyan]{_shown(each.path)}[/]"
        yield f"{_INDENT}{_text(each.note, width - len(_INDENT))}"


def short_ids(ids: Sequence[str]) -> list[str]:
    """Return the beginning of each id: eight characters, or as many as tell it from the others."""
    return [_short_id(each, set(ids)) for each in ids]


def _short_id(wanted: str, ids: Collection[str]) -> str:
    for length in range(_LEAST_ID_CHARS, _MOST_ID_CHARS):
        if sum(each.startswith(wanted[:length]) for each in ids) == 1:
            return wanted[:length]
    return wanted[:_MOST_ID_CHARS]


def short_time(at: str, now: datetime) -> str:
    """Return a time of the local zone in eleven or twelve characters; "" for an unknown one."""
    try:
        local = datetime.fromisoformat(at).astimezone(now.tzinfo)
    except (ValueError, OverflowError):
        return ""
    if abs(now - local) < _RECENT:
        return f"{local:%d %b %H:%M}"
    return f"{local:%d %b %Y}"


def _wide_line(session: SessionAnswer, short_id: str, width: int, now: datetime) -> Iterator[str]:
    when = f"{short_time(session.last_at, now):<12}"
    program = _cell(program_name(session.agent), 11)
    project = _cell(session.project, 16)
    counts = f"{counted(session.turns, 'turn'):>9} {counted(session.files, 'file'):>8}"
    state_width = max(_STATE_WIDTH, len(session.state))
    used = 12 + 2 + 11 + 2 + 16 + 2 + 2 + len(counts) + 2 + state_width + 2 + len(short_id)
    title = _cell(session.title or _NO_TITLE, max(width - used, 10))
    state = _STATES[session.state] + " " * (state_width - len(session.state))
    yield (
        f"{when}  [dim]{program}[/]  {project}  [bold]{title}[/]  {counts}  {state}  "
        f"[cyan]{_shown(short_id)}[/]"
    )


def _two_lines(session: SessionAnswer, short_id: str, width: int, now: datetime) -> Iterator[str]:
    when = short_time(session.last_at, now) or "no time"
    turns = counted(session.turns, "turn")
    used = len(when) + 2 + len(turns) + 2 + len(session.state) + 2 + len(short_id)
    about = ", ".join(filter(None, (session.project, program_name(session.agent))))
    left = width - used - 2
    place = f"  {_text(about, left)}" if left >= _LEAST_PLACE else ""
    state = _STATES[session.state]
    yield f"{when}{place}  {turns}  {state}  [cyan]{_shown(short_id)}[/]"
    title = _text(session.title or _NO_TITLE, width - len(_INDENT))
    yield f"{_INDENT}[bold]{title}[/]"


def _cell(text: str, width: int) -> str:
    shown = truncate(escape_gaps(text), width)
    return escape_markup(shown) + " " * (width - cell_width(shown))


def _text(text: str, width: int) -> str:
    return escape_markup(truncate(escape_gaps(text), width))


def _shown(text: str) -> str:
    return escape_markup(escape_gaps(text))
