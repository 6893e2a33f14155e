"""What the cosines of a model say, measured once a process with texts of anchord's own.

Cosines of different models cannot be compared. So twelve questions and their answers are embedded:
the mean cosine of those that do not belong together, and of those that do, are the two ends of the
model's scale. Neither the index nor its texts are needed.
"""

from __future__ import annotations

from array import array
from itertools import product
from statistics import mean

from anchord.core.ports import Embedder
from anchord.core.types import Vector
from anchord.errors import BatchFailedError, EmbedderError
from anchord.search.confidence import CosineScale

_MIN_RANGE = 0.05
"""A model that keeps related and unrelated texts less apart says nothing of either."""
_QUESTIONS_AND_ANSWERS = (
    (
        "how do I get a stain out of a shirt",
        "Soak the fabric in cold water and rub soap into the spot before washing.",
    ),
    (
        "when does the library open",
        "Opening hours: the reading room can be visited from nine to six on weekdays.",
    ),
    (
        "why is my bread so dense",
        "If the dough has not risen long enough, the loaf becomes heavy.",
    ),
    (
        "restore a file from yesterday's backup",
        "To bring back an earlier copy, choose the snapshot and the path to recover.",
    ),
    (
        "what did we agree on about the budget",
        "Meeting notes: the spending limit for next year was set to 40,000.",
    ),
    (
        "how do I install the program on Linux",
        "Download the package for your distribution and run the setup command.",
    ),
    ("can I change my password", "Under account settings you choose new login credentials."),
    (
        "the tests fail on Windows only",
        "On Microsoft's system a path has backslashes, so this comparison breaks.",
    ),
    ("how far is the moon", "The average distance between Earth and its satellite is 384,400 km."),
    (
        "who is responsible for releases",
        "Publishing a new version is the task of the maintainers.",
    ),
    (
        "exercises against back pain",
        "Gentle stretching strengthens the spine and eases discomfort.",
    ),
    (
        "speed up a slow database query",
        "An index on the filtered column lets the server avoid a full scan of the table.",
    ),
)
_scale_by_model: dict[str, CosineScale | None] = {
    "sentence-transformers/7825f8bc0ac1643f8d22b94704fac45e": CosineScale(0.014, 0.497),
    "hash-384/1": None,
}
"""Model id -> its scale. The default model's is known, so that no search waits for it."""


def scale_of(embedder: Embedder) -> CosineScale | None:
    """Return the scale of a model's cosines; embeds 24 short texts at a model's first use.

    Returns:
        None if related and unrelated texts have about the same cosines, or the model is not
        available.
    """
    model_id = embedder.model_id
    if model_id not in _scale_by_model:
        try:
            _scale_by_model[model_id] = _measure(embedder)
        except BatchFailedError:
            _scale_by_model[model_id] = None  # It would fail at every search.
        except EmbedderError:
            return None
    return _scale_by_model[model_id]


def _measure(embedder: Embedder) -> CosineScale | None:
    # Also the answers as queries: documents would wait behind those that are being indexed.
    texts = [text for pair in _QUESTIONS_AND_ANSWERS for text in pair]
    vectors = embedder.embed(texts, is_query=True)
    questions, answers = vectors[::2], vectors[1::2]
    cosines = {
        (row, column): _dot(question, answer)
        for (row, question), (column, answer) in product(enumerate(questions), enumerate(answers))
    }
    related = mean(cosine for (row, column), cosine in cosines.items() if row == column)
    unrelated = mean(cosine for (row, column), cosine in cosines.items() if row != column)
    return CosineScale(unrelated, related) if related - unrelated >= _MIN_RANGE else None


def _dot(first: Vector, second: Vector) -> float:
    return sum(a * b for a, b in zip(array("f", first), array("f", second), strict=True))
