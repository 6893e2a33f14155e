"""`rescan`, `confirm-delete`, `reindex`, `rebuild`, `forget`: read again, or delete."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from anchord.cli import values
from anchord.cli.app import (
    JsonOption,
    app,
    ask_daemon,
    ask_daemon_or_engine,
    ask_engine,
    ensure_paths,
    print_json,
    print_line,
    warn,
)
from anchord.cli.commands.index import print_index_summary
from anchord.cli.commands.live import warn_missing_folder
from anchord.cli.output.progress import ask_with_progress
from anchord.cli.output.prompt import confirm
from anchord.cli.parameters import Argument, Option
from anchord.cli.registry import Exit
from anchord.config.cli_state import load_cli_state
from anchord.config.paths import Paths, absolute_path
from anchord.core.counted import counted
from anchord.core.quoting import quote_command, quote_name, quote_names
from anchord.daemon.access import try_connect
from anchord.errors import UsageError
from anchord.ipc import requests
from anchord.ipc.messages.upkeep import ForgetAnswer

RootNameArgument = Annotated[str, Argument(metavar="ROOT", autocompletion=values.complete_root)]


@app.command()
def rescan(
    name: Annotated[str, Argument(metavar="[ROOT]", autocompletion=values.complete_root)] = "",
    json: JsonOption = False,
) -> None:
    """Compare a folder (default: all) with the index now; return when all changes are indexed."""
    result = ask_daemon(ensure_paths(), requests.rescan(name))
    if json:
        print_json(result)
        return
    print_line(f"rescanned; up to date ({result.waited_s:.2f} s)")
    for root_name in result.away:
        warn_missing_folder(root_name)


@app.command("confirm-delete")
def confirm_delete(name: RootNameArgument, json: JsonOption = False) -> None:
    """Confirm a mass deletion: delete the files that vanished all at once from the index too.

    Until then the index keeps them.
    """
    paths = ensure_paths()
    result = ask_daemon_or_engine(paths, requests.confirm_delete(name))
    if json:
        print_json(result)
    elif result.let_go:
        print_line(f"confirmed: {result.let_go} files of {quote_name(name)} were deleted")
    else:
        print_line(f"no deletions are waiting for confirmation in {quote_name(name)}")


@app.command()
def reindex(
    force_rechunk: Annotated[
        bool,
        Option(
            "--force-rechunk",
            help="Chunk every file again, into a new index that then replaces this one.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Read every file again, whatever its size and times; embed only texts that are new."""
    paths = ensure_paths()
    call = requests.reindex(force_rechunk=force_rechunk)
    client = try_connect(paths)
    if client is not None:
        result = ask_with_progress(paths, client, call)
    else:
        result = ask_engine(paths, call)
    print_index_summary(result, as_json=json)


@app.command()
def rebuild(json: JsonOption = False) -> None:
    """Build a new index from the files and embed every text; until then the old one serves."""
    paths = ensure_paths()
    client = try_connect(paths)
    if client is not None:
        result = ask_with_progress(paths, client, requests.rebuild())
    else:
        result = ask_engine(paths, requests.rebuild())
    print_index_summary(result, as_json=json)


@app.command()
def forget(
    path: Annotated[str, Argument(metavar="PATH")],
    undo: Annotated[bool, Option("--undo", help="Allow it to be indexed again.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Delete without asking.")] = False,
    json: JsonOption = False,
) -> None:
    """Delete a file or folder from the index for good, with old versions and caches.

    The file itself is not touched. It stays out of the index until --undo. Conversations of
    deleted transcripts exist in the index only: they are counted before you confirm.
    """
    absolute = absolute_path(path)
    paths = ensure_paths()
    if not undo and not yes:
        preview = ask_daemon_or_engine(paths, requests.forget(absolute, preview=True))
        if not _is_empty(preview):
            _confirm_forget(preview)
    result = ask_daemon_or_engine(paths, requests.forget(absolute, undo=undo))
    if json:
        print_json(result)
    elif undo:
        _print_undone(paths, absolute, result)
    else:
        _print_forgotten(result)
    if not undo and _is_empty(result):
        raise Exit(1)


def _print_undone(paths: Paths, path: str, result: ForgetAnswer) -> None:
    """Say that a path may be indexed again, or which folder around it is still forgotten."""
    for folder in load_cli_state(paths.cli_state_file).forgotten_paths:
        if Path(path).is_relative_to(folder):
            command = quote_command("anchord forget --undo", folder, "PATH")
            warn(f"{quote_name(folder)} and everything in it is still forgotten: {command}")
            return
    print_line(f"{quote_name(result.path)} may be indexed again")


def _confirm_forget(preview: ForgetAnswer) -> None:
    """Say what would be deleted, and ask; without a terminal, refuse.

    Raises:
        UsageError: There is no terminal to ask on.
        KeyboardInterrupt: The answer is no.
    """
    question = f"delete {_listed(preview)} from the index for good"
    if not sys.stdin.isatty():
        raise UsageError(f"this would {question}", "add --yes to do it")
    first, rest = question[0].upper(), question[1:]
    if not confirm(f"{first}{rest}?", is_stderr=True):
        raise KeyboardInterrupt


def _is_empty(counts: ForgetAnswer) -> bool:
    return not counts.files and not counts.exchanges


def _listed(counts: ForgetAnswer) -> str:
    """Return what `forget` deletes: files, exchanges, and how many exist nowhere else."""
    listed = counted(counts.files, "file")
    if counts.exchanges:
        listed += f" and {counted(counts.exchanges, 'exchange')} of conversations"
    if counts.only_here:
        exist = "exists" if counts.only_here == 1 else "exist"
        listed += f" ({counts.only_here:,} of which {exist} nowhere else)"
    return listed


def _print_forgotten(result: ForgetAnswer) -> None:
    if _is_empty(result):
        warn(
            f"nothing of {quote_name(result.path)} is in the index; its old versions and the "
            "vector cache were erased, in case they held it"
        )
        return
    print_line(
        f"deleted from the index: {_listed(result)}, {counted(result.rows, 'chunk')}; "
        "it stays out of the index until `anchord forget --undo`"
    )
    if result.exchanges:
        print_line(
            "its exchanges stay out even if the file is renamed, or if a file that is not indexed "
            "yet contains them"
        )
    if result.also_in:
        warn(
            f"some of the exchanges are in other files too, and return from there: "
            f"{quote_names(result.also_in)}"
        )
    if result.damaged_folder:
        warn(
            f"damaged copies in {result.damaged_folder} may still hold its text: "
            "they were kept for you to look at, and only you delete them"
        )
    elif result.disk_files_removed >= 0:
        print_line(
            f"deleted {counted(result.disk_files_removed, 'file')} of the index that held its "
            "text; "
            "none are left on disk"
        )
