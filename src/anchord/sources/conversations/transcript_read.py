"""One read of a transcript file: each complete exchange is written to the archive at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from anchord.core.types import Fingerprint, Problem, RootedPath
from anchord.sources.conversations.archive.detached import DetachReason
from anchord.sources.conversations.archive.exchange_forms import ExchangeSource, path_of
from anchord.sources.conversations.archive.writer import ArchiveWriter, ReadState
from anchord.sources.conversations.events import (
    Exchange,
    NeedsFullRead,
    SessionInfo,
    SupersededQuestions,
    UnknownRecord,
)
from anchord.sources.conversations.exchanges import (
    POSITIONAL_IDS,
    PREAMBLE_ID,
    ExchangeStreamItem,
)
from anchord.sources.conversations.formats.registry import TranscriptFormat
from anchord.sources.conversations.resume import ResumePoint
from anchord.sources.conversations.whole_read import ReadItem

CleanItem = Callable[[ExchangeStreamItem], ExchangeStreamItem]
"""Redacts what names sessions and exchanges: ids, titles and folders."""
PrepareExchange = Callable[[Exchange], tuple[Exchange, Counter[str]] | None]
"""Returns an exchange as it is stored and its secrets by kind; None for one to leave out."""

_MAX_UNKNOWN_KINDS = 100
_LISTED_KINDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRules:
    """How a transcript file is read, and what happens to what it no longer contains."""

    reader_version: str
    """The reader with its version and options, recorded by `TranscriptRead.finish`."""
    prepare: PrepareExchange
    """Redacts exchanges, and leaves some out."""
    clean_item: CleanItem
    """Redacts ids, titles and folders, before they are compared with stored ones."""
    now_ns: int
    """The time, in nanoseconds since the epoch."""
    orphans_go_to: DetachReason | None = None
    """Where exchanges that no file contains any more are moved; None leaves them in the root."""
    preserve: bool = False
    """Whether to keep what the file lost within its exchanges, as `ArchiveWriter.upsert_exchange`
    does."""


class TranscriptRead:
    """Reads one file into the archive, inside a transaction of the archive.

    Call `read_full` and then `remove_missing_exchanges`, or call `resume`. Then call `finish`.
    """

    def __init__(
        self,
        archive: ArchiveWriter,
        origin: RootedPath,
        fingerprint: Fingerprint,
        rules: ReadRules,
    ) -> None:
        """Insert or reset the file's record in the archive.

        Args:
            archive: The archive, in a transaction.
            origin: The file.
            fingerprint: The file's fingerprint before the read.
            rules: How it is read.
        """
        self._archive = archive
        self._origin = origin
        self._fingerprint = fingerprint
        self._rules = rules
        self.unknown_counts: Counter[str] = Counter()
        """Records that were not understood, by kind."""
        self.has_forgotten = False
        """Whether the file contains an exchange that `forget` deleted."""
        self.last_exchange: Exchange | None = None
        """The last exchange that was written of a file whose next read can resume."""
        self._last: list[tuple[int, str]] = []
        """Offset and path of the exchanges that begin where the last one begins, or after it."""
        self._format: TranscriptFormat | None = None
        # The record must exist before the first exchange: its modification time decides between
        # forms of an exchange.
        self._file_id = archive.upsert_transcript_file(origin, fingerprint)
        self._info_by_session_id: dict[int, SessionInfo] = {}
        self._exchange_ids: set[int] = set()
        self._info = SessionInfo(session="")
        self._session_id = 0
        """The present session's id in the archive; 0 until it is needed."""

    def read_full(self, items: Iterable[ReadItem]) -> None:
        """Write all exchanges of a file to the archive.

        Args:
            items: The file's transcripts: the format of each, followed by its items.

        Raises:
            OSError, ValueError, and others: The file is broken. The caller rolls the transaction
            back.
        """
        for item in items:
            if isinstance(item, TranscriptFormat):
                self._begin(item, SessionInfo(session=""))
            else:
                self._handle(self._rules.clean_item(item))

    def resume(self, items: Iterable[ReadItem], point: ResumePoint) -> bool:
        """Write what a transcript contains from a resume point on; remove what is gone there.

        Args:
            items: The transcript's format, and its items from the resume point on.
            point: The resume point.

        Returns:
            False if what was appended cannot be understood without what is before it. The file must
            then be read in full, by a new `TranscriptRead` in the same transaction.
        """
        items = iter(items)
        transcript_format = next(items, None)
        if not isinstance(transcript_format, TranscriptFormat):
            return False
        self._begin(transcript_format, SessionInfo(session=point.session))
        session_id = self._session_id_of(self._info)
        # A full read finds the session's first project and all titles: they stand before the
        # resume point.
        known = self._archive.get_session_info(self._file_id, session_id)
        self._info = known
        before = self._archive.exchange_ids_at(self._origin.root, self._file_id, point.paths)
        session = ""
        for read_item in items:
            if isinstance(read_item, NeedsFullRead | TranscriptFormat):
                return False
            item = self._rules.clean_item(read_item)
            if isinstance(item, Exchange) and _is_answer_to_earlier(item, point):
                return False
            if not isinstance(item, SessionInfo):
                self._handle(item)
                continue
            # At first a reader names the file's session until a record names another one.
            if session and item.session not in (session, point.session):
                return False  # Another session begins: which one the exchanges are of is unsure.
            session = item.session
            project = known.project or item.project
            self._handle(replace(item, session=known.session, project=project))
        self._remove(before - self._exchange_ids)
        return True

    def _begin(self, transcript_format: TranscriptFormat, info: SessionInfo) -> None:
        self._format = transcript_format
        self._info = info
        self._session_id = 0

    @property
    def _source(self) -> str:
        return self._format.source if self._format else ""

    def _handle(self, item: ExchangeStreamItem) -> None:
        if isinstance(item, SessionInfo):
            self._enter_session(item)
        elif isinstance(item, Exchange):
            if not self._session_id:
                self._session_id = self._save_info(self._info)
            self._write(replace(item, session=self._info.session))
        elif isinstance(item, SupersededQuestions):
            for name in item.ids:
                source = self._source_of(name)
                self._archive.mark_superseded(source, self._info.session, name)
        elif isinstance(item, UnknownRecord):
            self.unknown_counts[item.kind] += item.count

    def _enter_session(self, info: SessionInfo) -> None:
        """Switch to a session, or add to what the file says of the present one."""
        if info.session != self._info.session:
            # A session without exchanges is not written: it gets an id at its first exchange.
            self._info, self._session_id = info, 0
            return
        self._info = _merge_info(self._info, info)
        if self._session_id:
            self._session_id = self._save_info(self._info)

    def _save_info(self, info: SessionInfo) -> int:
        session_id = self._session_id_of(info)
        earlier = self._info_by_session_id.get(session_id, info)
        self._info_by_session_id[session_id] = _merge_info(earlier, info)
        return session_id

    def _session_id_of(self, info: SessionInfo) -> int:
        return self._archive.get_or_create_session(self._origin.root, self._source, info)

    def _write(self, exchange: Exchange) -> None:
        prepared = self._rules.prepare(exchange)
        if prepared is None:
            return
        stored_exchange, redactions = prepared
        source = self._source_of(exchange.id)
        redaction_counts = json.dumps(dict(redactions)) if redactions else ""
        exchange_id = self._archive.upsert_exchange(
            source,
            self._session_id,
            stored_exchange,
            redaction_counts,
            preserve=self._rules.preserve,
        )
        path = path_of(source, exchange.session, exchange.id)
        if exchange_id is None:
            self.has_forgotten = True
        else:
            self._exchange_ids.add(exchange_id)
            path = self._archive.origin_of(exchange_id).path
        if self._format and self._format.can_resume:
            self._note_last(exchange, path)

    def _source_of(self, exchange_id: str) -> ExchangeSource:
        has_own_id = not exchange_id.startswith(POSITIONAL_IDS)
        format_has_unique_ids = self._format is not None and self._format.has_unique_ids
        return ExchangeSource(
            root=self._origin.root,
            source=self._source,
            file_id=self._file_id,
            has_unique_ids=format_has_unique_ids and has_own_id,
            reader_version=self._rules.reader_version,
        )

    def _note_last(self, exchange: Exchange, path: str) -> None:
        self.last_exchange = exchange
        # The attachments of an exchange begin where it begins, a summary in it after it.
        self._last = [each for each in self._last if each[0] >= exchange.offset]
        self._last.append((exchange.offset, path))

    @property
    def last_paths(self) -> tuple[str, ...]:
        """Paths of the exchanges from the place on at which the last one begins."""
        return tuple(path for _, path in self._last)

    def remove_missing_exchanges(self) -> None:
        """Record which exchanges the file no longer contains, after a full read.

        An exchange that no other file contains is not deleted: the file may have been cut off.
        """
        self._remove(self._archive.exchange_ids_of(self._file_id) - self._exchange_ids)

    def _remove(self, exchange_ids: set[int]) -> None:
        lost = exchange_ids
        if exchange_ids or self._archive.replaced_copies:
            lost = self._archive.drop_repeated_exchanges(self._file_id, exchange_ids)
        self._archive.remove_source(
            self._file_id, sorted(lost), self._rules.now_ns, self._rules.orphans_go_to
        )

    def finish(self, resume_point: str, *, is_full_read: bool) -> None:
        """Store the sessions' titles and how the file was read.

        Args:
            resume_point: JSON of the resume point; "" if the next read must be full.
            is_full_read: Whether `read_full` was used. What the file said of other sessions is
                then deleted.
        """
        self._archive.save_session_info(
            self._file_id, self._info_by_session_id, is_full_read=is_full_read
        )
        unknown = json.dumps(dict(self.unknown_counts.most_common(_MAX_UNKNOWN_KINDS)))
        self._archive.upsert_transcript_file(
            self._origin,
            self._fingerprint,
            self._source,
            ReadState(self._rules.reader_version, resume_point, unknown),
        )


def _is_answer_to_earlier(exchange: Exchange, point: ResumePoint) -> bool:
    """Return whether an answer stands where a question stood when the file was last read.

    It belongs to the exchange before the resume point: the file was rewritten from there on.
    """
    is_first = exchange.number == point.number > 0
    return is_first and exchange.id == PREAMBLE_ID


def _merge_info(earlier: SessionInfo, later: SessionInfo) -> SessionInfo:
    """Return the later information, with empty fields filled from the earlier."""
    return replace(
        later,
        title=later.title or earlier.title,
        project=later.project or earlier.project,
        parent=later.parent or earlier.parent,
    )


def unknown_records_problem(counts: Counter[str]) -> Problem | None:
    """Return the problem that names the records that were skipped; None if there were none."""
    if not counts:
        return None
    most_common = counts.most_common(_LISTED_KINDS)
    counted = [f"{kind} ({count})" for kind, count in most_common]
    listed = ", ".join(counted)
    total = counts.total()
    records = "1 record of an unknown kind" if total == 1 else f"{total} records of unknown kinds"
    return Problem(f"skipped {records}: {listed}", is_partial=True)
