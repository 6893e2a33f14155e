"""What a configuration means: the value of each key, and how each root and kind is chunked.

Chunking keys have four levels. Each overrides those before it: [chunking], [kind.NAME], the keys of
a [[root]], and its [root.kinds.NAME].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from anchord.config.key_errors import key_first
from anchord.config.schema import (
    DOCUMENT_KINDS,
    TABLES,
    Config,
    KindConfig,
    KindsConfig,
    RootConfig,
    check_strategy,
)
from anchord.config.strategies import OptionValue, ignored_keys, with_strategy_defaults
from anchord.errors import UsageError

RootChunking = Mapping[str, Mapping[str, OptionValue]]
"""The chunking keys that a root sets: kind -> key -> value. The kind "" is all kinds."""

NO_OVERRIDES: RootChunking = {}


def parse_chunking_options(options: Mapping[str, Any]) -> dict[str, OptionValue]:
    """Check keys of [chunking] that a program passed, and add the strategy's defaults.

    Args:
        options: Any keys of `KindConfig`.

    Returns:
        As `config.strategies.with_strategy_defaults`.

    Raises:
        UsageError: A value is of the wrong type or out of range.
        ConfigError: The strategy is unknown.
    """
    try:
        table = msgspec.convert(dict(options), KindConfig)
    except msgspec.ValidationError as error:
        message = key_first(str(error))
        hint = "leave it out to use the strategy's default"
        raise UsageError(message, hint) from None
    set_values = _set_values(table)
    strategy = set_values.get("strategy", "")
    check_strategy(strategy)
    return with_strategy_defaults(set_values)


def chunking_of_root(root: RootConfig) -> dict[str, dict[str, OptionValue]]:
    """Return the chunking keys that a [[root]] table sets, without kinds that set none."""
    own_by_kind = {"": _set_values(root)}
    own_by_kind |= {kind: _set_values(table) for kind, table in _kind_tables(root.kinds)}
    return {kind: own for kind, own in own_by_kind.items() if own}


def chunking_by_kind(
    config: Config, root_chunking: RootChunking = NO_OVERRIDES, strategy: str = ""
) -> dict[str, dict[str, OptionValue]]:
    """Return the effective chunking options of each kind of document.

    Args:
        config: The configuration.
        root_chunking: What the documents' root sets.
        strategy: Strategy to use whatever is configured; "" uses the configured one.

    Returns:
        Kind -> options as of `config.strategies.with_strategy_defaults`.
    """
    chunking = _set_values(config.chunking)
    options_by_kind = {}
    for kind, table in _kind_tables(config.kind):
        overrides = (
            root_chunking.get("", {}),
            root_chunking.get(kind, {}),
            {"strategy": strategy} if strategy else {},
        )
        # A root that names a strategy wants it, whatever `enabled` is elsewhere.
        enabling = ({"enabled": True, **keys} if "strategy" in keys else keys for keys in overrides)
        options_by_kind[kind] = with_strategy_defaults(
            _override(chunking, _set_values(table), *enabling)
        )
    return options_by_kind


def find_ignored_keys(config: Config) -> list[str]:
    """Return the chunking keys that are set and have no effect, of any table.

    A key of [chunking] has an effect when any strategy in use uses it, and a key of a [[root]] when
    the strategy of any kind in that root does.
    """
    chunking = _set_values(config.chunking)
    strategies_in_use = _strategies_in_use(config)
    ignored = [f"chunking.{key}" for key in _unused_by_all(chunking, strategies_in_use)]
    for kind, table in _kind_tables(config.kind):
        own = _set_values(table)
        strategy = own.get("strategy", config.chunking.strategy)
        ignored += [f"kind.{kind}.{key}" for key in _unused_by_all(own, {strategy})]
    for root in config.root:
        root_chunking = chunking_of_root(root)
        strategies = _strategy_by_kind(config, root_chunking)
        for kind, own in root_chunking.items():
            used_with = {strategies[kind]} if kind else set(strategies.values())
            prefix = _root_prefix(root, kind)
            ignored += [prefix + key for key in _unused_by_all(own, used_with)]
    return ignored


def iter_effective_values(config: Config) -> Iterator[tuple[str, Any]]:
    """Yield (key, effective value) in the order of the tables, such as ("watch.poll_s", 5.0).

    Of [kind.NAME] and [[room]] only the keys that are set are included, of [[model]] only the
    paths, and of [[root]] only the chunking keys that are set, as "root.NAME.max_chars" and
    "root.NAME.kinds.code.max_chars".
    """
    for table in TABLES:
        if table == "root":
            yield from _root_chunking_values(config)
        elif table == "chunking":
            yield from _effective_chunking(config)
        elif table == "kind":
            yield from _set_kind_values(config)
        elif table == "room":
            for room in config.room:
                yield f"room.{room.name}.keywords", room.keywords
                yield f"room.{room.name}.paths", room.paths
        elif table == "model":
            for model in config.model:
                yield f"model.{model.name}.path", model.path
        else:
            values = msgspec.structs.asdict(getattr(config, table))
            for key, value in values.items():
                if not isinstance(value, dict):
                    yield f"{table}.{key}", value
            if table == "embedding":
                yield from _further_model_values(config)


def _further_model_values(config: Config) -> Iterator[tuple[str, Any]]:
    for name, options in config.embedding.further.items():
        for key, value in msgspec.structs.asdict(options).items():
            yield f"embedding.further.{name}.{key}", value
    for code, name in config.embedding.by_language.items():
        yield f"embedding.by_language.{code}", name
    for root in config.root:
        if root.embedding:
            yield f"{_root_prefix(root, '')}embedding", root.embedding


def _root_chunking_values(config: Config) -> Iterator[tuple[str, Any]]:
    for root in config.root:
        for kind, own in chunking_of_root(root).items():
            for key, value in own.items():
                yield f"{_root_prefix(root, kind)}{key}", value


def _root_prefix(root: RootConfig, kind: str) -> str:
    name = root.name or root.path
    return f"root.{name}.kinds.{kind}." if kind else f"root.{name}."


def _effective_chunking(config: Config) -> Iterator[tuple[str, Any]]:
    set_values = _set_values(config.chunking)
    defaults = with_strategy_defaults(set_values)
    effective_values = {"enabled": True, **defaults, **set_values}
    for key, value in effective_values.items():
        yield f"chunking.{key}", value


def _set_kind_values(config: Config) -> Iterator[tuple[str, Any]]:
    for kind, table in _kind_tables(config.kind):
        for key, value in _set_values(table).items():
            yield f"kind.{kind}.{key}", value


def _kind_tables(kinds: KindsConfig) -> Iterator[tuple[str, KindConfig]]:
    for name in DOCUMENT_KINDS:
        yield name, getattr(kinds, name)


def _set_values(table: KindConfig) -> dict[str, Any]:
    """Return the chunking keys of a table that are set."""
    values = msgspec.structs.asdict(table)
    other_keys = set(RootConfig.__struct_fields__) - set(KindConfig.__struct_fields__)
    return {
        name: value
        for name, value in values.items()
        if name not in other_keys and value is not None and value != ""
    }


def _override(*levels: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Merge tables. A later one comes later in the result too: an alias must not outlive it."""
    merged: dict[str, OptionValue] = {}
    for level in levels:
        for key, value in level.items():
            merged.pop(key, None)
            merged[key] = value
    return merged


def _unused_by_all(own: Mapping[str, OptionValue], strategies: set[OptionValue]) -> list[str]:
    """Return the keys that none of some strategies uses."""
    unused = set(own)
    for strategy in strategies:
        unused.intersection_update(ignored_keys({**own, "strategy": strategy}))
    return [key for key in own if key in unused]


def _strategy_by_kind(config: Config, root_chunking: RootChunking) -> dict[str, OptionValue]:
    by_kind = chunking_by_kind(config, root_chunking)
    return {kind: options["strategy"] for kind, options in by_kind.items()}


def _strategies_in_use(config: Config) -> set[OptionValue]:
    roots = [NO_OVERRIDES, *(chunking_of_root(root) for root in config.root)]
    return {strategy for own in roots for strategy in _strategy_by_kind(config, own).values()}
