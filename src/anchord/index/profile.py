"""What the rows of an index are made with: a model, its tokenizer, and the recipe that follows.

An index can still be made with what an older configuration said. Until a new generation is ready it
is
kept up to date with that: `pin_recipe_digests` makes the indexer read files that changed, and not
    those whose recipe alone did.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from anchord.chunking.formats.code_symbols import (
    DefinitionFinder,
    find_definitions,
    grammar_versions,
)
from anchord.chunking.plan import ChunkingPlans, build_plans
from anchord.chunking.strategies.sentences import sentence_splitter_version
from anchord.config.effective import chunking_by_kind
from anchord.config.privacy import redacts_conversations, redacts_files
from anchord.config.schema import Config, EmbeddingConfig
from anchord.core.ids import hash_content
from anchord.core.ports import Reranker
from anchord.core.types import Root, Vector
from anchord.core.word_forms import STEMMER_IDENTITY
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.embedding.local import LocalEmbedder
from anchord.embedding.model_files import ModelFiles, find_token_counting_model
from anchord.embedding.model_pins import ModelPin
from anchord.embedding.precision import precision_of
from anchord.embedding.reranker import CrossEncoderReranker
from anchord.embedding.tokenizer import TokenCounter, shared_token_counter
from anchord.embedding.worker_options import WorkerOptions
from anchord.errors import AnchordError, EmbedderError
from anchord.index.recipe import NoQuarantine, ParseQuarantine, Recipe
from anchord.index.topics import OwnRooms
from anchord.sources.conversations.ingest import IngestOptions
from anchord.sources.secrets.redactor import rules_version
from anchord.store.catalog.catalog import SqliteCatalog

RERANKER_LOAD_S = 120.0
"""How long a process without a daemon waits for the reranker."""

if TYPE_CHECKING:
    from anchord.embedding.openai_api import OpenAIEmbedder

_MADE_WITH_META_KEY = "made with"
"""The catalog entry of provider, model name, model id and dimension, one a line."""
_MADE_WITH_LINES = 4


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


@dataclass
class IndexProfile:
    """A model, its embedder, and the recipe that rows are made by."""

    provider: str
    """The `embedding.provider` of the configuration: hash, openai or sentence-transformers."""
    model_files: ModelFiles
    embedder: AnyEmbedder
    recipe: Recipe

    @cached_property
    def token_counter(self) -> TokenCounter:
        """The counter of the model's tokens; loads the tokenizer at the first use."""
        return shared_token_counter(self.model_files.tokenizer)

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self.embedder.dimension

    def record_in_catalog(self, catalog: SqliteCatalog) -> None:
        """Write to a catalog what its rows are made with, for `build_catalog_profile`."""
        model_name = _on_one_line(self.model_files.name)
        lines = [self.provider, model_name, self.embedder.model_id, str(self.dimension)]
        catalog.set_meta(_MADE_WITH_META_KEY, "\n".join(lines))


@dataclass(frozen=True, kw_only=True)
class PinnedRecipe(Recipe):
    """A recipe that reports the digests an index was made under.

    So no file is due only because the recipe changed.
    """

    pinned_digests: Mapping[str, str] = field(default_factory=dict)
    """Root name -> the recipe digest of most of its files."""

    def digest(self, root_name: str = "") -> str:
        """Return the pinned digest of a root, or the recipe's own for a root without rows."""
        return self.pinned_digests.get(root_name) or super().digest(root_name)


def ingest_options_of(config: Config) -> IngestOptions:
    """Return which parts of conversations the configuration keeps."""
    return IngestOptions(
        redact=redacts_conversations(config), include_summaries=bool(config.chunking.summaries)
    )


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


def build_configured_profile(inputs: ProfileInputs) -> IndexProfile:
    """Return the profile that the configuration describes.

    Raises:
        ConfigError: There is no such model on this machine.
    """
    embedding = inputs.config.embedding
    return _build_profile(
        inputs,
        embedding.provider,
        embedding.model,
        embedding.precision,
    )


def indexed_model_of(catalog: SqliteCatalog) -> str:
    """Return the `model_id` that a catalog's rows were made with; "" if it records none."""
    recorded = catalog.get_meta(_MADE_WITH_META_KEY).split("\n")
    return recorded[2] if len(recorded) == _MADE_WITH_LINES else ""


def build_catalog_profile(
    catalog: SqliteCatalog, configured: IndexProfile, inputs: ProfileInputs
) -> IndexProfile:
    """Return the profile that a catalog's rows were made with.

    Returns:
        `configured` itself where the catalog records the same model, or none yet. A profile with a
        `MissingModelEmbedder` where the recorded model is gone or has changed.
    """
    recorded = catalog.get_meta(_MADE_WITH_META_KEY).split("\n")
    if len(recorded) != _MADE_WITH_LINES:
        return configured
    provider, name, model_id, dimension = recorded
    configured_name = _on_one_line(configured.model_files.name)
    configured_model = (configured.provider, configured_name, configured.embedder.model_id)
    if (provider, name, model_id) == configured_model:
        return configured
    try:
        found = _build_profile(inputs, provider, name, precision_of(model_id))
    except AnchordError:
        found = configured
    if found.embedder.model_id == model_id:
        return found
    recipe = Recipe(
        plans=found.recipe.plans,
        model_identity=lambda: model_id,
        chunking_tools_identity=found.recipe.chunking_tools_identity,
        ingest_identity_by_root=found.recipe.ingest_identity_by_root,
        quarantine=inputs.quarantine,
        find_definitions=inputs.find_definitions,
        redaction_identity=found.recipe.redaction_identity,
        own_rooms=found.recipe.own_rooms,
    )
    missing_model = MissingModelEmbedder(name, model_id, int(dimension))
    return IndexProfile(provider, found.model_files, missing_model, recipe)


def pin_recipe_digests(
    catalog: SqliteCatalog,
    profile: IndexProfile,
    configured: IndexProfile,
    root_names: Container[str],
) -> IndexProfile:
    """Return a profile under which no file of a catalog is due only because the recipe changed.

    Args:
        catalog: Says under which recipe digest most files of each root were indexed.
        profile: What the rows were made with.
        configured: What the configuration says.
        root_names: The roots that are configured. Rows of others are deleted, whatever they were
            made with.

    Returns:
        `profile` itself where it is `configured` and the catalog's digests are the current ones;
        else a copy with a `PinnedRecipe`.
    """
    digests = {
        root: max(counts, key=lambda digest: counts[digest])
        for root, counts in catalog.recipe_counts_by_root().items()
        if root in root_names
    }
    current = {root: configured.recipe.digest(root) for root in digests}
    is_current = digests == current
    if profile is configured and is_current:
        return profile
    recipe = PinnedRecipe(
        plans=profile.recipe.plans,
        model_identity=profile.recipe.model_identity,
        chunking_tools_identity=profile.recipe.chunking_tools_identity,
        ingest_identity_by_root=profile.recipe.ingest_identity_by_root,
        quarantine=profile.recipe.quarantine,
        find_definitions=profile.recipe.find_definitions,
        redaction_identity=profile.recipe.redaction_identity,
        own_rooms=profile.recipe.own_rooms,
        pinned_digests=digests,
    )
    return IndexProfile(
        profile.provider,
        profile.model_files,
        profile.embedder,
        recipe,
    )


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


def _build_profile(inputs: ProfileInputs, provider: str, name: str, precision: str) -> IndexProfile:
    config = inputs.config
    model = find_token_counting_model(
        provider, name, config.embedding.max_tokens, pin_of(config, name)
    )
    embedder = _make_embedder(inputs, provider, name, precision, model)
    tokenizer_digest = hash_content(model.tokenizer.read_bytes())
    reader_version = ingest_options_of(config).reader_version
    recipe = Recipe(
        plans=chunking_plans(config, inputs.roots, model.window),
        model_identity=lambda: embedder.model_id,
        chunking_tools_identity=(
            f"{tokenizer_digest} {grammar_versions()} {sentence_splitter_version()} "
            f"{STEMMER_IDENTITY}"
        ),
        ingest_identity_by_root={
            root.name: reader_version for root in inputs.roots if root.kind == "conversations"
        },
        quarantine=inputs.quarantine,
        find_definitions=inputs.find_definitions,
        redaction_identity=rules_version() if redacts_files(config) else "",
        own_rooms=OwnRooms(config.room),
    )
    return IndexProfile(provider, model, embedder, recipe)


def pin_of(config: Config, name: str) -> ModelPin | None:
    """Return where a model is that was added under a name, and what it was; None for others."""
    added = config.find_model(name)
    return ModelPin(added.path, added.digest, added.files) if added else None


def _make_embedder(
    inputs: ProfileInputs, provider: str, name: str, precision: str, model: ModelFiles
) -> AnyEmbedder:
    options = inputs.config.embedding
    if provider == "hash":
        return HashEmbedder()
    if provider == "openai":
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
            name,
            server,
            model.tokenizer,
            dimensions_folder,
        )
    worker_options = WorkerOptions(
        exports_folder=inputs.models_folder,
        older_exports_folder=inputs.older_models_folder,
        precision=precision,
        indexed_model=inputs.indexed_model,
        is_default_model=name == EmbeddingConfig().model and pin_of(inputs.config, name) is None,
        threads=options.threads,
        idle_s=options.idle_unload_s,
        max_growth_bytes=options.max_growth_mb * 1_000_000,
    )
    return LocalEmbedder(model, worker_options)


def _on_one_line(name: str) -> str:
    """Return a model's name without line breaks: the catalog entry has one value a line."""
    return " ".join(name.split("\n"))


def reranker_of(config: Config, load_wait_s: float = 0.0) -> Reranker | None:
    """Return the reranker that the configuration names, None where it names none.

    Args:
        config: The configuration.
        load_wait_s: Seconds that a call waits for the model to be loaded; without, searches go on
            without it meanwhile.
    """
    name = config.search.reranker
    if not name:
        return None
    return CrossEncoderReranker(name, config.embedding.idle_unload_s, load_wait_s)
