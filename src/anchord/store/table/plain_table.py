"""The table opened with plain LanceDB, for programs that query it by LanceDB's own interface.

The model is no part of the table. LanceDB notes the name of an embedding function in a table's
schema, and looks it up in the process that reads: one without anchord could not even search by
words then. And LanceDB would embed rows that are written without a vector, as words first are.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import lancedb
from lancedb.embeddings import EmbeddingFunctionConfig, TextEmbeddingFunction
from lancedb.table import Table

from anchord.core.types import Vector
from anchord.store.table.table import TABLE_NAME

PlainTable: TypeAlias = Table

Embed = Callable[[Sequence[str]], Sequence[Vector]]


class QuestionEmbeddings(TextEmbeddingFunction):
    """Embeds the questions of LanceDB's `search` with the model of the index."""

    dimension: int
    embed: Embed

    def ndims(self) -> int:
        """Return how many numbers a vector has."""
        return self.dimension

    def generate_embeddings(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed questions.

        Args:
            texts: The questions.

        Returns:
            A vector for each.
        """
        return [array("f", vector).tolist() for vector in self.embed([*texts])]


def open_plain_table(uri: str, dimension: int, embed: Embed) -> PlainTable:
    """Open the table with LanceDB, so that it can be searched by a question's meaning.

    Args:
        uri: The LanceDB uri that the table is in.
        dimension: Numbers in a vector.
        embed: Embeds questions, as those that the index was made for.

    Raises:
        ValueError: There is no table.
    """
    function = QuestionEmbeddings(dimension=dimension, embed=embed)
    table: Any = lancedb.connect(uri).open_table(TABLE_NAME)
    config = EmbeddingFunctionConfig(
        vector_column="vector", source_column="text", function=function
    )
    table.embedding_functions = {"vector": config}  # a cached property
    return cast("PlainTable", table)
