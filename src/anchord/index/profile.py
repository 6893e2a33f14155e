"""What the rows of an index are made with: a model, its tokenizer, and the recipe that follows.

An index can still be made with what an older configuration said. Until a new generation is ready it
is
kept up to date with that: `pin_recipe_digests` makes the indexer read files that changed, and not
    those whose recipe alone did.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from anchord.chunking.formats.code_symbols import grammar_versions
from anchord.chunking.strategies.sentences import sentence_splitter_version
from anchord.config.models import (
    FurtherSettings,
    ModelOptions,
    decode_settings,
    encode_settings,
)
from anchord.config.privacy import redacts_conversations, redacts_files
from anchord.config.schema import Config
from anchord.core.ids import hash_content
from anchord.core.ports import Reranker
from anchord.core.word_forms import STEMMER_IDENTITY
from anchord.embedding.model_files import ModelFiles
from anchord.embedding.precision import precision_of
from anchord.embedding.reranker import CrossEncoderReranker
from anchord.embedding.tokenizer import TokenCounter, shared_token_counter
from anchord.errors import AnchordError
from anchord.index.embedders import (
    AnyEmbedder,
    MissingModelEmbedder,
    ProfileInputs,
    chunking_plans,
    find_model_files,
    make_embedder,
)
from anchord.index.further_models import (
    NO_FURTHER_MODELS,
    FurtherModels,
    build_further_models,
    configured_settings,
)
from anchord.index.models import Models
from anchord.index.recipe import Recipe
from anchord.index.topics import OwnRooms
from anchord.sources.conversations.ingest import IngestOptions
from anchord.sources.secrets.redactor import rules_version
from anchord.store.catalog.catalog import SqliteCatalog

RERANKER_LOAD_S = 120.0
"""How long a process without a daemon waits for the reranker."""

_MADE_WITH_META_KEY = "made with"
"""The catalog entry of provider, model name, model id and dimension, one a line."""
_MADE_WITH_LINES = 4
_FURTHER_META_KEY = "made with further models"
"""The catalog entry of the further models; there is none in an index of one model."""


@dataclass
class IndexProfile:
    """The models, their embedders, and the recipe that rows are made by."""

    provider: str
    """The `embedding.provider` of the configuration: hash, openai or sentence-transformers."""
    model_files: ModelFiles
    embedder: AnyEmbedder
    """The main model."""
    recipe: Recipe
    further: FurtherModels = NO_FURTHER_MODELS

    @cached_property
    def token_counter(self) -> TokenCounter:
        """The counter of the model's tokens; loads the tokenizer at the first use."""
        return shared_token_counter(self.model_files.tokenizer)

    @property
    def dimension(self) -> int:
        """Numbers in a vector of the main model."""
        return self.embedder.dimension

    @property
    def dimensions(self) -> Mapping[str, int]:
        """Tag -> numbers in a vector, for each model; "" is the main one."""
        further = {tag: embedder.dimension for tag, embedder in self.further.embedders.items()}
        return {"": self.dimension, **further}

    @property
    def models(self) -> Models:
        """What embeds a text by the model of its vector key."""
        return Models(self.embedder, self.further.embedders)

    @property
    def embedders(self) -> list[AnyEmbedder]:
        """The main model and the further ones."""
        return [self.embedder, *self.further.embedders.values()]

    def close(self, unless_in: IndexProfile | None = None) -> None:
        """Close the models, but for those that another profile has as well."""
        kept = unless_in.embedders if unless_in else []
        for embedder in self.embedders:
            if not any(embedder is other for other in kept):
                embedder.close()

    def record_in_catalog(self, catalog: SqliteCatalog) -> None:
        """Write to a catalog what its rows are made with, for `build_catalog_profile`."""
        model_name = _on_one_line(self.model_files.name)
        lines = [self.provider, model_name, self.embedder.model_id, str(self.dimension)]
        catalog.set_meta(_MADE_WITH_META_KEY, "\n".join(lines))
        record = encode_settings(self.further.settings)
        if record or catalog.get_meta(_FURTHER_META_KEY):
            catalog.set_meta(_FURTHER_META_KEY, record)


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


def build_configured_profile(inputs: ProfileInputs) -> IndexProfile:
    """Return the profile that the configuration describes.

    Raises:
        ConfigError: There is no such model on this machine.
    """
    return _build_profile(inputs, inputs.config.embedding, configured_settings(inputs))


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
    further = decode_settings(catalog.get_meta(_FURTHER_META_KEY))
    configured_name = _on_one_line(configured.model_files.name)
    configured_model = (configured.provider, configured_name, configured.embedder.model_id)
    if (provider, name, model_id) == configured_model:
        if further.is_same_for(catalog.root_names(), configured.further.settings):
            return configured
        return _with_further_models(configured, inputs, further, configured.further)
    options = inputs.config.embedding.of_model(provider, name, precision_of(model_id))
    try:
        found = _build_profile(inputs, options, FurtherSettings())
    except AnchordError:
        found = configured
    if found.embedder.model_id != model_id:
        missing_model = MissingModelEmbedder(name, model_id, int(dimension))
        recipe = replace(
            found.recipe,
            model_identity=lambda: model_id,
            _digests={},
        )
        found = IndexProfile(
            provider,
            found.model_files,
            missing_model,
            recipe,
        )
    return _with_further_models(found, inputs, further, configured.further)


def _with_further_models(
    profile: IndexProfile, inputs: ProfileInputs, settings: FurtherSettings, known: FurtherModels
) -> IndexProfile:
    """Return a copy of a profile with other further models; `known` are open already."""
    further = build_further_models(
        inputs,
        settings,
        profile.embedder.model_id,
        known,
    )
    recipe = replace(
        profile.recipe,
        model_choice=further.choice,
        _digests={},
    )
    return replace(profile, recipe=recipe, further=further)


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
        model_choice=profile.recipe.model_choice,
        pinned_digests=digests,
    )
    return replace(profile, recipe=recipe)


def _build_profile(
    inputs: ProfileInputs, options: ModelOptions, settings: FurtherSettings
) -> IndexProfile:
    config = inputs.config
    model = find_model_files(config, options)
    embedder = make_embedder(
        inputs,
        options,
        model,
        inputs.indexed_model,
    )
    further = NO_FURTHER_MODELS
    if settings.options:
        further = build_further_models(inputs, settings, embedder.model_id)
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
        model_choice=further.choice,
    )
    return IndexProfile(
        options.provider,
        model,
        embedder,
        recipe,
        further,
    )


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
