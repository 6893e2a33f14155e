"""Answers "sessions" and "session" from the archive alone: without the index, and without LanceDB.

The conversations can be read also where the index is lost or a model is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from anchord.config.paths import Paths
from anchord.ipc.messages.sessions import (
    SessionAnswer,
    SessionDetail,
    SessionParams,
    SessionsParams,
)
from anchord.search.kept_sessions import is_kept, open_kept
from anchord.search.session_answers import describe_session, list_sessions
from anchord.sources.conversations.archive.reader import Archive


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
