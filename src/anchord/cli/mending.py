"""`rescan`, `confirm-delete`, `reindex`, `rebuild`, `forget`: for when the index should look again, or let go."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from anchord.asking import connect
from anchord.cli.frame import AsJson, app, ask, configuration, places, print_json, say, warn
from anchord.cli.index import here, say_summary, there
from anchord.errors import UsageError
from anchord.model import printable
from anchord.places import Places

Name = Annotated[str, typer.Argument(metavar="ROOT")]


@app.command()
def rescan(name: Annotated[str, typer.Argument(metavar="[ROOT]")] = "", json: AsJson = False) -> None:
    """Walk a root (default: all) now, and return when what that found is done."""
    result = ask(places(), "rescan", name=name)
    if json:
        print_json(result)
        return
    say(f"walked and in sync ({result['waited_s']:.2f} s)")
    for away in result["away"]:
        warn(f"root {away} is away: its rows are kept as they were")


@app.command("confirm-delete")
def confirm_delete(name: Name, json: AsJson = False) -> None:
    """Let the rows of files go that left a root all at once; until then they are kept."""
    of = places()
    client = connect(of)
    if client is not None:
        with client:
            result = client.call("confirm-delete", name=name)
    else:
        result = _confirm_here(of, name)
    if json:
        print_json(result)
    else:
        say(f"{result['let_go']} files of {name} left the index" if result["let_go"] else f"nothing of {name} was held")


@app.command()
def reindex(
    force_rechunk: Annotated[
        bool, typer.Option("--force-rechunk", help="Chunk every file again, into a new index that then takes over.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Read every file again, whatever its size and times say; embed only texts that are new."""
    of = places()
    client = connect(of)
    if client is not None:
        say_summary(there(of, client, "reindex", {"force_rechunk": force_rechunk}), as_json=json)
    else:
        say_summary(here(of, [], "rechunk" if force_rechunk else "reread"), as_json=json)


@app.command()
def rebuild(json: AsJson = False) -> None:
    """Build the index anew from the files, embedding every text; the present one serves until then."""
    of = places()
    client = connect(of)
    result = there(of, client, "rebuild", {}) if client is not None else here(of, [], "rebuild")
    say_summary(result, as_json=json)


@app.command()
def forget(
    path: Annotated[str, typer.Argument(metavar="PATH")],
    undo: Annotated[bool, typer.Option("--undo", help="Let it into the index again.")] = False,
    json: AsJson = False,
) -> None:
    """Take a file or folder out of the index for good, old versions and caches too; the file itself is not touched."""
    absolute = os.path.abspath(os.path.expanduser(path))
    if printable(absolute) != absolute:
        raise UsageError(f"`{absolute}` is not UTF-8", "forget the folder that holds it")
    of = places()
    client = connect(of)
    if client is not None:
        with client:
            result = client.call("forget", path=absolute, undo=undo)
    else:
        result = _forget_here(of, absolute, undo=undo)
    if json:
        print_json(result)
    elif undo:
        say(f"{absolute} may be indexed again")
    else:
        say(f"forgotten: {result['files']} files, {result['rows']} rows; it stays out until `anchord forget --undo`")
        if result["disk_files_removed"] >= 0:
            say(f"no file that held them is left on the disk ({result['disk_files_removed']} were removed)")


def _confirm_here(of: Places, name: str) -> dict[str, Any]:
    from anchord.core.guard import Leave
    from anchord.workspace import open_writer

    writer = open_writer(of, configuration(of), [])
    try:
        if name not in writer.by_name:
            raise UsageError(f"no root `{name}`", f"there are: {', '.join(sorted(writer.by_name)) or 'none'}")
        writer.catalogue.note("clean", "0")
        held = writer.indexer.reconcile(name).held
        found = writer.indexer.reconcile(name, leave=Leave(confirmed=True))
        for _ in writer.indexer.index(found.gone, gone=found.gone):
            pass
        return {"name": name, "let_go": held}
    finally:
        writer.close()


def _forget_here(of: Places, path: str, *, undo: bool) -> dict[str, Any]:
    from anchord.forgetting import forget as forget_in
    from anchord.forgetting import recall
    from anchord.generation import discard
    from anchord.workspace import open_writer

    writer = open_writer(of, configuration(of), [])
    try:
        if undo:
            return {"path": path, "root": recall(writer, path)}
        discard(writer)
        gone = forget_in(writer, path)
        return {"path": gone.path, "files": gone.files, "rows": gone.rows, "disk_files_removed": gone.disk_files}
    finally:
        writer.close()
