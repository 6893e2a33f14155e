"""Which rows the table has of files, looked up for many files at once.

A query of the table takes 2 to 12 ms, however many rows it returns. After the table lost data
files, thousands of files need one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anchord.core.ports import ChunkStore
from anchord.core.types import RootedPath

_FILES_AT_ONCE = 200


class RowIdLookahead:
    """Looks up a file's row ids together with those of the files that will be planned next.

    What was looked up for a file is given out once. So it is never older than the file's own last
    commit, and no other commit changes a file's rows.
    """

    def __init__(self, store: ChunkStore) -> None:
        """Expect no files."""
        self._store = store
        self._expected: Sequence[RootedPath] = ()
        self._positions: Mapping[RootedPath, int] = {}
        self._found: dict[RootedPath, Sequence[str]] = {}

    def expect(self, files: Sequence[RootedPath]) -> None:
        """Forget what was looked up, and expect these files in this order."""
        self._expected = files
        self._positions = {}
        self._found = {}

    def ids_of_file(self, file: RootedPath) -> Sequence[str]:
        """Return the ids of all rows of a file.

        Raises:
            StoreError: The table cannot be read.
        """
        if file not in self._found:
            self._found.update(self._store.ids_of_files([file, *self._next_after(file)]))
        return self._found.pop(file)

    def _next_after(self, file: RootedPath) -> Sequence[RootedPath]:
        if not self._positions:
            self._positions = {each: number for number, each in enumerate(self._expected)}
        position = self._positions.get(file)
        if position is None:
            return ()
        return self._expected[position + 1 : position + _FILES_AT_ONCE]
