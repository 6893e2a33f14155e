"""A table's files kept for a backup while the writer goes on.

Lance never changes a file once it is written, but maintenance deletes the files of old versions,
and a new generation replaces the whole table. So the table is pinned as a second folder of hard
links beside it, which takes milliseconds and no space.

`python -m anchord.store.table.pinned_files` answers one request with the names of the files that
the newest version needs. Only pylance can list them; the child process keeps its 80 MB out of the
daemon.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec

from anchord.core.os_errors import is_unavailable, unavailable_error
from anchord.errors import StoreDamagedError, StoreError
from anchord.ipc.framing import read_frame, write_frame
from anchord.ipc.worker_process import WorkerProcess, WorkerProcessError, die_with_parent
from anchord.store.table.compaction import files_of_version
from anchord.store.table.lance_errors import (
    LANCE_ERRORS,
    first_line,
    os_error_number,
    panics_as_errors,
)
from anchord.store.table.table import TABLE_NAME

PINNED_NAME = "backup.lance"
"""The folder of hard links, beside the table."""
_LIST_TIMEOUT_S = 120.0


class _ListRequest(msgspec.Struct, frozen=True):
    table: str


class _ListAnswer(msgspec.Struct, frozen=True):
    files: tuple[str, ...] = ()
    error: str = ""
    os_error: int | None = None


def pin_table(folder: Path) -> Path | None:
    """Hard-link all files of the table, as it is now, into a second folder.

    Only for the holder of the writer lock, between two commits. On a file system without hard links
    the files are copied instead, which takes as long as reading the table.

    Args:
        folder: The folder that holds the table.

    Returns:
        The second folder, to be deleted by `unpin_table`; None if there is no table.

    Raises:
        OSError: A file cannot be linked or copied.
    """
    table = folder / f"{TABLE_NAME}.lance"
    pinned = folder / PINNED_NAME
    unpin_table(folder)
    if not table.is_dir():
        return None
    try:
        shutil.copytree(table, pinned, copy_function=_link_or_copy)
    except shutil.Error as error:
        unpin_table(folder)
        raise OSError(str(error)) from error
    except OSError:
        unpin_table(folder)
        raise
    return pinned


def unpin_table(folder: Path) -> None:
    """Delete the second folder, also one that a killed process left. Never raises."""
    shutil.rmtree(folder / PINNED_NAME, ignore_errors=True)


def list_version_files(table: Path) -> list[str]:
    """Return the paths, relative to the table's folder, of the files of its newest version.

    A child process computes them.

    Raises:
        StoreUnavailableError: There is no permission, too many files are open, and the like.
        StoreDamagedError: The table cannot be opened.
        StoreError: The child process failed.
    """
    try:
        child = WorkerProcess("anchord.store.table.pinned_files", (), os.environ)
        try:
            response = child.call_or_kill(_LIST_TIMEOUT_S, {"table": str(table)})
        finally:
            child.shut_down()
    except WorkerProcessError as error:
        raise StoreError(f"the process that lists the table's files {error}", "try again") from None
    answer = msgspec.convert(response, _ListAnswer)
    if answer.os_error is not None and is_unavailable(answer.os_error):
        raise unavailable_error(f"the table in {table.parent}", answer.os_error)
    if answer.error:
        raise StoreDamagedError(
            f"the table cannot be read: {answer.error}", "run `anchord verify --repair`"
        )
    return sorted(answer.files)


def _list(table: Path) -> _ListAnswer:
    import lance  # noqa: PLC0415 - 0.4 s and 80 MB, in the child process only

    try:
        with panics_as_errors():
            files = files_of_version(lance.dataset(str(table)), table)
    except LANCE_ERRORS as error:
        return _ListAnswer(error=first_line(error), os_error=os_error_number(error))
    return _ListAnswer(tuple(str(file.relative_to(table)) for file in files))


def _link_or_copy(source: str, destination: str) -> str:
    try:
        os.link(source, destination, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, destination, follow_symlinks=False)
    return destination


def main() -> None:
    """Answer requests until the input ends."""
    die_with_parent()
    # Answers get a descriptor of their own: what a library prints must not corrupt a frame.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        request = msgspec.convert(frame, _ListRequest)
        write_frame(answers, msgspec.to_builtins(_list(Path(request.table))))


if __name__ == "__main__":
    main()
