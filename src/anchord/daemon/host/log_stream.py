"""A log that cannot be written ends no thread: often the disk that is full is the log's, too."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TextIO


class DroppingStream(io.TextIOBase):
    """Writes to another text stream; what that one cannot take is dropped."""

    def __init__(self, stream: TextIO) -> None:
        """Write to this stream. It is not closed with this one."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, all of it or a part."""
        with suppress(OSError, ValueError):  # ValueError: it was closed.
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Pass on what was written."""
        with suppress(OSError, ValueError):
            self._stream.flush()
