"""The method "recall" of the daemon: what the hooks of Claude Code get for an event.

It is no part of the fixed interface: only the hook of the same version calls it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anchord.agents.recall.hook import METHOD, TIMEOUT_S
from anchord.agents.recall.journal import ADDED, NO_STRONG_MATCH, SHORT, Journal, entry_of
from anchord.agents.recall.messages import RecallAnswer, RecallParams
from anchord.agents.recall.prompts import query_of
from anchord.agents.recall.settings import load_settings
from anchord.core.quoting import escape_line, quote_names
from anchord.ipc import methods
from anchord.ipc.messages.base import Params
from anchord.ipc.messages.searching import Passage, SearchAnswer, SearchParams
from anchord.ipc.messages.status import StatusAnswer
from anchord.ipc.methods import Handler, Method

_ANSWER_WITHIN_S = TIMEOUT_S - 0.02
"""The hook must not stop waiting while an answer is on its way."""
_SEARCHED = 8
"""Files that a search returns: those that were shown are left out."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


RECALL = Method(METHOD, RecallParams, RecallAnswer)


def recall_handlers(
    data_folder: Path, handlers: Sequence[Handler[Any, Any]]
) -> tuple[Handler[Any, Any], ...]:
    """Return the handler of "recall" for a daemon.

    Args:
        data_folder: The home's.
        handlers: The daemon's own.
    """
    answer_of = {handler.method.name: handler.answer for handler in handlers}
    recall = Recall(data_folder, answer_of[methods.SEARCH.name], answer_of[methods.STATUS.name])
    return (Handler(RECALL, recall.answer),)


def _is_late(params: RecallParams) -> bool:
    """Whether the hook has stopped waiting, or is about to."""
    return time.monotonic() - params.began > _ANSWER_WITHIN_S


class Recall:
    """What the sessions of Claude Code get. Any thread may ask."""

    def __init__(
        self,
        data_folder: Path,
        search: Callable[[SearchParams], SearchAnswer],
        status: Callable[[Params], StatusAnswer],
    ) -> None:
        """Prepare.

        Args:
            data_folder: The home's.
            search: The daemon's method.
            status: The daemon's method.
        """
        self._data_folder = data_folder
        self._search = search
        self._status = status
        self._journal = Journal(data_folder)
        self._choice = threading.Lock()
        """Two prompts of one session at the same moment must not get one chunk twice."""
        load_settings(data_folder)  # msgspec learns a type in one thread only.

    def answer(self, params: RecallParams) -> RecallAnswer:
        """Answer a hook."""
        context = ""
        if params.is_session_start:
            context = self._begin_session(params)
        elif params.is_prompt and load_settings(self._data_folder).is_on:
            context = self._recall(params)
        return RecallAnswer(context=context)

    def _begin_session(self, params: RecallParams) -> str:
        if params.is_after_compaction:
            self._journal.forget(params.session)
        if load_settings(self._data_folder).is_on:
            threading.Thread(target=self._warm_up, name="recall", daemon=True).start()
        return describe(self._status(Params()))

    def _warm_up(self) -> None:
        """Load the model and the rules for secrets before the first prompt: it takes seconds."""
        self._search(SearchParams(query="anchord", k=1, is_prompt=True))

    def _recall(self, params: RecallParams) -> str:
        """Return the context for a prompt, and write the log.

        Nothing is written for a hook that has stopped waiting: it logs that by itself.
        """
        query = query_of(params.prompt)
        if not query:
            self._journal.log(entry_of(params.session, SHORT, params.began))
            return ""
        if _is_late(params):
            return ""
        found = self._search(SearchParams(query=query, k=_SEARCHED, cwd=params.cwd, is_prompt=True))
        with self._choice:
            context, tokens, passages = self._choose(params.session, found)
            if _is_late(params):
                return ""
            self._journal.add_shown(params.session, (i for each in passages for i in each.ids))
        outcome = ADDED if passages else NO_STRONG_MATCH
        entry = entry_of(params.session, outcome, params.began)
        self._journal.log(entry.with_context(context, tokens, tuple(map(_place, passages))))
        return context

    def _choose(self, session: str, found: SearchAnswer) -> tuple[str, int, list[Passage]]:
        """Return the context, its tokens, and the passages in it."""
        if not found.groups:
            return "", 0, []
        # Only for the few prompts with a strong match.
        from anchord.agents.recall.selection import render, select  # noqa: PLC0415

        settings = load_settings(self._data_folder)
        selected = select(found, self._journal.shown(session), settings.hits)
        return render(selected, settings.tokens)


def describe(status: StatusAnswer) -> str:
    """Return two lines: what is indexed, and how fresh it is."""
    # A name must not close the element in which Claude Code gives this to the model.
    names = quote_names(root.name for root in status.roots).replace("<", r"\u{3c}")
    held = f"{status.files:,} files in {status.chunks:,} chunks"
    if status.degraded:
        state = "The index may be incomplete: call the tool `status` for the reasons"
    elif status.pending:
        state = f"Indexing: {status.pending:,} files wait"
    elif status.last_commit_age_s is None:
        state = "Up to date"
    else:
        state = f"Up to date; the last change was indexed {_age(status.last_commit_age_s)} ago"
    return f"anchord (MCP tools `search` and `show`) indexes {held}: {names}.\n{state}."


def _place(passage: Passage) -> str:
    place = f"{passage.file or passage.path}:{passage.start_line}-{passage.end_line}"
    return escape_line(place)


def _age(seconds: float) -> str:
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
