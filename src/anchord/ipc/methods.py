"""The methods of the socket: name, parameters and answer of each, in one table.

The daemon serves them. A command without a daemon calls the same ones in its own process, and
`anchord schema` prints them as JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

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

P = TypeVar("P", bound=Params)
A = TypeVar("A")


class Method(msgspec.Struct, Generic[P, A], frozen=True):
    """A method of the socket."""

    name: str
    """Part of the fixed interface."""
    params: type[P]
    answer: type[A]
    """The type that its result is decoded as."""


class Handler(msgspec.Struct, Generic[P, A], frozen=True):
    """A method, and the function that answers it."""

    method: Method[P, A]
    answer: Callable[[P], A]


HELLO = Method("hello", Params, HelloAnswer)
PING = Method("ping", Params, str)
STATUS = Method("status", Params, StatusAnswer)
ERRORS = Method("errors", Params, tuple[Failure, ...])
SEARCH = Method("search", SearchParams, SearchAnswer)
SHOW = Method("show", ShowParams, ShowAnswer)
FILES = Method("files", FilesParams, FilesAnswer)
CHANGES = Method("changes", ChangesParams, ChangesAnswer)
BLAME = Method("blame", BlameParams, BlameAnswer)
DECISIONS = Method("decisions", DecisionsParams, tuple[DecisionAnswer, ...])
EXPLAIN = Method("explain", ExplainParams, ExplainAnswer)
SESSIONS = Method("sessions", SessionsParams, tuple[SessionAnswer, ...])
SESSION = Method("session", SessionParams, SessionDetail)
DUMP = Method("dump", Params, tuple[ChunkAnswer, ...])
ROOTS = Method("roots", Params, tuple[RootAnswer, ...])
ROOTS_LIST = Method("roots.list", Params, tuple[RootAnswer, ...])
ROOTS_ADD = Method("roots.add", AddRootParams, AddedRoot)
ROOTS_REMOVE = Method("roots.remove", RootNameParams, RemovedRoot)
RELOAD = Method("reload", Params, ReloadAnswer)
INDEX = Method("index", IndexParams, IndexAnswer)
SYNC = Method("sync", SyncParams, SyncAnswer)
VERIFY = Method("verify", VerifyParams, VerifyAnswer)
RESCAN = Method("rescan", RootNameParams, SyncAnswer)
CONFIRM_DELETE = Method("confirm-delete", RootNameParams, ConfirmedDeletion)
REINDEX = Method("reindex", ReindexParams, IndexAnswer)
REBUILD = Method("rebuild", Params, IndexAnswer)
FORGET = Method("forget", ForgetParams, ForgetAnswer)
BACKUP = Method("backup", BackupParams, BackupAnswer)
PAUSE = Method("pause", Params, PauseAnswer)
RESUME = Method("resume", Params, PauseAnswer)
SHUTDOWN = Method("shutdown", Params, ShutdownAnswer)

METHODS: tuple[Method[Any, Any], ...] = (
    HELLO,
    PING,
    STATUS,
    ERRORS,
    SEARCH,
    SHOW,
    FILES,
    CHANGES,
    BLAME,
    DECISIONS,
    EXPLAIN,
    SESSIONS,
    SESSION,
    DUMP,
    ROOTS,
    ROOTS_LIST,
    ROOTS_ADD,
    ROOTS_REMOVE,
    RELOAD,
    INDEX,
    SYNC,
    VERIFY,
    RESCAN,
    CONFIRM_DELETE,
    REINDEX,
    REBUILD,
    FORGET,
    BACKUP,
    PAUSE,
    RESUME,
    SHUTDOWN,
)
"""All of them but "subscribe", which streams `messages.status.Progress`."""


def prepare_types() -> None:
    """Make msgspec learn the types of all methods now, before several threads use them.

    It learns a type when it is first used. If two threads do that at the same moment, the process
    can crash (msgspec 0.22).
    """
    for method in METHODS:
        msgspec.json.Decoder(method.params)
        msgspec.json.Decoder(method.answer)


REPEATABLE = frozenset(
    each.name
    for each in (
        HELLO,
        PING,
        STATUS,
        ERRORS,
        SEARCH,
        SHOW,
        FILES,
        CHANGES,
        BLAME,
        DECISIONS,
        EXPLAIN,
        SESSIONS,
        SESSION,
        DUMP,
        ROOTS,
        SYNC,
    )
)
"""A second call does no harm: they are called again if the daemon restarted before it answered."""
