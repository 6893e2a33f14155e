"""`status`, `search`, `show`, `explain`, `errors`.

The daemon answers them; `search`, `show` and `explain` read the index where none runs.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Annotated

import typer

from anchord.cli import values
from anchord.cli.app import (
    JsonOption,
    app,
    ask_daemon,
    connect_or_raise,
    ensure_paths,
    load_user_config,
    print_json,
    print_line,
    warn,
)
from anchord.cli.output import render
from anchord.cli.output.console import escape_markup, stdout_console
from anchord.cli.output.detached import detached_hit_lines
from anchord.cli.output.editor import open_in_editor
from anchord.cli.output.status_text import status_lines
from anchord.config.paths import Paths, absolute_path
from anchord.core.quoting import escape_non_utf8, escape_path, quote_name
from anchord.daemon.access import ask_daemon_or_index, ask_index
from anchord.errors import AnchordError, NotRunningError, UsageError
from anchord.ipc import requests
from anchord.ipc.messages.searching import (
    MAX_CONTEXT_CHUNKS,
    MAX_EXPAND_CHARS,
    MAX_HITS,
    SearchAnswer,
)


@app.command()
def status(
    watch: Annotated[
        bool, typer.Option("--watch", help="Refresh every second, until Ctrl-C.")
    ] = False,
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
    raise typer.Exit(1 if report.state == "degraded" else 0)


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
def search(  # noqa: PLR0917 - one parameter an option
    query: Annotated[str, typer.Argument(metavar="QUERY")],
    k: Annotated[
        int,
        typer.Option(
            "-k", min=1, max=MAX_HITS, help="How many files (with --show-chunks: chunks)."
        ),
    ] = 10,
    mode: Annotated[
        str,
        typer.Option("--mode", help="hybrid, vector or text", autocompletion=values.complete_mode),
    ] = "hybrid",
    root: Annotated[
        str,
        typer.Option(
            "--root",
            help="Only this folder, by its name in `anchord roots`.",
            autocompletion=values.complete_root,
        ),
    ] = "",
    path: Annotated[
        str,
        typer.Option(
            "--path", metavar="GLOB", help="Only this folder, or paths that match: '*.md'."
        ),
    ] = "",
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            help="Only this kind: markdown, text, code, exchange, ...",
            autocompletion=values.complete_kind,
        ),
    ] = "",
    section: Annotated[
        str, typer.Option("--section", metavar='"A > B"', help="Only below these headings.")
    ] = "",
    room: Annotated[str, typer.Option("--room", help="Only this room or topic.")] = "",
    session: Annotated[str, typer.Option("--session", help="Only this conversation.")] = "",
    chunk_type: Annotated[
        str,
        typer.Option(
            "--type",
            help="Only section, text, code_block, table or list.",
            autocompletion=values.complete_chunk_type,
        ),
    ] = "",
    language: Annotated[
        str, typer.Option("--lang", help="Only code of this language: python, go, ...")
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="D",
            help="Only what changed or was said since: 2026-01-31, 7d, 3h, 'last week'.",
        ),
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="D", help="Only what changed or was said until then.")
    ] = "",
    recent: Annotated[
        str,
        typer.Option(
            "--recent", metavar="AGE", help="Weigh older hits down; half the score at AGE: 30d."
        ),
    ] = "",
    show_chunks: Annotated[
        bool, typer.Option("--show-chunks", help="List chunks, not grouped by file.")
    ] = False,
    expand: Annotated[
        int,
        typer.Option(
            "--expand",
            metavar="CHARS",
            min=0,
            max=MAX_EXPAND_CHARS,
            help="Add text around each hit, up to so many characters.",
        ),
    ] = 0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Wait first until all changes so far are indexed.")
    ] = False,
    detached: Annotated[
        bool,
        typer.Option(
            "--detached", help="Also search conversations kept but not indexed, by words."
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how each hit was found.")
    ] = False,
    open_it: Annotated[
        bool, typer.Option("--open", help="Open the best hit in $VISUAL or $EDITOR, at its line.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Find chunks by meaning and by words, grouped by file, best first."""
    paths = ensure_paths()
    path_filter = _resolve_path_filter(paths, path)
    names = (root, path_filter, kind, section, room, session, chunk_type, language)
    _require_utf8(query, mode, *names, since, until, recent)
    call = requests.search(
        query,
        k=k,
        mode=mode,
        root=root,
        path=path_filter,
        kind=kind,
        section=section,
        room=room,
        session=session,
        chunk_type=chunk_type,
        language=language,
        since=since,
        until=until,
        recent=recent,
        show_chunks=show_chunks,
        expand=expand,
        fresh=fresh,
        detached=detached,
    )
    # Only a daemon can bring the index up to date first.
    results = ask_daemon(paths, call) if fresh else ask_daemon_or_index(paths, call).value
    if json:
        print_json(results)
    else:
        _print_results(results, explain=explain)
    if open_it and results.groups:
        open_in_editor(results.groups[0][0])


def _print_results(results: SearchAnswer, *, explain: bool) -> None:
    if results.note:
        warn(results.note)
    if not results.groups and not results.detached:
        warn("nothing found" if results.complete else "nothing found so far")
    if explain:
        print_line(render.weighing_line(results), markup=True)
    for line in render.search_lines(results.groups, os.getcwd(), with_explanations=explain):
        print_line(line, markup=True)
    for hit in results.detached:
        for line in detached_hit_lines(hit):
            print_line(line, markup=True)


@app.command()
def show(
    chunk_id: Annotated[
        str, typer.Argument(metavar="ID", help="A chunk's id, or its first digits.")
    ],
    whole: Annotated[bool, typer.Option("--whole", help="All chunks of its file.")] = False,
    context: Annotated[
        int,
        typer.Option(
            "--context",
            metavar="N",
            min=0,
            max=MAX_CONTEXT_CHUNKS,
            help="N neighbours on each side.",
        ),
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Print a chunk, its neighbours, or all chunks of its file."""
    _require_utf8(chunk_id)
    call = requests.show(chunk_id, whole=whole, context=context)
    answer = ask_daemon_or_index(ensure_paths(), call).value
    if json:
        print_json(answer)
        return
    console = stdout_console()
    width = console.width if console.is_terminal else None
    for chunk in answer.chunks:
        for line in render.chunk_lines(chunk, width):
            print_line(line, markup=True)
    if whole and answer.conversation:
        for line in render.conversation_lines(answer.conversation):
            print_line(line, markup=True)


@app.command()
def explain(path: Annotated[str, typer.Argument(metavar="PATH")], json: JsonOption = False) -> None:
    """Explain whether a file is indexed, which rule decided, and what happens to it next."""
    absolute = absolute_path(path)
    paths = ensure_paths()
    call = requests.explain(absolute)
    if _is_utf8(absolute):
        answer = ask_daemon_or_index(paths, call).value
    else:
        answer = ask_index(paths, call)  # JSON cannot send the name to the daemon.
    if json:
        print_json(answer)
        return
    for line in render.explain_lines(answer):
        print_line(line, markup=True)


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


def _resolve_path_filter(paths: Paths, path_filter: str) -> str:
    """Return a path filter as the index stores paths; a glob stays as it is.

    A path relative to the current folder, as results are printed, becomes an absolute one. So does
    any other path that exists here, if it is in an indexed folder.
    """
    expanded = os.path.expanduser(path_filter)
    is_here = expanded in {".", ".."} or expanded.startswith(("./", "../"))
    exists = bool(expanded) and os.path.exists(expanded)
    if not is_here and not exists:
        return path_filter
    absolute = os.path.realpath(expanded)
    if is_here or expanded.startswith("/") or _is_in_root(paths, absolute):
        return absolute
    return path_filter


def _is_in_root(paths: Paths, path: str) -> bool:
    """Return whether a path is in an indexed folder; False if the configuration is broken."""
    # Imported where it is needed: `status` and most searches do without it.
    from anchord.config.cli_state import load_cli_state
    from anchord.config.roots import find_root, gather_roots

    with suppress(AnchordError):
        given_roots = load_cli_state(paths.cli_state_file).given_roots
        roots = gather_roots(load_user_config(paths), given_roots, (), paths.own_folders)
        return bool(find_root(roots, path))
    return False


def _is_utf8(argument: str) -> bool:
    return escape_non_utf8(argument) == argument


def _require_utf8(*arguments: str) -> None:
    for argument in arguments:
        if not _is_utf8(argument):
            raise UsageError(f"{quote_name(argument)} is not UTF-8", "write it in UTF-8")
