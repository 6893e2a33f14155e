"""TOML text -> Config, one frozen tree with the defaults. The shell reads the file; below it nobody sees Config.

Unknown keys are refused by name with the nearest known one, wrong values with where they stand.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from anchord.errors import ConfigError, UsageError
from anchord.settings import STRATEGIES, Value, effective, unheeded
from anchord.toml_lines import line_of

VERSION = 1
"""Of the configuration's form. A newer one is refused; keys of an older one would be read as what they are called now."""
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
    on_delete: Literal["keep", "delete"] = "keep"
    """What becomes of conversations whose file is deleted; assistants delete theirs after a while."""


_Size = Annotated[int, Meta(ge=64, le=100_000)]
_Part = Annotated[int, Meta(ge=0, le=100_000)]


class KindConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of `[chunking]`, and of `[kind.NAME]` for one kind of document. None stands for what is not set there."""

    enabled: bool | None = None
    strategy: str | None = None
    max_chars: _Size | None = None
    min_chars: _Part | None = None
    overlap_chars: _Part | None = None
    max_chunk_tokens: Annotated[int, Meta(ge=64, le=8192)] | None = None
    overlap_tokens: _Part | None = None
    min_chunk_tokens: _Part | None = None
    chunk_size: _Size | None = None
    chunk_overlap: _Part | None = None
    min_chunk_size: _Part | None = None
    max_heading_level_for_path: Annotated[int, Meta(ge=1, le=6)] | None = None
    keep_code_blocks_intact: bool | None = None
    rule_ends_exchange: bool | None = None


class ChunkingConfig(KindConfig, frozen=True, kw_only=True):
    """The `[chunking]` table."""

    enabled: bool = True
    strategy: str = "anchored"
    extract: Literal["exchange", "general"] | None = None
    summaries: bool | None = None
    """Whether what programs wrote of conversations by themselves is indexed too."""


class KindsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[kind.NAME]` tables: what is set there goes before `[chunking]`, and a root's strategy before both."""

    markdown: KindConfig = KindConfig()
    text: KindConfig = KindConfig()
    code: KindConfig = KindConfig()
    exchange: KindConfig = KindConfig()
    attachment: KindConfig = KindConfig()
    summary: KindConfig = KindConfig()


KINDS = KindsConfig.__struct_fields__
"""The kinds of documents that can be cut in ways of their own."""


class EmbeddingConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[embedding]` table."""

    provider: Literal["sentence-transformers", "openai", "hash"] = "sentence-transformers"
    model: str = "all-MiniLM-L6-v2"
    precision: Literal["fp32", "int8"] = "fp32"
    idle_unload_s: Annotated[float, Meta(gt=0, le=_YEAR_S)] = 300.0
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0
    max_growth_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 1_000
    """The embedding process begins anew when it has grown by so much since its model was loaded; 0: never."""
    on_battery: Literal["continue", "pause"] = "continue"
    """Whether a backlog is embedded without mains; single saves and queries always are."""
    url: str = ""
    """The rest are for `provider = "openai"`: where the server is, up to and with `/v1`."""
    api_key_env: str = "OPENAI_API_KEY"
    """The name of the environment's variable; the key itself is nowhere in a file."""
    dimension: Annotated[int, Meta(ge=0, le=65_536)] = 0
    """0: as the server's first answer has it."""
    max_tokens: Annotated[int, Meta(ge=64, le=8_192)] = 254
    query_prefix: str = ""
    text_prefix: str = ""


class SearchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[search]` table."""

    reranker: str = ""
    """A CrossEncoder on this machine, by folder or id: it orders the best hits anew."""


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The `[store]` table."""

    uri: str = ""
    max_memory_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 2_000
    """The daemon begins anew when it holds more; 0: never."""


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

    version: Annotated[int, Meta(ge=1)] = VERSION

    root: tuple[RootConfig, ...] = ()
    chunking: ChunkingConfig = ChunkingConfig()
    kind: KindsConfig = KindsConfig()
    embedding: EmbeddingConfig = EmbeddingConfig()
    search: SearchConfig = SearchConfig()
    store: StoreConfig = StoreConfig()
    watch: WatchConfig = WatchConfig()
    privacy: PrivacyConfig = PrivacyConfig()


_TABLES: dict[str, type[msgspec.Struct]] = {
    "root": RootConfig,
    "chunking": ChunkingConfig,
    "kind": KindsConfig,
    "embedding": EmbeddingConfig,
    "search": SearchConfig,
    "store": StoreConfig,
    "watch": WatchConfig,
    "privacy": PrivacyConfig,
}


def parse_config(text: str, where: str) -> Config:
    """Read a configuration; `where` names it in messages.

    Raises:
        ConfigError: the text is no TOML, a key is unknown, a value is of the wrong kind or out of range.
    """
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Numbers of 5,000 digits and 1,000 nested arrays are no TOMLDecodeError.
        raise ConfigError(f"{where}: {error}", "mend the line; `anchord config check` reads it again") from None
    if isinstance(raw.get("version"), int) and raw["version"] > VERSION:
        raise ConfigError(f"{where} is written for a newer anchord (version {raw['version']})", "update anchord")
    for key, known in _keys(raw, Config):
        name = key.rsplit(".", 1)[-1]
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(sorted(known))}"
            raise ConfigError(f"{_at(where, text, key)}: unknown key `{key}`", hint)
    try:
        config = msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        told = _where(str(error))
        place = _at(where, text, told.partition(":")[0])
        raise ConfigError(f"{place}: {told}", "`anchord config show` lists the keys with their values") from None
    _check(config, lambda key: _at(where, text, key))
    return config


def _at(where: str, text: str, key: str) -> str:
    """Return `FILE:LINE` as editors take it, or the file alone."""
    line = line_of(text, key)
    return f"{where}:{line}" if line else where


def root_config(path: str, kind: str, name: str) -> RootConfig:
    """Return a root as a `[[root]]` table would give it.

    Raises:
        ConfigError: the kind is unknown.
    """
    if kind not in ("project", "conversations"):
        raise ConfigError(f"no kind of root is called `{kind}`", 'use "project" or "conversations"')
    entry = RootConfig(path=path, kind=cast("Any", kind), name=name)
    _check(Config(root=(entry,)), lambda _: "PATH")
    return entry


def chosen_values(options: Mapping[str, Any]) -> dict[str, Value]:
    """Return a strategy's keys with these values, and its defaults for the rest.

    Raises:
        UsageError: a value is of the wrong kind or out of range. ConfigError: there is no such strategy.
    """
    try:
        given = _given(msgspec.convert(dict(options), KindConfig))
    except msgspec.ValidationError as error:
        raise UsageError(_where(str(error)), "leave it out for the strategy's own") from None
    check_strategy(given.get("strategy", ""))
    return effective(given)


def without_effect(config: Config) -> list[str]:
    """Name the keys that are set and that nothing heeds: no strategy in use, or nothing in this version."""
    chunking = _given(config.chunking)
    used = {strategy for kinds in _by_strategy(config).values() for strategy in (kind["strategy"] for kind in kinds.values())}
    of_all = [set(unheeded({**chunking, "strategy": strategy})) for strategy in used]
    ignored = [f"chunking.{key}" for key in chunking if all(key in keys for keys in of_all)]
    for kind, table in _kinds(config):
        merged = {**chunking, **_given(table)}
        ignored += [f"kind.{kind}.{key}" for key in unheeded({**_given(table), "strategy": merged["strategy"]})]
    return ignored


def chunking_by_kind(config: Config, strategy: str = "") -> dict[str, dict[str, Value]]:
    """Return, for each kind of document, the strategy's keys with their values; `strategy`: a root's own."""
    own: dict[str, Any] = {"strategy": strategy, "enabled": True} if strategy else {}
    return {kind: effective({**_given(config.chunking), **_given(table), **own}) for kind, table in _kinds(config)}


def _kinds(config: Config) -> Iterator[tuple[str, KindConfig]]:
    return ((name, getattr(config.kind, name)) for name in KINDS)


def _given(table: KindConfig) -> dict[str, Any]:
    """Return the keys of a table that are set."""
    return {name: value for name, value in msgspec.structs.asdict(table).items() if value is not None}


def _by_strategy(config: Config) -> dict[str, dict[str, dict[str, Value]]]:
    return {strategy: chunking_by_kind(config, strategy) for strategy in ("", *(root.strategy for root in config.root))}


def values(config: Config) -> Iterator[tuple[str, Any]]:
    """Yield every key with its effective value, roots left out, in the order of the tables."""
    for table in _TABLES:
        if table == "kind":
            for kind, keys in _kinds(config):
                yield from ((f"kind.{kind}.{name}", value) for name, value in _given(keys).items())
        elif table == "chunking":
            given = _given(config.chunking)
            yield from ((f"chunking.{name}", value) for name, value in {"enabled": True, **effective(given), **given}.items())
        elif table == "root":
            yield from ((f"root.{root.name or root.path}.strategy", root.strategy) for root in config.root if root.strategy)
        else:
            for name, value in msgspec.structs.asdict(getattr(config, table)).items():
                yield f"{table}.{name}", value


def check_strategy(strategy: str, where: str = "") -> None:
    """Refuse a strategy that there is not; "" stands for none given.

    Raises:
        ConfigError: it is unknown.
    """
    if strategy and strategy not in STRATEGIES:
        near = difflib.get_close_matches(strategy, STRATEGIES, 1, 0.5)
        hint = f"did you mean `{near[0]}`?" if near else f"there are: {', '.join(STRATEGIES)}"
        raise ConfigError(f"{where}no strategy is called `{strategy}`", hint)


def _keys(raw: Mapping[str, Any], table: type[msgspec.Struct], prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield every key of the text with those known in its table."""
    kinds: dict[str, type[msgspec.Struct]] = dict.fromkeys(KINDS, KindConfig)
    inner = _TABLES if table is Config else kinds if table is KindsConfig else {}
    for name, value in raw.items():
        yield f"{prefix}{name}", table.__struct_fields__
        for each in value if isinstance(value, list) else [value]:
            if name in inner and isinstance(each, dict):
                yield from _keys(each, inner[name], f"{prefix}{name}.")


def _where(message: str) -> str:
    """`Expected `int`, got `str` - at `$.watch.settle_ms`` -> `watch.settle_ms: expected int, got str`."""
    text, _, path = message.partition(" - at ")
    place = path.strip("`").removeprefix("$.")
    text = text[:1].lower() + text[1:].replace("`", "")
    return f"{place}: {text}" if place else text


def _check(config: Config, at: Callable[[str], str]) -> None:
    """Refuse what parses but cannot be done; `at` says where a key stands."""
    chosen = {"chunking.strategy": config.chunking.strategy}
    chosen |= {f"kind.{name}.strategy": table.strategy or "" for name, table in _kinds(config)}
    chosen |= {f"root[{number}].strategy": root.strategy for number, root in enumerate(config.root)}
    for key, strategy in chosen.items():
        check_strategy(strategy, f"{at(key)}: ")
    if config.embedding.provider == "openai" and not config.embedding.url.startswith(("http://", "https://")):
        hint = 'use url = "http://localhost:11434/v1" for Ollama, for example'
        place = at("embedding.url" if config.embedding.url else "embedding.provider")
        raise ConfigError(f"{place}: embedding.url is needed for provider `openai`, and begins with http", hint)
    for number, root in enumerate(config.root):
        if not root.path or "\0" in root.path:
            raise ConfigError(f"{at(f'root[{number}].path')}: root.path names no folder", "give the folder's absolute path")
