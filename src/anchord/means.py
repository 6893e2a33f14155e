"""What an index is made with: a model, its tokeniser, and the recipe that they and the configuration give.

An index can still be made with what an older configuration said. It is then kept up with that until a new generation is ready:
`held_means` reads its files only where they changed, and not because the recipe did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.conversations import Wanted
from anchord.adapters.embedder import WorkerEmbedder
from anchord.adapters.hashing import HashEmbedder
from anchord.adapters.models import ModelFiles, find_model
from anchord.adapters.tokenizer import TokenCounter
from anchord.chunkers.sentences import sentence_version
from anchord.chunkers.symbols import grammar_versions
from anchord.config import Config, chunking_by_kind
from anchord.core.identity import digest
from anchord.core.recipe import Plans, Recipe, plans_of
from anchord.errors import AnchordError, EmbedderError
from anchord.model import Root, Vector

_MADE_WITH = "made with"
"""The catalogue's note of provider, model and the model's own identity, by line."""


class LostModel:
    """Stands for a model that rows were made with and that is not on this machine any more."""

    state, embedded = "lost", 0

    def __init__(self, name: str, identity: str, dimension: int) -> None:
        """Remember what was lost."""
        self.name, self.model, self.dimension, self.rate = name, identity, dimension, 0.0

    def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Vector]:  # noqa: ARG002 - no lanes here
        """Refuse."""
        raise EmbedderError(
            f"the model `{self.name}` that this index was made with has changed or is gone",
            "a new index is being built; until then search with --mode text",
        )

    def rest(self) -> None:
        """Nothing to end."""

    def close(self) -> None:
        """Nothing to close."""


AnyEmbedder = WorkerEmbedder | HashEmbedder | LostModel


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
        return TokenCounter(self.model.tokenizer)

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self.embedder.dimension

    def note_in(self, catalogue: SqliteCatalogue) -> None:
        """Note in a catalogue what its rows are made with."""
        catalogue.note(_MADE_WITH, "\n".join([self.provider, self.model.name, self.embedder.model, str(self.dimension)]))


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


def find_means(config: Config, roots: Sequence[Root]) -> Means:
    """Return what the configuration says.

    Raises:
        ConfigError: there is no such model.
    """
    return _means(config, roots, config.embedding.provider, config.embedding.model)


def means_for(catalogue: SqliteCatalogue, wanted: Means, config: Config, roots: Sequence[Root]) -> Means:
    """Return what the rows of a catalogue are made with: mostly what is wanted."""
    noted = catalogue.noted(_MADE_WITH).split("\n")
    if len(noted) != 4 or (noted[:2] == [wanted.provider, wanted.model.name] and noted[2] == wanted.embedder.model):
        return wanted
    provider, name, identity, dimension = noted
    try:
        found = _means(config, roots, provider, name)
    except AnchordError:
        found = wanted
    if found.embedder.model == identity:
        return found
    lost = LostModel(name, identity, int(dimension))
    recipe = Recipe(found.recipe.plans, lambda: identity, found.recipe.tokenizer, found.recipe.of_roots)
    return Means(provider, found.model, lost, recipe)


def held_means(catalogue: SqliteCatalogue, means: Means, wanted: Means) -> Means:
    """Return means that leave a catalogue's files as they were made, where what is wanted differs; else `means` itself."""
    made_by = {root: max(counts, key=lambda recipe: counts[recipe]) for root, counts in catalogue.recipes().items()}
    if means is wanted and all(recipe == wanted.recipe.digest(root) for root, recipe in made_by.items()):
        return means
    made = means.recipe
    recipe = HeldRecipe(made.plans, made.model, made.tokenizer, made.of_roots, held=made_by)
    return Means(means.provider, means.model, means.embedder, recipe)


def cutting_plans(config: Config, roots: Sequence[Root], window: int) -> Plans:
    """Return how documents are cut for a model's window, in each root."""
    own = {root.name: chunking_by_kind(config, root.strategy) for root in roots if root.strategy}
    return plans_of(window, {"": chunking_by_kind(config), **own})


def _means(config: Config, roots: Sequence[Root], provider: str, name: str) -> Means:
    model = find_model(name)
    embedder: AnyEmbedder
    if provider == "hash":
        embedder = HashEmbedder()
    else:
        embedder = WorkerEmbedder(model, config.embedding.threads, config.embedding.idle_unload_s)
    tokenizer = f"{digest(model.tokenizer.read_bytes())} {grammar_versions()} {sentence_version()}"
    reader = wanted_of(config).reader
    readers = {root.name: reader for root in roots if root.kind == "conversations"}
    recipe = Recipe(cutting_plans(config, roots, model.window), lambda: embedder.model, tokenizer, readers)
    return Means(provider, model, embedder, recipe)
