"""Answers "sessions" and "session" from the archive alone: without the index, and without LanceDB.

The conversations can be read also where the index is lost or a model is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from anchord.config.paths import Paths
from anchord.daemon.access import ask, try_connect
from anchord.errors import UsageError
from anchord.ipc import methods
from anchord.ipc.messages.sessions import (
    SessionAnswer,
    SessionDetail,
    SessionParams,
    SessionsParams,
)
from anchord.ipc.protocol import check_params
from anchord.ipc.requests import Call
from anchord.search.kept_sessions import is_kept, open_kept
from anchord.search.session_answers import describe_session, list_sessions
from anchord.sources.conversations.archive.reader import Archive

A = TypeVar("A")


def ask_daemon_or_archive(paths: Paths, call: Call[A]) -> A:
    """Ask the daemon; where none runs, or an older one, read the archive in this process.

    Args:
        paths: Where this anchord keeps its files.
        call: "sessions" or "session".

    Raises:
        AnchordError: As the method says.
    """
    if client := try_connect(paths):
        with client:
            try:
                return ask(client, call)
            except UsageError as error:
                if not error.message.startswith("unknown method"):
                    raise
    check_params(call.params)
    return cast("A", _ANSWERS[call.method.name](paths, call.params))


def sessions(paths: Paths, params: SessionsParams) -> tuple[SessionAnswer, ...]:
    """Answer "sessions"."""
    with open_archive(paths) as archive, open_kept(paths.kept_transcripts_file) as kept:
        return list_sessions(archive, params, partial(is_kept, kept))


def session(paths: Paths, params: SessionParams) -> SessionDetail:
    """Answer "session"."""
    with open_archive(paths) as archive, open_kept(paths.kept_transcripts_file) as kept:
        return describe_session(archive, params, partial(is_kept, kept))


@contextmanager
def open_archive(paths: Paths) -> Iterator[Archive | None]:
    """Open the archive of conversations; None where there is none."""
    if not paths.archive_file.exists():
        yield None
        return
    with closing(Archive(paths.archive_file, read_only=True)) as archive:
        yield archive


_ANSWERS: dict[str, Callable[[Paths, Any], object]] = {
    methods.SESSIONS.name: sessions,
    methods.SESSION.name: session,
}
