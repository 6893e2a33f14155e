"""What `anchord blame` prints: the exchanges that changed a file, then the commits of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from anchord.cli.output.markup import escape_markup
from anchord.cli.output.session_table import short_time
from anchord.core.quoting import escape_line
from anchord.ipc.messages.blame import BlameAnswer, TouchAnswer
from anchord.sources.conversations.programs import program_name
from anchord.sources.files.git_blame import BlamedCommit

_ID_CHARS = 12
_HASH_CHARS = 10
_MAX_RUNS = 5


def blame_lines(
    answer: BlameAnswer, commits: Sequence[BlamedCommit], now: datetime
) -> Iterator[str]:
    """Yield lines with rich's markup.

    Args:
        answer: The exchanges.
        commits: The commits.
        now: The time, with a zone.
    """
    if not answer.touches:
        yield f"No indexed conversation changed {_shown(answer.path)}."
    for touch in answer.touches:
        yield from _touch_lines(touch, now)
    for number, commit in enumerate(commits):
        if number == 0:
            yield "[dim]Commits of its lines:[/]"
        when = short_time(commit.at, now)
        yield (
            f"{commit.hash[:_HASH_CHARS]}  {when:<12}  {_shown(commit.author)}  "
            f"{_shown(commit.subject)}  [dim]lines {_runs(commit)}[/]"
        )


def _touch_lines(touch: TouchAnswer, now: datetime) -> Iterator[str]:
    how = "" if touch.how == "edited" else "  [dim]named in a tool call[/]"
    place = f"  [yellow]in another checkout: {_shown(touch.file)}[/]" if touch.elsewhere else ""
    title = f"  {_shown(touch.title)}" if touch.title else ""
    project = f"  [dim]{_shown(touch.project)}[/]" if touch.project else ""
    yield (
        f"{touch.id[:_ID_CHARS]}  {short_time(touch.at, now):<12}  "
        f"{_shown(program_name(touch.agent))}{title}{project}{how}{place}"
    )
    yield f"    {_shown(touch.question)}"


def _runs(commit: BlamedCommit) -> str:
    runs = [
        str(first) if first == last else f"{first}-{last}"
        for first, last in commit.lines[:_MAX_RUNS]
    ]
    return ", ".join([*runs, "..."] if len(commit.lines) > _MAX_RUNS else runs)


def _shown(text: str) -> str:
    return escape_markup(escape_line(text))
