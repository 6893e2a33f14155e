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

from anchord.config.key_errors import (
    InnerTable,
    Table,
    TablesByName,
    did_you_mean,
    key_first,
    refuse_unknown_keys,
)
from anchord.config.models import (
    ModelOptions,
    refuse_servers_of_one_name,
    refuse_unusable_further_models,
    refuse_unusable_url,
)
from anchord.config.strategies import (
    DEFAULT_STRATEGY,
    STRATEGIES,
)
from anchord.config.toml_positions import find_key_line
from anchord.errors import ConfigError

CONFIG_VERSION = 1
"""Version of the schema. A file with a higher `version` is refused."""

_HOUR_MS = 3_600_000
_YEAR_S = 31_536_000


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
    """The [kind.NAME] tables. Their keys override [chunking], and are overridden by a root's.

    A root has tables of the same form for itself, [root.kinds.NAME].
    """

    markdown: KindConfig = KindConfig()
    text: KindConfig = KindConfig()
    code: KindConfig = KindConfig()
    exchange: KindConfig = KindConfig()
    attachment: KindConfig = KindConfig()
    summary: KindConfig = KindConfig()


DOCUMENT_KINDS = KindsConfig.__struct_fields__
"""The kinds of documents that can have a [kind.NAME] table."""


class RootConfig(KindConfig, frozen=True, kw_only=True):
    """A [[root]] table. The keys of `KindConfig` override [kind.NAME] and [chunking] in this root.

    A `strategy` overrides `enabled = false` too.
    """

    path: str
    """Absolute path of the folder, or one that starts with ~."""
    kind: Literal["project", "conversations"] = "project"
    name: str = ""
    """"" uses the name of the folder."""
    include: tuple[str, ...] = ()
    """Patterns in .gitignore syntax; see `core.types.Root`."""
    exclude: tuple[str, ...] = ()
    strategy: str = ""
    on_delete: Literal["keep", "delete"] = "keep"
    """Whether exchanges outlive their transcript file; assistants delete theirs after a while."""
    keep_raw: bool = True
    """Whether transcripts are also kept byte for byte, so that they can be restored. They contain
    the secrets that are replaced in the exchanges."""
    worktrees: Literal["all", "one"] = "all"
    """Whether git worktrees are indexed in full, or only where they differ from the main one."""
    embedding: str = ""
    """The NAME of the [embedding.further.NAME] whose model embeds this root."""
    kinds: KindsConfig = KindsConfig()
    """The [root.kinds.NAME] tables: settings of one kind of document in this root."""


class RoomConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A [[room]] table: a room of the user's own, which goes before the built-in ones."""

    name: str
    """What `search --room` takes; stored in lower case, as the names of folders are."""
    keywords: tuple[str, ...] = ()
    """Whole words or phrases, in a file's name or at the beginning of a text."""
    paths: tuple[str, ...] = ()
    """Patterns in .gitignore syntax, relative to each root."""


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A [[model]] table: a model on this machine under a name, as `anchord model add` writes it."""

    name: str
    """What `model` under [embedding] names."""
    path: str
    """Its folder, or the name of a bundled model."""
    digest: str
    """Of its weights and settings: a model with another one is refused."""
    files: dict[str, str] = {}
    """Digest of each of its files, to say which one changed."""


class EmbeddingConfig(ModelOptions, frozen=True, kw_only=True):
    """The [embedding] table: the main model, how models run, and the further models."""

    idle_unload_s: Annotated[float, Meta(gt=0, le=_YEAR_S)] = 300.0
    """Seconds without work after which the model is unloaded."""
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0
    """Threads of the model; 0 uses all processors but one while somebody waits, else half."""
    max_growth_mb: Annotated[int, Meta(ge=0, le=1_000_000)] = 1_000
    """Memory growth after which the embedding process is restarted; 0 for no limit."""
    on_battery: Literal["continue", "pause"] = "continue"
    """Whether a backlog is embedded on battery. Single saves and queries always are."""
    further: dict[str, ModelOptions] = msgspec.field(default_factory=dict)
    """The [embedding.further.NAME] tables: models for some of the documents."""
    by_language: dict[str, str] = msgspec.field(default_factory=dict)
    """Code of a language -> the NAME of the further model for documents in it."""

    @property
    def servers(self) -> tuple[ModelOptions, ...]:
        """The models that run on a server, the main one first."""
        models = (self, *self.further.values())
        return tuple(each for each in models if each.provider == "openai")

    @property
    def model_names(self) -> set[str]:
        """What `model` says here, and in each of the further models."""
        return {self.model, *(options.model for options in self.further.values())}


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
    room: tuple[RoomConfig, ...] = ()
    model: tuple[ModelConfig, ...] = ()
    embedding: EmbeddingConfig = EmbeddingConfig()
    search: SearchConfig = SearchConfig()
    store: StoreConfig = StoreConfig()
    watch: WatchConfig = WatchConfig()
    privacy: PrivacyConfig = PrivacyConfig()

    def find_model(self, name: str) -> ModelConfig | None:
        """Return the [[model]] table of this name; None if there is none."""
        return next((model for model in self.model if model.name == name), None)

    def without_watching(self) -> Config:
        """Return a copy with which no root is watched: only what asks for a walk gets one."""
        watch = msgspec.structs.replace(
            self.watch,
            mode="poll",
            poll_s=_YEAR_S,
        )
        return msgspec.structs.replace(self, watch=watch)


TABLES: dict[str, Table] = {
    "root": RootConfig,
    "chunking": ChunkingConfig,
    "kind": KindsConfig,
    "room": RoomConfig,
    "model": ModelConfig,
    "embedding": EmbeddingConfig,
    "search": SearchConfig,
    "store": StoreConfig,
    "watch": WatchConfig,
    "privacy": PrivacyConfig,
}
_KIND_TABLES: dict[str, Table] = dict.fromkeys(DOCUMENT_KINDS, KindConfig)
_INNER_TABLES: dict[Table, Mapping[str, InnerTable]] = {
    Config: TABLES,
    RootConfig: {"kinds": KindsConfig},
    KindsConfig: _KIND_TABLES,
    EmbeddingConfig: {"further": TablesByName(ModelOptions)},
}


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
        hint = "`anchord config show` lists the keys with their values"
        if key.startswith("root[") and key.endswith("].kind"):
            hint = 'use "project" or "conversations"; a kind of document has [root.kinds.NAME]'
        raise ConfigError(f"{locate(key)}: {message}", hint) from None
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


def _refuse_unusable_values(config: Config, locate: Callable[[str], str]) -> None:
    """Refuse values of the right type that cannot work; `locate` returns where a key is set."""
    for key, strategy in _configured_strategies(config):
        if strategy not in STRATEGIES:
            check_strategy(strategy, f"{locate(key)}: ")
    embedding = config.embedding
    refuse_unusable_url(embedding, "embedding", locate)
    names = {f"embedding.by_language.{code}": name for code, name in embedding.by_language.items()}
    for number, root in enumerate(config.root):
        if root.embedding:
            names[f"root[{number}].embedding"] = root.embedding
    refuse_unusable_further_models(
        embedding.further,
        embedding.by_language,
        names,
        locate,
    )
    further = {f"embedding.further.{name}": model for name, model in embedding.further.items()}
    refuse_servers_of_one_name({"embedding": embedding, **further}, locate)
    for number, root in enumerate(config.root):
        is_usable = root.path and "\0" not in root.path
        if is_usable:
            continue
        place = locate(f"root[{number}].path")
        message = f"{place}: root.path is not the path of a folder"
        hint = "give the folder's absolute path"
        raise ConfigError(message, hint)
    for number, room in enumerate(config.room):
        _refuse_unusable_room(room, locate(f"room[{number}].name"))


def _refuse_unusable_room(room: RoomConfig, place: str) -> None:
    if not room.name.strip():
        raise ConfigError(f"{place}: a room has no name", "give the [[room]] a `name`")
    if not room.keywords and not room.paths:
        raise ConfigError(
            f"{place}: the room `{room.name}` has no keywords and no paths",
            'give it some, such as keywords = ["invoice"] or paths = ["billing/"]',
        )
    for keyword in room.keywords:
        if not any(character.isalnum() for character in keyword):
            raise ConfigError(
                f"{place}: room.keywords: `{keyword}` has no letter and no digit",
                "leave it out: keywords are matched as words",
            )


def _configured_strategies(config: Config) -> Iterator[tuple[str, str]]:
    """Yield every key that names a strategy, with its value."""
    strategies = {"chunking.strategy": config.chunking.strategy}
    kinds_tables = {"kind": config.kind}
    for number, root in enumerate(config.root):
        strategies[f"root[{number}].strategy"] = root.strategy
        kinds_tables[f"root[{number}].kinds"] = root.kinds
    for prefix, kinds in kinds_tables.items():
        for kind in DOCUMENT_KINDS:
            strategies[f"{prefix}.{kind}.strategy"] = getattr(kinds, kind).strategy or ""
    return ((key, strategy) for key, strategy in strategies.items() if strategy)
