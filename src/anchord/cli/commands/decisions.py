"""`decisions`: what was decided in conversations, by project."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from anchord.cli.app import JsonOption, app, ensure_paths, print_json, print_line, warn
from anchord.cli.output.markup import escape_markup
from anchord.cli.output.session_table import short_time
from anchord.cli.parameters import Option
from anchord.core.quoting import escape_line
from anchord.daemon.archive_access import ask_daemon_or_archive
from anchord.ipc import requests
from anchord.ipc.messages.decisions import DecisionAnswer
from anchord.ipc.messages.files import MAX_LISTED
from anchord.sources.conversations.programs import program_name

_LEAST_ID_CHARS = 12


@app.command()
def decisions(
    project: Annotated[
        str, Option("--project", help="Only about this project: a part of its name, or a folder.")
    ] = "",
    since: Annotated[
        str, Option("--since", metavar="D", help="Only since: 2026-01-31, 7d, 'last week'.")
    ] = "",
    n: Annotated[int, Option("-n", min=1, max=MAX_LISTED, help="How many of the newest.")] = 30,
    json: JsonOption = False,
) -> None:
    """List what was decided in conversations, by project, newest first."""
    call = requests.decisions(project=project, since=since, limit=n)
    found = ask_daemon_or_archive(ensure_paths(), call)
    if json:
        print_json(found)
        return
    if not found:
        warn("found no sentence that decides something; `anchord search` finds what it says")
        return
    by_project: dict[str, list[DecisionAnswer]] = {}
    for decision in found:
        by_project.setdefault(decision.project, []).append(decision)
    now = datetime.now(UTC).astimezone()
    for name, decided in by_project.items():
        print_line(f"[bold]{_shown(name or 'no project')}[/]", markup=True)
        for decision in decided:
            said_by = "you" if decision.by == "user" else program_name(decision.agent)
            when = short_time(decision.at, now)
            print_line(f"  {when:<12}  {_shown(decision.sentence)}", markup=True)
            print_line(
                f"    [dim]{_shown(said_by)}, in[/] {_shown(decision.title)}[dim], asked:[/] "
                f"{_shown(decision.question)}  [dim]{_shown(_unique_id(decision))}[/]",
                markup=True,
            )


def _unique_id(decision: DecisionAnswer) -> str:
    """Return what `anchord session` takes: some programs only number the exchanges of a session."""
    return decision.id if len(decision.id) >= _LEAST_ID_CHARS else decision.path


def _shown(text: str) -> str:
    return escape_markup(escape_line(text))
