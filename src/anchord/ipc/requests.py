"""A function for each method of the socket: it takes the parameters and returns the call.

Clients send these calls, and a program that opened the index itself has them answered in its own
process. `methods` says what each call is answered with.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from anchord.core.dates import parse_time, parse_time_span
from anchord.core.quoting import escape_non_utf8
from anchord.ipc import methods
from anchord.ipc.messages.base import Params
from anchord.ipc.messages.blame import BlameAnswer, BlameParams
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.ipc.messages.control import HelloAnswer, PauseAnswer, ShutdownAnswer
from anchord.ipc.messages.decisions import DecisionAnswer, DecisionsParams
from anchord.ipc.messages.files import ChangesAnswer, ChangesParams, FilesAnswer, FilesParams
from anchord.ipc.messages.roots import (
    AddedRoot,
    AddRootParams,
    ReloadAnswer,
    RemovedRoot,
    RootAnswer,
    RootNameParams,
)
from anchord.ipc.messages.searching import (
    ExplainAnswer,
    ExplainParams,
    SearchAnswer,
    SearchParams,
    ShowAnswer,
    ShowParams,
)
from anchord.ipc.messages.sessions import (
    SessionAnswer,
    SessionDetail,
    SessionParams,
    SessionsParams,
)
from anchord.ipc.messages.status import Failure, StatusAnswer
from anchord.ipc.messages.upkeep import (
    BackupAnswer,
    BackupParams,
    ConfirmedDeletion,
    ForgetAnswer,
    ForgetParams,
    IndexAnswer,
    IndexParams,
    ReindexParams,
    SyncAnswer,
    SyncParams,
    VerifyAnswer,
    VerifyParams,
)

A = TypeVar("A")


class Call(msgspec.Struct, Generic[A], frozen=True):
    """A method with its parameters; its answer is an `A`."""

    method: methods.Method[Any, A]
    params: Params


def hello() -> Call[HelloAnswer]:
    """Ask for the versions of the protocol and of the program, and for the process."""
    return Call(methods.HELLO, Params())


def ping() -> Call[str]:
    """Ask for "pong"."""
    return Call(methods.PING, Params())


def status() -> Call[StatusAnswer]:
    """Ask what the daemon does and whether it is healthy."""
    return Call(methods.STATUS, Params())


def errors() -> Call[tuple[Failure, ...]]:
    """Ask for the files that are not indexed, or only in part."""
    return Call(methods.ERRORS, Params())


def search(  # noqa: PLR0913 - one parameter a filter
    query: str,
    *,
    k: int = 10,
    mode: str = "hybrid",
    root: str = "",
    path: str = "",
    kind: str = "",
    section: str = "",
    room: str = "",
    session: str = "",
    chunk_type: str = "",
    language: str = "",
    file: str = "",
    branch: str = "",
    project: str = "",
    tool: str = "",
    agent: str = "",
    since: str = "",
    until: str = "",
    recent: str = "",
    show_chunks: bool = False,
    expand: int = 0,
    budget: int = 0,
    cwd: str = "",
    fresh: bool = False,
    detached: bool = False,
) -> Call[SearchAnswer]:
    """Search by meaning and by words.

    Args:
        query: Words or a question.
        k: Maximum number of files; with `show_chunks`, of chunks.
        mode: "hybrid", "vector" or "text".
        root: Only this root, by its name.
        path: Only this folder, or paths that match a pattern in .gitignore syntax.
        kind: Only this kind, such as "markdown", "code" or "exchange".
        section: Only below these headings, joined with " > ".
        room: Only this room or topic.
        session: Only this conversation.
        chunk_type: Only this type: "section", "text", "code_block", "table" or "list".
        language: Only code of this language, such as "python"; in files and in code blocks.
        file: Only conversations that changed this file, or named it in a tool call: a path, or the
            end of one.
        branch: Only conversations on this git branch, where the transcript says it.
        project: Only conversations about this project: a part of its name, or its folder.
        tool: Only exchanges that called this tool, such as "Bash".
        agent: Only conversations of this program: a part of its name, such as "claude".
        since: Only files that changed, and conversations that went on, since a date or an age, such
            as 2026-01-31, 7d, 3h or "last week". A date without a zone is one of the caller's.
        until: Only files that changed last, and conversations that began, before then; a date
            without a time is included.
        recent: A half-life such as 30d: a hit of this age keeps half of its score; "" weighs none
            down.
        show_chunks: List chunks, not grouped by file.
        expand: Characters of context to add from the same section.
        budget: Maximum tokens of all passages, with their places and headings, counted from above
            for any tokenizer. They are whole sections where these fit. 0 for all that is found.
        cwd: The caller's folder, absolute. Text that several files contain is found once: in this
            folder, if it is there.
        fresh: Wait first until everything written before the call is searchable.
        detached: Also search conversations that are kept and not indexed, by words.

    Raises:
        UsageError: A text is no date, or `since` is not before `until`.
    """
    # Here, not in the daemon: a date is one of the caller's time zone.
    since, until = parse_time_span(since, until, datetime.now(UTC))
    params = SearchParams(
        query=query,
        k=k,
        mode=mode,
        root=root,
        path=path,
        kind=kind,
        section=section,
        room=room,
        session=session,
        chunk_type=chunk_type,
        language=language,
        file=file,
        branch=branch,
        project=project,
        tool=tool,
        agent=agent,
        since=since,
        until=until,
        recent=recent,
        show_chunks=show_chunks,
        expand=expand,
        budget=budget,
        cwd=cwd,
        fresh=fresh,
        detached=detached,
    )
    return Call(methods.SEARCH, params)


def show(
    id: str = "",  # noqa: A002 - the name is a fixed interface
    *,
    root: str = "",
    path: str = "",
    whole: bool = False,
    context: int = 0,
) -> Call[ShowAnswer]:
    """Ask for a chunk by its id, or for all chunks of a file by `root` and `path`.

    Args:
        id: The id, or its first characters.
        root: Name of the file's root.
        path: The file, relative to the root.
        whole: All of the chunk's file or exchange.
        context: Number of chunks to add before the chunk, and after it.
    """
    params = ShowParams(
        id=id,
        root=root,
        path=path,
        whole=whole,
        context=context,
    )
    return Call(methods.SHOW, params)


def files(
    *,
    root: str = "",
    path: str = "",
    kind: str = "",
    limit: int = 100,
    cursor: str = "",
) -> Call[FilesAnswer]:
    """List the indexed files, in the order of root and path.

    Args:
        root: Only this root, by its name.
        path: Only this folder, or paths that match a pattern in .gitignore syntax.
        kind: Only this kind: "markdown", "text", "code" or "transcript".
        limit: Maximum number of files.
        cursor: `next` of the answer before, to go on from there.
    """
    params = FilesParams(
        root=root,
        path=path,
        kind=kind,
        limit=limit,
        cursor=cursor,
    )
    return Call(methods.FILES, params)


def changes(
    since: str = "", *, root: str = "", path: str = "", limit: int = 100
) -> Call[ChangesAnswer]:
    """List the files that changed in the index since a time, newest first.

    Args:
        since: A date or an age, such as 2026-01-31, 7d, 3h or "last week"; "" for 24 hours.
        root: Only this root, by its name.
        path: Only this folder, or paths that match a pattern in .gitignore syntax.
        limit: Maximum number of files.

    Raises:
        UsageError: `since` is no date.
    """
    # Here, not in the daemon: a date is one of the caller's time zone.
    params = ChangesParams(
        since=parse_time(since, datetime.now(UTC)),
        root=root,
        path=path,
        limit=limit,
    )
    return Call(methods.CHANGES, params)


def blame(path: str, *, limit: int = 20) -> Call[BlameAnswer]:
    """List the exchanges in which an assistant changed or used a file, newest first.

    Args:
        path: Absolute path of the file.
        limit: Maximum number of exchanges.
    """
    return Call(methods.BLAME, BlameParams(path=path, limit=limit))


def decisions(
    *, project: str = "", since: str = "", limit: int = 30
) -> Call[tuple[DecisionAnswer, ...]]:
    """List the exchanges that seem to decide something, newest first.

    Args:
        project: Only about this project: a part of its name, or its folder.
        since: Only decisions since a date or an age.
        limit: Maximum number of decisions.

    Raises:
        UsageError: `since` is no date.
    """
    since = parse_time(since, datetime.now(UTC))
    params = DecisionsParams(project=project, since=since, limit=limit)
    return Call(methods.DECISIONS, params)


def explain(path: str) -> Call[ExplainAnswer]:
    """Ask whether a file is indexed, which rule decided, and what happens to it next.

    Args:
        path: Absolute path.
    """
    return Call(methods.EXPLAIN, ExplainParams(path=path))


def sessions(  # noqa: PLR0913 - one parameter a filter
    *,
    project: str = "",
    agent: str = "",
    root: str = "",
    since: str = "",
    until: str = "",
    limit: int = 20,
    subagents: bool = False,
    kept: bool = False,
) -> Call[tuple[SessionAnswer, ...]]:
    """Ask for the conversations that the archive keeps, newest first.

    Args:
        project: A part of the project's name, or a path of its folder; "" for all.
        agent: A part of the program's name; "" for all.
        root: Name of a root; "" for all.
        since: A date: only sessions whose last message is not older.
        until: A date: only sessions whose last message is older.
        limit: How many to return; 0 for all.
        subagents: Also sessions that another session started.
        kept: Return kept transcripts that have no exchange of their own, instead of sessions.
    """
    params = SessionsParams(
        project=project,
        agent=agent,
        root=root,
        since=since,
        until=until,
        limit=limit,
        subagents=subagents,
        kept=kept,
    )
    return Call(methods.SESSIONS, params)


def session(
    id: str,  # noqa: A002 - the name is a fixed interface
    *,
    offset: int = 0,
    limit: int = 0,
) -> Call[SessionDetail]:
    """Ask for a conversation with its exchanges.

    Args:
        id: Its id or the beginning of it, the path of its transcript, or the id of an exchange.
        offset: How many exchanges to leave out at the beginning.
        limit: How many exchanges to return; 0 for all.
    """
    return Call(methods.SESSION, SessionParams(id=id, offset=offset, limit=limit))


def dump() -> Call[tuple[ChunkAnswer, ...]]:
    """Ask for every row, sorted, without vectors."""
    return Call(methods.DUMP, Params())


def roots() -> Call[tuple[RootAnswer, ...]]:
    """Ask for the indexed folders."""
    return Call(methods.ROOTS, Params())


def roots_add(path: str, *, kind: str = "project", name: str = "") -> Call[AddedRoot]:
    """Add a folder to the configuration, and index it.

    Args:
        path: Absolute path.
        kind: "project" or "conversations".
        name: "" for the folder's name.
    """
    return Call(
        methods.ROOTS_ADD,
        AddRootParams(
            path=path,
            kind=kind,
            name=name,
        ),
    )


def roots_remove(name: str) -> Call[RemovedRoot]:
    """Delete a root from the configuration and from the index. Its conversations are kept."""
    return Call(methods.ROOTS_REMOVE, RootNameParams(name=name))


def reload() -> Call[ReloadAnswer]:
    """Read the configuration's roots again."""
    return Call(methods.RELOAD, Params())


def index(paths: Sequence[str] = ()) -> Call[IndexAnswer]:
    """Bring the index up to date.

    Args:
        paths: Folders to index besides the roots.
    """
    return Call(methods.INDEX, IndexParams(paths=tuple(paths)))


def sync(timeout: float | None = None, *, words: bool = False) -> Call[SyncAnswer]:
    """Wait until everything written before the call is searchable.

    Args:
        timeout: Seconds to wait at most; None waits without limit.
        words: Do not wait for vectors: a search by meaning may not find everything yet.
    """
    return Call(methods.SYNC, SyncParams(timeout=timeout, words=words))


def verify(*, repair: bool = False, vectors: int | None = 16) -> Call[VerifyAnswer]:
    """Compare the index with a clean rebuild.

    Args:
        repair: Repair what differs.
        vectors: How many rows to embed again for comparison; None for all.
    """
    return Call(methods.VERIFY, VerifyParams(repair=repair, vectors=vectors))


def rescan(name: str = "") -> Call[SyncAnswer]:
    """Compare a root with the index, and wait until all changes are indexed.

    Args:
        name: Name of the root; "" for all.
    """
    return Call(methods.RESCAN, RootNameParams(name=name))


def confirm_delete(name: str) -> Call[ConfirmedDeletion]:
    """Confirm that the files of a root that vanished all at once leave the index."""
    return Call(methods.CONFIRM_DELETE, RootNameParams(name=name))


def reindex(*, force_rechunk: bool = False) -> Call[IndexAnswer]:
    """Read every file again.

    Args:
        force_rechunk: Chunk every file again, into a new index that then replaces this one.
    """
    return Call(methods.REINDEX, ReindexParams(force_rechunk=force_rechunk))


def rebuild() -> Call[IndexAnswer]:
    """Build a new index from the files, and embed every text again."""
    return Call(methods.REBUILD, Params())


def forget(path: str, *, undo: bool = False, preview: bool = False) -> Call[ForgetAnswer]:
    """Delete a file or folder from the index for good.

    Args:
        path: Absolute path; bytes that are not UTF-8 are surrogates.
        undo: Let a forgotten path be indexed again.
        preview: Only count what would be deleted.
    """
    shown = escape_non_utf8(path)
    path_bytes = os.fsencode(path) if shown != path else b""
    params = ForgetParams(
        path=shown,
        path_bytes=path_bytes,
        undo=undo,
        preview=preview,
    )
    return Call(methods.FORGET, params)


def backup(target: str, *, keep: int | None = None, staged: bool = False) -> Call[BackupAnswer]:
    """Make a backup.

    Args:
        target: Absolute path of the backup folder.
        keep: How many snapshots to keep; None keeps all.
        staged: Ignore `target`: make a snapshot in anchord's own folder for the client to copy.
    """
    return Call(
        methods.BACKUP,
        BackupParams(
            target=target,
            keep=keep,
            staged=staged,
        ),
    )


def pause() -> Call[PauseAnswer]:
    """Stop indexing until `resume`; changes are still noticed."""
    return Call(methods.PAUSE, Params())


def resume() -> Call[PauseAnswer]:
    """Go on indexing after `pause`."""
    return Call(methods.RESUME, Params())


def shutdown() -> Call[ShutdownAnswer]:
    """End the daemon."""
    return Call(methods.SHUTDOWN, Params())
