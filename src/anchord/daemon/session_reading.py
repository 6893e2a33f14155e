"""Answers "sessions", "session" and "decisions" from the archive alone: no index, no LanceDB.

The conversations can be read also where the index is lost or a model is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

from anchord.config.paths import Paths
from anchord.ipc.messages.decisions import DecisionAnswer, DecisionsParams
from anchord.ipc.messages.sessions import (
    SessionAnswer,
    SessionDetail,
    SessionParams,
    SessionsParams,
)
from anchord.search.decision_list import list_decisions
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


def decisions(paths: Paths, params: DecisionsParams) -> tuple[DecisionAnswer, ...]:
    """Answer "decisions"."""
    with open_archive(paths) as archive:
        return list_decisions(archive, params)


@contextmanager
def open_archive(paths: Paths) -> Iterator[Archive | None]:
    """Open the archive of conversations; None where there is none."""
    if not paths.archive_file.exists():
        yield None
        return
    with closing(Archive(paths.archive_file, read_only=True)) as archive:
        yield archive
