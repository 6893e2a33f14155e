"""The columns of vectors: one for the main model, and one for each further model.

A row has a vector in one of them at most, that of the model which its vector key names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from anchord.core.ids import MODEL_TAG_LENGTH

Dimensions = int | Mapping[str, int]
"""Numbers in a vector. With further models, tag -> numbers; the tag "" is the main model's."""
_MAIN = "vector"
_VECTOR_COLUMN = re.compile(rf"{_MAIN}(_[0-9a-f]{{{MODEL_TAG_LENGTH}}})?")


def vector_column(model_tag: str) -> str:
    """Return the column of a model's vectors; the tag "" is that of the main model."""
    return f"{_MAIN}_{model_tag}" if model_tag else _MAIN


def vector_columns(names: Iterable[str]) -> list[str]:
    """Return those columns that hold vectors, in their order."""
    return [name for name in names if _VECTOR_COLUMN.fullmatch(name)]


def tag_of_column(column: str) -> str:
    """Return the tag of the model whose vectors a column holds; "" for the main model."""
    return column.removeprefix(_MAIN).removeprefix("_")


def dimension_by_tag(dimensions: Dimensions) -> dict[str, int]:
    """Return tag -> numbers in a vector; the tag "" is that of the main model."""
    return {"": dimensions} if isinstance(dimensions, int) else {**dimensions}
