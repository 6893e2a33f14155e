"""Reads transcript files into the archive; the cost is in proportion to what is new in a file.

A file of lines resumes where its last exchange started if the file before that place is unchanged
(`resume`). Any other file is read in full; exchanges that are the same as before change nothing.
"""

from __future__ import annotations

import itertools
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from anchord.core.change_detection import RACY_WINDOW_NS
from anchord.core.ids import hash_content
from anchord.core.types import Absent, Fingerprint, IngestResult, Problem, Root, RootedPath, Row
from anchord.sources.conversations.archive.detached import DetachReason
from anchord.sources.conversations.archive.reader import TranscriptFileRecord
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.events import Exchange
from anchord.sources.conversations.exchange_document import (
    encode_exchange,
    exchange_of_rows,
    is_exchange_path,
)
from anchord.sources.conversations.exchange_redaction import (
    cut_tools,
    keep_item,
    redact_exchange,
    redact_exchange_ids,
    redact_exchange_path,
    redact_session_info,
    redact_session_item,
)
from anchord.sources.conversations.formats.registry import (
    FORMATS,
    FORMATS_VERSION,
    TranscriptFormat,
    has_prose_suffix,
)
from anchord.sources.conversations.read_plan import ReadPlan, plan_file_read, plan_folder_read
from anchord.sources.conversations.reader_process import ReaderEndedError, WholeReads, reason_of
from anchord.sources.conversations.resume import encode_resume_point
from anchord.sources.conversations.transcript_read import (
    ReadRules,
    TranscriptRead,
    unknown_records_problem,
)
from anchord.sources.conversations.whole_read import (
    ReadItem,
    digest_of_read,
    folder_fingerprint,
    read_whole,
)
from anchord.sources.files.folder_files import DATABASE_SUFFIXES, FolderFiles
from anchord.sources.secrets.redactor import rules_version

_BROKEN_FILE = (OSError, EOFError, ValueError, MemoryError, RecursionError, zipfile.BadZipFile)
"""What a broken transcript file raises; the archive raises StoreError."""
_QUARANTINED = Problem(
    "reading it crashed or hung twice: not indexed; "
    "a change of it or an update of anchord tries it again"
)
_UNKNOWN_FORMAT = Problem("not a known conversation format: not indexed")


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What of transcript files is stored."""

    redact: bool = True
    """Redact secrets before an exchange is stored."""
    include_summaries: bool = False
    """Store summaries that programs wrote of conversations."""

    @property
    def reader_version(self) -> str:
        """Name the reader with its version and options: under another name files are read again."""
        redaction = rules_version() if self.redact else "as written"
        summaries = ", summaries" if self.include_summaries else ""
        return f"{FORMATS_VERSION} {redaction}{summaries}"


class _FullReadNeededError(Exception):
    """What was appended cannot be understood without what is before it."""


class ConversationIngester:
    """Reads transcript files into the archive. Only the writer thread may use it."""

    def __init__(
        self,
        files: FolderFiles,
        archive: ArchiveWriter,
        clock: Callable[[], int],
        roots: Mapping[str, Root],
        options: IngestOptions,
    ) -> None:
        """Read nothing yet.

        Args:
            files: The roots' files.
            archive: Where exchanges are stored.
            clock: Returns the time in nanoseconds since the epoch.
            roots: The roots by name; only those of kind `conversations` are read.
            options: What is stored.
        """
        self.whole_reads = WholeReads()
        """How everything but short sessions and appends is read; at first in this process."""
        # Called with each transcript file or folder that was read, and whether it contains
        # something that `forget` deleted.
        self.keep_bytes: Callable[[RootedPath, bool], None] = lambda *_: None
        self.without_copy: dict[RootedPath, None] = {}
        self.restored: dict[RootedPath, None] = {}
        """Exchanges that the archive had lost and got back from their rows."""
        self._files = files
        self._archive = archive
        self._clock = clock
        self._roots = roots
        self._redacts = options.redact
        self._include_summaries = options.include_summaries
        self.reader_version = options.reader_version
        """The reader with its version and options."""

    def is_transcript_file(self, origin: RootedPath) -> bool:
        """Return whether a path is a file in a root of conversations, and no exchange."""
        root = self._roots[origin.root]
        return root.kind == "conversations" and not is_exchange_path(origin.path)

    def has_root(self, name: str) -> bool:
        """Return whether a root is configured."""
        return name in self._roots

    def is_lost(self, origin: RootedPath) -> bool:
        """Return whether the archive has lost an exchange that the index holds."""
        root = self._roots.get(origin.root)
        # Rows can be of a root that is not configured any more: its exchanges are kept, too.
        may_be_archived = root is None or root.kind == "conversations"
        return may_be_archived and is_exchange_path(origin.path) and self._archive.is_lost(origin)

    def is_renamed(self, origin: RootedPath) -> bool:
        """Return whether an exchange is stored under another path since its ids were redacted."""
        return is_exchange_path(origin.path) and self._archive.is_renamed(origin)

    def restore(self, origin: RootedPath, rows: Sequence[Row]) -> None:
        """Store an exchange again that the archive has lost, from its rows.

        Does nothing if `forget` deleted it: an older table in the place of the newer one has it.

        Args:
            origin: Root and path of the exchange.
            rows: All of its rows, in their order.

        Raises:
            StoreError: The archive cannot be written.
        """
        session_info, exchange = exchange_of_rows(rows)
        if self._redacts:
            origin = RootedPath(origin.root, redact_exchange_path(origin.path))
            session_info = redact_session_info(session_info)
            exchange, _ = redact_exchange(redact_exchange_ids(exchange))
        if self._archive.is_forgotten(origin.path, hash_content(encode_exchange(exchange))):
            return
        self._archive.restore_exchange(origin, rows[0].source, session_info, exchange)
        self.restored[origin] = None

    def keeps_after_delete(self, origin: RootedPath) -> bool:
        """Return whether a file's exchanges outlive the file."""
        return self.is_transcript_file(origin) and self._roots[origin.root].on_delete == "keep"

    def ingest(self, origin: RootedPath) -> IngestResult:
        """Read a transcript file into the archive, or remove it from there if the file is gone.

        A file in a folder that is one transcript as a whole stands for that folder. Changes are
        durable in the archive when this returns. A broken file changes nothing.

        Args:
            origin: The file.

        Returns:
            The exchanges that changed, and the file's problem if there is one.

        Raises:
            StoreError: The archive cannot be written.
        """
        returned = self._include(origin)
        result = self._ingest(origin)
        changed = (*result.changed_exchanges, *returned)
        return replace(result, changed_exchanges=tuple(dict.fromkeys(changed)))

    def _include(self, origin: RootedPath) -> list[RootedPath]:
        """Attach what `exclude` detached, if the rules include the file; return the exchanges."""
        paths = {each.transcript_folder(origin.path) for each in FORMATS} | {origin.path}
        excluded = [
            file
            for file in (RootedPath(origin.root, path) for path in sorted(paths - {""}))
            if self._archive.excluded_files.contains(file)
        ]
        if not excluded or not self._files.path_filter()(origin).is_included:
            return []
        with self._archive.transaction():
            return [each for file in excluded for each in self._archive.excluded_files.attach(file)]

    def _ingest(self, origin: RootedPath) -> IngestResult:
        for transcript_format in FORMATS:
            folder = transcript_format.transcript_folder(origin.path)
            if folder:
                result = self._ingest_folder(RootedPath(origin.root, folder), transcript_format)
                if result is not None:
                    return result
        fingerprint = self._files.fingerprint(origin)
        if isinstance(fingerprint, Absent):
            return self._remove(origin)
        if isinstance(fingerprint, Problem):
            return IngestResult(problem=fingerprint)
        record = self._archive.find_transcript_file(origin)
        if record and self._is_up_to_date(record, fingerprint):
            return self._pending_result(origin, record)
        try:
            return self._ingest_file(origin, fingerprint, record)
        except _BROKEN_FILE as error:
            return IngestResult(problem=Problem(f"{reason_of(error)}: not indexed"))

    def exclude(self, origin: RootedPath) -> IngestResult:
        """Detach the exchanges of a file that the rules exclude now; the archive keeps them.

        They return when the file is ingested again, also those that the file has lost. Exchanges
        that another file contains stay. A folder that is one transcript is excluded with the last
        of its files.

        Raises:
            StoreError: The archive cannot be written.
        """
        origin = self._excluded_folder(origin) or origin
        with self._archive.transaction():
            self._archive.exclude_transcript_file(origin, self._clock())
        return self._changed_result(origin)

    def _excluded_folder(self, origin: RootedPath) -> RootedPath | None:
        """Return the folder of a file that is one transcript, if the rules exclude all of it."""
        path_filter = self._files.path_filter()
        for transcript_format in FORMATS:
            path = transcript_format.transcript_folder(origin.path)
            folder = RootedPath(origin.root, path)
            if path and self._archive.find_transcript_file(folder):
                listed = self._files.list_files_below(folder)
                member_paths = [f"{path}/{name}" for name, _ in listed]
                members = (RootedPath(origin.root, member) for member in member_paths)
                return None if any(path_filter(each).is_included for each in members) else folder
        return None

    def mark_indexed(self, origins: Sequence[RootedPath]) -> None:
        """Record that the index has taken over these exchanges' changes.

        Raises:
            StoreError: The archive cannot be written.
        """
        with self._archive.transaction():
            self._archive.mark_indexed(origins)

    def _is_up_to_date(self, record: TranscriptFileRecord, fingerprint: Fingerprint) -> bool:
        """Return whether a file is as it was read, and was not changed too recently to be sure."""
        if record.fingerprint != fingerprint or record.reader_version != self.reader_version:
            return False
        changed_ns = max(fingerprint.mtime_ns, fingerprint.ctime_ns)
        return changed_ns < self._clock() - RACY_WINDOW_NS

    def _ingest_folder(
        self, folder: RootedPath, transcript_format: TranscriptFormat
    ) -> IngestResult | None:
        """Read a folder that is one transcript; None if it is not one."""
        listed = self._files.list_files_below(folder)
        record = self._archive.find_transcript_file(folder)
        if record and not listed:
            return self._remove(folder)
        names = [name for name, _ in listed]
        if not transcript_format.matches_folder(names):
            return None
        fingerprint = folder_fingerprint(listed)
        if record and self._is_up_to_date(record, fingerprint):
            return self._pending_result(folder, record)

        try:
            place = (self._roots[folder.root], folder)
            plan = plan_folder_read(self._files, place, listed, transcript_format.source)
            return self._ingest_request(folder, fingerprint, plan)
        except _BROKEN_FILE as error:
            return IngestResult(problem=Problem(f"{reason_of(error)}: not indexed"))

    def _remove(self, origin: RootedPath) -> IngestResult:
        """Remove a deleted file from the archive; its exchanges stay, or move to the trash."""
        orphans_go_to = None if self.keeps_after_delete(origin) else DetachReason.TRASH
        with self._archive.transaction():
            self._archive.remove_transcript_file(origin, self._clock(), orphans_go_to)
        return self._changed_result(origin)

    def _pending_result(self, origin: RootedPath, record: TranscriptFileRecord) -> IngestResult:
        """Return what the index has not taken over yet of a file that is up to date."""
        return IngestResult(
            changed_exchanges=tuple(self._archive.exchanges_due(origin)),
            problem=unknown_records_problem(Counter(json.loads(record.unknown_counts))),
        )

    def _changed_result(self, origin: RootedPath, problem: Problem | None = None) -> IngestResult:
        """Return what the transaction before has changed."""
        changed = dict.fromkeys(
            (
                *self._archive.exchanges_due(origin),
                *self._archive.retitled_exchanges,
                *self._archive.removed_exchanges,
            )
        )
        others = tuple(other for other in self._archive.files_to_reread if other != origin)
        return IngestResult(tuple(changed), others, problem)

    def _ingest_file(
        self, origin: RootedPath, fingerprint: Fingerprint, record: TranscriptFileRecord | None
    ) -> IngestResult:
        plan = plan_file_read(
            self._files,
            (self._roots[origin.root], origin),
            fingerprint,
            record,
            self.reader_version,
        )
        if plan is None:
            return _result_without_format(origin)
        try:
            return self._ingest_request(origin, fingerprint, plan)
        except _FullReadNeededError:
            return self._ingest_request(origin, fingerprint, plan.in_full())

    def _ingest_request(
        self, origin: RootedPath, fingerprint: Fingerprint, plan: ReadPlan
    ) -> IngestResult:
        """Read a file or a folder, twice if the process that reads it ends.

        Args:
            origin: The file or folder.
            fingerprint: Its fingerprint before the read.
            plan: What to read, and where.

        Raises:
            _FullReadNeededError: What was appended refers to something before the resume point.
            OSError, ValueError, and others: The file is broken.
        """
        if plan.is_short:
            return self._read(origin, fingerprint, read_whole(plan.request), plan)
        digest = digest_of_read(plan.request, fingerprint)
        crash_counts = self.whole_reads.crash_counts
        while not crash_counts.is_quarantined(digest):
            try:
                items = self.whole_reads.read(plan.request)
                return self._read(origin, fingerprint, items, plan)
            except ReaderEndedError:
                crash_counts.count_crash(digest)
        return IngestResult(problem=_QUARANTINED)

    def _read(
        self,
        origin: RootedPath,
        fingerprint: Fingerprint,
        items: Generator[ReadItem],
        plan: ReadPlan,
    ) -> IngestResult:
        with closing(items):
            first = next(items, None)
            if first is None:
                return _result_without_format(origin)
            with self._archive.transaction():
                record = self._archive.find_transcript_file(origin)
                rules = self._read_rules(record, has_grown=plan.has_grown)
                read = TranscriptRead(self._archive, origin, fingerprint, rules)
                all_items = itertools.chain([first], items)
                if plan.point is None:
                    read.read_full(all_items)
                    read.remove_missing_exchanges()
                elif not read.resume(all_items, plan.point):
                    raise _FullReadNeededError
                elif record:
                    # Unknown records before the resume point were not read again: the larger count
                    # holds.
                    read.unknown_counts |= Counter(json.loads(record.unknown_counts))
                resume_point = ""
                if plan.lines:
                    resume_point = encode_resume_point(
                        read.last_exchange, read.last_paths, fingerprint.size, *plan.lines
                    )
                read.finish(resume_point, is_full_read=plan.point is None)
                # Before the commit: the archive calls a file read only once its bytes are kept.
                self.keep_bytes(origin, read.has_forgotten)
        return self._changed_result(origin, unknown_records_problem(read.unknown_counts))

    def _read_rules(self, record: TranscriptFileRecord | None, *, has_grown: bool) -> ReadRules:
        # "" asks for a full read with the same reader.
        is_same_reader = record is not None and record.reader_version in {"", self.reader_version}
        # Invariant: what is missing is understood in another way now, and is stored anew. Otherwise
        # the file was cut off, which is no deletion, also in a root with `on_delete = "delete"`.
        is_stored_anew = has_grown or not is_same_reader
        orphans_go_to = DetachReason.READER if is_stored_anew else None
        return ReadRules(
            reader_version=self.reader_version,
            prepare=self._prepare,
            clean_item=redact_session_item if self._redacts else keep_item,
            now_ns=self._clock(),
            orphans_go_to=orphans_go_to,
            preserve=is_same_reader,
        )

    def _prepare(self, exchange: Exchange) -> tuple[Exchange, Counter[str]] | None:
        """Redact an exchange and count its secrets by kind; None for a summary to leave out."""
        if exchange.kind == "summary" and not self._include_summaries:
            return None
        if not self._redacts:
            return cut_tools(exchange), Counter()
        return redact_exchange(exchange)


def _result_without_format(origin: RootedPath) -> IngestResult:
    if origin.path.endswith(DATABASE_SUFFIXES):
        return IngestResult()  # Editors keep many databases, most without a conversation.
    if has_prose_suffix(origin.path):
        return IngestResult(is_ordinary_document=True)
    return IngestResult(problem=_UNKNOWN_FORMAT)
