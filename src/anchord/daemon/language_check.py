"""Whether the model knows the languages of the indexed text: for `doctor` and the first index."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from anchord.config.paths import Paths
from anchord.config.schema import Config
from anchord.core.ids import model_tag_of
from anchord.core.text_language import unknown_shares
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.embedding.model_files import find_token_counting_model
from anchord.embedding.model_languages import languages_of_model
from anchord.index.embedders import pin_of
from anchord.index.table_location import store_uri
from anchord.store.table.table import LanceStore

_SAMPLE_ROWS = 300
_MIN_SAMPLE_ROWS = 20
_NOTICEABLE_SHARE = 0.1
_LANGUAGES_SHOWN = 3
_REMEDY = (
    "`anchord model add` names a model for these languages; set it as `model` under [embedding], "
    "or for them alone in [embedding.by_language]"
)


def check_languages(context: CheckContext) -> Iterator[Finding]:
    """Check the languages of the indexed text, for `doctor`."""
    finding = find_unknown_languages(context.paths, context.config)
    if finding:
        yield finding


def find_unknown_languages(paths: Paths, config: Config) -> Finding | None:
    """Detect the language of 300 chunks at most.

    Args:
        paths: Where the index is.
        config: Names the model.

    Returns:
        A finding if a tenth of the text or more is in languages that the model does not know; None
        too if nothing is known of the model, or there is hardly any text.

    Raises:
        AnchordError: The model or the table cannot be read.
    """
    embedding = config.embedding
    is_local = embedding.provider == "sentence-transformers"
    if not is_local or not paths.catalog_file.exists():
        return None
    pin = pin_of(config, embedding.model)
    model = find_token_counting_model(
        embedding.provider,
        embedding.model,
        0,
        pin,
    )
    known = languages_of_model(model.folder)
    if not known:
        return None
    uri = store_uri(paths, config)
    store = LanceStore(uri, model.dimension, "", read_only=True)
    # Ids are hashes: the smallest are a random sample, and the same one each time.
    ids = heapq.nsmallest(_SAMPLE_ROWS, store.all_ids())
    rows = store.get_rows(ids)
    # A document of a further model has it because somebody chose it.
    texts = [row.text for row in rows if not model_tag_of(row.vector_key)]
    shares = unknown_shares(texts, known) if len(texts) >= _MIN_SAMPLE_ROWS else {}
    total = sum(shares.values())
    if total < _NOTICEABLE_SHARE:
        return None
    largest = list(shares.items())[:_LANGUAGES_SHOWN]
    shown = ", ".join(f"{name} {100 * share:.0f} %" for name, share in largest)
    return Finding(
        "language",
        Health.DOUBTFUL,
        f"{100 * total:.0f} % of your text is not in a language that the model {model.name} "
        f"knows ({shown}): search by meaning finds less of it, search by words does not",
        _REMEDY,
    )
