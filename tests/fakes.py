"""The ports in memory: they keep the contracts and count the work, so that tests assert reads, not seconds.

`tests/contracts/` runs the same tests on these and on the real stores, so the fakes stay correct. The embedder
has no fake here: `HashEmbedder` needs no model and counts the texts it is given.
"""

from __future__ import annotations

import math
import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from anchord.chunking.plan import ChunkingPlans, build_plans
from anchord.config.schema import DOCUMENT_KINDS
from anchord.config.strategies import OptionValue, with_strategy_defaults
from anchord.core.diff import row_hash
from anchord.core.ids import DUE_MARK, make_doc_id, model_tag_of
from anchord.core.ports import EnterDirCallback, PathFilter, VectorLookup, ignore_enter_dir
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import (
    NO_FILTERS,
    NO_FINGERPRINT,
    NO_VECTORS,
    Absent,
    ChangedDuringRead,
    ChunkLocation,
    ChunkRecord,
    DatedFiles,
    FileContent,
    FileFailure,
    FileRecord,
    FileUpdate,
    Fingerprint,
    FoundFile,
    PathMatch,
    Problem,
    RootedPath,
    Row,
    ScoredRow,
    SearchFilters,
    StoreStats,
    Vector,
    WalkResult,
)

T = TypeVar("T")

SECOND = 1_000_000_000
NOON = 1_700_000_000 * SECOND
"""A time in ns, long after the times of the files in `FakeFiles`."""


def plans(window: int = 254, **given: OptionValue) -> ChunkingPlans:
    """Return the plans of a configuration with these lines under `[chunking]`."""
    return build_plans(
        window, {"": {kind: with_strategy_defaults(given) for kind in DOCUMENT_KINDS}}
    )


class HandClock:
    """A clock in nanoseconds that only tests move."""

    def __init__(self, now_ns: int = NOON) -> None:
        """Start at a moment."""
        self.now_ns = now_ns

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ns

    def move(self, seconds: float) -> None:
        """Move the clock forward."""
        self.now_ns += round(seconds * SECOND)


class FakeFiles:
    """A tree as a dict. `reads`, `looks` and `walks` record the calls in order."""

    def __init__(self, clock: Callable[[], int] = lambda: 1) -> None:
        """Start with no files; new files are written at the clock's time."""
        self.contents: dict[RootedPath, bytes] = {}
        self.fingerprints: dict[RootedPath, Fingerprint] = {}
        self.problems: dict[RootedPath, Problem] = {}
        """Paths that exist and cannot be used."""
        self.excluded: dict[RootedPath, str] = {}
        """Excluded paths, with the rule."""
        self.unstable: set[RootedPath] = set()
        """Paths that are being written whenever they are read."""
        self.gone: set[str] = set()
        """Roots whose folder is not there."""
        self.unread: set[tuple[str, str]] = set()
        """Folders (root, path) that may not be listed."""
        self.reads: list[RootedPath] = []
        self.looks: list[RootedPath] = []
        self.walks: list[tuple[str, str]] = []
        self.device = 1
        self._clock = clock
        self._inodes = 0

    def put(
        self, origin: RootedPath, text: str | bytes, fingerprint: Fingerprint | None = None
    ) -> Fingerprint:
        """Write a file; a hand-set fingerprint makes any coincidence of size and times."""
        data = text.encode() if isinstance(text, str) else text
        before = self.fingerprints.get(origin)
        if fingerprint is None:
            self._inodes += before is None
            now = self._clock()
            fingerprint = Fingerprint(
                size=len(data),
                mtime_ns=now,
                ctime_ns=now,
                inode=before.inode if before else self._inodes,
                device=self.device,
            )
        self.contents[origin], self.fingerprints[origin] = data, fingerprint
        return fingerprint

    def remove(self, origin: RootedPath) -> None:
        """Delete a file."""
        del self.contents[origin], self.fingerprints[origin]

    def move(self, origin: RootedPath, to: RootedPath) -> None:
        """Rename a file: content, size, time of writing and inode stay."""
        self.contents[to] = self.contents.pop(origin)
        self.fingerprints[to] = self.fingerprints.pop(origin)._replace(ctime_ns=self._clock())

    def path_filter(self) -> PathFilter:
        """Include every path that no rule excludes."""
        return self._verdict

    def _verdict(self, origin: RootedPath) -> PathMatch:
        reason = self.excluded.get(origin)
        return PathMatch(
            is_included=reason is None,
            reason=reason or "a file of the fake",
            is_worth_reporting=reason is None,
        )

    def check_root(
        self, root: str, known_paths: Callable[[], Collection[str]], *, accept: bool
    ) -> str:
        """Accept any folder."""
        del root, known_paths, accept
        return ""

    def fingerprint(self, origin: RootedPath) -> Fingerprint | Absent | Problem:
        """Return the fingerprint of a path."""
        self.looks.append(origin)
        return self._seen(origin)

    def read(self, origin: RootedPath) -> FileContent | Absent | Problem | ChangedDuringRead:
        """Read a file."""
        self.reads.append(origin)
        if origin in self.unstable:
            return ChangedDuringRead()
        seen = self._seen(origin)
        return FileContent(self.contents[origin], seen) if isinstance(seen, Fingerprint) else seen

    def walk(
        self, root: str, prefix: str, on_enter_dir: EnterDirCallback = ignore_enter_dir
    ) -> WalkResult | Absent | Problem:
        """List what is below a prefix; its one folder is the prefix itself."""
        self.walks.append((root, prefix))
        below = prefix + "/" if prefix else ""
        here = [
            o
            for o in {**self.fingerprints, **self.problems}
            if o.root == root and o.path.startswith(below)
        ]
        if root in self.gone or (prefix and not here):
            return Absent()
        found, problems, skipped = [], [], 0
        for origin in here:
            seen = self._seen(origin)
            if any(
                origin.path.startswith(folder + "/") for name, folder in self.unread if name == root
            ):
                continue
            if origin in self.excluded:
                skipped += 1
            elif isinstance(seen, Fingerprint):
                found.append(FoundFile(origin.path, seen))
            elif isinstance(seen, Problem):
                problems.append((origin.path, seen))
        on_enter_dir(RootedPath(root, prefix))
        unread = tuple(
            sorted(
                folder for name, folder in self.unread if name == root and folder.startswith(below)
            )
        )
        troubles = tuple((folder, Problem("permission denied")) for folder in unread)
        return WalkResult(
            files=tuple(found),
            file_problems=tuple(problems),
            folder_problems=troubles,
            unreadable_folders=unread,
            skipped_count=skipped,
            listed_folders=(prefix,),
            top_device=self.device,
        )

    def _seen(self, origin: RootedPath) -> Fingerprint | Absent | Problem:
        if origin.root in self.gone:
            return Absent()
        return self.problems.get(origin) or self.fingerprints.get(origin) or Absent()


@dataclass
class _File:
    """A file of the catalog: the confirmed state, and the intended chunks while they differ."""

    known: FileRecord
    wanted: tuple[ChunkRecord, ...] | None = None
    since_ns: int = 0


class FakeCatalogue:
    """The catalog as a dict. `writes` records each changing call with its size."""

    def __init__(self) -> None:
        """Start empty."""
        self.files: dict[RootedPath, _File] = {}
        self.writes: list[tuple[str, int]] = []
        self.notes: dict[str, str] = {}

    def get_record(self, origin: RootedPath) -> FileRecord | None:
        """Return the record of a file."""
        file = self.files.get(origin)
        if file is None:
            return None
        return (
            file.known
            if file.wanted is None
            else file.known._replace(is_confirmed=False, chunks=())
        )

    def list_records(self, root: str, prefix: str) -> Mapping[str, FileRecord]:
        """Return the known files below a prefix, without their chunks."""
        return {
            origin.path: file.known._replace(is_confirmed=file.wanted is None, chunks=())
            for origin, file in self.files.items()
            if origin.root == root
            and (not prefix or origin.path == prefix or origin.path.startswith(prefix + "/"))
        }

    def save_intents(self, updates: Sequence[FileUpdate]) -> None:
        """Save the intended records."""
        self.writes.append(("intend", len(updates)))
        for update in updates:
            file = self.files.setdefault(
                update.origin,
                _File(
                    FileRecord(
                        fingerprint=NO_FINGERPRINT,
                        read_ns=0,
                        content_digest="",
                        recipe_digest="",
                        is_confirmed=True,
                    )
                ),
            )
            file.wanted = update.new_record.chunks if update.new_record else ()

    def confirm_updates(self, updates: Sequence[FileUpdate]) -> None:
        """Confirm the intended records."""
        self.writes.append(("apply", len(updates)))
        for update in updates:
            before = self.files.pop(update.origin, None)
            known = update.new_record
            if known is None:
                continue
            same = before is not None and _words(before.known) == _words(known)
            since = before.since_ns if before and same else known.read_ns if known.problem else 0
            self.files[update.origin] = _File(known._replace(is_confirmed=True), None, since)

    def update_fingerprints(
        self, fingerprints: Sequence[tuple[RootedPath, Fingerprint, int]]
    ) -> None:
        """Save new fingerprints of known files."""
        self.writes.append(("seen", len(fingerprints)))
        for origin, fingerprint, read_ns in fingerprints:
            if origin in self.files:
                file = self.files[origin]
                file.known = file.known._replace(fingerprint=fingerprint, read_ns=read_ns)

    def mark_for_reread(self, origins: Sequence[RootedPath]) -> None:
        """Mark files as unconfirmed; their chunks stay listed."""
        self.writes.append(("doubt", len(origins)))
        for origin in origins:
            file = self.files.get(origin)
            if file and file.wanted is None:
                file.wanted = file.known.chunks

    def list_failures(self) -> Sequence[FileFailure]:
        """Return every listed problem."""
        order = sorted(self.files, key=lambda origin: (origin.root, os.fsencode(origin.path)))
        listed = [(origin, self.files[origin]) for origin in order]
        return [
            FileFailure(origin, file.known.problem, file.since_ns)
            for origin, file in listed
            if file.known.problem
        ]

    def locate_chunks(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkLocation]:
        """Return the locations of chunks; intended ones before confirmed ones."""
        places: dict[str, ChunkLocation] = {}
        for origin, file in self.files.items():
            for chunks in (file.known.chunks, file.wanted or ()):
                for ordinal, placed in enumerate(chunks):
                    places[placed.chunk_id] = ChunkLocation(
                        origin,
                        placed.start_line,
                        placed.end_line,
                        ordinal,
                        placed.vector_key,
                    )
        return {chunk_id: places[chunk_id] for chunk_id in chunk_ids if chunk_id in places}

    def change_times(self, origins: Iterable[RootedPath]) -> Mapping[RootedPath, int]:
        """Return when files changed."""
        return {
            origin: self.files[origin].known.fingerprint.mtime_ns
            for origin in origins
            if origin in self.files
        }

    def iter_change_times(self) -> Iterator[tuple[RootedPath, int]]:
        """Yield each file and when it changed."""
        for origin, file in self.files.items():
            if not origin.path.startswith("/"):
                yield origin, file.known.fingerprint.mtime_ns

    def neighbor_chunk_ids(self, chunk_id: str, max_distance: int) -> Sequence[str]:
        """Return the ids around a chunk in its file."""
        for file in self.files.values():
            ids = [placed.chunk_id for placed in file.known.chunks]
            if chunk_id in ids:
                return ids[
                    max(0, ids.index(chunk_id) - max_distance) : ids.index(chunk_id)
                    + max_distance
                    + 1
                ]
        return []

    def set_meta(self, key: str, value: str) -> None:
        """Store a value."""
        self.notes[key] = value

    def get_meta(self, key: str) -> str:
        """Return a value."""
        return self.notes.get(key, "")

    def iter_expected_rows(self) -> Iterator[tuple[str, str, RootedPath]]:
        """Yield each wanted row's id and hash, with its file."""
        for origin, file in list(self.files.items()):
            for placed in _wanted(file):
                yield placed.chunk_id, placed.row_hash, origin


def _wanted(file: _File) -> tuple[ChunkRecord, ...]:
    return file.known.chunks if file.wanted is None else file.wanted


def _words(known: FileRecord) -> str | None:
    return known.problem.reason if known.problem else None


class FakeStore:
    """The table as a dict of rows and vectors. `upserted` and `deleted` count rows that changed."""

    def __init__(self) -> None:
        """Start empty."""
        self.table: dict[str, tuple[Row, Vector]] = {}
        """Row id -> row and its own vector, b"" if it lacks that."""
        self.provisional: dict[str, Vector] = {}
        self.rotten: set[str] = set()
        self.upserts: list[tuple[str, ...]] = []
        self.deletes: list[tuple[str, ...]] = []
        self.upserted = 0
        self.deleted = 0

    @property
    def can_lack_vectors(self) -> bool:
        """Return True."""
        return True

    def as_stored(self, row: Row) -> Row:
        """Return the row: there is no older form of this table."""
        return row

    def upsert(
        self,
        rows: Sequence[Row],
        vectors: Mapping[str, Vector],
        absent_ids: Collection[str] = (),
        due: Mapping[str, Vector] = NO_VECTORS,
    ) -> None:
        """Write rows by id; the last of a repeated id stays."""
        assert not self.table.keys() & {row.id for row in rows} & set(absent_ids), (
            "what is said to be absent is there: LanceDB would hold it twice"
        )
        unique = {row.id: row for row in rows}
        found = {
            row_id: (
                _stored(row),
                b"" if row.vector_key in due else vectors[row.vector_key],
            )
            for row_id, row in unique.items()
        }
        if found:
            self.upserts.append(tuple(found))
            self.upserted += len(found)
        self.table.update(found)
        for row_id, row in unique.items():
            self.provisional[row_id] = due.get(row.vector_key, b"")

    def set_vectors(self, keyed_vectors_by_id: Mapping[str, tuple[str, Vector]]) -> None:
        """Set the vectors of rows that lack them."""
        for row_id, (key, vector) in keyed_vectors_by_id.items():
            row, known = self.table.get(row_id, (None, b""))
            if row and not known and row.vector_key == key and row_id not in self.rotten:
                self.table[row_id] = (row, vector)

    def due_ids(self) -> Sequence[str]:
        """Return the ids of the rows without a vector."""
        return [row_id for row_id, (_, vector) in self.table.items() if not vector]

    def due_ids_of_files(self, origins: Sequence[RootedPath]) -> Mapping[RootedPath, Sequence[str]]:
        """Return the ids of the rows of files that have no vector."""
        due = set(self.due_ids())
        return {
            origin: [row_id for row_id in self.ids_of_file(origin) if row_id in due]
            for origin in origins
        }

    def due_ids_among(self, ids: Sequence[str]) -> Sequence[str]:
        """Return those of these ids."""
        return [row_id for row_id in self.due_ids() if row_id in ids]

    def count_due(self) -> int:
        """Count the rows without a vector."""
        return len(self.due_ids())

    def delete_rows(self, ids: Sequence[str]) -> None:
        """Delete rows by id."""
        if ids:
            self.deletes.append(tuple(ids))
        for row_id in ids:
            self.deleted += self.table.pop(row_id, None) is not None

    def ids_of_file(self, origin: RootedPath) -> Sequence[str]:
        """Return the ids of a file's rows."""
        return [row.id for row, _ in self.table.values() if row.doc_id == make_doc_id(origin)]

    def ids_of_root(self, root: str, path: str = "") -> Sequence[str]:
        """Return the ids of a root's rows, or of those at or below a path."""
        return [
            row.id
            for row, _ in self.table.values()
            if row.root == root and (not path or f"{row.path}/".startswith(f"{path}/"))
        ]

    def ids_of_files(self, origins: Sequence[RootedPath]) -> Mapping[RootedPath, Sequence[str]]:
        """Return the ids of the rows of files."""
        return {origin: self.ids_of_file(origin) for origin in origins}

    def vectors_by_key(self, vector_keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of those keys that some row has."""
        return {
            row.vector_key: vector
            for row, vector in self.table.values()
            if vector and row.vector_key in set(vector_keys)
        }

    def vectors_by_key_of_rows(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vectors of rows."""
        return {
            self.table[row_id][0].vector_key: self.table[row_id][1]
            for row_id in ids
            if row_id in self.table and self.table[row_id][1]
        }

    def look_up_vectors(self, ids: Sequence[str], vector_keys: Sequence[str]) -> VectorLookup:
        """Upsert rows and delete others."""
        rows = {
            each: (
                ("" if self.table[each][1] else DUE_MARK) + self.table[each][0].vector_key,
                self.table[each][1] or self.provisional.get(each, b""),
            )
            for each in ids
            if each in self.table
        }
        return VectorLookup(rows, self.vectors_by_key(vector_keys))

    def vectors_by_id(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """Return the vector of each row."""
        return {
            row_id: self.table[row_id][1]
            for row_id in ids
            if row_id in self.table and self.table[row_id][1]
        }

    def search_by_vector(
        self, vector: Vector, limit: int, filters: SearchFilters, model_tag: str = ""
    ) -> Sequence[ScoredRow]:
        """Compare with every row of a model."""
        scored = [
            ScoredRow(row.id, cosine(vector, other))
            for row, own in self.table.values()
            if (other := own or self.provisional.get(row.id))
            and model_tag_of(row.vector_key) == model_tag
            and _fits(row, filters)
        ]
        return sorted(scored, key=lambda found: -found.score)[:limit]

    def search_by_words(self, text: str, limit: int, filters: SearchFilters) -> Sequence[ScoredRow]:
        """Count the words that a row shares with a text, rare ones for more."""
        rows = [row for row, _ in self.table.values() if _fits(row, filters)]
        words = {row.id: Counter(_split(row.search_text)) for row in rows}
        asked = set(_split(text)) if text.strip() else set[str]()
        if asked:
            asked |= {
                word
                for counted in words.values()
                for word in counted
                if word.startswith(tuple(map(str.lower, filters.required_prefixes)))
            }
        holders = {word: sum(word in counted for counted in words.values()) for word in asked}
        scored = []
        for row in rows:
            shared = [(word, words[row.id][word]) for word in holders if words[row.id][word]]
            score = sum(
                times / (times + 1) * math.log(1 + len(rows) / holders[word])
                for word, times in shared
            )
            scored += [ScoredRow(row.id, score, row.header_path)] if shared else []
        return sorted(scored, key=lambda found: -found.score)[:limit]

    def find_ids_containing(
        self, literal: str, limit: int, filters: SearchFilters
    ) -> Sequence[str]:
        """Search every row for a text."""
        return [
            row.id
            for row, _ in self.table.values()
            if literal in row.search_text and _fits(row, filters)
        ][:limit]

    def get_rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows by id."""
        return [self.table[row_id][0] for row_id in dict.fromkeys(ids) if row_id in self.table]

    def get_embedded_rows(self, ids: Sequence[str]) -> Sequence[Row]:
        """Return rows by id, without those that lack their own vector."""
        return [row for row in self.get_rows(ids) if self.table[row.id][1]]

    def get_display_rows(
        self, ids: Sequence[str], filters: SearchFilters = NO_FILTERS
    ) -> Sequence[Row]:
        """Return rows by id, without what only the index needs."""
        return [
            replace(row, doc_id="", root="", path="", vector_key="", search_text="")
            for row in self.get_rows(ids)
            if _fits(row, filters)
        ]

    def all_ids(self) -> Sequence[str]:
        """Return the id of every row."""
        return list(self.table)

    def all_row_hashes(self) -> Sequence[tuple[str, str]]:
        """Return id and hash of every row."""
        return [(row_id, row_hash(row)) for row_id, (row, _) in self.table.items()]

    def find_corrupt_ids(self, ids: Sequence[str]) -> Sequence[str]:
        """Return the rows whose bytes a test has damaged."""
        return [row_id for row_id in ids if row_id in self.rotten]

    def stats(self) -> StoreStats:
        """Count the rows."""
        size = sum(len(row.text) + len(vector) for row, vector in self.table.values())
        return StoreStats(len(self.table), 1, 1, size)


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of the angle between two vectors."""
    a, b = array("f", one), array("f", other)
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def _stored(row: Row) -> Row:
    return replace(
        row, path=escape_non_utf8(row.path), search_text=escape_non_utf8(row.search_text)
    )


def _split(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _fits(row: Row, filters: SearchFilters) -> bool:
    section = [part.strip() for part in filters.section.lower().split(">")]
    headings = row.header_path.lower().split(" > ")
    starts = range(len(headings) - len(section) + 1)
    return (
        filters.root in ("", row.root)
        and filters.kind in ("", row.kind)
        and filters.session in ("", row.session)
        and filters.room in ("", row.room)
        and filters.chunk_type in ("", row.chunk_type)
        and (not filters.languages or not {*filters.languages}.isdisjoint(row.language.split()))
        and _is_of_time(row, filters)
        and (not filters.path_glob or _path_fits(row.path, filters.path_glob))
        and (
            not filters.section
            or any(headings[at : at + len(section)] == section for at in starts)
            or _begins(row, section)
        )
        and all(_holds(row, phrase) for phrase in filters.required_phrases)
        and not any(_holds(row, phrase) for phrase in filters.excluded_phrases)
        and all(
            any(word.startswith(begins.lower()) for word in _split(row.search_text))
            for begins in filters.required_prefixes
        )
    )


def _is_of_time(row: Row, filters: SearchFilters) -> bool:
    if not (filters.since or filters.until):
        return True
    if row.source:
        return bool(row.at) and row.until >= filters.since and row.at < (filters.until or "9")
    files = filters.dated_files or DatedFiles(())
    return (row.doc_id in files.doc_ids) is not files.is_complement


def _begins(row: Row, section: Sequence[str]) -> bool:
    """Whether the last headings are in a chunk, in order, and the others just above it."""
    inside = [
        line.lstrip("#").strip(" \t#").lower()
        for line in row.text.split("\n")
        if re.match(r"#{1,6}[ \t]", line)
    ]
    above = row.header_path.lower().split(" > ")
    for at in range(len(section)):
        places = [inside.index(title) for title in section[at:] if title in inside]
        in_order = len(places) == len(section) - at and places == sorted(places)
        starts = range(len(above) - at + 1)
        if in_order and (
            not at or any(above[start : start + at] == list(section[:at]) for start in starts)
        ):
            return True
    return False


def _holds(row: Row, phrase: str) -> bool:
    words, wanted = _split(row.search_text), _split(phrase)
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


def _path_fits(path: str, glob: str) -> bool:
    """Match as .gitignore does: a glob without "/" fits the name in any folder, "**" any number of folders.

    The name of a folder matches everything in it.
    """
    named = glob.removesuffix("/")
    parts, globs = path.split("/"), named.removeprefix("/").split("/")
    if "/" not in named:
        globs = ["**", *globs]
    is_wild = "*" in globs[-1] or "?" in globs[-1]
    file = [] if named != glob else [globs]
    folder = [[*globs, "**"]] if named != glob or not is_wild else []
    return any(_parts_fit(parts, each) for each in file + folder)


def _parts_fit(parts: Sequence[str], globs: Sequence[str]) -> bool:
    if not globs:
        return not parts
    if globs[0] == "**":
        rest = globs[1:]
        return (
            any(_parts_fit(parts[at:], rest) for at in range(len(parts) + 1))
            if rest
            else bool(parts)
        )
    return bool(parts) and _part_fits(parts[0], globs[0]) and _parts_fit(parts[1:], globs[1:])


def _part_fits(name: str, glob: str) -> bool:
    wild = {"*": ".*", "?": "."}
    return (
        re.fullmatch("".join(wild.get(c) or re.escape(c) for c in glob), name, re.DOTALL)
        is not None
    )


@dataclass
class FakeVanished:
    """The vector cache: each vector with the time when its row was deleted."""

    kept: dict[str, tuple[Vector, int]] = field(default_factory=dict)
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def get(self, vector_keys: Sequence[str]) -> Mapping[str, Vector]:
        """Return what is kept of these keys."""
        self.asked.append(tuple(vector_keys))
        return {key: self.kept[key][0] for key in vector_keys if key in self.kept}

    def put(self, vectors: Mapping[str, Vector], now_ns: int) -> None:
        """Keep vectors."""
        self.kept.update({key: (vector, now_ns) for key, vector in vectors.items()})

    def delete(self, vector_keys: Sequence[str]) -> None:
        """Forget vectors."""
        for key in vector_keys:
            self.kept.pop(key, None)


class _FailingAt:
    """Wraps an object; the n-th call of the named methods raises instead."""

    def __init__(
        self, inner: object, nth: int, error: BaseException, names: tuple[str, ...]
    ) -> None:
        self._inner = inner
        self._left = nth
        self._error = error
        self._names = names

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of any port
        found = getattr(self._inner, name)
        return self._counted(found) if name in self._names else found

    def _counted(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **named: object) -> object:
            self._left -= 1
            if self._left == 0:
                raise self._error
            return call(*args, **named)

        return counted


def failing_at(inner: T, nth: int, error: BaseException, *names: str) -> T:
    """Return a wrapped object whose n-th call of the named methods raises; later calls work."""
    return cast("T", _FailingAt(inner, nth, error, names))
