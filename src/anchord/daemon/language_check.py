"""The check of `anchord doctor` whether the model knows the languages of the indexed text."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from anchord.core.natural_language import is_english_or_unclear
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.index.table_location import store_uri
from anchord.store.table.table import LanceStore

_ENGLISH_MODELS = {"all-MiniLM-L6-v2": 384}
"""Models that are known to be for English -> numbers in their vectors."""
_SAMPLE_ROWS = 300
_MIN_SAMPLE_ROWS = 20
_NOTICEABLE_SHARE = 0.1


def check_languages(context: CheckContext) -> Iterator[Finding]:
    """Detect the language of 300 chunks at most, if the model is for English only."""
    embedding = context.config.embedding
    dimension = _ENGLISH_MODELS.get(embedding.model)
    if embedding.provider != "sentence-transformers" or dimension is None:
        return
    if not context.paths.catalog_file.exists():
        return
    uri = store_uri(context.paths, context.config)
    store = LanceStore(uri, dimension, "", read_only=True)
    # Ids are hashes: the smallest are a random sample, and the same one each time.
    ids = heapq.nsmallest(_SAMPLE_ROWS, store.all_ids())
    texts = [row.text for row in store.get_display_rows(ids)]
    if len(texts) < _MIN_SAMPLE_ROWS:
        return
    share = sum(not is_english_or_unclear(text) for text in texts) / len(texts)
    if share >= _NOTICEABLE_SHARE:
        yield Finding(
            "language",
            Health.DOUBTFUL,
            f"{100 * share:.0f} % of your text is not in English, the language of the model "
            f"{embedding.model}: search by meaning finds less of it, search by words does not",
            "set a multilingual model as `model` under [embedding]",
        )
