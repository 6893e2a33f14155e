"""What an index is made with: a model, its tokeniser, and the recipe that they and the configuration give.

An index can still be made with what an older configuration said. It is then kept up with that until a new generation is ready:
`held_means` reads its files only where they changed, and not because the recipe did.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.conversations import Wanted
from anchord.adapters.embedder import LocalEmbedder, Options
from anchord.adapters.hashing import HashEmbedder
from anchord.adapters.models import ModelFiles, counted_by
from anchord.adapters.prepared import INT8
from anchord.adapters.tokenizer import TokenCounter, counter_of
from anchord.chunkers.sentences import sentence_version
from anchord.chunkers.symbols import Define, definitions, grammar_versions
from anchord.config import Config, chunking_by_kind
from anchord.core.identity import digest
from anchord.core.recipe import NoPoison, Plans, Poison, Recipe, plans_of
from anchord.errors import AnchordError, EmbedderError
from anchord.model import Root, Vector

if TYPE_CHECKING:
    from anchord.adapters.served import ServedEmbedder

_MADE_WITH = "made with"
"""The catalogue's note of provider, model and the model's own identity, by line."""


class LostModel:
    """Stands for a model that rows were made with and that is not on this machine any more."""

    state, embedded, why = "lost", 0, ""

    def __init__(self, name: str, identity: str, dimension: int) -> None:
        """Remember what was lost."""
        self.name, self.model, self.dimension, self.rate = name, identity, dimension, 0.0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[Vector]:  # noqa: ARG002 - no lanes here
        """Refuse."""
        raise EmbedderError(
            f"the model `{self.name}` that this index was made with has changed or is gone",
            "a new index is being built; until then search with --mode text",
        )

    def stream(self, texts: Sequence[str]) -> Iterator[Mapping[int, Vector]]:
        """Refuse."""
        yield dict(enumerate(self.embed(texts)))

    def describe(self) -> dict[str, object]:
        """Tell nothing more."""
        return {}

    def rest(self) -> None:
        """Nothing to end."""

    def close(self) -> None:
        """Nothing to close."""


AnyEmbedder: TypeAlias = "LocalEmbedder | ServedEmbedder | HashEmbedder | LostModel"


@dataclass
class Means:
    """A model's files, its embedder, and the recipe for the rows."""

    provider: str
    model: ModelFiles
    embedder: AnyEmbedder
    recipe: Recipe

    @cached_property
    def count(self) -> TokenCounter:
        """Return the counter of the model's tokens."""
        return counter_of(self.model.tokenizer)

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self.embedder.dimension

    def note_in(self, catalogue: SqliteCatalogue) -> None:
        """Note in a catalogue what its rows are made with."""
        catalogue.note(_MADE_WITH, "\n".join([self.provider, _line(self.model.name), self.embedder.model, str(self.dimension)]))


@dataclass(frozen=True)
class HeldRecipe(Recipe):
    """A recipe under the digests that an index was made by, so that nothing of it is due only because the recipe changed."""

    held: Mapping[str, str] = field(default_factory=dict)

    def digest(self, root: str = "") -> str:
        """Return what a root's rows were made by; for a root without rows, what they would be made by."""
        return self.held.get(root) or super().digest(root)


def wanted_of(config: Config) -> Wanted:
    """Return what a configuration keeps of conversations."""
    return Wanted(config.privacy.redact, bool(config.chunking.summaries))


@dataclass(frozen=True, slots=True)
class Given:
    """What means are found by."""

    config: Config
    roots: Sequence[Root]
    models: Path
    """Where exported models are kept."""
    poison: Poison = field(default_factory=NoPoison)
    define: Define = definitions


def find_means(given: Given) -> Means:
    """Return what the configuration says.

    Raises:
        ConfigError: there is no such model.
    """
    keys = given.config.embedding
    return _means(given, keys.provider, keys.model, keys.precision)


def means_for(catalogue: SqliteCatalogue, wanted: Means, given: Given) -> Means:
    """Return what the rows of a catalogue are made with: mostly what is wanted."""
    noted = catalogue.noted(_MADE_WITH).split("\n")
    if len(noted) != 4 or (noted[:2] == [wanted.provider, _line(wanted.model.name)] and noted[2] == wanted.embedder.model):
        return wanted
    provider, name, identity, dimension = noted
    try:
        found = _means(given, provider, name, INT8 if identity.endswith(f"/{INT8}") else "fp32")
    except AnchordError:
        found = wanted
    if found.embedder.model == identity:
        return found
    lost = LostModel(name, identity, int(dimension))
    recipe = Recipe(
        found.recipe.plans, lambda: identity, found.recipe.tokenizer, found.recipe.of_roots, given.poison, given.define
    )
    return Means(provider, found.model, lost, recipe)


def held_means(catalogue: SqliteCatalogue, means: Means, wanted: Means) -> Means:
    """Return means that leave a catalogue's files as they were made, where what is wanted differs; else `means` itself."""
    made_by = {root: max(counts, key=lambda recipe: counts[recipe]) for root, counts in catalogue.recipes().items()}
    if means is wanted and all(recipe == wanted.recipe.digest(root) for root, recipe in made_by.items()):
        return means
    made = means.recipe
    recipe = HeldRecipe(made.plans, made.model, made.tokenizer, made.of_roots, made.poison, made.define, held=made_by)
    return Means(means.provider, means.model, means.embedder, recipe)


def _line(name: str) -> str:
    return " ".join(name.split("\n"))


def cutting_plans(config: Config, roots: Sequence[Root], window: int) -> Plans:
    """Return how documents are cut for a model's window, in each root."""
    own = {root.name: chunking_by_kind(config, root.strategy) for root in roots if root.strategy}
    return plans_of(window, {"": chunking_by_kind(config), **own})


def _means(given: Given, provider: str, name: str, precision: str) -> Means:
    config, roots, keys = given.config, given.roots, given.config.embedding
    model = counted_by(provider, name, keys.max_tokens)
    embedder: AnyEmbedder
    if provider == "hash":
        embedder = HashEmbedder()
    elif provider == "openai":
        from anchord.adapters.served import ServedEmbedder, Server  # noqa: PLC0415 - 13 MB that few need

        server = Server(keys.url, os.environ.get(keys.api_key_env, ""), keys.dimension, keys.query_prefix, keys.text_prefix)
        embedder = ServedEmbedder(name, server, model.tokenizer, given.models)
    else:
        growth = keys.max_growth_mb * 1_000_000
        embedder = LocalEmbedder(model, Options(given.models, precision, keys.threads, keys.idle_unload_s, growth))
    tokenizer = f"{digest(model.tokenizer.read_bytes())} {grammar_versions()} {sentence_version()}"
    reader = wanted_of(config).reader
    readers = {root.name: reader for root in roots if root.kind == "conversations"}
    plans = cutting_plans(config, roots, model.window)
    recipe = Recipe(plans, lambda: embedder.model, tokenizer, readers, given.poison, given.define)
    return Means(provider, model, embedder, recipe)
