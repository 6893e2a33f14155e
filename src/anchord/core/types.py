"""The value types of anchord: frozen, without behaviour, imported by every package.

They are listed in the order in which a change to a file passes through them:

    Fingerprint, FileRecord -> Decision -> Document -> Chunk -> ChunkDiff -> FileUpdate
        -> FileOutcome

Three conventions hold for every field below:

- A path is relative to its root and uses "/". "" is the root folder itself. A path that starts
  with "/" names an exchange in the conversation archive, not a file. Bytes that are not UTF-8 are
  surrogates, as `os.fsdecode` gives them; `escape_non_utf8` makes such a path fit for output.
- A name that ends in `_ns` is nanoseconds of the wall clock since the epoch.
- An empty string means "not set" or "unknown" unless the field says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from anchord.core.quoting import escape_non_utf8

# Files and folders


@dataclass(frozen=True, slots=True, order=True)
class RootedPath:
    """A path inside a root. It identifies a file, a folder or an exchange everywhere in anchord.

    Attributes:
        root: Name of the root, not its folder.
        path: Path relative to the root; "" is the root itself.
    """

    root: str
    path: str

    def __str__(self) -> str:
        """Return "root:path" for display, with undecodable bytes escaped."""
        return f"{self.root}:{escape_non_utf8(self.path)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder that anchord indexes and watches.

    Attributes:
        name: Unique among the roots. Ids of chunks contain it, so the folder can be moved freely.
        path: Absolute path without symbolic links.
        kind: "project", or "conversations" for a folder of transcript files.
        include: Patterns in .gitignore syntax for files to index that are hidden, generated or of
            an unknown type. Files that `exclude` or an ignore file names stay out.
        exclude: Patterns in .gitignore syntax for files that are never indexed.
        is_configured: False for a root that was passed to a command as PATH and is remembered in
            the CLI state.
        chunking: Chunking keys that this root sets: kind of document -> key -> value. The kind ""
            is all kinds. They override [chunking] and [kind.NAME].
        worktrees: "all", or "one" to leave out the files of further worktrees that equal the main
            checkout's.
        on_delete: What happens to exchanges when their transcript file is deleted: "keep" or
            "delete".
        keep_raw: Whether the bytes of transcript files are kept, beside their exchanges.
        symlink_path: Absolute path as configured, where it leads to `path` through symbolic links;
            else "".
        embedding: Name of the [embedding.further.NAME] whose model embeds this root; "" decides by
            language, else takes the main model.
    """

    name: str
    path: str
    kind: str = "project"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    is_configured: bool = True
    chunking: Mapping[str, Mapping[str, int | bool | str | None]] = field(
        default_factory=dict, hash=False
    )
    worktrees: str = "all"
    on_delete: str = "keep"
    keep_raw: bool = True
    symlink_path: str = ""
    embedding: str = ""


class Fingerprint(NamedTuple):
    """What `stat` says about a file. Equal fingerprints mean that the file need not be read.

    A tuple and not a dataclass, because a walk creates one per file.

    Attributes:
        size: Bytes.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


NO_FINGERPRINT = Fingerprint(size=-1, mtime_ns=0, ctime_ns=0, inode=0, device=0)
"""Fingerprint that equals that of no file: a record that holds it is always out of date."""


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing to index at a path: no file, a folder, or a symbolic link (its target is indexed)."""

    reason: str = "no such file"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file is missing from the index, wholly or in part.

    Attributes:
        reason: One line for people.
        is_partial: True when the readable part of the file is indexed; False when nothing of it is.
    """

    reason: str
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class ChangedDuringRead:
    """The file was written while it was read. The caller retries later."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a file, read while its fingerprint did not change.

    Attributes:
        fingerprint: Fingerprint that `data` belongs to.
    """

    data: bytes
    fingerprint: Fingerprint


# What the catalog records


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkRecord:
    """What the catalog stores about one chunk of a file: its identity and its location.

    Attributes:
        vector_key: Hash of the model and of the embedded text (`core.ids.make_vector_key`).
        row_hash: Hash of the stored row (`core.diff.row_hash`); it differs when the row must be
            rewritten.
        start_line: First line in the file, from 1.
        end_line: Last line in the file, inclusive.
    """

    chunk_id: str
    vector_key: str
    row_hash: str
    start_line: int
    end_line: int


class FileRecord(NamedTuple):
    """What the catalog stores about a file. A tuple, because a walk compares one per file.

    Attributes:
        fingerprint: Fingerprint at the last read.
        read_ns: Wall clock just before the last read; 0 forces the next read.
        content_digest: Digest of the content; "" when nothing of the file was indexed.
        recipe_digest: Digest of the settings that the rows were made with; "" forces the file to be
            rechunked.
        is_confirmed: False between `Catalog.save_intents` and `Catalog.confirm_updates`: the table
            may hold the rows before the change, those after it, or a part of both.
        chunks: In file order. Empty where a method says so, and whenever `is_confirmed` is False.
    """

    fingerprint: Fingerprint
    read_ns: int
    content_digest: str
    recipe_digest: str
    is_confirmed: bool
    chunks: tuple[ChunkRecord, ...] = ()
    problem: Problem | None = None


# What to do with a file


@dataclass(frozen=True, slots=True)
class SkipFile:
    """Do nothing: the index already matches the file, or the file does not belong to it."""

    reason: str


@dataclass(frozen=True, slots=True)
class ReadFile:
    """Read the file and compare its content with the index."""

    reason: str


@dataclass(frozen=True, slots=True)
class RemoveFromIndex:
    """Delete the rows of a file.

    Attributes:
        problem: Set when the file exists but cannot be indexed: the catalog then keeps listing the
            file.
    """

    reason: str
    problem: Problem | None = None


Decision = SkipFile | ReadFile | RemoveFromIndex


@dataclass(frozen=True, slots=True)
class PathMatch:
    """Whether the include and ignore rules admit a path, and which rule decided.

    Attributes:
        reason: The rule, for people.
        is_worth_reporting: True when a user would expect the path in the index, so that its absence
            should be shown.
        is_undecided: True when the path is left out because its rules cannot be read.
    """

    is_included: bool
    reason: str
    is_worth_reporting: bool = False
    is_undecided: bool = False


# Text on its way into the index


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeMetadata:
    """Metadata of an exchange (a question and its answer). Every field is "" for a file.

    Attributes:
        source: The program that recorded the conversation, such as "codex".
        at: Time of the question: UTC in ISO 8601.
        until: Time of the last answer: UTC in ISO 8601.
        project: Folder that the conversation was about.
        model: Model that answered.
        tools: Tool calls, one a line.
        files: Files that the tool calls changed, one a line.
        branch: The git branch that was checked out, where the source says it.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Text ready for chunking: LF line ends, no NUL, no surrogates, no byte order mark.

    Attributes:
        kind: "markdown", "text", "code", or a kind of conversation text ("exchange", "summary",
            ...).
        problem: What could not be read; always partial.
        language: Programming language of code, or the format of a text such as "ipynb".
        source_lines: For text converted from another format: the line in the file (from 1) of each
            line of the text. Empty when both have the same lines.
        part_start_lines: Lines of the text (from 0) at which an indivisible part starts, such as a
            notebook cell.
        title: Title of a conversation: first element of every chunk's header path, and part of no
            id.
        question_line_count: Number of leading lines that are the question of an exchange.
    """

    text: str
    kind: str
    problem: Problem | None = None
    language: str = ""
    source_lines: tuple[int, ...] = ()
    part_start_lines: tuple[int, ...] = ()
    title: str = ""
    question_line_count: int = 0
    exchange_metadata: ExchangeMetadata = ExchangeMetadata()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a document. The fields after `kind` describe it and are not stored in its row.

    Attributes:
        content: The chunk's own lines, joined with LF.
        embed_text: What is embedded: the content, after added headings where `has_added_heading` is
            True.
        header_path: Titles of the headings above the chunk, outermost first.
        start_line: First line in the file, from 1.
        end_line: Last line in the file, inclusive.
        anchor_line: Line of the anchor that the chunk's id counts lines from, from 1 (`core.ids`).
        token_count: Tokens of `embed_text`.
        start_char: Offset of the first character in the document's text.
        end_char: Offset after the last character in the document's text.
        heading_level: Level (1 to 6) of the last heading in `header_path`; 0 without a heading.
        block_types: Types of the chunk's blocks, sorted: code_block, heading, list, table, "" for
            other text.
        is_partial_block: True for a part of a code block or table that does not fit in one chunk.
        has_added_heading: True when `embed_text` starts with headings that `content` does not have.
    """

    chunk_id: str
    content: str
    embed_text: str
    header_path: tuple[str, ...]
    start_line: int
    end_line: int
    anchor_line: int
    content_hash: str
    token_count: int
    kind: str
    start_char: int = 0
    end_char: int = 0
    heading_level: int = 0
    block_types: tuple[str, ...] = ()
    is_partial_block: bool = False
    has_added_heading: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table without its vector.

    The fields from `source` to `branch` are those of `ExchangeMetadata`.

    Attributes:
        id: Id of the chunk.
        doc_id: Id of the file (`core.ids.make_doc_id`).
        path: Path in the root, escaped by `escape_non_utf8`.
        header_path: Titles of the headings, joined with " > ".
        text: The chunk's content.
        search_text: What the word search looks at: the text together with its path and headings.
        room: Topic of the file or conversation.
        chunk_type: "code_block", "table" or "list" where the chunk is nothing else; otherwise
            "section" under a heading, and "text" elsewhere.
        language: Language of its code, in lower case, or several separated by spaces; "" without
            code, or if nothing names it.
        level: Level (1 to 6) of the last heading in `header_path`; 0 without a heading.
        token_count: Tokens of the embedded text.
        part_index: Number of this chunk within its exchange, from 0.
        total_parts: Number of chunks of its exchange; 0 for a file.
    """

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
    chunk_type: str = ""
    language: str = ""
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
    level: int = 0
    token_count: int = 0
    part_index: int = 0
    total_parts: int = 0


# A change on its way into the index


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkDiff:
    """What changes in the table for one file.

    Attributes:
        added: Rows whose id is new.
        changed: Rows with a known id whose stored columns differ.
        removed: Ids of rows to delete.
        shifted: Number of chunks that only moved to other lines; their rows are not written.
        kept: Number of chunks whose id, row and lines are all unchanged.
    """

    added: tuple[Row, ...]
    changed: tuple[Row, ...]
    removed: tuple[str, ...]
    shifted: int
    kept: int

    @property
    def changes_table(self) -> bool:
        """Whether any row is written or deleted."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileUpdate:
    """The complete change for one file: its new catalog record and its new rows.

    Attributes:
        new_record: Record after the update; None deletes the file from the catalog.
        texts_to_embed: (vector key, text) of each added or changed row, but for `row_with_vector`.
        row_with_vector: Vector key of an added or changed row -> id of a row that has the vector.
            Filled for a file that moved.
        reason: Why the file is updated, for people.
        forgets_vectors: Whether the vectors of its rows leave the vector cache too, because the
            rules exclude the file.
        predecessors: Id of an added or changed row -> id of the row that it replaces, and whose
            vector it has until its own is made. Empty where the vectors may be of another model.
    """

    origin: RootedPath
    new_record: FileRecord | None
    diff: ChunkDiff
    texts_to_embed: tuple[tuple[str, str], ...]
    reason: str
    row_with_vector: Mapping[str, str] = field(default_factory=dict)
    forgets_vectors: bool = False
    predecessors: Mapping[str, str] = field(default_factory=dict)


class Action(StrEnum):
    """What was done with a file. The values are shown to users and programs.

    Attributes:
        SHIFTED: Only line numbers changed.
        EMBEDDED: Chunks that words found already got their vectors.
        RETRY: Nothing was done yet; the file is tried again.
    """

    INDEXED = "indexed"
    EMBEDDED = "embedded"
    SHIFTED = "shifted"
    MOVED = "moved"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    SKIPPED = "skipped"
    FAILED = "failed"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutcome:
    """The result of handling one file, with what it cost. The counts are numbers of rows.

    Attributes:
        chunks: Chunks that the file has now.
        embedded: Texts sent to the model.
        reused: Vectors taken from the table or the vector cache.
        due: Rows that lack their vector: words find them, and it is made later.
    """

    origin: RootedPath
    action: Action
    reason: str
    chunks: int = 0
    kept: int = 0
    shifted: int = 0
    upserted: int = 0
    deleted: int = 0
    embedded: int = 0
    reused: int = 0
    due: int = 0


# What walks and transcript files yield


class FoundFile(NamedTuple):
    """A file seen by a walk."""

    path: str
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkResult:
    """What a walk saw. All paths are relative to the root, whichever folder the walk began at.

    Attributes:
        files: Files that the rules admit.
        file_problems: Files that the rules admit but that cannot be used.
        unreadable_folders: Folders that could not be listed. Files below them are unknown, not
            deleted.
        unknown_rules: Ignore files that cannot be read and have no last good rules: nothing in
            their folders is included.
        skipped_count: Entries that the rules exclude.
        listed_folders: Every folder that was listed; "" is the root.
        top_device: Device number of the folder at which the walk began.
    """

    files: tuple[FoundFile, ...] = ()
    file_problems: tuple[tuple[str, Problem], ...] = ()
    folder_problems: tuple[tuple[str, Problem], ...] = ()
    unreadable_folders: tuple[str, ...] = ()
    unknown_rules: tuple[str, ...] = ()
    skipped_count: int = 0
    listed_folders: tuple[str, ...] = ()
    top_device: int = 0


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What reading a transcript file changed in the archive.

    Attributes:
        changed_exchanges: Exchanges of the same root that the index does not hold in their present
            state, including deleted ones.
        files_to_reread: Other transcript files that contain the same exchanges and must be read
            again.
        is_ordinary_document: True when the file holds no conversation and must be chunked like any
            text file.
    """

    changed_exchanges: tuple[RootedPath, ...] = ()
    files_to_reread: tuple[RootedPath, ...] = ()
    problem: Problem | None = None
    is_ordinary_document: bool = False

    def with_earlier(self, earlier: IngestResult) -> IngestResult:
        """Return this result, which is the newer one, with the changes of an earlier one."""
        changed = dict.fromkeys((*earlier.changed_exchanges, *self.changed_exchanges))
        to_reread = dict.fromkeys((*earlier.files_to_reread, *self.files_to_reread))
        return replace(self, changed_exchanges=tuple(changed), files_to_reread=tuple(to_reread))


# What a search works with


class ChunkLocation(NamedTuple):
    """Where a chunk is now.

    Attributes:
        start_line: First line in the file, from 1.
        end_line: Last line in the file, inclusive.
        ordinal: Number of the chunk within its file, from 0.
        vector_key: Hash of its text and of the heading embedded with it; "" for unknown.
    """

    origin: RootedPath
    start_line: int
    end_line: int
    ordinal: int = 0
    vector_key: str = ""


class ChunkPlace(NamedTuple):
    """Where a chunk is among the chunks of its file.

    Attributes:
        ordinal: Its number in the file, from 0.
        sibling_count: Chunks of the file; None when that and the neighbours are unknown.
        prev_id: Id of the chunk before it; None for the first.
        next_id: Id of the chunk after it; None for the last.
    """

    ordinal: int
    sibling_count: int | None = None
    prev_id: str | None = None
    next_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Size of the table.

    Attributes:
        bytes: Bytes on disk including old versions; 0 for a table that is not a local folder.
        deleted_rows: Deleted rows that data files still hold; exact but for one a fragment.
    """

    rows: int
    fragments: int
    versions: int
    bytes: int
    deleted_rows: int = 0


@dataclass(frozen=True, slots=True)
class FileFailure:
    """A file with a problem.

    Attributes:
        since_ns: When the problem was first recorded.
    """

    origin: RootedPath
    problem: Problem
    since_ns: int


@dataclass(frozen=True, slots=True)
class DatedFiles:
    """The files that changed in a span of time, as the shorter of two lists.

    Attributes:
        doc_ids: Their `Row.doc_id`, or that of all other files.
        is_complement: Whether they are the other files.
    """

    doc_ids: tuple[str, ...]
    is_complement: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilters:
    """Restrictions of a search. All that are set must hold; "" and () restrict nothing.

    Attributes:
        path_glob: Pattern in .gitignore syntax, such as `*.md` or `docs/**`. A folder matches all
            below it.
        section: Headings joined with " > ": only chunks below them, or that contain the last of
            them.
        agent: Part of the name of the program of a conversation, in any case.
        tool: Only exchanges with a call of this tool, in any case.
        branch: Only exchanges on this git branch.
        projects: Only exchanges about one of these projects, as transcripts name them; None for
            any.
        touched: The end of a path: only exchanges that changed such a file, or whose tool calls
            name it.
        languages: The names of one language, in lower case: only code of this language.
        since: Only exchanges that ended at this time or later, and files that changed then: UTC in
            ISO 8601.
        until: Only exchanges that began before this time, and files that changed last before it.
        dated_files: With `since` or `until`: the files that changed then.
        required_phrases: The row contains each of them as whole words, in any case.
        excluded_phrases: The row contains none of them as whole words, in any case.
        required_prefixes: For each of them, some word of the row starts with it, in any case.
    """

    root: str = ""
    path_glob: str = ""
    kind: str = ""
    section: str = ""
    room: str = ""
    session: str = ""
    chunk_type: str = ""
    agent: str = ""
    tool: str = ""
    branch: str = ""
    projects: tuple[str, ...] | None = None
    touched: str = ""
    languages: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    dated_files: DatedFiles | None = None
    required_phrases: tuple[str, ...] = ()
    excluded_phrases: tuple[str, ...] = ()
    required_prefixes: tuple[str, ...] = ()


NO_FILTERS = SearchFilters()


class ScoredRow(NamedTuple):
    """A row that a search found in the table.

    Attributes:
        score: Cosine similarity (-1 to 1) in a vector search, BM25 (0 and up) in a word search.
        header_path: Set by a word search only.
    """

    id: str
    score: float
    header_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A search result: a chunk, its present location, and how its score was computed.

    Attributes:
        score: Final score; only comparable within one search.
        cosine: Cosine similarity; None when the vector search did not find the chunk.
        bm25: BM25 score; None when the word search did not find the chunk.
        cosine_rank: Rank in the vector search, from 1; None like `cosine`.
        bm25_rank: Rank in the word search, from 1; None like `bm25`.
        contains_identifier: True when the chunk contains an identifier of the query literally.
        matches_heading: True when the query contains every word of the chunk's heading.
        copies: Other places with the same text and heading.
        recency: What its age left of the score, 0 to 1; None unless older hits were weighed down.
    """

    id: str
    location: ChunkLocation
    score: float
    cosine: float | None
    bm25: float | None
    cosine_rank: int | None
    bm25_rank: int | None
    contains_identifier: bool = False
    matches_heading: bool = False
    copies: tuple[ChunkLocation, ...] = ()
    recency: float | None = None


Vector = bytes
"""A vector as little-endian float32 numbers, 4 bytes each: the form that Arrow, SQLite and the
workers' pipes take without conversion."""
NO_VECTORS: Mapping[str, Vector] = MappingProxyType({})
"""Vectors by key, of which there are none."""


class RootRemoval(NamedTuple):
    """What the removal of a root changed."""

    row_count: int
    """Rows that were deleted from the table."""
    exchange_count: int
    """Exchanges that were detached: the archive keeps them."""
