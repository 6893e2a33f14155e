"""The nouns of anchord: plain frozen values, in the order in which a change to a file becomes them.

    Fingerprint + Known -> Decision -> Document -> Chunk -> Diff -> Update -> Outcome

Nothing here decides or acts, and this module imports nothing of ours. Paths are relative to their root, with "/", as the
operating system gives them (undecodable bytes as surrogates); `printable` makes them fit for people, JSON and Arrow.
Times are nanoseconds of the wall clock where a name ends in `_ns`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


def printable(path: str) -> str:
    r"""Return a path that UTF-8 can hold: a byte that was no UTF-8 is written as \xNN."""
    try:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # A surrogate that stands for no byte comes from an argument or JSON, from no file system.
        return path.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where content comes from: a file, by the name of its root and its path in it."""

    root: str
    path: str

    def __str__(self) -> str:
        """Write the origin for people."""
        return f"{self.root}:{printable(self.path)}"


@dataclass(frozen=True, slots=True)
class Root:
    """A watched folder. `path` is absolute and real (no symbolic links)."""

    name: str
    path: str
    kind: str = "project"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    configured: bool = True
    """False for a root given to a command as PATH and remembered in the catalogue."""
    strategy: str = ""
    """How its documents are cut, where the root says so itself."""
    on_delete: str = "keep"
    """Whether the conversations of a file that is deleted are kept ("keep") or go with it ("delete")."""
    given: str = ""
    """The absolute path that the configuration says, where that leads to `path` by symbolic links."""


class Fingerprint(NamedTuple):
    """What the file system says of a file without its content being read. A tuple: a walk makes one for every file."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


UNSEEN = Fingerprint(-1, 0, 0, 0, 0)
"""The fingerprint of nothing: it equals that of no file, so what has it is looked at again."""


@dataclass(frozen=True, slots=True)
class Absent:
    """There is nothing to index at a path: no file, a folder, or a symbolic link (its target is indexed by itself)."""

    reason: str = "no such file"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file is not in the index, or not wholly. `partial` is true when what could be read was indexed."""

    reason: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Unstable:
    """The file was written while it was read; look again later."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file's bytes and the fingerprint that held before and after they were read."""

    data: bytes
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Placed:
    """A chunk of a known file: where it stands (1-based, inclusive) and hashes of its vector's text and of its row."""

    chunk_id: str
    vector_key: str
    row_hash: str
    start_line: int
    end_line: int


class Known(NamedTuple):
    """What the catalogue holds of a file. A tuple: a walk compares one for every file.

    `settled` is false between an intent and its confirmation.
    """

    fingerprint: Fingerprint
    read_ns: int
    digest: str
    recipe: str
    settled: bool
    chunks: tuple[Placed, ...] = ()
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Do nothing; the index is right."""

    reason: str


@dataclass(frozen=True, slots=True)
class Read:
    """Read the file and compare."""

    reason: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Take the file's rows out of the index. `problem` stays listed when the file is there but cannot be used."""

    reason: str
    problem: Problem | None = None


Decision = Skip | Read | Forget


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a path belongs to the index, and the rule that said so."""

    included: bool
    reason: str
    notable: bool = False
    """True when a person would expect the path in the index, so that its absence is worth naming."""


@dataclass(frozen=True, slots=True)
class About:
    """What is told of a text that was said in a conversation; all empty for a file. Times are UTC in ISO 8601."""

    source: str = ""
    """The program that kept it."""
    session: str = ""
    exchange_id: str = ""
    at: str = ""
    until: str = ""
    project: str = ""
    model: str = ""
    tools: str = ""
    """One call a line."""
    files: str = ""
    """One changed file a line."""
    branch: str = ""
    """"superseded" on a branch that was left."""


@dataclass(frozen=True, slots=True)
class Document:
    """Text ready for a chunker: LF line ends, no NUL, no surrogates, no BOM. `language`: of source code, or a text's format."""

    text: str
    kind: str
    problem: Problem | None = None
    language: str = ""
    source_lines: tuple[int, ...] = ()
    """The line of the file (1-based) for each line of the text, where the text was made from another form."""
    parts: tuple[int, ...] = ()
    """Lines (0-based) at which something begins that a reader sees as one: the cells of a notebook."""
    title: str = ""
    """What stands first in the header path of every chunk, and is no part of any id: of the conversation."""
    question_lines: int = 0
    """So many of the first lines are the question that all else answers."""
    about: About = About()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document. Lines are 1-based and inclusive; `embed_text` is what the model sees.

    Everything after `kind` says more of the chunk where it is shown, and is no part of its row.
    """

    chunk_id: str
    content: str
    embed_text: str
    header_path: tuple[str, ...]
    start_line: int
    end_line: int
    anchor_line: int
    content_hash: str
    tokens: int
    kind: str
    start_char: int = 0
    end_char: int = 0
    """Its characters [start, end) in the document's text."""
    level: int = 0
    """Of the last heading in its header path, 1 to 6; 0 where there is none."""
    forms: tuple[str, ...] = ()
    """What its lines are, sorted: code_block, heading, list, table, or "" for other text."""
    is_part: bool = False
    """Whether it is a part of a fence or table that does not fit in one chunk."""
    is_titled: bool = False
    """Whether a heading is put before it for the model."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table, less its vector."""

    id: str
    doc_id: str
    root: str
    path: str
    kind: str
    header_path: str
    content_hash: str
    vector_key: str
    text: str
    search_text: str
    room: str = ""
    source: str = ""
    session: str = ""
    exchange_id: str = ""
    at: str = ""
    until: str = ""
    project: str = ""
    model: str = ""
    tools: str = ""
    files: str = ""
    branch: str = ""
    """These from `About`."""
    part_index: int = 0
    """Which part of its exchange, from 0."""
    total_parts: int = 0
    """How many its exchange has; 0 for what is no exchange."""


@dataclass(frozen=True, slots=True)
class Diff:
    """What must change in the table for a file, and what need not."""

    added: tuple[Row, ...]
    """Rows whose id is new."""
    changed: tuple[Row, ...]
    """Rows whose id stands but whose stored text differs (blanks, case of a name)."""
    removed: tuple[str, ...]
    """Ids that vanished."""
    shifted: int
    """Chunks that only moved to other lines: nothing is written to the table for them."""
    kept: int
    """Chunks at the same id and lines."""

    @property
    def writes(self) -> bool:
        """Whether the table must be touched."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Update:
    """A file's way from what is known to what is wanted. `known` is the new state once it is applied."""

    origin: Origin
    known: Known | None
    """None: the file leaves the catalogue."""
    diff: Diff
    embed_texts: tuple[tuple[str, str], ...]
    """(vector key, text) of each added row."""
    reason: str


class Action(StrEnum):
    """What was done with a file."""

    INDEXED = "indexed"
    SHIFTED = "shifted"
    MOVED = "moved"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    SKIPPED = "skipped"
    FAILED = "failed"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One handled file: what was decided, why, and what it cost."""

    origin: Origin
    action: Action
    reason: str
    chunks: int = 0
    kept: int = 0
    shifted: int = 0
    upserted: int = 0
    deleted: int = 0
    embedded: int = 0
    reused: int = 0


class Found(NamedTuple):
    """A file seen by a walk."""

    path: str
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk saw below a folder. `unread` are folders whose content is unknown: nothing below them may be forgotten."""

    found: tuple[Found, ...] = ()
    problems: tuple[tuple[str, Problem], ...] = ()
    """Files that the rules let in and that cannot be used."""
    folder_problems: tuple[tuple[str, Problem], ...] = ()
    unread: tuple[str, ...] = ()
    skipped: int = 0
    folders: tuple[str, ...] = ()
    """Every folder that was listed; "" is the root."""
    device: int = 0
    """What the folder at the top is on."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What was taken in from a file of conversations."""

    changed: tuple[Origin, ...] = ()
    """Exchanges of its root that differ from what the index holds, or are gone."""
    again: tuple[Origin, ...] = ()
    """Other files to be taken in again: they tell the same in another form."""
    problem: Problem | None = None
    ordinary: bool = False
    """It tells of no conversation: it is a text like others, to be chunked itself."""


class Spot(NamedTuple):
    """Where a chunk stands now."""

    origin: Origin
    start_line: int
    end_line: int
    ordinal: int = 0
    """Which chunk of its file it is, from 0."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Figures of the table, counted by the store itself."""

    rows: int
    fragments: int
    versions: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A listed problem of a file, with the time since when."""

    origin: Origin
    problem: Problem
    since_ns: int


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search is restricted to; empty texts restrict nothing."""

    root: str = ""
    path_glob: str = ""
    """As in .gitignore: `*.md`, `docs/**`; a folder takes in all that is in it."""
    kind: str = ""
    section: str = ""
    room: str = ""
    session: str = ""
    since: str = ""
    until: str = ""
    phrases: tuple[str, ...] = ()
    """Each stands in the row, as whole words in any case."""
    without: tuple[str, ...] = ()
    """None of them does."""
    prefixes: tuple[str, ...] = ()
    """Some word of the row begins with each."""


class Scored(NamedTuple):
    """A row that the store found, with its cosine similarity (-1 to 1) or its BM25 score (from 0)."""

    id: str
    score: float
    header_path: str = ""
    """Where it was found by words."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result: a chunk, where it stands now, and how its score came about. None: it was not found that way."""

    id: str
    spot: Spot
    score: float
    cosine: float | None
    bm25: float | None
    cosine_rank: int | None
    bm25_rank: int | None
    """Ranks count from 1."""
    is_exact: bool = False
    """Whether it holds a name of the query letter by letter."""
    is_named: bool = False
    """Whether the query has every word of its heading."""


Vector = bytes
"""Numbers as little-endian float32: what Arrow, SQLite and a pipe take as it is."""
