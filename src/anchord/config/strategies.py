"""The chunking strategies: which keys of [chunking] each of them uses, and their defaults.

`anchored` is anchord's own and the default. The other names and numbers are those of the programs
that the strategies come from, so that their users find what they are used to: `window` from
MemPalace; `semantic`, `sentences`, `paragraph` and `headers` from memex; `two_stage` from Vector
Memory; `recursive` from Claude Memory.
"""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT_STRATEGY = "anchored"

OptionValue = int | bool | str | None
"""Value of a key of [chunking]. None: the limit follows from the model's window and the text."""

_KEYS_OF_ALL: Mapping[str, OptionValue] = {
    "max_chunk_tokens": None,
    "max_heading_level_for_path": 6,
    "extract": None,
    "summaries": None,
}
"""Keys that every strategy uses. Whatever they say, no chunk exceeds the model's window."""

STRATEGIES: Mapping[str, Mapping[str, OptionValue]] = {
    "anchored": {
        **_KEYS_OF_ALL,
        "max_chars": None,
        "min_chars": None,
        "keep_code_blocks_intact": True,
    },
    "window": {**_KEYS_OF_ALL, "max_chars": 800, "overlap_chars": 100, "min_chars": 50},
    "exchange": {**_KEYS_OF_ALL, "rule_ends_exchange": True},
    "headers": _KEYS_OF_ALL,
    "paragraph": {**_KEYS_OF_ALL, "min_chunk_tokens": None},
    "semantic": {
        **_KEYS_OF_ALL,
        "max_chunk_tokens": 256,
        "overlap_tokens": 32,
        "min_chunk_tokens": 20,
    },
    "sentences": {**_KEYS_OF_ALL, "min_chunk_tokens": None},
    "two_stage": {**_KEYS_OF_ALL, "max_chunk_tokens": 450, "overlap_tokens": 50},
    "recursive": {**_KEYS_OF_ALL, "max_chars": 1400, "overlap_chars": 280},
}
"""Strategy -> the keys that it uses -> their defaults."""

WHOLE_TEXT_STRATEGY = "whole"
"""The strategy of `enabled = false`: a text is split only where it exceeds the model's window."""

KEY_ALIASES: Mapping[str, Mapping[str, str]] = {
    "window": {
        "chunk_size": "max_chars",
        "chunk_overlap": "overlap_chars",
        "min_chunk_size": "min_chars",
    },
    "recursive": {"chunk_size": "max_chars", "chunk_overlap": "overlap_chars"},
    "two_stage": {"chunk_size": "max_chunk_tokens", "chunk_overlap": "overlap_tokens"},
}
"""Strategy -> a key as the strategy's original program calls it -> the key of [chunking]."""


def with_strategy_defaults(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Return every key that a strategy uses, with its value.

    Args:
        options: Keys of [chunking], including `strategy` and `enabled`. None means not set.

    Returns:
        `strategy` (the default one when not set, `WHOLE_TEXT_STRATEGY` when `enabled` is False)
        and its keys, with the given values or else the defaults. Aliases are resolved; keys that
        the strategy does not use are dropped.
    """
    strategy = _strategy_name(options)
    if options.get("enabled") is False:
        strategy = WHOLE_TEXT_STRATEGY
    defaults = STRATEGIES.get(strategy, _KEYS_OF_ALL)
    aliases = KEY_ALIASES.get(strategy, {})
    given = {key: value for key, value in options.items() if value is not None}
    values = {aliases.get(key, key): value for key, value in given.items()}
    effective = {key: values.get(key, default) for key, default in defaults.items()}
    return {"strategy": strategy, **effective}


def ignored_keys(options: Mapping[str, OptionValue]) -> list[str]:
    """Return the keys that are set and that the strategy does not use.

    Args:
        options: Keys of [chunking], including `strategy`. None means not set.
    """
    strategy = _strategy_name(options)
    used_keys = {
        "strategy",
        "enabled",
        *STRATEGIES.get(strategy, _KEYS_OF_ALL),
        *KEY_ALIASES.get(strategy, {}),
    }
    return [key for key, value in options.items() if value is not None and key not in used_keys]


def _strategy_name(options: Mapping[str, OptionValue]) -> str:
    return str(options.get("strategy") or DEFAULT_STRATEGY)
