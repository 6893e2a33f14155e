"""`connect`: give agents access to the index, by the settings of their programs."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

from anchord.cli import values
from anchord.cli.app import JsonOption, app, print_json, print_line, warn
from anchord.cli.parameters import Argument, Option
from anchord.cli.registry import Exit
from anchord.core.quoting import escape_non_utf8, quote_name
from anchord.errors import UsageError

if TYPE_CHECKING:
    from anchord.agents.clients import Client, Places, Scope, Server
    from anchord.agents.connecting import Done, Plan
    from anchord.agents.connections import Connection
    from anchord.agents.steps import Step

_PARTS = {"server": "", "skill": " (skill)", "hooks": " (hooks)"}
_DONE = {"add": "added", "update": "updated", "remove": "removed", "none": "unchanged"}


@app.command()
def connect(  # noqa: PLR0917 - one parameter an option
    clients: Annotated[
        list[str] | None,
        Argument(
            metavar="CLIENT",
            help="claude, codex, cursor, vscode, gemini, opencode, zed, windsurf or cline; "
            "without one, all that are found.",
            autocompletion=values.complete_client,
        ),
    ] = None,
    scope: Annotated[
        str, Option("--scope", help="user, or project: the settings of the current folder.")
    ] = "user",
    hooks: Annotated[
        bool, Option("--hooks", help="Claude Code: also add the hooks for recall.")
    ] = False,
    remove: Annotated[bool, Option("--remove", help="Take anchord out again.")] = False,
    status: Annotated[bool, Option("--status", help="List the clients.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Show the changes only.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    json: JsonOption = False,
) -> None:
    """Connect agents to the index: adds the MCP server to their settings, and a skill.

    Shows the changes and asks. Exits with 1 if a client could not be connected.
    """
    from anchord.agents.connecting import Wish, apply_plan, make_plan
    from anchord.agents.connections import find_places, this_server

    places = find_places(os.environ, os.getcwd())
    server = this_server(os.environ)
    if status:
        _print_status(places, server, is_json=json)
        return
    wish = Wish(places=places, scope=_scope(scope), server=None if remove else server, hooks=hooks)
    plan = make_plan(wish, _choose(clients or [], places, hooks=hooks and not remove))
    if not json:
        _print_plan(plan, is_removal=remove)
    done = []
    if not dry_run and (yes or _agrees(plan, is_removal=remove, is_json=json)):
        for each in apply_plan(plan, wish):
            done.append(_record(each.step) | {"remarks": each.remarks})
            if not json:
                _print_done(each)
    if json:
        _print_report(plan, done, is_dry_run=dry_run)
    elif done:
        print_line("restart the clients that are running: they read their settings at the start")
    for problem in plan.problems.values():
        warn(f"anchord: {problem.message}; {problem.hint}")
    is_refused = any(step.part == "server" for step in plan.notes) and not remove
    if plan.problems or is_refused:
        raise Exit(1)


def _scope(name: str) -> Scope:
    if name not in ("user", "project"):
        raise UsageError(f"unknown scope {quote_name(name)}", "it is user or project")
    return "project" if name == "project" else "user"


def _choose(names: list[str], places: Places, *, hooks: bool) -> list[Client]:
    """Return the clients of these names; without names, those that are found."""
    from anchord.agents.clients import CLIENT_NAMES, CLIENTS
    from anchord.agents.connections import is_installed

    for name in names:
        if name not in CLIENT_NAMES:
            raise UsageError(f"unknown client {quote_name(name)}", _known_names(name))
    if names:
        chosen = [client for client in CLIENTS if client.name in names]
    else:
        chosen = [client for client in CLIENTS if is_installed(client, places)]
    if not chosen:
        raise UsageError("found no client", f"name the one to connect: {', '.join(CLIENT_NAMES)}")
    if hooks and not any(client.hooks_file for client in chosen):
        if names:
            raise UsageError("--hooks are for Claude Code", "`anchord connect claude --hooks`")
        warn("anchord: --hooks: Claude Code was not found, so no hooks are added")
    return chosen


def _known_names(name: str) -> str:
    from difflib import get_close_matches

    from anchord.agents.clients import CLIENT_NAMES

    near = get_close_matches(name.lower(), CLIENT_NAMES, 1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"{meant}known: {', '.join(CLIENT_NAMES)}"


def _agrees(plan: Plan, *, is_removal: bool, is_json: bool) -> bool:
    """Ask whether to make the changes; do not ask where there are none."""
    if not plan.changes:
        return True
    if is_json:
        raise UsageError("--json does not ask", "use --yes or --dry-run")
    _confirm("Remove anchord?" if is_removal else "Connect?")
    return True


def _print_plan(plan: Plan, *, is_removal: bool) -> None:
    for step in plan.changes:
        print_line(f"{_title(step)}: {quote_name(step.file)}")
        if step.part == "skill":
            print_line(f"  {_skill_change(step)}")
            continue
        if step.after is None:
            print_line("  deletes the file, which has nothing else")
            continue
        for line in step.lines():
            print_line(f"  {line}")
        if step.command:
            print_line(f"  with `{shlex.join(step.command)}`")
    for step in plan.notes:
        print_line(f"{_title(step)}: unchanged: {step.note}")
    if not plan.changes and not plan.problems and not plan.notes:
        print_line(
            "anchord is not connected to these clients"
            if is_removal
            else "everything is connected: nothing changes"
        )


def _skill_change(step: Step) -> str:
    if step.after is None:
        return "deletes the file"
    if step.action == "remove":
        return "restores the earlier file"
    return "writes the skill" + (
        "; copies your file first" if step.action == "add" and step.before else ""
    )


def _confirm(question: str) -> None:
    from anchord.cli.output.prompt import confirm

    if not sys.stdin.isatty():
        raise UsageError("No terminal to ask on", "use --yes")
    if not confirm(question):
        print_line("nothing was changed")
        raise Exit(1)


def _print_done(done: Done) -> None:
    said = "; ".join([_DONE[done.step.action], *done.remarks]).replace("; with `", " with `", 1)
    print_line(f"{_title(done.step)}: {said}")


def _title(step: Step) -> str:
    return f"{step.client.title}{_PARTS[step.part]}"


def _record(step: Step) -> dict[str, Any]:
    return {
        "client": step.client.name,
        "part": step.part,
        "file": escape_non_utf8(step.file),
        "action": step.action,
        "command": list(step.command),
        "note": step.note,
    }


def _print_report(plan: Plan, done: list[dict[str, Any]], *, is_dry_run: bool) -> None:
    problems = [
        {"client": name, "problem": error.message, "hint": error.hint}
        for name, error in plan.problems.items()
    ]
    planned = [_record(step) | {"lines": list(step.lines())} for step in plan.steps]
    changes = {"planned": planned} if is_dry_run else {"done": done}
    notes = [_record(step) for step in plan.notes]
    print_json({**changes, "unchanged": notes, "problems": problems})


def _print_status(places: Places, server: Server, *, is_json: bool) -> None:
    from anchord.agents.connections import list_connections
    from anchord.agents.recall.settings import load_settings
    from anchord.config.paths import find_paths

    is_on = load_settings(find_paths(os.environ).data_folder).is_on
    connections = list(list_connections(places, server))
    if is_json:
        print_json([_connection_record(each, is_recall_on=is_on) for each in connections])
        return
    for each in connections:
        project = " (project)" if each.scope == "project" else ""
        state = each.state
        if each.hooks:
            state += f", hooks on, recall {'on' if is_on else 'off'}"
        print_line(f"{each.client.title + project:<22} {state}")
        if each.problem:
            print_line(f"{'':22} {each.problem}")
        elif each.server and each.server.command and not each.is_current:
            print_line(f"{'':22} {quote_name(' '.join(each.server.command))}")


def _connection_record(connection: Connection, *, is_recall_on: bool) -> dict[str, Any]:
    return {
        "client": connection.client.name,
        "scope": connection.scope,
        "state": connection.state,
        "installed": connection.is_installed,
        "file": escape_non_utf8(connection.file),
        "command": list(connection.server.command) if connection.server else [],
        "home": connection.server.home if connection.server else "",
        "hooks": bool(connection.hooks),
        "recall": bool(connection.hooks) and is_recall_on,
        "problem": connection.problem,
    }
