"""Reading connections to the catalogue, kept between questions: a new one reads again what the last one had in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anchord.adapters.catalogue import SqliteCatalogue

_Identity = tuple[int, int] | None


class CataloguePool:
    """One connection for each question that is asked at the same time as others. Any thread may ask."""

    def __init__(self, file: Path) -> None:
        """Open nothing yet."""
        self._file = file
        self._idle: list[tuple[_Identity, SqliteCatalogue]] = []
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[SqliteCatalogue]:
        """Lend a connection. One on which a question failed is not used again.

        Raises:
            StoreError: there is no catalogue to read.
        """
        now = self._identity()
        catalogue = self._kept(now) or SqliteCatalogue(self._file, read_only=True)
        try:
            yield catalogue
        except BaseException:
            catalogue.close()
            raise
        if now is None or self._closed:
            catalogue.close()
        else:
            self._idle.append((now, catalogue))

    def close(self) -> None:
        """Close what is idle, and from here on what is given back."""
        self._closed = True
        self._kept(None)

    def _kept(self, now: _Identity) -> SqliteCatalogue | None:
        """Return an idle connection to the file of this identity; those to a file that was in its place before are closed."""
        with suppress(IndexError):
            while True:
                of, catalogue = self._idle.pop()
                if of == now:
                    return catalogue
                catalogue.close()
        return None

    def _identity(self) -> _Identity:
        with suppress(OSError):
            seen = os.stat(self._file)
            return seen.st_dev, seen.st_ino
        return None
