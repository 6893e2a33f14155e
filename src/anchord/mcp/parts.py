"""What the answers for agents are made of: fields that are escaped, cut and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anchord.core.quoting import escape_fields
from anchord.core.token_counts import cut_field, field_tokens, token_upper_bound
from anchord.ipc.messages.base import Message
from anchord.mcp.own_words import OwnWords
from anchord.mcp.render import NOTICE, encode, render_answer

DEFAULT_TOKEN_BUDGET = 1_800
"""Tokens of an answer when the agent does not ask for another size."""

Answer = dict[str, Any]
"""One of the types of `schema`, or an error."""

MAX_FIELD_TOKENS = 120
"""Of a field of one line that is neither a path nor a section."""
MAX_SECTION_TOKENS = 60
MAX_PATH_TOKENS = 200
"""So that a single odd path cannot keep everything else out of an answer."""
OMITTED_TOKENS = 12
"""The count of what is left out."""
_SEPARATOR_TOKENS = 2
"""The comma and the line end after an entry."""
_MAX_NAME_TOKENS = 40
_NAMES_SHARE = 4
"""The names of an answer may have this part of its budget: the others are left out."""
ID_CHARS = 12
"""Characters of an id that an agent sees; `show` accepts the beginning of an id."""
_LONGEST_LINE = 4_100
"""Characters of a heading, a title or a name; a path has at most 4,096 bytes."""


def escaped(message: Message) -> dict[str, Any]:
    """Return an answer of the daemon as JSON values, each string of it cut and escaped."""
    return escaped_fields(message.as_json())


def escaped_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON values, each string of them cut and escaped; only "text" keeps line ends."""
    result: dict[str, Any] = escape_fields(_cut_lines(fields))
    return result


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


def make_answer(note: str = "", names: Sequence[str] = (), **fields: Any) -> Answer:  # noqa: ANN401 - any JSON values
    """Return an answer with these fields behind the notice, and without an empty note or names."""
    notes: Answer = {"note": note} if note else {}
    if names:
        notes["names"] = list(names)
    return {"notice": NOTICE, **notes, **fields}


def fitting_names(words: OwnWords, token_budget: int) -> list[str]:
    """Return the names in anchord's sentences, as many as fit their share of a budget."""
    tokens_left = token_budget // _NAMES_SHARE
    fitting: list[str] = []
    for name in words.names:
        shown = cut_field(name, _MAX_NAME_TOKENS)
        tokens_left -= field_tokens(shown) + _SEPARATOR_TOKENS
        if tokens_left < 0:
            break
        fitting.append(shown)
    return fitting


def with_entries(answer: Answer, name: str, entries: Sequence[Answer]) -> Answer:
    """Add as many entries as fit the default budget; the others are counted as omitted."""
    tokens_left = DEFAULT_TOKEN_BUDGET - OMITTED_TOKENS
    tokens_left -= token_upper_bound(render_answer({**answer, name: []}))
    kept: list[Answer] = []
    for entry in entries:
        tokens_left -= entry_tokens(entry)
        if tokens_left < 0:
            break
        kept.append(entry)
    omitted = answer.get("omitted", 0) + len(entries) - len(kept)
    return {**answer, name: kept, **({"omitted": omitted} if omitted else {})}


def select(record: Mapping[str, Any], keys: Sequence[str]) -> Answer:
    """Return these values of a record, its strings cut to what is worth its place."""
    selected: Answer = {}
    for key in keys:
        value = record[key]
        limit = MAX_PATH_TOKENS if key in {"path", "file"} else MAX_FIELD_TOKENS
        selected[key] = cut_field(value, limit) if isinstance(value, str) else value
    return selected


def entry_tokens(entry: Answer) -> int:
    """Return the tokens of a record in a list, at most."""
    return token_upper_bound(encode(entry)) + _SEPARATOR_TOKENS


def short_id(chunk_id: str) -> str:
    """Return the beginning of an id, which `show` accepts."""
    return chunk_id[:ID_CHARS]
