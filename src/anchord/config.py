"""TOML text -> Config, one frozen tree with the defaults. The shell reads the file; below it nobody sees Config.

Unknown keys are refused by name with the nearest known one, wrong values with where they stand.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from anchord.errors import ConfigError, UsageError

_HOUR_MS = 3_600_000
_YEAR_S = 31_536_000


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
    max_chunk_tokens: Annotated[int, Meta(ge=64, le=8192)] | None = None
    overlap_tokens: int | None = None
    min_chunk_tokens: int | None = None
    max_heading_level_for_path: Annotated[int, Meta(ge=1, le=6)] | None = None
    keep_code_blocks_intact: bool = True
    extract: str | None = None


class EmbeddingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[embedding]` table."""

    provider: Literal["sentence-transformers", "openai", "hash"] = "sentence-transformers"
    model: str = "all-MiniLM-L6-v2"
    idle_unload_s: Annotated[float, Meta(gt=0, le=_YEAR_S)] = 300.0
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[store]` table."""

    uri: str = ""


class WatchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[watch]` table."""

    mode: Literal["auto", "events", "poll"] = "auto"
    settle_ms: Annotated[int, Meta(gt=0, le=_HOUR_MS)] = 200
    max_wait_ms: Annotated[int, Meta(gt=0, le=_HOUR_MS)] = 2000
    reconcile_s: Annotated[float, Meta(gt=0, le=_YEAR_S)] = 900.0
    poll_s: Annotated[float, Meta(gt=0, le=_YEAR_S)] = 5.0


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
    except (ValueError, RecursionError) as error:  # Numbers of 5,000 digits and 1,000 nested arrays are no TOMLDecodeError.
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


def chunking_config(options: Mapping[str, Any]) -> ChunkingConfig:
    """Return the `[chunking]` table that holds these values.

    Raises:
        UsageError: a value is of the wrong kind or out of range.
    """
    try:
        return msgspec.convert(dict(options), ChunkingConfig)
    except msgspec.ValidationError as error:
        raise UsageError(_where(str(error)), "leave it out for the model's own") from None


def without_effect(config: Config) -> list[str]:
    """Name the keys that are set and that nothing in this version heeds."""
    ignored = [f"chunking.{name}" for name in _UNUSED_BY_ANCHORED if getattr(config.chunking, name) is not None]
    switches = {
        "chunking.enabled": config.chunking.enabled,
        "chunking.keep_code_blocks_intact": config.chunking.keep_code_blocks_intact,
        "privacy.redact": config.privacy.redact,
    }
    return ignored + [name for name, on in switches.items() if not on]


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
    if any(not root.path or "\0" in root.path for root in config.root):
        raise ConfigError(f"{where}: root.path names no folder", "give the folder's absolute path")
