"""The models of a configuration: their files, and what embeds texts with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from anchord.chunking.formats.code_symbols import DefinitionFinder, find_definitions
from anchord.chunking.plan import ChunkingPlans, build_plans
from anchord.config.effective import chunking_by_kind
from anchord.config.models import ModelOptions
from anchord.config.schema import Config, EmbeddingConfig
from anchord.core.types import Root, Vector
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.embedding.local import LocalEmbedder
from anchord.embedding.model_files import ModelFiles, find_token_counting_model
from anchord.embedding.model_pins import ModelPin
from anchord.embedding.worker_options import WorkerOptions
from anchord.errors import EmbedderError
from anchord.index.recipe import NoQuarantine, ParseQuarantine

if TYPE_CHECKING:
    from anchord.embedding.openai_api import OpenAIEmbedder


class MissingModelEmbedder:
    """Stands in for a model that rows were made with and that this machine no longer has."""

    state = "lost"
    embedded = 0
    fallback_reason = ""
    texts_per_second = 0.0
    is_immediate = False
    is_prepared = True

    def __init__(self, name: str, identity: str, dimension: int) -> None:
        """Stand in for a model.

        Args:
            name: The model's name or folder, for messages.
            identity: The `model_id` that its vectors were made under.
            dimension: Numbers in a vector.
        """
        self.name = name
        self.model_id = identity
        self.dimension = dimension

    def prepare_in_background(self) -> None:
        """Do nothing: there is no model."""

    def note_waiter(self) -> None:
        """Do nothing: there is no model."""

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> Sequence[Vector]:  # noqa: ARG002 - it always raises
        """Raise EmbedderError: there is no model.

        Raises:
            EmbedderError: Always.
        """
        raise EmbedderError(
            f"the model `{self.name}` that this index was made with has changed or is gone",
            "a new index is being built; until then search with --mode text",
        )

    def embed_batches(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Raise EmbedderError at the first step.

        Raises:
            EmbedderError: Always.
        """
        yield dict(enumerate(self.embed(texts)))

    def status_fields(self) -> dict[str, object]:
        """Return no further fields for `status`."""
        return {}

    def stop_idle_workers(self) -> None:
        """Do nothing: there are no workers."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


AnyEmbedder: TypeAlias = "LocalEmbedder | OpenAIEmbedder | HashEmbedder | MissingModelEmbedder"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileInputs:
    """What a profile is built from."""

    config: Config
    roots: Sequence[Root]
    models_folder: Path
    """Where exported models are cached."""
    older_models_folder: Path | None = None
    """Where the home cached them before homes shared them."""
    indexed_model: str = ""
    """The `model_id` that the index was made with; "" if there is none."""
    quarantine: ParseQuarantine = field(default_factory=NoQuarantine)
    find_definitions: DefinitionFinder = find_definitions


def pin_of(config: Config, name: str) -> ModelPin | None:
    """Return where a model is that was added under a name, and what it was; None for others."""
    added = config.find_model(name)
    return ModelPin(added.path, added.digest, added.files) if added else None


def find_model_files(config: Config, options: ModelOptions) -> ModelFiles:
    """Return the files of the model that options name, or of the one that counts its tokens.

    Raises:
        ConfigError: There is no such model on this machine.
    """
    pin = pin_of(config, options.model)
    return find_token_counting_model(
        options.provider,
        options.model,
        options.max_tokens,
        pin,
    )


def make_embedder(
    inputs: ProfileInputs, options: ModelOptions, model: ModelFiles, indexed_model: str = ""
) -> AnyEmbedder:
    """Return what embeds texts with a model. No process is started, and no server asked.

    Args:
        inputs: How models run on this machine.
        options: Which model.
        model: Its files, as `find_model_files` returns them.
        indexed_model: The `model_id` that the index was made with, which keeps its precision; ""
            if there is none.
    """
    if options.provider == "hash":
        return HashEmbedder(options.dimension)
    if options.provider == "openai":
        from anchord.embedding.openai_api import EmbeddingServer, OpenAIEmbedder  # noqa: PLC0415 - 13 MB that few need

        server = EmbeddingServer(
            url=options.url,
            key=os.environ.get(options.api_key_env, ""),
            dimension=options.dimension,
            query_prefix=options.query_prefix,
            text_prefix=options.text_prefix,
        )
        # Two servers at one address, at different times, may have different models of one name.
        dimensions_folder = inputs.older_models_folder or inputs.models_folder
        return OpenAIEmbedder(
            options.model,
            server,
            model.tokenizer,
            dimensions_folder,
        )
    embedding = inputs.config.embedding
    is_default = options.model == EmbeddingConfig().model
    worker_options = WorkerOptions(
        exports_folder=inputs.models_folder,
        older_exports_folder=inputs.older_models_folder,
        precision=options.precision,
        indexed_model=indexed_model,
        is_default_model=is_default and pin_of(inputs.config, options.model) is None,
        threads=embedding.threads,
        idle_s=embedding.idle_unload_s,
        max_growth_bytes=embedding.max_growth_mb * 1_000_000,
    )
    return LocalEmbedder(model, worker_options)


def chunking_plans(config: Config, roots: Sequence[Root], window_tokens: int) -> ChunkingPlans:
    """Return the chunking plan of each document kind, with the overrides of each root.

    Args:
        config: Its `chunking` tables.
        roots: Those with chunking keys of their own override the configuration.
        window_tokens: How many tokens the model reads of a text.
    """
    overrides = {
        root.name: chunking_by_kind(config, root.chunking) for root in roots if root.chunking
    }
    return build_plans(window_tokens, {"": chunking_by_kind(config), **overrides})
