"""The chunking strategies by name: which keys of `[chunking]` each heeds, and its defaults.

The names and figures are those of the programs that the strategies come from (`window` of MemPalace, `semantic`, `sentences`,
`paragraph` and `headers` of memex, `two_stage` of Vector Memory, `recursive` of Claude Memory), so that a person who comes from
one of them finds what they know. `anchored` is our own and the default.
"""

from __future__ import annotations

from collections.abc import Mapping

Value = int | bool | str | None

_ALL: Mapping[str, Value] = {"max_chunk_tokens": None, "max_heading_level_for_path": 6, "extract": None, "summaries": None}
"""What every strategy heeds. No chunk is over the model's window, whatever is set."""

STRATEGIES: Mapping[str, Mapping[str, Value]] = {
    "anchored": {**_ALL, "max_chars": None, "min_chars": None, "keep_code_blocks_intact": True},
    "window": {**_ALL, "max_chars": 800, "overlap_chars": 100, "min_chars": 50},
    "exchange": {**_ALL, "rule_ends_exchange": True},
    "headers": _ALL,
    "paragraph": {**_ALL, "min_chunk_tokens": None},
    "semantic": {**_ALL, "max_chunk_tokens": 256, "overlap_tokens": 32, "min_chunk_tokens": 20},
    "sentences": {**_ALL, "min_chunk_tokens": None},
    "two_stage": {**_ALL, "max_chunk_tokens": 450, "overlap_tokens": 50},
    "recursive": {**_ALL, "max_chars": 1400, "overlap_chars": 280},
}
"""Strategy -> key -> default. None: as the model's window and the text give it."""

WHOLE = "whole"
"""What `enabled = false` stands for: a text is only cut where it does not fit the model's window."""

ALIASES: Mapping[str, Mapping[str, str]] = {
    "window": {"chunk_size": "max_chars", "chunk_overlap": "overlap_chars", "min_chunk_size": "min_chars"},
    "recursive": {"chunk_size": "max_chars", "chunk_overlap": "overlap_chars"},
    "two_stage": {"chunk_size": "max_chunk_tokens", "chunk_overlap": "overlap_tokens"},
}
"""Strategy -> the name that its origin has for a key -> the key."""


def effective(given: Mapping[str, Value]) -> dict[str, Value]:
    """Return a strategy's keys with the values given, and its defaults for the rest; `strategy` names it.

    Keys that the strategy does not heed are left out. `given` may hold None for what is not set.
    """
    name = WHOLE if given.get("enabled") is False else str(given.get("strategy") or "anchored")
    known = dict(STRATEGIES.get(name, _ALL))
    aliases = ALIASES.get(name, {})
    values = {aliases.get(key, key): value for key, value in given.items() if value is not None}
    return {"strategy": name, **{key: values.get(key, default) for key, default in known.items()}}


def unheeded(given: Mapping[str, Value]) -> list[str]:
    """Name the keys that are set and that the strategy does not heed."""
    name = str(given.get("strategy") or "anchored")
    known = {"strategy", "enabled", *STRATEGIES.get(name, _ALL), *ALIASES.get(name, {})}
    return [key for key, value in given.items() if value is not None and key not in known]
