"""Carriers -> the archive: what is new in a file of conversations, for the price of what is new.

A file of lines is read on from where its last exchange started, as long as what stands before that place is what it was (its
beginning and its end there are hashed); else it is read whole, and exchanges that it tells as before change nothing.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import BinaryIO

from anchord.adapters.archive import Noted
from anchord.adapters.archive_writer import ArchiveWriter, Reading, Teller
from anchord.adapters.carriers import FileCarrier, FolderCarrier, file_carrier, is_archive, members_of
from anchord.adapters.files import DATABASES, FolderFiles
from anchord.conversation import Carrier, Earlier, Exchange, Head, Superseded, TooLongError, Unknown
from anchord.core.decide import RACY_NS
from anchord.core.identity import digest
from anchord.model import Absent, Fingerprint, Ingested, Origin, Problem, Root
from anchord.sources.archived import is_archived
from anchord.sources.conversations import FAMILIES, HEAD_BYTES, VERSION, Family, is_prose, recognise, recognise_folder, told
from anchord.sources.exchanges import PREAMBLE, Told, exchanges
from anchord.sources.redaction import Redactor

_GUARD_BYTES = 4_096
_TROUBLE = (OSError, EOFError, ValueError, MemoryError, zipfile.BadZipFile)
"""What a broken carrier raises; trouble with the archive is a StoreError."""
_DATABASE = b"SQLite format 3\0"
_UNKNOWN_FORMAT = Problem("no format of conversations that is known: not indexed")


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the last exchange of a file of lines started: from there it is read on."""

    offset: int
    number: int
    head: str
    """Digest of the first bytes before it."""
    tail: str
    """Digest of the last bytes before it."""
    session: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is kept of what carriers tell."""

    redact: bool = True
    """Without their secrets."""
    summaries: bool = False
    """And what programs wrote of conversations by themselves."""

    @property
    def reader(self) -> str:
        """Name what reads conversations, with its version: what it told can differ under another name."""
        return f"{VERSION} {Redactor.version if self.redact else 'as written'}{', summaries' if self.summaries else ''}"


Keeping = Callable[[Exchange], tuple[Exchange, Counter[str]] | None]


class Conversations:
    """Reads carriers into an archive. The writer's thread alone uses it."""

    def __init__(
        self, files: FolderFiles, archive: ArchiveWriter, clock: Callable[[], int], roots: Mapping[str, Root], wanted: Wanted
    ) -> None:
        """Serve these roots."""
        self._files, self._archive, self._clock, self._roots = files, archive, clock, roots
        self._redactor = Redactor() if wanted.redact else None
        self._summaries = wanted.summaries
        self.reader = wanted.reader
        """Who reads, with the version: what is told can differ under another."""

    def is_carrier(self, origin: Origin) -> bool:
        """Whether a file is taken in: those of roots of conversations."""
        return self._roots[origin.root].kind == "conversations" and not is_archived(origin.path)

    def keeps(self, origin: Origin) -> bool:
        """Whether what a file has told stays when it goes."""
        return self.is_carrier(origin) and self._roots[origin.root].on_delete == "keep"

    def take_in(self, origin: Origin) -> Ingested:
        """Read what a carrier has to tell. Everything that changed is in the archive, durably, when it returns."""
        for family in FAMILIES:
            folder = family.folder(origin.path)
            if folder and (taken := self._take_folder(Origin(origin.root, folder), family)):
                return taken
        seen = self._files.fingerprint(origin)
        if isinstance(seen, Absent):
            return self._leave(origin)
        if isinstance(seen, Problem):
            return Ingested(problem=seen)
        noted = self._archive.carrier(origin)
        read_ns = self._clock()
        settled = noted and noted.fingerprint == seen and noted.reader == self.reader
        if noted and settled and max(seen.mtime_ns, seen.ctime_ns) < read_ns - RACY_NS:
            return self._settled(origin, noted)
        try:
            return self._read(origin, seen, noted)
        except _TROUBLE as error:
            known = str(error) if isinstance(error, TooLongError) else ""
            reason = known or f"cannot be read as conversations ({type(error).__name__})"
            return Ingested(problem=Problem(f"{reason}: not indexed"))

    def done(self, origins: Sequence[Origin]) -> None:
        """Note that changes were taken into the index."""
        with self._archive.changing():
            self._archive.done(origins)

    def _take_folder(self, folder: Origin, family: Family) -> Ingested | None:
        """Take a folder in that is a carrier as a whole; None where it is none."""
        listed = self._files.listing(folder)
        noted = self._archive.carrier(folder)
        if not listed and noted:
            return self._leave(folder)
        names = [name for name, _ in listed]
        if not family.claims(names):
            return None
        times = max(seen.mtime_ns for _, seen in listed), max(seen.ctime_ns for _, seen in listed)
        mixed = int(digest(repr(listed).encode())[:12], 16)
        seen = Fingerprint(sum(each.size for _, each in listed), *times, mixed, 0)
        settled = noted and noted.fingerprint == seen and noted.reader == self.reader
        if noted and settled and max(times) < self._clock() - RACY_NS:
            return self._settled(folder, noted)
        whole = FolderCarrier(folder.path, names, lambda name: self._files.open(Origin(folder.root, f"{folder.path}/{name}")))
        return self._take(folder, seen, noted, [(family, whole)])

    def _leave(self, origin: Origin) -> Ingested:
        with self._archive.changing():
            self._archive.leave(origin, keep=self.keeps(origin))
        return self._changed(origin)

    def _settled(self, origin: Origin, noted: Noted) -> Ingested:
        """Return what is still to be done for a carrier that was read before."""
        return Ingested(tuple(self._archive.due(origin)), problem=_left_out(Counter(json.loads(noted.unknown))))

    def _changed(self, origin: Origin, problem: Problem | None = None) -> Ingested:
        """Return what has just been changed."""
        again = tuple(other for other in self._archive.again if other != origin)
        changed = dict.fromkeys((*self._archive.due(origin), *self._archive.renamed, *self._archive.gone))
        return Ingested(tuple(changed), again, problem)

    def _read(self, origin: Origin, seen: Fingerprint, noted: Noted | None) -> Ingested:
        def opener() -> BinaryIO:
            return self._files.open(origin)

        carrier = file_carrier(origin.path, opener, self._files.full_path(origin))
        with carrier.open() as stream:
            head = stream.read(HEAD_BYTES)
        if is_archive(head):
            return self._read_archive(origin, seen, noted)
        if head.startswith(_DATABASE):  # What was created last stands in its log alone.
            head += "\n".join(str(sql) for (sql,) in carrier.query("SELECT sql FROM sqlite_master")).encode("utf-8", "replace")
        family = recognise(head, carrier.path)
        if family is None and noted and noted.source:
            family = next((each for each in FAMILIES if each.source == noted.source), None)
        if family is None and origin.path.endswith(DATABASES):
            return Ingested()  # Editors keep many, most of them without a conversation.
        if family is None:
            return Ingested(ordinary=True) if is_prose(origin.path) else Ingested(problem=_UNKNOWN_FORMAT)
        return self._take(origin, seen, noted, [(family, carrier)])

    def _read_archive(self, origin: Origin, seen: Fingerprint, noted: Noted | None) -> Ingested:
        with self._files.open(origin) as stream, zipfile.ZipFile(stream) as archive:
            whole = members_of(origin.path, archive)
            family = recognise_folder(whole.names())
            carriers: Sequence[tuple[Family, Carrier]] = [(family, whole)] if family else list(_known_members(whole))
            return self._take(origin, seen, noted, carriers) if carriers else Ingested(problem=_UNKNOWN_FORMAT)

    def _take(
        self, origin: Origin, seen: Fingerprint, noted: Noted | None, carriers: Sequence[tuple[Family, Carrier]]
    ) -> Ingested:
        family, carrier = carriers[0]
        mark = self._mark(noted, seen, family, carrier) if len(carriers) == 1 else None
        with self._archive.changing():
            telling = _Telling(self._archive, origin, seen, self.reader, self._kept)
            mark = mark if mark and telling.read(family, carrier, mark) else None
            if mark is None:
                telling = _Telling(self._archive, origin, seen, self.reader, self._kept)
                for each in carriers:
                    telling.read(*each, None)
                telling.forget_the_rest()
            else:
                telling.unknown |= Counter(json.loads(noted.unknown) if noted else {})  # What is known of what came before.
            new_mark = self._new_mark(telling, family, carrier) if len(carriers) == 1 else ""
            telling.finish(new_mark, whole=mark is None)
        return self._changed(origin, _left_out(telling.unknown))

    def _kept(self, exchange: Exchange) -> tuple[Exchange, Counter[str]] | None:
        """Return an exchange as it is kept, with its secrets counted by kind; None for one that is not."""
        kinds: Counter[str] = Counter()
        if exchange.kind == "summary" and not self._summaries:
            return None
        if self._redactor is None:
            return exchange, kinds
        question, answer = self._redactor.redact(exchange.question), self._redactor.redact(exchange.answer)
        tools = [self._redactor.redact(tool) for tool in exchange.tools]
        for each in (question, answer, *tools):
            kinds += each.kinds
        tools_told = tuple(tool.text for tool in tools)
        return replace(exchange, question=question.text, answer=answer.text, tools=tools_told), kinds

    def _mark(self, noted: Noted | None, seen: Fingerprint, family: Family, carrier: Carrier) -> Mark | None:
        """Return where to read on, if nothing before that place has changed."""
        if (
            noted is None
            or not noted.mark
            or noted.reader != self.reader
            or not family.resumes
            or noted.source != family.source
        ):
            return None
        mark = Mark(**json.loads(noted.mark))
        if seen.size < noted.fingerprint.size or mark.offset == 0:
            return None
        return mark if _guards(carrier, mark.offset) == (mark.head, mark.tail) else None

    def _new_mark(self, telling: _Telling, family: Family, carrier: Carrier) -> str:
        if not family.resumes or telling.last is None:
            return ""
        last, guards = telling.last, _guards(carrier, telling.last.offset)
        return json.dumps(asdict(Mark(last.offset, last.number, *guards, last.session))) if guards else ""


class _Telling:
    """One reading of a carrier: its exchanges go to the archive as they come."""

    def __init__(self, archive: ArchiveWriter, origin: Origin, seen: Fingerprint, reader: str, keep: Keeping) -> None:
        self._archive, self._origin, self._seen, self._reader, self._keep = archive, origin, seen, reader, keep
        self.unknown: Counter[str] = Counter()
        self.last: Exchange | None = None
        self._source = ""
        self._id = archive.note_carrier(origin, seen)  # With its time: of two forms the one written last counts.
        self._heads: dict[int, Head] = {}
        self._told: set[int] = set()

    def read(self, family: Family, carrier: Carrier, mark: Mark | None) -> bool:
        """Read a carrier whole, or on from a mark; say whether that was enough."""
        self._source = family.source
        head, session, first = self._head_before(mark) if mark else Head(""), 0, ""
        known = head
        before = self._told_from(mark) if mark else set[int]()
        for each in exchanges(told(family, carrier, mark.offset if mark else 0), mark.number if mark else 0):
            if isinstance(each, Earlier) and mark:
                return False
            if isinstance(each, Head):
                first = first or each.session
                if mark and each.session not in (first, mark.session):
                    return False
                now = replace(each, session=known.session, project=known.project or each.project) if mark else each
                more = now.session == head.session
                head = _joined(head, now) if more else now
                session = self._session(head) if more and session else 0
            elif isinstance(each, Exchange):
                session = session or self._session(head)
                self._take(replace(each, session=head.session), session, unique=family.unique)
            else:
                self._note(each, session)
        if mark:
            self._untell(before - self._told)
        return True

    def _head_before(self, mark: Mark) -> Head:
        """Return what was told of a session before: a whole reading has the first folder that it is about, and all titles."""
        return self._archive.head(self._id, self._number(Head(mark.session)))

    def _session(self, head: Head) -> int:
        number = self._number(head)
        self._heads[number] = _joined(self._heads.get(number, head), head)
        return number

    def _number(self, head: Head) -> int:
        return self._archive.session(self._origin.root, self._source, head)

    def _told_from(self, mark: Mark) -> set[int]:
        return self._archive.told_by(self._id, self._number(Head(mark.session)), mark.number)

    def _take(self, exchange: Exchange, session: int, *, unique: bool) -> None:
        kept = self._keep(exchange)
        if kept is None:
            return
        clean, kinds = kept
        named = not exchange.id.startswith((PREAMBLE, "at-"))  # Else it is named by its place.
        by = Teller(self._origin.root, self._source, self._id, unique and named)
        self._told.add(self._archive.tell(by, session, clean, json.dumps(dict(kinds)) if kinds else ""))
        self.last = exchange

    def _note(self, each: Told, session: int) -> None:
        if isinstance(each, Superseded) and session:
            self._archive.supersede(session, each.ids)
        elif isinstance(each, Unknown):
            self.unknown[each.kind] += 1

    def forget_the_rest(self) -> None:
        """Let go of what the carrier told before and tells no more."""
        self._untell(self._archive.told_by(self._id) - self._told)

    def _untell(self, exchanges: set[int]) -> None:
        self._archive.untell(self._id, sorted(exchanges), keep=False)

    def finish(self, mark: str, *, whole: bool) -> None:
        """Note what was read, whole or on from a mark."""
        self._archive.tell_heads(self._id, self._heads, whole=whole)
        unknown = json.dumps(dict(self.unknown.most_common(100)))
        self._archive.note_carrier(self._origin, self._seen, self._source, Reading(self._reader, mark, unknown))


def _known_members(whole: FolderCarrier) -> Iterator[tuple[Family, Carrier]]:
    for name in whole.names():
        path = f"{whole.path}!{name}"
        with closing(whole.member(name)) as stream:
            family = recognise(stream.read(HEAD_BYTES), path)
        if family is not None:
            yield family, FileCarrier(path, lambda name=name: whole.member(name))  # type: ignore[misc]


def _guards(carrier: Carrier, offset: int) -> tuple[str, str] | None:
    """Return the digests of the beginning of what is before an offset, and of its end; None for what is compressed."""
    with carrier.open() as stream:
        head = stream.read(min(_GUARD_BYTES, offset))
        if not stream.seekable():
            return None
        stream.seek(max(0, offset - _GUARD_BYTES))
        tail = stream.read(min(_GUARD_BYTES, offset))
    return digest(head), digest(tail)


def _joined(before: Head, now: Head) -> Head:
    return replace(
        now, title=now.title or before.title, project=now.project or before.project, parent=now.parent or before.parent
    )


def _left_out(unknown: Counter[str]) -> Problem | None:
    """Tell what was left out of a carrier; None where that is nothing."""
    listed = ", ".join(f"{kind} ({count})" for kind, count in unknown.most_common(5))
    return Problem(f"{unknown.total()} records of unknown kinds were left out: {listed}", partial=True) if unknown else None
