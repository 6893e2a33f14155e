"""Where reading a transcript can resume after an append, if the file before is unchanged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from anchord.core.ids import hash_content
from anchord.core.types import Fingerprint
from anchord.sources.conversations.archive.reader import TranscriptFileRecord
from anchord.sources.conversations.events import Exchange, TranscriptFile
from anchord.sources.conversations.formats.registry import TranscriptFormat

_GUARD_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """The start of the last exchange in a file of lines: the next read resumes there."""

    offset: int
    """Byte offset of the exchange's first line."""
    number: int
    """The exchange's number in its session, from 0. A session that comes again begins again."""
    head: str
    """Digest of the file's first bytes, at most 4 KiB and not beyond `offset`."""
    tail: str
    """Digest of the last bytes before `offset`, at most 4 KiB."""
    session: str
    """The session's id as the source names it."""
    paths: Sequence[str] = ()
    """Paths of the exchanges that begin there or after it; empty if an earlier version of anchord
    read the file."""
    end: str = ""
    """Digest of the last bytes of the file as it was read, at most 4 KiB; "" as for `paths`."""


def usable_resume_point(
    record: TranscriptFileRecord | None,
    fingerprint: Fingerprint,
    transcript_format: TranscriptFormat,
    transcript_file: TranscriptFile,
    reader_version: str,
) -> ResumePoint | None:
    """Return where reading can resume; None if the file must be read in full.

    Reading can resume if the same reader read the file before, the file has not become shorter, and
    the first and last 4 KiB before the resume point are unchanged.

    Args:
        record: What the archive has recorded of the file; None if it was never read.
        fingerprint: The file's fingerprint now.
        transcript_format: The file's format.
        transcript_file: The file. It is opened and read.
        reader_version: The reader that would read it.

    Raises:
        OSError: The file cannot be read.
    """
    if record is None or not record.resume_point or not transcript_format.can_resume:
        return None
    if record.reader_version != reader_version or record.source != transcript_format.source:
        return None
    point = ResumePoint(**json.loads(record.resume_point))
    if point.offset == 0 or fingerprint.size < record.fingerprint.size:
        return None
    guards = _guard_digests(transcript_file, point.offset)
    return point if guards == (point.head, point.tail) else None


def has_only_grown(
    record: TranscriptFileRecord,
    fingerprint: Fingerprint,
    point: ResumePoint | None,
    transcript_file: TranscriptFile,
) -> bool:
    """Return whether a file of lines was only appended to since it was read.

    A file that lost its end before it was appended to is longer as well, but the last bytes that
    were read are not where they were.

    Args:
        record: What the archive has recorded of the file.
        fingerprint: The file's fingerprint now.
        point: The result of `usable_resume_point`.
        transcript_file: The file. It is opened and read.

    Raises:
        OSError: The file cannot be read.
    """
    if fingerprint.size <= record.fingerprint.size or not record.resume_point:
        return False
    recorded = ResumePoint(**json.loads(record.resume_point))
    # Before an exchange at the very beginning nothing can have changed.
    if point is None and recorded.offset > 0:
        return False
    guards = _guard_digests(transcript_file, record.fingerprint.size)
    return guards is not None and guards[1] == recorded.end


def encode_resume_point(
    last_exchange: Exchange | None,
    last_paths: Sequence[str],
    size: int,
    transcript_format: TranscriptFormat,
    transcript_file: TranscriptFile,
) -> str:
    """Return the resume point after a read as JSON; "" if the file cannot be resumed.

    Args:
        last_exchange: The last exchange that was read; None if there was none.
        last_paths: The paths of the exchanges from there on.
        size: The file's size in bytes, before it was read.
        transcript_format: The file's format.
        transcript_file: The file. It is opened and read.

    Raises:
        OSError: The file cannot be read.
    """
    if last_exchange is None or not transcript_format.can_resume:
        return ""
    guards = _guard_digests(transcript_file, last_exchange.offset)
    end_guards = _guard_digests(transcript_file, size)
    if guards is None or end_guards is None:
        return ""
    head, tail = guards
    point = ResumePoint(
        offset=last_exchange.offset,
        number=last_exchange.number,
        head=head,
        tail=tail,
        session=last_exchange.session,
        paths=last_paths,
        end=end_guards[1],
    )
    return json.dumps(asdict(point))


def _guard_digests(transcript_file: TranscriptFile, offset: int) -> tuple[str, str] | None:
    """Return digests of the first and last bytes before `offset`; None for a compressed file."""
    with transcript_file.open() as stream:
        head = stream.read(min(_GUARD_BYTES, offset))
        if not stream.seekable():
            return None
        stream.seek(max(0, offset - _GUARD_BYTES))
        tail = stream.read(min(_GUARD_BYTES, offset))
    return hash_content(head), hash_content(tail)
