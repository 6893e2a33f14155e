"""Compare the archive with the transcript files: does it hold every exchange that they contain?

Every transcript file is read again from its beginning into an archive in memory, as a rebuild would
read it, and the exchanges there are compared with those that the archive has recorded of the file.
That costs as much as the first read of the conversations, without chunking and embedding. Exchanges
that no file contains any more are not compared: only the archive has them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from anchord.core.change_detection import RACY_WINDOW_NS
from anchord.core.types import (
    NO_FINGERPRINT,
    Absent,
    Fingerprint,
    Problem,
    Root,
    RootedPath,
    WalkResult,
)
from anchord.index.integrity.verify import Difference, DifferenceKind
from anchord.index.profile import ingest_options_of
from anchord.index.session import IndexReader, IndexWriter
from anchord.sources.conversations.archive.detached import (
    DetachedExchange,
    DetachedGroup,
    DetachReason,
)
from anchord.sources.conversations.archive.path_lookup import path_inside
from anchord.sources.conversations.archive.reader import Archive, TranscriptFileRecord
from anchord.sources.conversations.archive.repeated_ids import path_of_id
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.ingest import ConversationIngester
from anchord.sources.conversations.reader_process import ReaderProcess, WholeReads

TranscriptProgress = Callable[[int, int], None]
"""Called with how many transcript files were read, and how many there are."""

_IN_MEMORY = Path(":memory:")
_READ_TIMEOUT_S = 900.0
"""For one transcript file: an export of a gigabyte takes about 30 s."""


@dataclass(frozen=True, slots=True)
class ArchiveComparison:
    """How many transcript files were compared with the archive, and what differs."""

    transcripts: set[RootedPath] = field(default_factory=set)
    """Transcript files, and folders that are one transcript, that were compared."""
    differences: list[Difference] = field(default_factory=list)
    """`origin` is the transcript file, `chunk_id` the path of the exchange."""
    changing_files: list[RootedPath] = field(default_factory=list)
    """Transcript files that were written while they were read: not compared."""
    unreadable_files: list[RootedPath] = field(default_factory=list)
    """Transcript files that cannot be read now, and of which the archive has exchanges."""


def compare_archive(reader: IndexReader, on_progress: TranscriptProgress) -> ArchiveComparison:
    """Read every transcript file of every root, and compare it with the archive; writes nothing.

    Args:
        reader: The index. A writer's heartbeat is called with each file.
        on_progress: Called before each file.

    Raises:
        StoreError: The archive cannot be read.
    """
    comparison = ArchiveComparison()
    archive = reader.files.archive
    if archive is not None:
        if isinstance(reader, IndexWriter):
            reader.heartbeat.beat(_READ_TIMEOUT_S)
        archive.check_everything()
    origins = list(_list_files(reader))
    with ExitStack() as stack:
        if isinstance(reader, IndexWriter):
            whole_reads = reader.conversations.whole_reads
        else:
            whole_reads = WholeReads(stack.enter_context(closing(ReaderProcess())))
        for number, origin in enumerate(origins):
            if isinstance(reader, IndexWriter):
                reader.heartbeat.beat(_READ_TIMEOUT_S)
            on_progress(number, len(origins))
            # A folder that is one transcript is read with the first of its files.
            if comparison.transcripts.isdisjoint(_folders_of(origin)):
                _compare_file(reader, whole_reads, origin, comparison)
    comparison.differences.extend(_of_excluded_files(reader))
    known = {(each.origin, each.chunk_id) for each in comparison.differences}
    comparison.differences.extend(
        each for each in _of_returning_roots(reader) if (each.origin, each.chunk_id) not in known
    )
    return comparison


def _of_excluded_files(reader: IndexReader) -> Iterator[Difference]:
    """Yield the exchanges that are indexed of transcript files that the rules exclude now."""
    files, archive = reader.files.folder_files, reader.files.archive
    if archive is None:
        return
    path_filter = files.path_filter()
    for root in reader.roots:
        if root.kind != "conversations":
            continue
        orphans = archive.orphans_by_last_file(root.name)
        for origin in dict.fromkeys((*archive.transcript_files(root.name), *orphans)):
            match = path_filter(origin)
            if not (match.is_included or match.is_undecided):
                paths = {*archive.forms_in(origin), *orphans.get(origin, ())}
                for path in sorted(paths):
                    yield Difference(DifferenceKind.ARCHIVED, origin, path)


def _of_returning_roots(reader: IndexReader) -> Iterator[Difference]:
    """Yield the detached exchanges that the next start gives back to a root.

    Their root was removed and is configured again. A writer has given them back already.
    """
    archive = reader.files.archive
    if archive is None or isinstance(reader, IndexWriter):
        return
    groups = {each.key: each for each in archive.detached_groups()}
    roots = [root for root in reader.roots if root.kind == "conversations"]
    if not (roots and any(group.reason is DetachReason.ROOT for group in groups.values())):
        return
    path_filter = reader.files.folder_files.path_filter()
    for exchange in archive.detached_exchanges():
        group = groups[exchange.group_key]
        for root in roots if group.reason is DetachReason.ROOT else ():
            path = _path_after_return(exchange, group, root)
            if path is None or (path and not path_filter(RootedPath(root.name, path)).is_included):
                continue
            if root.on_delete == "keep" or os.path.lexists(os.path.join(root.path, path)):
                origin = RootedPath(root.name, path)
                yield Difference(DifferenceKind.NOT_ARCHIVED, origin, exchange.path)


def _path_after_return(exchange: DetachedExchange, group: DetachedGroup, root: Root) -> str | None:
    """Return the path of an exchange's last file in a root, as `attach_root` decides.

    Returns:
        "" for an unknown file; None if the exchange does not belong to the root.
    """
    path = exchange.transcript_path
    if group.root == root.name and not os.path.isdir(group.folder):  # The folder was moved.
        return path
    return path_inside(root.path, os.path.join(group.folder, path))


def _list_files(reader: IndexReader) -> Iterator[RootedPath]:
    for root in reader.roots:
        if root.kind == "conversations":
            walk = reader.files.folder_files.walk(root.name, "")
            if isinstance(walk, WalkResult):
                yield from (RootedPath(root.name, found.path) for found in walk.files)


def _folders_of(origin: RootedPath) -> list[RootedPath]:
    folders = [str(folder) for folder in PurePosixPath(origin.path).parents]
    return [RootedPath(origin.root, folder) for folder in folders if folder != "."]


def _compare_file(
    reader: IndexReader,
    whole_reads: WholeReads,
    origin: RootedPath,
    comparison: ArchiveComparison,
) -> None:
    files, archive = reader.files.folder_files, reader.files.archive
    before = files.fingerprint(origin)
    recorded = archive.find_transcript_file(origin) if archive else None
    contained, problem = _read_from_beginning(
        reader,
        whole_reads,
        origin,
        recorded,
    )
    if problem and not problem.is_partial:
        comparison.unreadable_files.extend(
            each
            for each in _archived_transcripts(origin, archive)
            if each not in comparison.unreadable_files
        )
        return
    for transcript, forms in contained.items():
        differences = list(_differences(transcript, forms, archive))
        is_settled = _has_settled(before) or (recorded and recorded.fingerprint == before)
        if differences and not (is_settled and files.fingerprint(origin) == before):
            comparison.changing_files.append(transcript)
            continue
        comparison.transcripts.add(transcript)
        comparison.differences.extend(differences)


def _read_from_beginning(
    reader: IndexReader,
    whole_reads: WholeReads,
    origin: RootedPath,
    recorded: TranscriptFileRecord | None,
) -> tuple[dict[RootedPath, dict[str, str]], Problem | None]:
    """Read a transcript file into an archive in memory.

    Returns:
        Transcript -> exchange path -> digest of the exchange, and why a part could not be read.
    """
    with closing(ArchiveWriter(_IN_MEMORY)) as fresh:
        roots_by_name = {root.name: root for root in reader.roots}
        ingester = ConversationIngester(
            reader.files.folder_files,
            fresh,
            time.time_ns,
            roots_by_name,
            ingest_options_of(reader.config),
        )
        ingester.whole_reads = whole_reads
        if recorded:
            # A file keeps the format that it had once, whatever its beginning says now.
            fresh.upsert_transcript_file(origin, NO_FINGERPRINT, recorded.source)
        problem = ingester.ingest(origin).problem
        transcripts = fresh.transcript_files(origin.root)
        return {transcript: fresh.forms_in(transcript) for transcript in transcripts}, problem


def _archived_transcripts(origin: RootedPath, archive: Archive | None) -> list[RootedPath]:
    """Return a file and the folders above it, as far as the archive has exchanges of them."""
    candidates = (origin, *_folders_of(origin))
    return [each for each in candidates if archive and archive.forms_in(each)]


def _has_settled(observed: Fingerprint | Absent | Problem) -> bool:
    """Return whether a file was not changed a moment ago."""
    if not isinstance(observed, Fingerprint):
        return False
    return max(observed.mtime_ns, observed.ctime_ns) < time.time_ns() - RACY_WINDOW_NS


def _differences(
    transcript: RootedPath, contained: dict[str, str], archive: Archive | None
) -> Iterator[Difference]:
    # The other files that repeat an id were not read into the archive in memory.
    forms = archive.forms_in(transcript) if archive else {}
    archived = {path_of_id(path): digest for path, digest in forms.items()}
    for path in sorted(contained.keys() | archived.keys()):
        if contained.get(path) == archived.get(path):
            continue
        if path in archived:
            yield Difference(DifferenceKind.ARCHIVED, transcript, path)
        elif not (archive and archive.is_forgotten(path, contained[path])):
            yield Difference(DifferenceKind.NOT_ARCHIVED, transcript, path)
