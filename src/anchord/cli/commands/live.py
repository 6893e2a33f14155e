"""`status`, `errors`, `sync`, `pause`, `resume`, `roots`: commands that ask the daemon.

They start in a fifth of the time of the others: this module imports only what they need.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Annotated

from anchord.cli.app import (
    JsonOption,
    app,
    ask_daemon,
    connect_or_raise,
    ensure_paths,
    print_json,
    print_line,
    warn,
)
from anchord.cli.output.console import stdout_console
from anchord.cli.output.markup import escape_markup
from anchord.cli.output.status_text import status_lines
from anchord.cli.parameters import Option
from anchord.cli.registry import Exit
from anchord.core.quoting import escape_gaps, escape_path, quote_command, quote_name
from anchord.daemon.access import try_connect
from anchord.errors import NotRunningError, UsageError
from anchord.ipc import requests
from anchord.ipc.messages.upkeep import MAX_WAIT_S


@app.command()
def status(
    watch: Annotated[bool, Option("--watch", help="Refresh every second, until Ctrl-C.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what the daemon does and whether it is healthy.

    Exit code 0: healthy; 1: degraded; 3: not running.
    """
    if watch and json:
        raise UsageError("--watch cannot be combined with --json", "leave one of them out")
    if watch:
        _watch_status()
        return
    try:
        report = ask_daemon(ensure_paths(), requests.status())
    except NotRunningError as error:
        if json:
            print_json({"state": "not running", "degraded": [error.message]})
        raise
    if json:
        print_json(report)
    else:
        for line in status_lines(report):
            print_line(line, markup=True)
    raise Exit(1 if report.state == "degraded" else 0)


def _watch_status() -> None:
    """Show the status until Ctrl-C, also across restarts of the daemon.

    Raises:
        NotRunningError: No daemon runs at the start.
    """
    from rich.live import Live
    from rich.text import Text

    from anchord.cli.output.dashboard import build_dashboard

    paths = ensure_paths()
    connect_or_raise(paths).close()
    console = stdout_console()
    with (
        suppress(KeyboardInterrupt),
        Live(
            console=console,
            screen=console.is_terminal,
            auto_refresh=False,
        ) as live,
    ):
        while True:
            try:
                live.update(build_dashboard(ask_daemon(paths, requests.status())), refresh=True)
            except NotRunningError as error:
                live.update(Text(f"{error.message}; retrying every second", "yellow"), refresh=True)
            time.sleep(1)


@app.command()
def errors(json: JsonOption = False) -> None:
    """List the files that are not indexed, or only in part, and why."""
    listed = ask_daemon(ensure_paths(), requests.errors())
    if json:
        print_json(listed)
        return
    for failure in listed:
        path = escape_markup(escape_path(failure.path))
        print_line(f"[yellow]{path}[/]: {escape_markup(failure.reason)}", markup=True)


@app.command()
def sync(
    timeout: Annotated[
        float | None,
        Option(
            "--timeout",
            metavar="S",
            min=0,
            max=MAX_WAIT_S,
            help="Give up after S seconds.",
        ),
    ] = None,
    words: Annotated[
        bool, Option("--words", help="Wait for search by words only, not by meaning.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Wait until every change made before this command is searchable."""
    result = ask_daemon(ensure_paths(), requests.sync(timeout, words=words))
    if json:
        print_json(result)
        return
    subject = "search by words is up to date" if words else "up to date"
    print_line(f"{subject} ({result.waited_s:.2f} s)")
    for root_name in result.away:
        warn_missing_folder(root_name)
    for root_name, file_count in result.held.items():
        warn(
            f"{file_count} files of {quote_name(root_name)} vanished at once; the index keeps them "
            f"until {quote_command('anchord confirm-delete', root_name)}"
        )


@app.command()
def pause() -> None:
    """Pause indexing until `resume`, or until the daemon ends; searches still work."""
    ask_daemon(ensure_paths(), requests.pause())


@app.command()
def resume() -> None:
    """Resume indexing after `pause`."""
    ask_daemon(ensure_paths(), requests.resume())


@app.command()
def roots(json: JsonOption = False) -> None:
    """List the indexed folders."""
    paths = ensure_paths()
    client = try_connect(paths)
    if client is not None:
        with client:
            listed = client.roots()
    else:
        from anchord.cli.commands.roots import list_without_daemon

        listed = list_without_daemon(paths)
    if json:
        print_json(listed)
        return
    if not listed:
        warn("no folders yet: `anchord add FOLDER` adds one")
    names = [escape_gaps(root.name) for root in listed]
    width = max(map(len, names), default=0)
    for name, root in zip(names, listed, strict=True):
        path = escape_gaps(root.path)
        figures = f"{root.kind}, {root.files} files, {root.chunks} chunks, {root.origin}"
        print_line(f"{name:<{width}}  {path}  ({figures})")


def warn_missing_folder(root_name: str) -> None:
    """Warn that a root's folder is not the one that was indexed, so its chunks stay as they are."""
    warn(
        f"the folder of {quote_name(root_name)} is missing or another one is in its place: the "
        "index keeps what it had of it; `anchord status` says more"
    )
