"""Answers of `files` and `changes` for agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anchord.core.token_counts import cut_field
from anchord.ipc.messages.files import ChangesAnswer, FilesAnswer
from anchord.mcp.own_words import OwnWords
from anchord.mcp.parts import (
    DEFAULT_TOKEN_BUDGET,
    Answer,
    escaped,
    fitting_names,
    make_answer,
    select,
    with_entries,
)

_NO_FILES = "No indexed file is like this. `roots` lists the folders, `explain` says why not."
_NO_CHANGES = "No file changed since then."
_MAX_NOTE_TOKENS = 240
_FILE_KEYS = ("file", "kind", "chunks", "modified")
_CHANGE_KEYS = ("file", "at", "saves", "new", "gone", "kept")


def files_answer(found: FilesAnswer) -> Answer:
    """Return a list of files, as many as fit the default budget.

    Args:
        found: Answer of the method "files".

    Returns:
        A `schema.FilesAnswer`. `next` is left out where not all of the files fit: ask the method
        for as many as are in the answer.
    """
    result = escaped(found)
    head = _head(result, "" if found.files else _NO_FILES)
    entries = [select(each, _FILE_KEYS) for each in result["files"]]
    # The longest cursor that can follow, so that it fits.
    answer = with_entries({**head, "next": found.next}, "files", entries)
    if answer.pop("omitted", 0) or not found.next:
        del answer["next"]
    return answer


def changes_answer(found: ChangesAnswer) -> Answer:
    """Return what changed, as many files as fit the default budget.

    Args:
        found: Answer of the method "changes".

    Returns:
        A `schema.ChangesAnswer`.
    """
    result = escaped(found)
    head = _head(result, "" if found.changes else _NO_CHANGES)
    entries = []
    for change in result["changes"]:
        deleted = {"deleted": True} if change["deleted"] else {}
        entries.append({**select(change, _CHANGE_KEYS), **deleted})
    omitted = {"omitted": found.omitted} if found.omitted else {}
    return with_entries({**head, **select(result, ("since",)), **omitted}, "changes", entries)


def own_note(note: str, advice: str = "") -> Answer:
    """Return the fields `note` and `names` of an answer; none for two empty texts.

    Args:
        note: What the daemon says, its names quoted by `core.quoting`.
        advice: What to do, in words without names.
    """
    words = OwnWords()
    said = cut_field(words.without_names(note), _MAX_NOTE_TOKENS)
    notes: Answer = {"note": ". ".join(filter(None, (said, advice)))}
    names = fitting_names(words, DEFAULT_TOKEN_BUDGET)
    return {name: value for name, value in (notes | {"names": names}).items() if value}


def _head(result: Mapping[str, Any], advice: str) -> Answer:
    return make_answer(**own_note(result["note"], advice))
