"""What a hook does by itself where the daemon does not answer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import msgspec

from anchord.agents.recall.journal import NO_ANSWER, Journal, entry_of
from anchord.agents.recall.messages import RecallParams
from anchord.agents.recall.prompts import query_of
from anchord.agents.recall.settings import load_settings
from anchord.config.paths import find_paths
from anchord.errors import AnchordError


def note_unanswered(params: Mapping[str, object], environment: Mapping[str, str]) -> None:
    """Log a prompt that got no answer; forget what a session was given whose context was compacted.

    Args:
        params: What the daemon was asked.
        environment: Environment variables, which say where the log is.
    """
    with suppress(OSError, AnchordError, msgspec.ValidationError):
        asked = msgspec.convert(params, RecallParams)
        data_folder = find_paths(environment).data_folder
        journal = Journal(data_folder)
        if asked.is_after_compaction:
            journal.forget(asked.session)
        is_searched = asked.is_prompt and load_settings(data_folder).is_on
        if is_searched and query_of(asked.prompt):
            journal.log(entry_of(asked.session, NO_ANSWER, asked.began))
