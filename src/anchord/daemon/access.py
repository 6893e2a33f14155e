"""Queries from outside the daemon: the daemon answers if it runs, else the index is read directly.

Commands and the MCP server use this. Importing it does not load LanceDB.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from anchord.config.paths import Paths
from anchord.errors import (
    AnchordError,
    NotRunningError,
    StoreDamagedError,
    StoreError,
    UsageError,
)
from anchord.ipc.client import Client
from anchord.ipc.former_daemon import for_former_daemon
from anchord.ipc.protocol import check_params
from anchord.ipc.requests import Call
from anchord.store.writer_lock import lock_holder_pid

if TYPE_CHECKING:
    from anchord.index.session import IndexReader

_MAX_WAIT_S = 5.0
"""How long a daemon that restarts, and an index that is being replaced, are waited for."""
_RECONNECT_S = 0.1
_MAX_EXIT_S = 60.0
_POLL_S = 0.02

T = TypeVar("T")
A = TypeVar("A")


class Answer(NamedTuple, Generic[A]):
    """An answer, and where it comes from."""

    value: A
    is_live: bool
    """Whether the daemon gave it; else it is as of the last time the index was updated."""


def connect(paths: Paths) -> Client:
    """Connect to the daemon. The caller closes the client.

    Raises:
        NotRunningError: No daemon accepts the connection.
    """
    return Client(paths.socket_file, find_pid=lambda: lock_holder_pid(paths.lock_file))


def try_connect(paths: Paths) -> Client | None:
    """Connect to the daemon; return None if it does not run. The caller closes the client."""
    try:
        return connect(paths)
    except NotRunningError:
        return None


def not_running_error(paths: Paths) -> NotRunningError:
    """Return (not raise) the error that says why no daemon answers, and what to do."""
    holder = lock_holder_pid(paths.lock_file)
    if holder is None:
        return NotRunningError("anchord is not running", "`anchord start` starts it")
    return NotRunningError(
        f"process {holder} is writing the index, and no daemon answers on {paths.socket_file}",
        f"if process {holder} is `anchord index`, wait; otherwise end it and run `anchord start`",
    )


def wait_for_daemon_exit(paths: Paths, pid: int) -> None:
    """Block until a daemon that is shutting down has released the index, for a minute at most.

    Raises:
        AnchordError: It still holds the lock after a minute.
    """
    deadline = time.monotonic() + _MAX_EXIT_S
    # 0: the lock is held by a process that has deleted its pid file already.
    while lock_holder_pid(paths.lock_file) in (pid, 0):
        if time.monotonic() > deadline:
            raise AnchordError(
                f"process {pid} did not end within {_MAX_EXIT_S:.0f} s",
                f"`kill -9 {pid}` ends it; no data is lost",
            )
        time.sleep(_POLL_S)


def ask_daemon_or_index(
    paths: Paths, call: Call[A], *, retry_during_restart: bool = False
) -> Answer[A]:
    """Ask the daemon; where none runs, answer from the index in this process.

    Args:
        paths: Where this anchord keeps its files.
        call: A call of a method that only reads the index: search, show, explain, dump or roots.
            Without a daemon, `fresh` of a search is ignored.
        retry_during_restart: Connect again, for up to 5 s, if the daemon ends during the call.

    Raises:
        AnchordError: The daemon's error, or why the index cannot be read.
        NotRunningError: The daemon ended during the call.
    """
    deadline = time.monotonic() + _MAX_WAIT_S
    while client := try_connect(paths):
        try:
            with client:
                return Answer(ask(client, call), is_live=True)
        except NotRunningError:
            if not retry_during_restart or time.monotonic() > deadline:
                raise
            time.sleep(_RECONNECT_S)
    return Answer(ask_index(paths, call), is_live=False)


def ask(client: Client, call: Call[A]) -> A:
    """Ask the daemon, also one of before an update that does not know all parameters of a search.

    Raises:
        AnchordError: As for `Client.ask`.
    """
    try:
        return client.ask(call)
    except UsageError as error:
        former = for_former_daemon(call)
        if former is None or not error.message.startswith("unknown parameter"):
            raise
        return client.ask(former)


def ask_index(paths: Paths, call: Call[A]) -> A:
    """Answer a call from the index, in this process and without a daemon.

    Args:
        paths: Where this anchord keeps its files.
        call: As for `ask_daemon_or_index`.

    Raises:
        UsageError: A parameter is out of range, or the method needs a daemon.
        StoreError: There is no index, or it cannot be read.
    """
    # Loads LanceDB, likewise.
    from anchord.daemon.reading import answer_from_index  # noqa: PLC0415

    check_params(call.params)
    return query_index(paths, lambda reader: answer_from_index(reader, reader.catalog, call))


def query_index(paths: Paths, query: Callable[[IndexReader], T]) -> T:
    """Open the index, run a query and close it; run it again if the index was replaced meanwhile.

    Args:
        paths: Where this anchord keeps its files.
        query: Called with the opened index, possibly more than once.

    Raises:
        StoreError: There is no index, or it cannot be opened.
        AnchordError: What the query raised.
    """

    def open_and_query(_: int) -> T:
        with open_index_reader(paths) as reader:
            return query(reader)

    return query_one_generation(paths, open_and_query)


def query_one_generation(paths: Paths, query: Callable[[int], T]) -> T:
    """Run a query; run it again if the index was replaced meanwhile.

    Args:
        paths: Where this anchord keeps its files.
        query: Called with the `generation_id` that it has to read, possibly more than once.

    Raises:
        StoreError: The index is being replaced.
        AnchordError: What the query raised.
    """
    while True:
        generation = generation_id(paths)
        try:
            answer = query(generation)
        except AnchordError:
            if generation_id(paths) == generation:
                raise
        else:
            # An answer that began in one generation and ended in the next one may mix both.
            if generation_id(paths) == generation:
                return answer


@contextmanager
def open_index_reader(paths: Paths) -> Iterator[IndexReader]:
    """Open the index for reading, beside the process that may be writing it; close it at the end.

    Raises:
        StoreError: There is no index, it cannot be opened, or its replacement takes over 5 s.
    """
    # Loads LanceDB: half a second that no client of the socket needs.
    from anchord.config.file import load_config  # noqa: PLC0415
    from anchord.index.opening import open_reader  # noqa: PLC0415

    require_index(paths)
    _wait_for_promotion(paths)
    from anchord.index.archive_recovery import record_damage  # noqa: PLC0415 - likewise

    reader = open_reader(paths, load_config(paths.config_file))
    try:
        yield reader
    except StoreDamagedError as error:
        record_damage(paths, error)
        raise
    finally:
        reader.close()


def require_index(paths: Paths) -> None:
    """Return if there is an index.

    Raises:
        StoreError: There is none.
    """
    if not paths.catalog_file.exists():
        raise StoreError("there is no index yet", "`anchord index FOLDER` builds one")


def generation_id(paths: Paths) -> int:
    """Return a number that differs between two generations; 0 if there is no local table.

    Raises:
        StoreError: As `_wait_for_promotion`.
    """
    from anchord.config.file import load_config  # noqa: PLC0415 - likewise
    from anchord.index.table_location import store_uri  # noqa: PLC0415 - likewise
    from anchord.store.table.table import TABLE_NAME  # noqa: PLC0415 - likewise

    _wait_for_promotion(paths)
    uri = store_uri(paths, load_config(paths.config_file))
    table_folder = Path(uri) / f"{TABLE_NAME}.lance"
    try:
        return table_folder.stat().st_ino
    except OSError:
        return 0


def _wait_for_promotion(paths: Paths) -> None:
    """Wait while a new generation is put in place.

    The catalog changes first; until the table has changed too, the catalog's ids lead to no rows.

    Raises:
        StoreError: The writer was killed in that moment, or takes longer than 5 s.
    """
    deadline = time.monotonic() + _MAX_WAIT_S
    while paths.promotion_marker.exists():
        # The marker is looked at again: the writer may have finished between the two checks.
        if lock_holder_pid(paths.lock_file) is None and paths.promotion_marker.exists():
            raise StoreError(
                "anchord was killed while it replaced the index by a new one",
                "`anchord start` finishes the replacement",
            )
        if time.monotonic() > deadline:
            raise StoreError(
                "the index is being replaced by a new one", "try again in a few seconds"
            )
        time.sleep(_POLL_S)
