"""`backup` and `restore`: copy the whole index, with the archive, to another folder and back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from anchord.cli.app import (
    JsonOption,
    app,
    connect_or_raise,
    ensure_paths,
    load_user_config,
    print_json,
    print_line,
    warn,
)
from anchord.cli.output.progress import ask_with_progress, progress_bar
from anchord.cli.parameters import Argument, Option
from anchord.cli.registry import Exit
from anchord.config.paths import Paths, absolute_path
from anchord.core.quoting import escape_non_utf8, quote_name
from anchord.daemon.access import try_connect
from anchord.errors import TargetNotWritableError, UsageError
from anchord.ipc import requests
from anchord.ipc.client import Client
from anchord.ipc.messages.upkeep import BackupAnswer

_BYTES_PER_MB = 1_000_000


@app.command()
def backup(
    target: Annotated[str, Argument(metavar="TARGET")],
    check: Annotated[
        bool, Option("--check", help="Read the backups in TARGET and report damage.")
    ] = False,
    keep: Annotated[
        int | None,
        Option(
            "--keep",
            metavar="N",
            min=1,
            help="Then delete all but the newest N.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Back up the index, the conversation archive and the configuration into a folder.

    Works while anchord runs. A second backup into the same folder copies only what changed. Models
    are not part of it. With --check, exit code 1 means that a backup is damaged.
    """
    folder = absolute_path(target)
    if check:
        if keep is not None:
            raise UsageError("--check cannot be combined with --keep", "check first, then back up")
        _check(folder, as_json=json)
        return
    paths = ensure_paths()
    client = try_connect(paths)
    if client is not None:
        result = _backup_by_daemon(paths, client, folder, keep)
    else:
        result = _backup_in_process(paths, folder, keep)
    if json:
        print_json(result)
        return
    size = f"{_files(result.files)}, {_megabytes(result.bytes)}"
    copied = f"{_files(result.copied_files)}, {_megabytes(result.copied_bytes)}"
    print_line(f"backed up to {result.snapshot}: {size}, of which new: {copied}")
    if result.warning:
        warn(result.warning)
    if result.remote_table:
        _warn_remote_table(result.remote_table)
    if result.deleted:
        print_line(f"deleted old backups: {', '.join(result.deleted)}")


@app.command()
def restore(
    source: Annotated[str, Argument(metavar="SOURCE")],
    moves: Annotated[
        list[str] | None,
        Option("--map", metavar="OLD=NEW", help="Folders below OLD are below NEW on this machine."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Restore a backup into an empty home: the newest in SOURCE, or the one that SOURCE names.

    Nothing is ever overwritten or deleted. Stop anchord first.
    """
    from anchord.index.backup import restore_home

    moved = _parse_moves(moves or ())
    with _byte_progress("MB restored") as on_progress:
        restored = restore_home(
            ensure_paths(),
            absolute_path(source),
            moved,
            on_progress,
        )
    missing = [
        {"name": root.name, "path": escape_non_utf8(root.path)} for root in restored.missing_roots
    ]
    manifest = restored.manifest
    if json:
        print_json(
            {
                "snapshot": escape_non_utf8(str(restored.snapshot)),
                "created": manifest.created,
                "files": len(manifest.files),
                "bytes": manifest.total_bytes,
                "missing_folders": missing,
                "damaged_table_files": list(restored.damaged_table_files),
                "remote_table": manifest.remote_table,
            }
        )
        return
    size = f"{_files(len(manifest.files))}, {_megabytes(manifest.total_bytes)}"
    print_line(f"restored the backup of {manifest.created}: {size}")
    for root in missing:
        warn(
            f"the folder {quote_name(root['path'])} of {quote_name(root['name'])} does not exist "
            "here: what was indexed of it stays searchable"
        )
    if restored.damaged_table_files:
        warn(
            f"left out {_files(len(restored.damaged_table_files))} of the table, damaged in the "
            "backup: the next start embeds again what they held"
        )
    if manifest.remote_table:
        _warn_remote_table(manifest.remote_table)
    print_line("`anchord start` brings the index up to date and keeps it so")


def _check(folder: str, *, as_json: bool) -> None:
    """Check all snapshots of a folder, and exit with 1 if one is damaged."""
    from anchord.store.backup.check import SnapshotChecker
    from anchord.store.backup.manifest import list_partial_snapshots, list_snapshots
    from anchord.store.backup.restore import find_snapshot

    newest = find_snapshot(Path(folder))
    is_single = str(newest) == folder
    snapshots = [newest] if is_single else list_snapshots(Path(folder))
    interrupted = [] if is_single else list_partial_snapshots(Path(folder))
    with _byte_progress("MB read") as on_progress:
        checker = SnapshotChecker(_counting(on_progress))
        problems = [
            f"{snapshot.name}/{problem}"
            for snapshot in snapshots
            for problem in checker.find_problems(snapshot)
        ]
    names = [snapshot.name for snapshot in snapshots]
    if as_json:
        shown = [escape_non_utf8(problem) for problem in problems]
        print_json({"ok": not problems, "snapshots": names, "problems": shown})
    else:
        _print_check(names, [partial.name for partial in interrupted], problems)
    raise Exit(1 if problems else 0)


def _print_check(names: list[str], interrupted_names: list[str], problems: list[str]) -> None:
    for problem in problems:
        print_line(problem)
    for name in interrupted_names:
        print_line(f"{name} was interrupted; the next backup deletes it")
    verdict = f"{len(problems)} problems" if problems else "no problems"
    oldest, newest = names[0], names[-1]
    print_line(f"checked {len(names)} backups, {oldest} to {newest}: {verdict}")
    if problems:
        warn("back up into a new folder: later backups share files with damaged ones")


def _backup_by_daemon(paths: Paths, client: Client, folder: str, keep: int | None) -> BackupAnswer:
    """Have the daemon make the backup; help where only this process may write to the folder.

    A sandboxed service sees other folders read-only, and a `/tmp` of its own. There may be another
    snapshot here by the name that it gave to its own.
    """
    from anchord.store.backup.manifest import folder_id

    try:
        result = ask_with_progress(paths, client, requests.backup(folder, keep=keep))
    except (TargetNotWritableError, UsageError):
        if not os.access(os.path.dirname(folder), os.W_OK):
            raise
    else:
        # What is here by its name is what the daemon made.
        if result.folder_id == folder_id(Path(folder, Path(result.snapshot).name)):
            return result
    return _backup_in_two_steps(paths, folder, keep)


def _backup_in_two_steps(paths: Paths, folder: str, keep: int | None) -> BackupAnswer:
    from anchord.daemon.answers import backup_answer
    from anchord.index.backup import BackupRequest, require_target
    from anchord.index.staged_backup import backup_staged_home

    config = load_user_config(paths)
    require_target(paths, config, folder)
    client = connect_or_raise(paths)
    ask_with_progress(paths, client, requests.backup(folder, staged=True))
    with _byte_progress("MB copied") as on_progress:
        request = BackupRequest(folder, keep)
        result = backup_staged_home(paths, config, request, on_progress)
    return backup_answer(result)


def _backup_in_process(paths: Paths, folder: str, keep: int | None) -> BackupAnswer:
    from anchord.daemon.answers import backup_answer
    from anchord.index.backup import BackupRequest, backup_without_daemon

    request = BackupRequest(folder, keep)
    with _byte_progress("MB copied") as on_progress:
        result = backup_without_daemon(
            paths,
            load_user_config(paths),
            request,
            on_progress,
        )
    return backup_answer(result)


@contextmanager
def _byte_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar in megabytes; yields a function for the bytes done and in all (0: unknown)."""
    with progress_bar() as bar:
        task = bar.add_task(label, total=None, rate="")

        def show(done: int, total: int) -> None:
            all_mb = max(1, total // _BYTES_PER_MB) if total else None
            bar.update(task, completed=done // _BYTES_PER_MB, total=all_mb)

        yield show


def _counting(on_progress: Callable[[int, int], None]) -> Callable[[int], None]:
    done = 0

    def on_bytes(count: int) -> None:
        nonlocal done
        done += count
        on_progress(done, 0)

    return on_bytes


def _parse_moves(texts: Iterable[str]) -> dict[str, str]:
    """Return old folder -> new folder; each OLD once."""
    moved: dict[str, str] = {}
    for old, new in map(_parse_move, texts):
        if moved.setdefault(old, new) != new:
            raise UsageError(f"--map moves {old} to {moved[old]} and to {new}", "choose one")
    return moved


def _parse_move(text: str) -> tuple[str, str]:
    """Split OLD=NEW into two absolute paths."""
    old, separator, new = text.partition("=")
    if not separator or not old or not new:
        raise UsageError(f"cannot read --map {text} as OLD=NEW", "give two folders")
    return absolute_path(old), absolute_path(new)


def _warn_remote_table(uri: str) -> None:
    warn(f"the table in {uri} is not part of the backup: back it up where it is stored")


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"


def _megabytes(count: int) -> str:
    return f"{count / _BYTES_PER_MB:,.1f} MB"
