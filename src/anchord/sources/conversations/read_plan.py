"""What of a transcript file is to be read, and whether in this process or in a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from anchord.core.types import Fingerprint, Root, RootedPath
from anchord.sources.conversations.archive.reader import TranscriptFileRecord
from anchord.sources.conversations.containers import is_zip, make_transcript_file
from anchord.sources.conversations.formats.registry import HEAD_BYTES, detect_format
from anchord.sources.conversations.resume import (
    ResumePoint,
    has_only_grown,
    usable_resume_point,
)
from anchord.sources.conversations.whole_read import (
    SQLITE_MAGIC,
    ReadRequest,
    Transcript,
    folder_fingerprint,
    format_of_source,
)
from anchord.sources.files.folder_files import FolderFiles

_SHORT_BYTES = 1 << 18
_SHORT_FILE_BYTES = 1 << 24
"""Some formats look through all lines of a file at each read."""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How a transcript file is read."""

    request: ReadRequest
    lines: Transcript | None = None
    """A file of lines: its next read can resume."""
    point: ResumePoint | None = None
    """Where this read resumes; None reads all of it."""
    has_grown: bool = False
    """Whether a file of lines was only appended to since it was read."""

    @property
    def is_short(self) -> bool:
        """Whether so little is read that nothing in it can take long: a worker would cost more."""
        new_bytes = self.request.size - self.request.resume_offset
        is_short = new_bytes <= _SHORT_BYTES and self.request.size <= _SHORT_FILE_BYTES
        return self.lines is not None and is_short

    def in_full(self) -> ReadPlan:
        """Return the plan to read all of the file."""
        request = replace(self.request, resume_offset=0, resume_number=0)
        return replace(self, request=request, point=None)


def plan_folder_read(
    files: FolderFiles,
    root_and_folder: tuple[Root, RootedPath],
    listed: Sequence[tuple[str, Fingerprint]],
    source: str,
) -> ReadPlan:
    """Plan to read a folder that is one transcript.

    Args:
        files: The roots' files.
        root_and_folder: The folder, and its root.
        listed: The files in it: path relative to it, and fingerprint.
        source: The format's name.
    """
    root, folder = root_and_folder
    request = ReadRequest(
        root_path=root.path,
        path=folder.path,
        disk_path=files.path_on_disk(folder),
        member_names=tuple(name for name, _ in listed),
        recorded_source=source,
        size=folder_fingerprint(listed).size,
    )
    return ReadPlan(request)


def plan_file_read(
    files: FolderFiles,
    root_and_origin: tuple[Root, RootedPath],
    fingerprint: Fingerprint,
    record: TranscriptFileRecord | None,
    reader_version: str,
) -> ReadPlan | None:
    """Look at a file's beginning, and at the bytes before its resume point.

    Args:
        files: The roots' files.
        root_and_origin: The file, and its root.
        fingerprint: Its fingerprint now.
        record: What the archive has recorded of it; None if it was never read.
        reader_version: The reader that would read it.

    Returns:
        The plan; None if the file is no transcript.

    Raises:
        OSError, ValueError, and others: The file is broken.
    """
    root, origin = root_and_origin

    def opener() -> BinaryIO:
        return files.open(origin)

    transcript_file = make_transcript_file(origin.path, opener, files.absolute_path(origin))
    with transcript_file.open() as stream:
        head = stream.read(HEAD_BYTES)
    request = ReadRequest(
        root_path=root.path,
        path=origin.path,
        disk_path=files.path_on_disk(origin),
        recorded_source=record.source if record else "",
        size=fingerprint.size,
    )
    if is_zip(head) or head.startswith(SQLITE_MAGIC):
        return ReadPlan(request)
    transcript_format = detect_format(head, transcript_file.path)
    transcript_format = transcript_format or format_of_source(request.recorded_source)
    if transcript_format is None:
        return None
    if not transcript_format.can_resume:
        return ReadPlan(request)
    lines = (transcript_format, transcript_file)
    point = usable_resume_point(record, fingerprint, *lines, reader_version)
    has_grown = record is not None and has_only_grown(record, fingerprint, point, transcript_file)
    if point:
        request = replace(
            request,
            resume_offset=point.offset,
            resume_number=point.number,
        )
    return ReadPlan(request, lines, point, has_grown)
