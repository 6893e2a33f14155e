"""Answers "sessions", "session" and "decisions" from the archive alone: no index, no LanceDB.

The conversations can be read also where the index is lost or a model is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from functools import partial

from anchord.config.cli_state import load_cli_state
from anchord.config.file import load_config
from anchord.config.paths import Paths
from anchord.config.privacy import redacts_conversations, redacts_files
from anchord.config.roots import gather_roots
from anchord.errors import UsageError
from anchord.ipc.messages.decisions import DecisionAnswer, DecisionsParams
from anchord.ipc.messages.sessions import (
    SessionAnswer,
    SessionDetail,
    SessionParams,
    SessionsParams,
)
from anchord.search.decision_list import list_decisions
from anchord.search.kept_sessions import kept_state, open_kept
from anchord.search.session_answers import describe_session, list_sessions
from anchord.search.unlisted_transcripts import describe_unlisted, list_unlisted
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.prompt_history import PromptSession, read_prompt_sessions
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles
from anchord.sources.files.secret_names import redact_path
from anchord.sources.secrets.redactor import redact


def sessions(paths: Paths, params: SessionsParams) -> tuple[SessionAnswer, ...]:
    """Answer "sessions"."""
    with open_archive(paths) as archive, open_kept(paths.kept_transcripts_file) as kept:
        if params.kept:
            return list_unlisted(archive, kept, params, _path_redactor(paths))
        read_prompts = partial(_read_prompts, paths)
        return list_sessions(archive, params, partial(kept_state, kept), read_prompts)


def session(paths: Paths, params: SessionParams) -> SessionDetail:
    """Answer "session"."""
    with open_archive(paths) as archive, open_kept(paths.kept_transcripts_file) as kept:
        read_prompts = partial(_read_prompts, paths)
        try:
            return describe_session(archive, params, partial(kept_state, kept), read_prompts)
        except UsageError:
            unlisted = describe_unlisted(archive, kept, params.id, _path_redactor(paths))
            if unlisted is None:
                raise
            return unlisted


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


def _path_redactor(paths: Paths) -> Callable[[str], str]:
    return redact_path if redacts_files(load_config(paths.config_file)) else str


def _read_prompts(paths: Paths, known: Collection[str]) -> list[PromptSession]:
    """Return the sessions of which only the prompts are known, without secrets."""
    config = load_config(paths.config_file)
    state = load_cli_state(paths.cli_state_file)
    roots = [
        root for root in gather_roots(config, state.given_roots, ()) if root.kind == "conversations"
    ]
    files = FolderFiles({root.name: root for root in roots}, paths.own_folders, MAX_FILE_BYTES)
    files.set_forgotten_paths(state.forgotten_paths)
    clean = (lambda text: redact(text).text) if redacts_conversations(config) else str
    return read_prompt_sessions(roots, known, files.path_filter(), state.forgotten_paths, clean)
