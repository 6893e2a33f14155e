"""Answers for language models: the daemon's JSON results -> structured answers of few tokens.

What files and conversations say is untrusted. So every string of a result is escaped before
anything is made of it, and is put into an answer as one field. The sentences of an answer (note,
degraded, error, hint) are anchord's own words: the names in them are in the field `names`.
`render` turns an answer into text. The forms of answers are in `schema`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anchord.core.quoting import escape_fields, escape_line
from anchord.core.token_counts import cut_field, field_tokens, token_upper_bound
from anchord.ipc.messages.base import Message
from anchord.ipc.messages.roots import RootAnswer
from anchord.ipc.messages.searching import ExplainAnswer, SearchAnswer, ShowAnswer
from anchord.ipc.messages.status import StatusAnswer
from anchord.ipc.messages.upkeep import SyncAnswer as UpToDate
from anchord.mcp.own_words import OwnWords
from anchord.mcp.render import NOTICE, encode, render_answer

DEFAULT_TOKEN_BUDGET = 1_800
"""Tokens of an answer when the agent does not ask for another size."""

Answer = dict[str, Any]
"""One of the types of `schema`, or an error."""

_MIN_EXCERPT_TOKENS = 30
_MIN_PASSAGES_TOKENS = 300
"""A passage with a long path and long headings fits in so many; its text is cut to what is left."""
"""Below this an excerpt is not worth its place."""
_MAX_FIELD_TOKENS = 120
"""Of a field of one line that is neither a path nor a section."""
_MAX_SECTION_TOKENS = 60
_MAX_PATH_TOKENS = 200
"""So that a single odd path cannot keep everything else out of an answer."""
_OMITTED_TOKENS = 12
"""The count of what is left out."""
_FRAME_TOKENS = 80
"""The notice, the names of fields and the count of what is left out, in an answer of `search`."""
_SEPARATOR_TOKENS = 2
"""The comma and the line end after an entry."""
_MAX_COPIES = 3
_MAX_FAILURES = 4
_MAX_ROOTS = 40
_MAX_NAME_TOKENS = 40
_NAMES_SHARE = 4
"""The names of an answer may have this part of its budget: the others are left out."""
_MAX_REASONS = 6
_DAY_LENGTH = len("2026-01-31")
_ID_CHARS = 12
"""Characters of an id that an agent sees; `show` accepts the beginning of an id."""

_LONGEST_LINE = 4_100
"""Characters of a heading, a title or a name; a path has at most 4,096 bytes."""


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
    result = _escaped(found)
    words = OwnWords()
    note = _search_note(result, words)
    names = _fitting_names(words, token_budget)
    off_topic = {} if found.about else {"about": False}
    answer = _answer(note=note, names=names, **off_topic, results=[])
    tokens_left = token_budget - _OMITTED_TOKENS - token_upper_bound(render_answer(answer))
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
            tokens_left -= _entry_tokens(entry)
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
    note = cut_field(words.without_names(result["note"]), _MAX_FIELD_TOKENS)
    return ". ".join(filter(None, (note, advice)))


def _search_entry(passage: Mapping[str, Any], tokens_left: int) -> Answer | None:
    """Return a passage, its text cut to fit; None when the tokens left do not suffice for it."""
    entry: Answer = {
        **_place(passage),
        "section": _section(passage),
        "id": _short_id(passage["id"]),
        "score": round(passage["score"], 2),
        "text": "",
    }
    if passage["confidence"]:
        entry["confidence"] = passage["confidence"]
    if passage["also_at"]:
        entry["also_at"] = list(map(_copy_place, passage["also_at"][:_MAX_COPIES]))
    text_tokens = tokens_left - _entry_tokens(entry)
    if text_tokens < min(_MIN_EXCERPT_TOKENS, field_tokens(passage["text"])):
        return None
    entry["text"] = cut_field(passage["text"], text_tokens)
    return entry


def _copy_place(copy: Mapping[str, Any]) -> str:
    """Return the file and first line of a copy."""
    file = cut_field(copy["file"] or copy["path"], _MAX_SECTION_TOKENS)
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
    result = _escaped(found)
    chunks = result["chunks"]
    if not chunks:
        return _answer(
            note="It is no longer indexed; search again.",
            chunks=[],
        )
    ids = {"previous": result["previous"], "next": result["next"]}
    ends = {"previous": "0" * _ID_CHARS, "next": "0" * _ID_CHARS}
    conversation = _conversation(result.get("conversation"))
    frame = render_answer({**_answer(chunks=[]), **ends, **conversation})
    tokens_left = token_budget - token_upper_bound(frame)
    shown: list[Answer] = []
    for chunk in chunks:
        entry = _chunk_entry(chunk)
        tokens = _entry_tokens(entry)
        if shown and tokens > tokens_left:
            ids["next"] = chunk["id"]
            break
        if tokens > tokens_left:
            whole_text = entry.pop("text")
            entry["text"] = ""
            entry["text"] = cut_field(whole_text, tokens_left - _entry_tokens(entry))
        shown.append(entry)
        tokens_left -= tokens
    neighbors = {name: _short_id(chunk_id) for name, chunk_id in ids.items() if chunk_id}
    return {**_answer(chunks=shown), **neighbors, **conversation}


def _chunk_entry(chunk: Mapping[str, Any]) -> Answer:
    return {
        **_place(chunk),
        "section": _section(chunk),
        "id": _short_id(chunk["id"]),
        "text": chunk["text"],
    }


def _conversation(conversation: Mapping[str, Any] | None) -> Answer:
    """Return where an exchange is in its conversation; nothing for other chunks."""
    if not conversation:
        return {}
    position: Answer = {
        "exchange": conversation["number"],
        "exchanges": conversation["exchanges"],
        "session": cut_field(conversation["session"], _MAX_FIELD_TOKENS),
        "source": cut_field(conversation["source"], _MAX_FIELD_TOKENS),
    }
    for direction in ("previous", "next"):
        neighbor = conversation[direction]
        if neighbor:
            position[direction] = _short_id(neighbor["id"])
    return {"conversation": position}


def status_answer(status: StatusAnswer) -> Answer:
    """Return the state of the index, and why it is degraded if it is.

    Args:
        status: Answer of the method "status".

    Returns:
        A `schema.StatusAnswer`.
    """
    report = _escaped(status)
    failures = report["failed"]
    words = OwnWords()
    reasons = list(map(words.without_names, report["degraded"][:_MAX_REASONS]))
    answer = _answer(
        names=_fitting_names(words, DEFAULT_TOKEN_BUDGET),
        state=report["state"],
        files=report["files"],
        chunks=report["chunks"],
        pending_files=report["pending"],
        degraded=[cut_field(reason, _MAX_FIELD_TOKENS) for reason in reasons],
    )
    commit_age = report["last_commit_age_s"]
    if commit_age is not None:
        answer["last_change_indexed_s_ago"] = round(commit_age)
    answer["failed_files"] = len(failures)
    failed = [_select(failure, ("path", "reason")) for failure in failures[:_MAX_FAILURES]]
    roots = [_select(root, ("name", "state", "files", "path")) for root in report["roots"]]
    return _with_entries(_with_entries(answer, "failed", failed), "roots", roots[:_MAX_ROOTS])


def roots_answer(roots: Sequence[RootAnswer]) -> Answer:
    """Return the list of indexed folders.

    Args:
        roots: Answer of the method "roots".

    Returns:
        A `schema.RootsAnswer`.
    """
    if not roots:
        advice = "No folders are indexed yet. The user can add one: anchord add FOLDER"
        return _answer(note=advice, roots=[])
    keys = ("name", "path", "kind", "files", "chunks")
    entries = [_select(root, keys) for root in map(_escaped, roots)]
    return _with_entries(_answer(), "roots", entries)


def explain_answer(explanation: ExplainAnswer) -> Answer:
    """Return whether a file is indexed, and why. Empty values are left out.

    Args:
        explanation: Answer of the method "explain".

    Returns:
        A `schema.ExplainAnswer`.
    """
    fields = _escaped(explanation)
    filled = [name for name, value in fields.items() if value not in (None, "")]
    return _answer(**_select(fields, filled))


def sync_answer(result: UpToDate) -> Answer:
    """Return that the index is up to date.

    Args:
        result: Answer of the method "sync".

    Returns:
        A `schema.SyncAnswer`.
    """
    return {"note": "Up to date.", "waited_s": round(result.waited_s, 2)}


def _escaped(message: Message) -> dict[str, Any]:
    """Return an answer of the daemon as JSON values, each string of it cut and escaped."""
    fields: dict[str, Any] = escape_fields(_cut_lines(message.as_json()))
    return fields


def _cut_lines(value: Any, key: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """Cut every string of a JSON value, but for texts, after the most that an answer can show.

    A heading of 200,000 characters stands in several fields of each chunk below it: to escape them
    all would take half a minute.
    """
    if isinstance(value, str):
        is_long = key != "text" and len(value) > _LONGEST_LINE
        return f"{value[:_LONGEST_LINE]}\u2026" if is_long else value
    if isinstance(value, Mapping):
        return {name: _cut_lines(member, name) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_cut_lines(member, key) for member in value]
    return value


def error_answer(message: str, hint: str) -> Answer:
    """Return what went wrong, and what to do about it; the names in both are in `names`.

    Args:
        message: What happened, its names quoted by `core.quoting`.
        hint: What to do; "" when there is nothing to do.
    """
    words = OwnWords()
    sentences = {"error": message, "hint": hint}
    own = {name: words.without_names(escape_line(text)) for name, text in sentences.items() if text}
    return _answer(names=_fitting_names(words, DEFAULT_TOKEN_BUDGET), **own)


def _answer(note: str = "", names: Sequence[str] = (), **fields: Any) -> Answer:  # noqa: ANN401 - any JSON values
    notes: Answer = {"note": note} if note else {}
    if names:
        notes["names"] = list(names)
    return {"notice": NOTICE, **notes, **fields}


def _fitting_names(words: OwnWords, token_budget: int) -> list[str]:
    tokens_left = token_budget // _NAMES_SHARE
    fitting: list[str] = []
    for name in words.names:
        shown = cut_field(name, _MAX_NAME_TOKENS)
        tokens_left -= field_tokens(shown) + _SEPARATOR_TOKENS
        if tokens_left < 0:
            break
        fitting.append(shown)
    return fitting


def _with_entries(answer: Answer, name: str, entries: Sequence[Answer]) -> Answer:
    """Add as many entries as fit the default budget; the others are counted as omitted."""
    tokens_left = DEFAULT_TOKEN_BUDGET - _OMITTED_TOKENS
    tokens_left -= token_upper_bound(render_answer({**answer, name: []}))
    kept: list[Answer] = []
    for entry in entries:
        tokens_left -= _entry_tokens(entry)
        if tokens_left < 0:
            break
        kept.append(entry)
    omitted = answer.get("omitted", 0) + len(entries) - len(kept)
    return {**answer, name: kept, **({"omitted": omitted} if omitted else {})}


def _select(record: Mapping[str, Any], keys: Sequence[str]) -> Answer:
    """Return these values of a record, its strings cut to what is worth its place."""
    selected: Answer = {}
    for key in keys:
        value = record[key]
        limit = _MAX_PATH_TOKENS if key == "path" else _MAX_FIELD_TOKENS
        selected[key] = cut_field(value, limit) if isinstance(value, str) else value
    return selected


def _entry_tokens(entry: Answer) -> int:
    return token_upper_bound(encode(entry)) + _SEPARATOR_TOKENS


def _place(chunk: Mapping[str, Any]) -> Answer:
    """Return where a chunk is: its file and lines, or the program and time of a conversation."""
    if chunk["session"]:
        filled = [name for name in ("source", "at") if chunk[name]]
        return {name: cut_field(chunk[name], _MAX_FIELD_TOKENS) for name in filled}
    names = ("file",) if chunk["file"] else ("root", "path")
    lines = {name: chunk[name] for name in ("start_line", "end_line")}
    date = {"date": chunk["date"][:_DAY_LENGTH]} if chunk.get("date") else {}
    return {name: cut_field(chunk[name], _MAX_PATH_TOKENS) for name in names} | lines | date


def _section(chunk: Mapping[str, Any]) -> str:
    """Return the headings above a chunk, or what its conversation is called."""
    return cut_field(chunk.get("heading") or chunk["section"], _MAX_SECTION_TOKENS)


def _short_id(chunk_id: str) -> str:
    return chunk_id[:_ID_CHARS]
