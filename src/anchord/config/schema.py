"""The schema of the configuration file, with all defaults, and the parser that checks a text.

An unknown key is refused with the most similar known one, a wrong value with its line. This module
reads no file; `config.file` does.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from anchord.config.key_errors import Table, did_you_mean, key_first, refuse_unknown_keys
from anchord.config.strategies import (
    DEFAULT_STRATEGY,
    STRATEGIES,
    OptionValue,
    ignored_keys,
    with_strategy_defaults,
)
from anchord.config.toml_positions import find_key_line
from anchord.errors import ConfigError, UsageError

CONFIG_VERSION = 1
"""Version of the schema. A file with a higher `version` is refused."""

_HOUR_MS = 3_600_000
_YEAR_S = 31_536_000


class RootConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A [[root]] table."""

    path: str
    """Absolute path of the folder, or one that starts with ~."""
    kind: Literal["project", "conversations"] = "project"
    name: str = ""
    """"" uses the name of the folder."""
    include: tuple[str, ...] = ()
    """Patterns in .gitignore syntax; see `core.types.Root`."""
    exclude: tuple[str, ...] = ()
    strategy: str = ""
    """Chunking strategy for all documents of this root; it overrides [kind.NAME] and [chunking]."""
    on_delete: Literal["keep", "delete"] = "keep"
    """Whether exchanges outlive their transcript file; assistants delete theirs after a while."""


_Size = Annotated[int, Meta(ge=64, le=100_000)]
_PartialSize = Annotated[int, Meta(ge=0, le=100_000)]


class KindConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of [chunking], and of [kind.NAME] for one kind of document. None means not set.

    `config.strategies` says which strategy uses which key, and holds their defaults.
    """

    enabled: bool | None = None
    """False splits a text only where it exceeds the model's window."""
    strategy: str | None = None
    max_chars: _Size | None = None
    min_chars: _PartialSize | None = None
    overlap_chars: _PartialSize | None = None
    max_chunk_tokens: Annotated[int, Meta(ge=64, le=8192)] | None = None
    overlap_tokens: _PartialSize | None = None
    min_chunk_tokens: _PartialSize | None = None
    chunk_size: _Size | None = None
    """This key and the next two are aliases (`config.strategies.KEY_ALIASES`)."""
    chunk_overlap: _PartialSize | None = None
    min_chunk_size: _PartialSize | None = None
    max_heading_level_for_path: Annotated[int, Meta(ge=1, le=6)] | None = None
    keep_code_blocks_intact: bool | None = None
    rule_ends_exchange: bool | None = None


class ChunkingConfig(KindConfig, frozen=True, kw_only=True):
    """The [chunking] table."""

    enabled: bool = True
    strategy: str = DEFAULT_STRATEGY
    extract: Literal["exchange", "general"] | None = None
    summaries: bool | None = None
    """True also indexes the summaries that programs wrote of conversations."""


class KindsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The [kind.NAME] tables. Their keys override [chunking], and are overridden by a root's."""

    markdown: KindConfig = KindConfig()
    text: KindConfig = KindConfig()
    code: KindConfig = KindConfig()
    exchange: KindConfig = KindConfig()
    attachment: KindConfig = KindConfig()
    summary: KindConfig = KindConfig()


DOCUMENT_KINDS = KindsConfig.__struct_fields__
"""The kinds of documents that can have a [kind.NAME] table."""


class EmbeddingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The [embedding] table. The fields from `url` on are used with `provider = "openai"` only."""

    provider: Literal["sentence-transformers", "openai", "hash"] = "sentence-transformers"
    model: str = "all-MiniLM-L6-v2"
    precision: Literal["fp32", "int8"] = "fp32"
    idle_unload_s: Annotated[float, Meta(gt=0, le=_YEAR_S)] = 300.0
    """Seconds without work after which the model is unloaded."""
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Threads of the model; 0 uses half of the processors."""
    max_growth_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 1_000
    """Memory growth after which the embedding process is restarted; 0 for no limit."""
    on_battery: Literal["continue", "pause"] = "continue"
    """Whether a backlog is embedded on battery. Single saves and queries always are."""
    url: str = ""
    """URL of the server, up to and including `/v1`."""
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key. The key itself is in no file."""
    dimension: Annotated[int, Meta(ge=0, le=65_536)] = 0
    """Numbers in a vector; 0 takes the server's first answer."""
    max_tokens: Annotated[int, Meta(ge=64, le=8_192)] = 254
    """The model's window in tokens."""
    query_prefix: str = ""
    """Put before every query."""
    text_prefix: str = ""
    """Put before every document text."""


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The [search] table."""

    reranker: str = ""
    """A CrossEncoder that reorders the best hits: a folder, or an id in the local cache."""


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The [store] table."""

    uri: str = ""
    """Folder or LanceDB URI of the table; "" for the data folder."""
    max_memory_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 2_000
    """Memory above which the daemon restarts itself; 0 for no limit."""


class WatchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The [watch] table."""

    mode: Literal["auto", "events", "poll"] = "auto"
    settle_ms: Annotated[int, Meta(gt=0, le=_HOUR_MS)] = 200
    """Milliseconds without a further change before a file is indexed."""
    max_wait_ms: Annotated[int, Meta(gt=0, le=_HOUR_MS)] = 2000
    """Milliseconds after its first change at which a file is indexed in any case."""
    reconcile_s: Annotated[float, Meta(gt=0, le=_YEAR_S)] = 900.0
    """Seconds between two walks of all roots, which find changes without an event."""
    poll_s: Annotated[float, Meta(gt=0, le=_YEAR_S)] = 5.0
    """Seconds between two walks of a root whose folders cannot be watched."""


class PrivacyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The [privacy] table."""

    redact: Literal["all", "conversations", "off"] | bool = "all"
    """Where secrets are replaced before anything is stored: in conversations and project files, in
    conversations alone, or nowhere. `true` is "all", `false` is "off"."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration: one field per table, with all defaults."""

    version: Annotated[int, Meta(ge=1)] = CONFIG_VERSION

    root: tuple[RootConfig, ...] = ()
    chunking: ChunkingConfig = ChunkingConfig()
    kind: KindsConfig = KindsConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    search: SearchConfig = SearchConfig()
    store: StoreConfig = StoreConfig()
    watch: WatchConfig = WatchConfig()
    privacy: PrivacyConfig = PrivacyConfig()


_TABLES: dict[str, Table] = {
    "root": RootConfig,
    "chunking": ChunkingConfig,
    "kind": KindsConfig,
    "embedding": EmbeddingConfig,
    "search": SearchConfig,
    "store": StoreConfig,
    "watch": WatchConfig,
    "privacy": PrivacyConfig,
}
_KIND_TABLES: dict[str, Table] = dict.fromkeys(DOCUMENT_KINDS, KindConfig)
_INNER_TABLES: dict[Table, dict[str, Table]] = {Config: _TABLES, KindsConfig: _KIND_TABLES}


def parse_config(text: str, source_name: str) -> Config:
    """Parse and check a configuration.

    Args:
        text: TOML.
        source_name: How to name the text in messages; usually the path of its file.

    Raises:
        ConfigError: The text is not TOML, a key is unknown, or a value is of the wrong type, out
            of range, or unusable.
    """
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Besides TOMLDecodeError: a number of 5,000 digits, arrays nested 1,000 deep.
        raise ConfigError(
            f"{source_name}: {error}", "fix the line, then run `anchord config check`"
        ) from None
    version = raw.get("version")
    if isinstance(version, int) and version > CONFIG_VERSION:
        raise ConfigError(
            f"{source_name} is written for a newer anchord (version {version})", "update anchord"
        )

    def locate(key: str) -> str:
        """Return `FILE:LINE` as editors open it, or the file alone."""
        line = find_key_line(text, key)
        if not line:
            return source_name
        return f"{source_name}:{line}"

    refuse_unknown_keys(raw, Config, _INNER_TABLES, locate)
    try:
        config = msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        message = key_first(str(error))
        key, _, _ = message.partition(":")
        place = locate(key)
        raise ConfigError(
            f"{place}: {message}", "`anchord config show` lists the keys with their values"
        ) from None
    _refuse_unusable_values(config, locate)
    return config


def make_root_config(path: str, kind: str, name: str) -> RootConfig:
    """Create a root from the arguments of a command, with the checks of a [[root]] table.

    Args:
        path: The folder; it is not looked at.
        kind: "project" or "conversations".
        name: Name of the root; "" for that of its folder.

    Raises:
        ConfigError: The kind is unknown, or the path is empty or contains a NUL.
    """
    if kind not in ("project", "conversations"):
        message = f"unknown kind of root `{kind}`"
        hint = 'use "project" or "conversations"'
        raise ConfigError(message, hint)
    known_kind = cast("Any", kind)
    entry = RootConfig(path=path, kind=known_kind, name=name)
    config = Config(root=(entry,))
    _refuse_unusable_values(config, lambda _: "PATH")
    return entry


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


def find_ignored_keys(config: Config) -> list[str]:
    """Return the keys of [chunking] and [kind.NAME] that are set and have no effect.

    A key of [chunking] has an effect when any strategy in use uses it.
    """
    chunking = _set_values(config.chunking)
    unused_keys = set(chunking)
    strategies_in_use = _strategies_in_use(config)
    for strategy in strategies_in_use:
        unused_by_strategy = _unused_keys(chunking, strategy)
        unused_keys.intersection_update(unused_by_strategy)
    ignored = [f"chunking.{key}" for key in chunking if key in unused_keys]
    ignored += _ignored_kind_keys(config)
    return ignored


def _ignored_kind_keys(config: Config) -> Iterator[str]:
    for kind, table in _kind_tables(config):
        set_values = _set_values(table)
        strategy = set_values.get("strategy", config.chunking.strategy)
        for key in _unused_keys(set_values, strategy):
            yield f"kind.{kind}.{key}"


def _unused_keys(set_values: Mapping[str, Any], strategy: OptionValue) -> list[str]:
    """Return those keys of a table that a strategy does not use."""
    options = {**set_values, "strategy": strategy}
    return ignored_keys(options)


def chunking_by_kind(config: Config, strategy: str = "") -> dict[str, dict[str, OptionValue]]:
    """Return the effective chunking options of each kind of document.

    Args:
        config: The configuration.
        strategy: Strategy that a root sets for all its documents; "" when it sets none.

    Returns:
        Kind -> options as of `config.strategies.with_strategy_defaults`.
    """
    override: dict[str, Any] = {}
    if strategy:
        override = {"strategy": strategy, "enabled": True}
    chunking = _set_values(config.chunking)
    options_by_kind = {}
    for kind, table in _kind_tables(config):
        kind_values = _set_values(table)
        set_values = {**chunking, **kind_values, **override}
        options_by_kind[kind] = with_strategy_defaults(set_values)
    return options_by_kind


def iter_effective_values(config: Config) -> Iterator[tuple[str, Any]]:
    """Yield (key, effective value) in the order of the tables, such as ("watch.poll_s", 5.0).

    Of [[root]] only strategies are included, as "root.NAME.strategy", and of [kind.NAME] only the
    keys that are set.
    """
    for table in _TABLES:
        if table == "root":
            yield from _root_strategies(config)
        elif table == "chunking":
            yield from _effective_chunking(config)
        elif table == "kind":
            yield from _set_kind_values(config)
        else:
            other_table = getattr(config, table)
            values = msgspec.structs.asdict(other_table)
            for key, value in values.items():
                yield f"{table}.{key}", value


def _root_strategies(config: Config) -> Iterator[tuple[str, Any]]:
    for root in config.root:
        if root.strategy:
            name = root.name or root.path
            yield f"root.{name}.strategy", root.strategy


def _effective_chunking(config: Config) -> Iterator[tuple[str, Any]]:
    set_values = _set_values(config.chunking)
    defaults = with_strategy_defaults(set_values)
    effective_values = {"enabled": True, **defaults, **set_values}
    for key, value in effective_values.items():
        yield f"chunking.{key}", value


def _set_kind_values(config: Config) -> Iterator[tuple[str, Any]]:
    for kind, table in _kind_tables(config):
        set_values = _set_values(table)
        for key, value in set_values.items():
            yield f"kind.{kind}.{key}", value


def check_strategy(strategy: str, message_prefix: str = "") -> None:
    """Refuse an unknown strategy.

    Args:
        strategy: Name of a strategy; "" is accepted as "none set".
        message_prefix: Put before the message, such as "FILE:LINE: ".

    Raises:
        ConfigError: The strategy is unknown.
    """
    if not strategy or strategy in STRATEGIES:
        return
    hint = did_you_mean(strategy, STRATEGIES)
    if not hint:
        names = ", ".join(STRATEGIES)
        hint = f"there are: {names}"
    message = f"unknown strategy `{strategy}`"
    raise ConfigError(message_prefix + message, hint)


def _kind_tables(config: Config) -> Iterator[tuple[str, KindConfig]]:
    for name in DOCUMENT_KINDS:
        table = getattr(config.kind, name)
        yield name, table


def _set_values(table: KindConfig) -> dict[str, Any]:
    """Return the keys of a table that are set."""
    values = msgspec.structs.asdict(table)
    return {name: value for name, value in values.items() if value is not None}


def _strategies_in_use(config: Config) -> set[OptionValue]:
    root_strategies = ["", *(root.strategy for root in config.root)]
    return {
        options["strategy"]
        for root_strategy in root_strategies
        for options in chunking_by_kind(config, root_strategy).values()
    }


def _refuse_unusable_values(config: Config, locate: Callable[[str], str]) -> None:
    """Refuse values of the right type that cannot work; `locate` returns where a key is set."""
    for key, strategy in _configured_strategies(config):
        place = locate(key)
        check_strategy(strategy, f"{place}: ")
    _refuse_unusable_url(config.embedding, locate)
    for number, root in enumerate(config.root):
        is_usable = root.path and "\0" not in root.path
        if is_usable:
            continue
        place = locate(f"root[{number}].path")
        message = f"{place}: root.path is not the path of a folder"
        hint = "give the folder's absolute path"
        raise ConfigError(message, hint)


def _configured_strategies(config: Config) -> Iterator[tuple[str, str]]:
    """Yield every key that can name a strategy, with its value; "" where it is not set."""
    yield "chunking.strategy", config.chunking.strategy
    for kind, table in _kind_tables(config):
        key = f"kind.{kind}.strategy"
        yield key, table.strategy or ""
    for number, root in enumerate(config.root):
        key = f"root[{number}].strategy"
        yield key, root.strategy


def _refuse_unusable_url(embedding: EmbeddingConfig, locate: Callable[[str], str]) -> None:
    if embedding.provider != "openai":
        return
    if embedding.url.startswith(("http://", "https://")):
        return
    key = "embedding.url" if embedding.url else "embedding.provider"
    place = locate(key)
    raise ConfigError(
        f"{place}: provider `openai` needs embedding.url, starting with http:// or https://",
        'use url = "http://localhost:11434/v1" for Ollama, for example',
    )
