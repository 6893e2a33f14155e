"""TOML text -> Config, one frozen tree with the defaults. The shell reads the file; below it nobody sees Config.

Unknown keys are refused by name with the nearest known one, wrong values with where they stand.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

import msgspec

from anchord.errors import ConfigError


class RootConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A `[[root]]` table."""

    path: str
    kind: Literal["project", "conversations"] = "project"
    name: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    strategy: str = ""


class ChunkingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[chunking]` table. None stands for the strategy's own value."""

    enabled: bool = True
    strategy: str = "anchored"
    max_chars: int | None = None
    min_chars: int | None = None
    max_chunk_tokens: int | None = None
    overlap_tokens: int | None = None
    min_chunk_tokens: int | None = None
    max_heading_level_for_path: int | None = None
    keep_code_blocks_intact: bool = True
    extract: str | None = None


class EmbeddingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[embedding]` table."""

    provider: Literal["sentence-transformers", "openai", "hash"] = "sentence-transformers"
    model: str = "all-MiniLM-L6-v2"
    idle_unload_s: float = 300.0
    threads: int = 0


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[store]` table."""

    uri: str = ""


class WatchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[watch]` table."""

    mode: Literal["auto", "events", "poll"] = "auto"
    settle_ms: int = 200
    max_wait_ms: int = 2000
    reconcile_s: float = 900.0
    poll_s: float = 5.0


class PrivacyConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[privacy]` table."""

    redact: bool = True


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The whole configuration."""

    root: tuple[RootConfig, ...] = ()
    chunking: ChunkingConfig = ChunkingConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    store: StoreConfig = StoreConfig()
    watch: WatchConfig = WatchConfig()
    privacy: PrivacyConfig = PrivacyConfig()


_TABLES: dict[str, type[msgspec.Struct]] = {
    "root": RootConfig,
    "chunking": ChunkingConfig,
    "embedding": EmbeddingConfig,
    "store": StoreConfig,
    "watch": WatchConfig,
    "privacy": PrivacyConfig,
}
_UNUSED_BY_ANCHORED = ("max_chars", "min_chars", "overlap_tokens", "min_chunk_tokens", "extract")


def parse_config(text: str, where: str) -> Config:
    """Read a configuration; `where` names it in messages.

    Raises:
        ConfigError: the text is no TOML, a key is unknown, a value is of the wrong kind or out of range.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: {error}", "mend the line; `anchord config check` reads it again") from None
    for key, known in _keys(raw):
        name = key.rsplit(".", 1)[-1]
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(sorted(known))}"
            raise ConfigError(f"{where}: unknown key `{key}`", hint)
    try:
        config = msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {_where(str(error))}", "`anchord config show` lists the keys with their values") from None
    _check(config, where)
    return config


def root_config(path: str, kind: str, name: str) -> RootConfig:
    """Return a root as a `[[root]]` table would give it.

    Raises:
        ConfigError: the kind is unknown, or not in this version.
    """
    if kind not in ("project", "conversations"):
        raise ConfigError(f"no kind of root is called `{kind}`", 'use "project"')
    entry = RootConfig(path=path, kind=cast("Any", kind), name=name)
    _check(Config(root=(entry,)), "--kind")
    return entry


def without_effect(config: Config) -> list[str]:
    """Name the keys that are set and that nothing in this version heeds."""
    ignored = [f"chunking.{name}" for name in _UNUSED_BY_ANCHORED if getattr(config.chunking, name) is not None]
    return ignored + ["chunking.keep_code_blocks_intact"] * (not config.chunking.keep_code_blocks_intact)


def values(config: Config) -> Iterator[tuple[str, Any]]:
    """Yield every key with its effective value, roots left out, in the order of the tables."""
    for table in _TABLES:
        if table != "root":
            for name, value in msgspec.structs.asdict(getattr(config, table)).items():
                yield f"{table}.{name}", value


def _keys(raw: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every key of the text with those known in its table."""
    for name, value in raw.items():
        yield name, tuple(_TABLES)
        tables = value if isinstance(value, list) else [value]
        known = _TABLES.get(name)
        for table in tables:
            if known is not None and isinstance(table, dict):
                yield from ((f"{name}.{key}", known.__struct_fields__) for key in table)


def _where(message: str) -> str:
    """`Expected `int`, got `str` - at `$.watch.settle_ms`` -> `watch.settle_ms: expected int, got str`."""
    text, _, path = message.partition(" - at ")
    place = path.strip("`").removeprefix("$.")
    text = text[:1].lower() + text[1:].replace("`", "")
    return f"{place}: {text}" if place else text


def _check(config: Config, where: str) -> None:
    """Refuse what parses but cannot be done."""
    for strategy in (config.chunking.strategy, *(root.strategy for root in config.root)):
        if strategy not in ("", "anchored"):
            raise ConfigError(f"{where}: strategy `{strategy}` is not in this version", 'use strategy = "anchored"')
    if config.embedding.provider == "openai":
        raise ConfigError(f"{where}: provider `openai` is not in this version", 'use provider = "sentence-transformers"')
    if any(root.kind == "conversations" for root in config.root):
        raise ConfigError(f"{where}: roots of kind `conversations` are not in this version", 'use kind = "project"')
    tokens = config.chunking.max_chunk_tokens
    smallest, largest = 64, 8192
    if tokens is not None and not smallest <= tokens <= largest:
        raise ConfigError(f"{where}: chunking.max_chunk_tokens is {tokens}", f"give {smallest} to {largest}")
    timings = {"settle_ms": config.watch.settle_ms, "max_wait_ms": config.watch.max_wait_ms}
    timings |= {"reconcile_s": int(config.watch.reconcile_s), "poll_s": int(config.watch.poll_s)}
    for name, value in timings.items():
        if value <= 0:
            raise ConfigError(f"{where}: watch.{name} must be above 0", "leave the key out for the default")
