"""Which models embed texts: the keys that describe one, and the record of an index of several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from anchord.config.key_errors import did_you_mean
from anchord.core.text_language import DETECTED_LANGUAGES
from anchord.errors import ConfigError


class ModelOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of [embedding] that say which model runs, and how: also of [embedding.further.NAME].

    The fields from `url` on are used with `provider = "openai"` only, but for `dimension`, which
    "hash" uses too.
    """

    provider: Literal["sentence-transformers", "openai", "hash"] = "sentence-transformers"
    model: str = "all-MiniLM-L6-v2"
    precision: Literal["auto", "fp32", "int8"] = "auto"
    """With "auto" an index keeps the precision that it was made with; a further model is fp32."""
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

    def with_precision(self, precision: Literal["fp32", "int8"]) -> ModelOptions:
        """Return a copy with another precision."""
        return msgspec.structs.replace(self, precision=precision)

    def of_model(self, provider: str, model: str, precision: str) -> ModelOptions:
        """Return a copy for another model."""
        return msgspec.structs.replace(
            self,
            provider=provider,
            model=model,
            precision=precision,
        )


class FurtherSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Which further models there are, and for which documents.

    A model has the NAME of its [embedding.further.NAME] in what the configuration says, and its tag
    in what a catalog records. The name "" is the main model.
    """

    options: dict[str, ModelOptions] = {}
    """Name -> the model."""
    by_root: dict[str, str] = {}
    """Root name -> name of its model."""
    by_language: dict[str, str] = {}
    """Code of a language -> name of its model."""
    made_by: dict[str, tuple[str, int]] = {}
    """Name -> `model_id` and dimension of the vectors that an index has; empty for no index."""

    def is_same_for(self, root_names: Collection[str], other: FurtherSettings) -> bool:
        """Return whether two records say the same, but for roots that are not named."""
        ours, theirs = (
            {root: name for root, name in settings.by_root.items() if root in root_names}
            for settings in (self, other)
        )
        has_same_models = self.options.keys() == other.options.keys()
        return has_same_models and ours == theirs and self.by_language == other.by_language


def encode_settings(settings: FurtherSettings) -> str:
    """Return the record of a catalog; "" where there is no further model."""
    return msgspec.json.encode(settings).decode() if settings.options else ""


def decode_settings(record: str) -> FurtherSettings:
    """Return what `encode_settings` was given."""
    return msgspec.json.decode(record, type=FurtherSettings) if record else FurtherSettings()


def refuse_unusable_url(options: ModelOptions, table: str, locate: Callable[[str], str]) -> None:
    """Refuse a server without a usable address.

    Args:
        options: A model.
        table: Where it is described, such as "embedding".
        locate: Returns where a key is set.

    Raises:
        ConfigError: The provider needs an address.
    """
    if options.provider != "openai":
        return
    if options.url.startswith(("http://", "https://")):
        return
    key = f"{table}.url" if options.url else f"{table}.provider"
    place = locate(key)
    raise ConfigError(
        f"{place}: provider `openai` needs {table}.url, starting with http:// or https://",
        'use url = "http://localhost:11434/v1" for Ollama, for example',
    )


def refuse_unusable_further_models(
    further: Mapping[str, ModelOptions],
    languages: Collection[str],
    name_by_key: Mapping[str, str],
    locate: Callable[[str], str],
) -> None:
    """Refuse names of further models that there are not, and languages that nothing detects.

    Args:
        further: The further models by name.
        languages: The codes under [embedding.by_language].
        name_by_key: Every key that names a further model, with the name.
        locate: Returns where a key is set.

    Raises:
        ConfigError: A name or a code is unknown, or a model's server has no usable address.
    """
    for name, options in further.items():
        refuse_unusable_url(options, f"embedding.further.{name}", locate)
    for key, name in name_by_key.items():
        if name not in further:
            hint = did_you_mean(name, further) or f"describe it in [embedding.further.{name}]"
            raise ConfigError(f"{locate(key)}: there is no further model `{name}`", hint)
    for code in languages:
        if code not in DETECTED_LANGUAGES:
            hint = f"there are: {', '.join(sorted(DETECTED_LANGUAGES))}"
            place = locate(f"embedding.by_language.{code}")
            raise ConfigError(f"{place}: `{code}` is no language that anchord detects", hint)


def refuse_servers_of_one_name(
    models: Mapping[str, ModelOptions], locate: Callable[[str], str]
) -> None:
    """Refuse two servers whose models cannot be told apart: one would never be asked.

    Args:
        models: Table of the configuration -> the model that it describes.
        locate: Returns where a key is set.

    Raises:
        ConfigError: Two servers have a model of the same name and prefixes.
    """
    table_by_identity: dict[tuple[str, str, str], str] = {}
    for table, options in models.items():
        if options.provider != "openai":
            continue
        identity = (options.model, options.query_prefix, options.text_prefix)
        other = table_by_identity.setdefault(identity, table)
        if models[other].url != options.url:
            raise ConfigError(
                f"{locate(f'{table}.model')}: [{other}] has a model of this name on another server",
                "give the two models different names on their servers",
            )
