"""The open connections of the server: a limit, and a rule which one to drop for a new client."""

from __future__ import annotations

import asyncio
import resource
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SHARE_OF_OPEN_FILES = 3
"""Connections take a third of the files that this process may have open."""


def _max_connections() -> int:
    """Return how many connections may be open: 32 to 400."""
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if open_files == resource.RLIM_INFINITY:
        return 400
    return max(32, min(400, open_files // _SHARE_OF_OPEN_FILES))


MAX_CONNECTIONS = _max_connections()
_MIN_IDLE_S = 6.0
"""A connection that is idle for less is never dropped to make room."""


class Connections:
    """The tasks that serve clients, each with the writer of its connection.

    A connection is idle while the server waits for the client: for its next request, or for the
    client to read an answer. It is not idle while a call is being executed.
    """

    def __init__(self) -> None:
        """Start without connections."""
        self._writers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._idle_since: dict[asyncio.StreamWriter, float] = {}

    @property
    def is_full(self) -> bool:
        """Whether `MAX_CONNECTIONS` are open."""
        return len(self._writers) >= MAX_CONNECTIONS

    def add(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        """Add a connection. It is removed and closed when its task ends."""
        self._writers[task] = writer
        task.add_done_callback(self._remove)

    @contextmanager
    def idle(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        """Count a connection as idle during the `with` block."""
        self._idle_since[writer] = time.monotonic()
        yield
        # Not in a `finally`: a connection that failed is removed, and its entry with it.
        self._idle_since.pop(writer, None)

    def make_room(self) -> None:
        """Drop connections until one is free, if any may be dropped.

        Clients that hung up during their call go first, then the one that is idle for longest.
        """
        if self.is_full:
            self._drop_hung_up()
        if self.is_full:
            self._drop_idlest()

    async def close(self) -> None:
        """Cancel all tasks, wait for them, and drop the connections."""
        writers = dict(self._writers)
        for task in writers:
            task.cancel()
        await asyncio.gather(*writers, return_exceptions=True)
        for writer in writers.values():
            # `close` would wait for a client that does not read.
            writer.transport.abort()

    def _remove(self, task: asyncio.Task[None]) -> None:
        writer = self._writers.pop(task, None)
        if writer:
            self._idle_since.pop(writer, None)
            writer.close()

    def _drop_hung_up(self) -> None:
        """Drop the clients that closed their side.

        A client that only finished sending still reads its answer: `poll` reports no event for it.
        """
        for task, writer in list(self._writers.items()):
            if is_hung_up(writer):
                task.cancel()
                self._remove(task)

    def _drop_idlest(self) -> None:
        idle_since = {
            task: self._idle_since[writer]
            for task, writer in self._writers.items()
            if writer in self._idle_since
        }
        if not idle_since:
            return
        task = min(idle_since, key=idle_since.__getitem__)
        if time.monotonic() - idle_since[task] < _MIN_IDLE_S:
            return
        writer = self._writers[task]
        task.cancel()
        self._remove(task)
        writer.transport.abort()  # Discards what the client did not read.


def is_hung_up(writer: asyncio.StreamWriter) -> bool:
    """Return whether a client closed its connection, and not only its sending side."""
    descriptor = writer.get_extra_info("socket").fileno()
    if descriptor < 0:  # The socket was closed a moment ago.
        return True
    poll = select.poll()
    poll.register(descriptor, 0)  # Reports hang-ups and errors only.
    return bool(poll.poll(0))
