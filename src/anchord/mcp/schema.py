"""What the tools answer: the schemas that clients get, and check answers against.

`note`, `degraded`, `error` and `hint` are anchord's own sentences. Where one needs the name of a
file or a folder it has `[1]`, and `names` has the name. All other strings can be quoted.

Every string is one field: it is escaped by `core.quoting`, and JSON escapes its quotes and line
ends. A `text` may have line ends and tabs; every other string is one line. Fields with a default
are left out of an answer where they have nothing to say.
"""

from __future__ import annotations

from pydantic import BaseModel


class Chunk(BaseModel):
    """A chunk: fields of `ipc.messages.chunks.ChunkAnswer`, by their names there.

    A file has `file`, or `root` and `path` if its folder is unknown, lines, and in the results of a
    search `date`, the day it changed last; a conversation has `source` and `at`. `id` is the
    beginning of the id, and `text` is cut where it does not fit.
    """

    file: str = ""
    root: str = ""
    path: str = ""
    start_line: int | None = None
    end_line: int | None = None
    date: str = ""
    source: str = ""
    at: str = ""
    section: str
    id: str
    text: str


class Result(Chunk):
    """A passage; `also_at` has the files and lines of the first of its copies elsewhere.

    `confidence` says how surely it is about the query: strong, likely or weak.
    """

    score: float
    confidence: str = ""
    also_at: list[str] = []


class SearchAnswer(BaseModel):
    """Answer of `search`, best first. `omitted` files and conversations did not fit.

    If `about` is false, nothing in the index seems to be about the query: these are the nearest.
    """

    notice: str
    note: str = ""
    names: list[str] = []
    about: bool = True
    results: list[Result]
    omitted: int = 0


class Conversation(BaseModel):
    """Where an exchange is in its conversation, and the ids of its neighbours."""

    exchange: int
    exchanges: int
    session: str
    source: str
    previous: str = ""
    next: str = ""


class ShowAnswer(BaseModel):
    """Answer of `show`: chunks, and the ids to read on from.

    `replaced` is the id that was asked for, if edits put another chunk in its place.
    """

    notice: str
    note: str = ""
    names: list[str] = []
    replaced: str = ""
    chunks: list[Chunk]
    previous: str = ""
    next: str = ""
    conversation: Conversation | None = None


class Root(BaseModel):
    """An indexed folder; `state` only in a status, the other optional fields only in `roots`."""

    name: str
    path: str
    files: int
    state: str = ""
    kind: str = ""
    chunks: int = 0


class RootsAnswer(BaseModel):
    """Answer of `roots`."""

    notice: str
    note: str = ""
    names: list[str] = []
    roots: list[Root]
    omitted: int = 0


class Failure(BaseModel):
    """A file that is not indexed, or only in part."""

    path: str
    reason: str


class StatusAnswer(BaseModel):
    """Answer of `status`. `failed` are the first of `failed_files`."""

    notice: str
    note: str = ""
    names: list[str] = []
    state: str
    files: int
    chunks: int
    pending_files: int
    degraded: list[str]
    last_change_indexed_s_ago: int = 0
    failed_files: int
    failed: list[Failure]
    roots: list[Root]


class ExplainAnswer(BaseModel):
    """Answer of `explain`: what the index knows of a file. Empty values are left out."""

    notice: str
    note: str = ""
    names: list[str] = []
    path: str
    root: str = ""
    indexed: bool
    chunks: int = 0
    exchanges: int = 0
    rule: str = ""
    strategy: str = ""
    decision: str = ""
    reason: str = ""
    last_reason: str = ""
    problem: str = ""
    size: int = 0


class SyncAnswer(BaseModel):
    """Answer of `sync`."""

    note: str
    waited_s: float


class ListedFile(BaseModel):
    """An indexed file. A transcript has no chunks of its own: its exchanges have them."""

    file: str
    kind: str
    chunks: int
    modified: str


class FilesAnswer(BaseModel):
    """Answer of `files`. `next` is the cursor for the files after these."""

    notice: str
    note: str = ""
    names: list[str] = []
    files: list[ListedFile]
    next: str = ""


class FileChange(BaseModel):
    """What changed in a file: chunks `new` and `gone` in all `saves`, and `kept` by the last."""

    file: str
    at: str
    saves: int
    new: int
    gone: int
    kept: int
    deleted: bool = False


class ChangesAnswer(BaseModel):
    """Answer of `changes`, newest first. `omitted` changed files did not fit."""

    notice: str
    note: str = ""
    names: list[str] = []
    since: str
    changes: list[FileChange]
    omitted: int = 0


class Session(BaseModel):
    """A conversation. `state`: here, deleted (its transcript is gone), detached or prompts-only."""

    id: str
    agent: str
    project: str = ""
    title: str
    last_at: str = ""
    turns: int
    files: int = 0
    state: str
    parent: str = ""


class SessionsAnswer(BaseModel):
    """Answer of `sessions`, newest first. `omitted` of those asked for did not fit."""

    notice: str
    note: str = ""
    names: list[str] = []
    sessions: list[Session]
    omitted: int = 0


class SessionExchange(BaseModel):
    """A question and its answer; texts that do not fit are cut. `tools` has the first calls."""

    at: str = ""
    question: str
    text: str
    tools: list[str] = []
    files: list[str] = []


class SessionAnswer(BaseModel):
    """Answer of `session`. `next_offset` is the offset to read on from."""

    notice: str
    note: str = ""
    names: list[str] = []
    session: Session
    exchange_count: int
    exchanges: list[SessionExchange]
    next_offset: int = 0
