"""Reads a transcript of lines as a whole, because what a line is depends on all the others."""

from __future__ import annotations

from anchord.sources.conversations.events import TooLongError, TranscriptFile
from anchord.sources.documents.normalize import normalize_text

MAX_TRANSCRIPT_BYTES = 64 << 20
"""Reading takes up to eleven times as much memory."""


def read_all_lines(transcript_file: TranscriptFile) -> list[str]:
    """Return all lines of a text, decoded as UTF-8 and normalised.

    Raises:
        TooLongError: the text has more than `MAX_TRANSCRIPT_BYTES` bytes.
    """
    with transcript_file.open() as stream:
        data = stream.read(MAX_TRANSCRIPT_BYTES + 1)
    if len(data) > MAX_TRANSCRIPT_BYTES:
        max_megabytes = MAX_TRANSCRIPT_BYTES >> 20
        raise TooLongError(f"the transcript is larger than {max_megabytes} MB")
    text = normalize_text(data.decode("utf-8", "replace"))
    return text.split("\n")
