"""`connect`: give agents access to the index, by the settings of their programs."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from anchord.cli import values
from anchord.cli.app import JsonOption, app, print_json, print_line, warn
from anchord.cli.parameters import Argument, Option
from anchord.cli.registry import Exit
from anchord.core.quoting import escape_non_utf8, quote_name, quote_names
from anchord.errors import AnchordError, UsageError

if TYPE_CHECKING:
    from anchord.agents.clients import Client, Places, Scope, Server
    from anchord.agents.connecting import Connection
    from anchord.agents.steps import Step

_RETRIES = 3
_PARTS = {"server": "", "skill": " (skill)", "hooks": " (hooks)"}
_DONE = {"add": "added", "update": "updated", "remove": "removed", "none": "unchanged"}


class _Plan:
    """The steps for some clients, and what keeps others from being connected."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.problems: dict[str, AnchordError] = {}

    def clients(self) -> list[Client]:
        """Return the clients of the steps."""
        return list({step.client.name: step.client for step in self.steps}.values())

    def changes(self) -> list[Step]:
        """Return the steps that change something."""
        return [step for step in self.steps if step.action != "none"]


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
    from anchord.agents.connecting import find_places, this_server

    if scope not in ("user", "project"):
        raise UsageError(f"unknown scope {quote_name(scope)}", "it is user or project")
    places = find_places(os.environ, os.getcwd())
    server = this_server(os.environ)
    if status:
        _print_status(places, server, is_json=json)
        return
    chosen = _choose(clients or [], places)
    if hooks and clients and not any(client.hooks_file for client in chosen):
        raise UsageError("--hooks are for Claude Code", "`anchord connect claude --hooks`")
    scope_: Scope = "project" if scope == "project" else "user"
    make = partial(_make_plan, places, scope_, None if remove else server, hooks)
    plan = make(chosen)
    if not json:
        _print_plan(plan, is_removal=remove)
    if hooks and not remove and not any(client.hooks_file for client in chosen):
        warn("anchord: --hooks: Claude Code was not found, so no hooks are added")
    is_asked = bool(plan.changes()) and not dry_run
    if is_asked and not yes:
        if json:
            raise UsageError("--json does not ask", "use --yes or --dry-run")
        _confirm("Remove anchord?" if remove else "Connect?")
    done = _apply_until_done(plan, make, places, is_json=json) if is_asked else []
    if json:
        _print_report(plan, done, is_dry_run=dry_run)
    elif done:
        print_line("restart the clients that are running: they read their settings at the start")
    for problem in plan.problems.values():
        warn(f"anchord: {problem.message}; {problem.hint}")
    if plan.problems:
        raise Exit(1)


def _choose(names: list[str], places: Places) -> list[Client]:
    """Return the clients of these names; without names, those that are found."""
    from anchord.agents.clients import CLIENT_NAMES, CLIENTS
    from anchord.agents.connecting import is_installed

    unknown = [name for name in names if name not in CLIENT_NAMES]
    if unknown:
        raise UsageError(
            f"unknown client {quote_name(unknown[0])}", f"known: {quote_names(CLIENT_NAMES)}"
        )
    if names:
        return [client for client in CLIENTS if client.name in names]
    found = [client for client in CLIENTS if is_installed(client, places)]
    if not found:
        raise UsageError(
            "found no client",
            f"name the one to connect: {', '.join(CLIENT_NAMES)}",
        )
    return found


def _make_plan(
    places: Places, scope: Scope, server: Server | None, hooks: bool, chosen: list[Client]
) -> _Plan:
    """Return the steps that connect clients; without a server, those that remove anchord."""
    plan = _Plan()
    for client in chosen:
        try:
            plan.steps += list(_steps(client, places, scope, server, hooks=hooks))
        except AnchordError as error:
            plan.problems[client.name] = error
    return plan


def _steps(
    client: Client, places: Places, scope: Scope, server: Server | None, *, hooks: bool
) -> Iterator[Step]:
    from anchord.agents.connecting import connection
    from anchord.agents.settings_files import copy_of, read
    from anchord.agents.steps import connecting_steps, hook_step, removing_steps

    if server is None:
        yield from removing_steps(client, places, scope, read, copy_of)
        return
    yield from connecting_steps(client, places, scope, server, read)
    # Hooks that are there are updated, also without --hooks.
    if client.hooks_file and (hooks or connection(client, places, scope, server).hooks):
        yield hook_step(client, places, scope, server, read)


def _print_plan(plan: _Plan, *, is_removal: bool) -> None:
    for step in plan.changes():
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
    noted = [step for step in plan.steps if step.note]
    for step in noted:
        print_line(f"{_title(step)}: unchanged: {step.note}")
    if not plan.changes() and not plan.problems and not noted:
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


def _apply_until_done(
    plan: _Plan, make: Callable[[list[Client]], _Plan], places: Places, *, is_json: bool
) -> list[dict[str, Any]]:
    """Make the changes; again for clients that wrote their settings in the same moment."""
    from anchord.agents.settings_files import ChangedError

    done = _apply(plan, places, is_json=is_json)
    for _ in range(_RETRIES):
        problems = plan.problems.items()
        changed = [name for name, error in problems if isinstance(error, ChangedError)]
        again = make([client for client in plan.clients() if client.name in changed])
        done += _apply(again, places, is_json=is_json)
        for name in changed:
            del plan.problems[name]
        plan.problems |= again.problems
    return done


def _apply(plan: _Plan, places: Places, *, is_json: bool) -> list[dict[str, Any]]:
    """Make the changes; return what was done. A change that fails does not stop the others."""
    from anchord.agents.connecting import apply

    done = []
    for step in plan.changes():
        if step.client.name in plan.problems:
            continue
        action = step.action
        try:
            remarks = apply(step, places)
        except AnchordError as error:
            plan.problems[step.client.name] = error
            continue
        done.append(_record(step) | {"remarks": remarks})
        if not is_json:
            said = "; ".join([_DONE[action], *remarks]).replace("; with `", " with `", 1)
            print_line(f"{_title(step)}: {said}")
    return done


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


def _print_report(plan: _Plan, done: list[dict[str, Any]], *, is_dry_run: bool) -> None:
    problems = [
        {"client": name, "problem": error.message, "hint": error.hint}
        for name, error in plan.problems.items()
    ]
    planned = [_record(step) | {"lines": list(step.lines())} for step in plan.steps]
    changes = {"planned": planned} if is_dry_run else {"done": done}
    notes = [_record(step) for step in plan.steps if step.note]
    print_json({**changes, "unchanged": notes, "problems": problems})


def _print_status(places: Places, server: Server, *, is_json: bool) -> None:
    from anchord.agents.connecting import list_connections
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
