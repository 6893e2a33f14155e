"""Checks the pages of the catalog and the archive at rest, to find damage before it spreads.

A thread of its own reads the files through read-only connections: a gigabyte takes seconds. The
writer thread only starts it and looks at what it found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from anchord.core.sqlite_connection import CheckedConnection, open_sqlite
from anchord.core.sqlite_errors import damaged_error
from anchord.errors import StoreDamagedError, StoreError

_EVERY_S = 24 * 3600.0


class PageCheck:
    """Checks files once after the start, then once a day. The writer thread calls its methods."""

    def __init__(
        self,
        files: Sequence[Path],
        find_damage: Mapping[Path, Callable[[CheckedConnection], str]] | None = None,
    ) -> None:
        """Check nothing yet; the first call of `run_if_due` does.

        Args:
            files: SQLite files; those that do not exist are left out.
            find_damage: File -> a function that reads all of it and says what is damaged, "" if
                nothing is. Of other files the pages are checked: SQLite notices no change inside a
                value.
        """
        self._files = files
        self._find_damage = find_damage or {}
        self._next_check = float("-inf")
        self._thread: threading.Thread | None = None
        self._connection: CheckedConnection | None = None
        self._closing = False
        self._damage: StoreDamagedError | None = None

    def run_if_due(self, now: float) -> None:
        """Start a check of the databases' pages in its own thread if one is due; never blocks.

        Args:
            now: Time of the monotonic clock.

        Raises:
            StoreDamagedError: The last check has found a damaged file. Raised once a check.
        """
        damage, self._damage = self._damage, None
        if damage:
            raise damage
        if now >= self._next_check and self._thread is None:
            self._next_check = now + _EVERY_S
            self._thread = threading.Thread(
                target=self._check_all,
                name="page check",
                daemon=True,
            )
            self._thread.start()

    def make_due(self) -> None:
        """Let the next call of `run_if_due` start a check. Any thread may call it."""
        self._next_check = float("-inf")

    def wait(self) -> None:
        """Block until the check that runs is done."""
        thread = self._thread
        if thread:
            thread.join()

    def close(self) -> None:
        """Stop a check that runs, and wait for its thread."""
        self._closing = True
        connection = self._connection
        if connection:
            connection.interrupt()
        self.wait()

    def _check_all(self) -> None:
        for file in self._files:
            if file.exists() and not self._closing:
                self._damage = self._damage or self._check(file)
        self._thread = None

    def _check(self, file: Path) -> StoreDamagedError | None:
        """Return the damage of a file; None if there is none, or if it cannot be read now."""
        try:
            with closing(open_sqlite(file, read_only=True)) as connection:
                self._connection = connection
                find_damage = self._find_damage.get(file, _find_page_damage)
                damage = "" if self._closing else find_damage(connection)
        except StoreDamagedError as error:
            return error
        except StoreError:
            return None  # Locked or interrupted: the writer meets what stays so.
        finally:
            self._connection = None
        return damaged_error(str(file), damage) if damage else None


def _find_page_damage(connection: CheckedConnection) -> str:
    return "" if connection.is_intact(thorough=True) else "its pages do not fit together"
