"""Answers for language models: the daemon's JSON results -> structured answers of few tokens.

What files and conversations say is untrusted. So every string of a result is escaped before
anything is made of it, and is put into an answer as one field. The sentences of an answer (note,
degraded, error, hint) are anchord's own words: the names in them are in the field `names`.
`render` turns an answer into text. The forms of answers are in `schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anchord.core.quoting import escape_line
from anchord.core.token_counts import cut_field, field_tokens, token_upper_bound
from anchord.ipc.messages.roots import RootAnswer
from anchord.ipc.messages.searching import ExplainAnswer, SearchAnswer, ShowAnswer
from anchord.ipc.messages.status import StatusAnswer
from anchord.ipc.messages.upkeep import SyncAnswer as UpToDate
from anchord.mcp.own_words import OwnWords
from anchord.mcp.parts import (
    DEFAULT_TOKEN_BUDGET,
    ID_CHARS,
    MAX_FIELD_TOKENS,
    MAX_PATH_TOKENS,
    MAX_SECTION_TOKENS,
    OMITTED_TOKENS,
    Answer,
    entry_tokens,
    escaped,
    fitting_names,
    make_answer,
    select,
    short_id,
    with_entries,
)
from anchord.mcp.render import render_answer

_MIN_EXCERPT_TOKENS = 30
"""Below this an excerpt is not worth its place."""
_MIN_PASSAGES_TOKENS = 300
"""A passage with a long path and long headings fits in so many; its text is cut to what is left."""
_FRAME_TOKENS = 80
"""The notice, the names of fields and the count of what is left out, in an answer of `search`."""
_REPLACED_NOTE = "The chunk of this id was edited; what took its place in its file follows"
_MAX_COPIES = 3
_MAX_FAILURES = 4
_MAX_ROOTS = 40
_MAX_REASONS = 6
_DAY_LENGTH = len("2026-01-31")


def passages_budget(token_budget: int) -> int:
    """Return the tokens that an answer of this size has for its passages."""
    return max(token_budget - _FRAME_TOKENS, _MIN_PASSAGES_TOKENS)


def search_answer(found: SearchAnswer, token_budget: int = DEFAULT_TOKEN_BUDGET) -> Answer:
    """Return search results: passages of all files, the best first.

    Args:
        found: Answer of the method "search", packed for `passages_budget`.
        token_budget: Maximum tokens of the rendered answer, by `token_upper_bound`.

    Returns:
        A dictionary of the shape `mcp.schema.SearchAnswer`, which is not the daemon's
        `SearchAnswer` in `found`. Files of which nothing fits are counted in `omitted`.
    """
    result = escaped(found)
    words = OwnWords()
    note = _search_note(result, words)
    names = fitting_names(words, token_budget)
    off_topic = {} if found.about else {"about": False}
    answer = make_answer(note=note, names=names, **off_topic, results=[])
    tokens_left = token_budget - OMITTED_TOKENS - token_upper_bound(render_answer(answer))
    groups = result["groups"]
    ranked = [(passage, number) for number, group in enumerate(groups) for passage in group]
    # Stable: of equal scores, the order of the groups counts.
    ranked.sort(key=lambda ranked_passage: -ranked_passage[0]["score"])
    shown_groups: set[int] = set()
    for passage, number in ranked:
        entry = _search_entry(passage, tokens_left)
        if entry:
            shown_groups.add(number)
            answer["results"].append(entry)
            tokens_left -= entry_tokens(entry)
    omitted = result["omitted"] + len(groups) - len(shown_groups)
    if omitted:
        answer["omitted"] = omitted
    return answer


def _search_note(result: Mapping[str, Any], words: OwnWords) -> str:
    """Return what to know of the results, and what to do if there are none."""
    advice = ""
    if result["omitted"] and not result["groups"]:
        advice = "Nothing fits in `max_tokens`: ask for more"
    elif not result["groups"]:
        advice = "Nothing found. Try other words, or fewer filters."
        if not result.get("complete", True):
            advice = "Nothing found so far. Call `sync`, then search again."
    elif not result["about"]:
        advice = "Nothing here seems to be about this. The results are the nearest"
    note = cut_field(words.without_names(result["note"]), MAX_FIELD_TOKENS)
    return ". ".join(filter(None, (note, advice)))


def _search_entry(passage: Mapping[str, Any], tokens_left: int) -> Answer | None:
    """Return a passage, its text cut to fit; None when the tokens left do not suffice for it."""
    entry: Answer = {
        **_place(passage),
        "section": _section(passage),
        "id": short_id(passage["id"]),
        "score": round(passage["score"], 2),
        "text": "",
    }
    if passage["confidence"]:
        entry["confidence"] = passage["confidence"]
    if passage["also_at"]:
        entry["also_at"] = list(map(_copy_place, passage["also_at"][:_MAX_COPIES]))
    text_tokens = tokens_left - entry_tokens(entry)
    if text_tokens < min(_MIN_EXCERPT_TOKENS, field_tokens(passage["text"])):
        return None
    entry["text"] = cut_field(passage["text"], text_tokens)
    return entry


def _copy_place(copy: Mapping[str, Any]) -> str:
    """Return the file and first line of a copy."""
    file = cut_field(copy["file"] or copy["path"], MAX_SECTION_TOKENS)
    return f"{file}:{copy['start_line']}"


def show_answer(found: ShowAnswer, token_budget: int = DEFAULT_TOKEN_BUDGET) -> Answer:
    """Return chunks with their places, and the ids with which to read on.

    Args:
        found: Answer of the method "show".
        token_budget: Maximum tokens of the rendered answer, by `token_upper_bound`. The first
            chunk is cut to fit; a later one that does not fit is named as the next chunk.

    Returns:
        A `schema.ShowAnswer`.
    """
    result = escaped(found)
    chunks = result["chunks"]
    if not chunks:
        return make_answer(
            note="It is no longer indexed; search again.",
            chunks=[],
        )
    replaced: Answer = {}
    if result["replaced"]:
        replaced = {"note": _REPLACED_NOTE, "replaced": short_id(result["replaced"])}
    ids = {"previous": result["previous"], "next": result["next"]}
    ends = {"previous": "0" * ID_CHARS, "next": "0" * ID_CHARS}
    conversation = _conversation(result.get("conversation"))
    frame = render_answer({**make_answer(**replaced, chunks=[]), **ends, **conversation})
    tokens_left = token_budget - token_upper_bound(frame)
    shown: list[Answer] = []
    for chunk in chunks:
        entry = _chunk_entry(chunk)
        tokens = entry_tokens(entry)
        if shown and tokens > tokens_left:
            ids["next"] = chunk["id"]
            break
        if tokens > tokens_left:
            whole_text = entry.pop("text")
            entry["text"] = ""
            entry["text"] = cut_field(whole_text, tokens_left - entry_tokens(entry))
        shown.append(entry)
        tokens_left -= tokens
    neighbors = {name: short_id(chunk_id) for name, chunk_id in ids.items() if chunk_id}
    return {**make_answer(**replaced, chunks=shown), **neighbors, **conversation}


def _chunk_entry(chunk: Mapping[str, Any]) -> Answer:
    return {
        **_place(chunk),
        "section": _section(chunk),
        "id": short_id(chunk["id"]),
        "text": chunk["text"],
    }


def _conversation(conversation: Mapping[str, Any] | None) -> Answer:
    """Return where an exchange is in its conversation; nothing for other chunks."""
    if not conversation:
        return {}
    position: Answer = {
        "exchange": conversation["number"],
        "exchanges": conversation["exchanges"],
        "session": cut_field(conversation["session"], MAX_FIELD_TOKENS),
        "source": cut_field(conversation["source"], MAX_FIELD_TOKENS),
    }
    for direction in ("previous", "next"):
        neighbor = conversation[direction]
        if neighbor:
            position[direction] = short_id(neighbor["id"])
    return {"conversation": position}


def status_answer(status: StatusAnswer) -> Answer:
    """Return the state of the index, and why it is degraded if it is.

    Args:
        status: Answer of the method "status".

    Returns:
        A `schema.StatusAnswer`.
    """
    report = escaped(status)
    failures = report["failed"]
    words = OwnWords()
    reasons = list(map(words.without_names, report["degraded"][:_MAX_REASONS]))
    answer = make_answer(
        names=fitting_names(words, DEFAULT_TOKEN_BUDGET),
        state=report["state"],
        files=report["files"],
        chunks=report["chunks"],
        pending_files=report["pending"],
        degraded=[cut_field(reason, MAX_FIELD_TOKENS) for reason in reasons],
    )
    commit_age = report["last_commit_age_s"]
    if commit_age is not None:
        answer["last_change_indexed_s_ago"] = round(commit_age)
    answer["failed_files"] = len(failures)
    failed = [select(failure, ("path", "reason")) for failure in failures[:_MAX_FAILURES]]
    roots = [select(root, ("name", "state", "files", "path")) for root in report["roots"]]
    return with_entries(with_entries(answer, "failed", failed), "roots", roots[:_MAX_ROOTS])


def roots_answer(roots: Sequence[RootAnswer]) -> Answer:
    """Return the list of indexed folders.

    Args:
        roots: Answer of the method "roots".

    Returns:
        A `schema.RootsAnswer`.
    """
    if not roots:
        advice = "No folders are indexed yet. The user can add one: anchord add FOLDER"
        return make_answer(note=advice, roots=[])
    keys = ("name", "path", "kind", "files", "chunks")
    entries = [select(root, keys) for root in map(escaped, roots)]
    return with_entries(make_answer(), "roots", entries)


def explain_answer(explanation: ExplainAnswer) -> Answer:
    """Return whether a file is indexed, and why. Empty values are left out.

    Args:
        explanation: Answer of the method "explain".

    Returns:
        A `schema.ExplainAnswer`.
    """
    fields = escaped(explanation)
    filled = [name for name, value in fields.items() if value not in (None, "")]
    return make_answer(**select(fields, filled))


def sync_answer(result: UpToDate) -> Answer:
    """Return that the index is up to date.

    Args:
        result: Answer of the method "sync".

    Returns:
        A `schema.SyncAnswer`.
    """
    return {"note": "Up to date.", "waited_s": round(result.waited_s, 2)}


def error_answer(message: str, hint: str) -> Answer:
    """Return what went wrong, and what to do about it; the names in both are in `names`.

    Args:
        message: What happened, its names quoted by `core.quoting`.
        hint: What to do; "" when there is nothing to do.
    """
    words = OwnWords()
    sentences = {"error": message, "hint": hint}
    own = {name: words.without_names(escape_line(text)) for name, text in sentences.items() if text}
    return make_answer(names=fitting_names(words, DEFAULT_TOKEN_BUDGET), **own)


def _place(chunk: Mapping[str, Any]) -> Answer:
    """Return where a chunk is: its file and lines, or the program and time of a conversation."""
    if chunk["session"]:
        filled = [name for name in ("source", "at") if chunk[name]]
        return {name: cut_field(chunk[name], MAX_FIELD_TOKENS) for name in filled}
    names = ("file",) if chunk["file"] else ("root", "path")
    lines = {name: chunk[name] for name in ("start_line", "end_line")}
    date = {"date": chunk["date"][:_DAY_LENGTH]} if chunk.get("date") else {}
    return {name: cut_field(chunk[name], MAX_PATH_TOKENS) for name in names} | lines | date


def _section(chunk: Mapping[str, Any]) -> str:
    """Return the headings above a chunk, or what its conversation is called."""
    return cut_field(chunk.get("heading") or chunk["section"], MAX_SECTION_TOKENS)
