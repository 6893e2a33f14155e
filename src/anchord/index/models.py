"""The models of an index as one: each text goes to the model that its vector key names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from anchord.core.ids import model_tag_of
from anchord.core.ports import Embedder
from anchord.core.types import Vector
from anchord.errors import EmbedderError

_NO_MODELS: Mapping[str, Embedder] = {}


class Models:
    """The main model of an index, and its further ones."""

    def __init__(self, main: Embedder, further: Mapping[str, Embedder] = _NO_MODELS) -> None:
        """Use these models.

        Args:
            main: The model of the vector keys without a tag.
            further: Tag -> model.
        """
        self._by_tag = {"": main, **further}

    @property
    def texts_per_second(self) -> float:
        """Recent throughput of the slowest model; 0 before the first text."""
        rates = (model.texts_per_second for model in self._by_tag.values())
        return min(filter(None, rates), default=0.0)

    @property
    def is_immediate(self) -> bool:
        """Whether making vectors takes no longer than writing rows, with every model."""
        return all(model.is_immediate for model in self._by_tag.values())

    @property
    def is_prepared(self) -> bool:
        """Whether a text of any model can be embedded at once."""
        return all(model.is_prepared for model in self._by_tag.values())

    def prepare_in_background(self) -> None:
        """Begin to prepare the models that are not prepared; returns at once."""
        for model in self._by_tag.values():
            model.prepare_in_background()

    def dimension_of(self, vector_key: str) -> int:
        """Return how many numbers the vector of a key has."""
        return self._by_tag[model_tag_of(vector_key)].dimension

    def embed_batches(self, text_by_key: Mapping[str, str]) -> Iterator[dict[str, Vector]]:
        """Embed texts batch by batch, one model after the other.

        Args:
            text_by_key: Vector key -> text.

        Yields:
            Vector key -> vector. Each key is yielded once, in any order.

        Raises:
            EmbedderError: A model is unavailable. It is raised after the texts of the others; the
                vectors that were yielded are valid.
        """
        failure: EmbedderError | None = None
        for model, keys in self._keys_by_model(text_by_key):
            try:
                for batch in model.embed_batches([text_by_key[key] for key in keys]):
                    yield {keys[number]: vector for number, vector in batch.items()}
            except EmbedderError as error:
                failure = failure or error
        if failure:
            raise failure

    def embed(self, text_by_key: Mapping[str, str]) -> dict[str, Vector]:
        """Embed texts and wait for all of them; returns vector key -> vector.

        Raises:
            EmbedderError: A model is unavailable.
        """
        vectors: dict[str, Vector] = {}
        for model, keys in self._keys_by_model(text_by_key):
            made = model.embed([text_by_key[key] for key in keys])
            vectors.update(zip(keys, made, strict=True))
        return vectors

    def _keys_by_model(self, keys: Iterable[str]) -> Iterator[tuple[Embedder, list[str]]]:
        keys_by_tag: dict[str, list[str]] = {}
        for key in keys:
            keys_by_tag.setdefault(model_tag_of(key), []).append(key)
        return ((self._by_tag[tag], own_keys) for tag, own_keys in keys_by_tag.items())
