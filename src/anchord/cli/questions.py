"""`status`, `search`, `show`, `explain`, `errors`: questions, answered by the daemon, or by the index where none runs."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from anchord import asking
from anchord.adapters.asked import load_asked
from anchord.cli import render
from anchord.cli.dashboard import dashboard
from anchord.cli.editor import open_in_editor
from anchord.cli.frame import AsJson, app, ask, configuration, needed_daemon, out, places, print_json, say, warn
from anchord.errors import AnchordError, NotRunningError, UsageError
from anchord.ipc.protocol import MOST_EXPANDED, MOST_HITS, MOST_NEIGHBOURS
from anchord.model import printable
from anchord.places import Places
from anchord.roots import gather_roots, root_of


@app.command()
def status(
    watch: Annotated[bool, typer.Option("--watch", help="Show it anew every second, until Ctrl-C.")] = False,
    json: AsJson = False,
) -> None:
    """Show what the daemon does and how it is: exit 0 healthy, 1 degraded, 3 not running."""
    if watch and json:
        raise UsageError("--watch is for eyes", "leave out one of --watch and --json")
    if watch:
        _watch_status()
        return
    try:
        with needed_daemon(places()) as client:
            report = client.call("status")
    except NotRunningError as error:
        if json:
            print_json({"state": "not running", "degraded": [error.message]})
        raise
    if json:
        print_json(report)
    else:
        for line in render.status_lines(report):
            say(line, markup=True)
    raise typer.Exit(1 if report["state"] == "degraded" else 0)


def _watch_status() -> None:
    """Show the status until Ctrl-C, also while the daemon is restarted."""
    of = places()
    needed_daemon(of).close()
    with suppress(KeyboardInterrupt), Live(console=out, screen=out.is_terminal, auto_refresh=False) as live:
        while True:
            try:
                live.update(dashboard(ask(of, "status")), refresh=True)
            except NotRunningError as error:
                live.update(Text(f"{error.message}: waiting for it", "yellow"), refresh=True)
            time.sleep(1)


@app.command()
def search(  # noqa: PLR0917 - one parameter an option
    query: Annotated[str, typer.Argument(metavar="QUERY")],
    k: Annotated[int, typer.Option("-k", min=1, max=MOST_HITS, help="How many files (with --show-chunks: chunks).")] = 10,
    mode: Annotated[str, typer.Option("--mode", help="hybrid, vector or text")] = "hybrid",
    root: Annotated[str, typer.Option("--root", help="Only this root.")] = "",
    path: Annotated[str, typer.Option("--path", metavar="GLOB", help="Only this folder, or paths like this: '*.md'.")] = "",
    kind: Annotated[str, typer.Option("--kind", help="Only this kind: markdown, text, code, exchange, ...")] = "",
    section: Annotated[str, typer.Option("--section", metavar='"A > B"', help="Only below these headings.")] = "",
    room: Annotated[str, typer.Option("--room", help="Only this room or topic.")] = "",
    session: Annotated[str, typer.Option("--session", help="Only this conversation.")] = "",
    since: Annotated[str, typer.Option("--since", metavar="D", help="Only what was said since: 2026-01-31, 7d, 3h.")] = "",
    until: Annotated[str, typer.Option("--until", metavar="D", help="Only what was said until then.")] = "",
    show_chunks: Annotated[bool, typer.Option("--show-chunks", help="A flat list of chunks.")] = False,
    expand: Annotated[
        int,
        typer.Option("--expand", metavar="CHARS", min=0, max=MOST_EXPANDED, help="With what stands around it in its section."),
    ] = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Sync first.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say how each hit was found.")] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open the best hit in $VISUAL or $EDITOR, at its line.")] = False,
    json: AsJson = False,
) -> None:
    """Find chunks by meaning and by words; grouped by file, the best first."""
    of = places()
    words = {"query": query, "mode": mode, "root": root, "path": _place(of, path), "kind": kind, "section": section}
    words |= {"room": room, "session": session, "since": since, "until": until}
    _require_text(*words.values())
    wanted: dict[str, Any] = {**words, "k": k, "show_chunks": show_chunks, "expand": expand}
    if fresh:
        found = ask(of, "search", **wanted, fresh=True)
    else:
        found, lives = asking.ask(of, "search", wanted)
        if not lives:
            warn("anchord is not running: results are as of the last `anchord index`")
    if json:
        print_json(found)
    else:
        _say_found(found, explain=explain)
    if open_it and found["groups"]:
        open_in_editor(found["groups"][0][0])


def _say_found(found: dict[str, Any], *, explain: bool) -> None:
    if found["note"]:
        warn(found["note"])
    if not found["groups"]:
        warn("nothing found")
    for line in render.search_lines(found["groups"], os.getcwd(), explain=explain):
        say(line, markup=True)


@app.command()
def show(
    chunk_id: Annotated[str, typer.Argument(metavar="ID", help="The id's first digits do.")],
    whole: Annotated[bool, typer.Option("--whole", help="All chunks of its file.")] = False,
    context: Annotated[
        int, typer.Option("--context", metavar="N", min=0, max=MOST_NEIGHBOURS, help="So many neighbours on both sides.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Print a chunk, its neighbours, or all chunks of its file."""
    _require_text(chunk_id)
    found, _ = asking.ask(places(), "show", {"id": chunk_id, "whole": whole, "context": context})
    if json:
        print_json(found)
        return
    for chunk in found["chunks"]:
        for line in render.chunk_lines(chunk):
            say(line, markup=True)
    if whole and "conversation" in found:
        for line in render.conversation_lines(found["conversation"]):
            say(line, markup=True)


@app.command()
def explain(path: Annotated[str, typer.Argument(metavar="PATH")], json: AsJson = False) -> None:
    """Say whether a file is indexed, which rule decided, and what would be done with it now."""
    absolute = os.path.abspath(os.path.expanduser(path))
    of = places()
    if _is_text(absolute):
        told, _ = asking.ask(of, "explain", {"path": absolute})
    else:  # JSON holds no such name; the index itself does.
        from anchord.queries import answer_explain

        told = asking.read(of, lambda reader: answer_explain(reader, reader.catalogue, absolute))
    if json:
        print_json(told)
        return
    for line in render.explain_lines(told):
        say(line, markup=True)


@app.command()
def errors(json: AsJson = False) -> None:
    """List the files that are not indexed, or not wholly, and why."""
    listed: list[dict[str, Any]] = ask(places(), "errors")
    if json:
        print_json(listed)
        return
    for failure in listed:
        say(f"[yellow]{escape(failure['path'])}[/]: {escape(failure['reason'])}", markup=True)


def _place(of: Places, glob: str) -> str:
    """Return a glob; a place seen from here, as results are printed, as the path that roots have."""
    seen = os.path.expanduser(glob)
    is_here = seen in {".", ".."} or seen.startswith(("./", "../"))
    if not is_here and not (seen and os.path.exists(seen)):
        return glob
    place = os.path.realpath(seen)
    if is_here or seen.startswith("/"):
        return place
    with suppress(AnchordError):  # A configuration that cannot be read is no matter of a search.
        if root_of(gather_roots(configuration(of), load_asked(of.asked).roots, (), of.own), place):
            return place
    return glob


def _is_text(argument: str) -> bool:
    return printable(argument) == argument


def _require_text(*arguments: str) -> None:
    for argument in arguments:
        if not _is_text(argument):
            raise UsageError(f"`{argument}` is not UTF-8", "give text")
