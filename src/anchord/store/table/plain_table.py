"""The table opened with plain LanceDB, for programs that query it by LanceDB's own interface.

The model is no part of the table. LanceDB notes the name of an embedding function in a table's
schema, and looks it up in the process that reads: one without anchord could not even search by
words then. And LanceDB would embed rows that are written without a vector, as words first are.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import lancedb
from lancedb.embeddings import EmbeddingFunctionConfig, TextEmbeddingFunction
from lancedb.table import Table

from anchord.core.types import Vector
from anchord.store.table.table import TABLE_NAME
from anchord.store.table.vector_columns import vector_column

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


def open_plain_table(uri: str, embed_by_tag: Mapping[str, tuple[int, Embed]]) -> PlainTable:
    """Open the table with LanceDB, so that it can be searched by a question's meaning.

    With further models a search looks at the vectors of the main one, unless it names the column of
    another as its `vector_column_name`.

    Args:
        uri: The LanceDB uri that the table is in.
        embed_by_tag: Tag of a model -> numbers in a vector, and what embeds questions, as those
            that the index was made for. The tag "" is the main model.

    Raises:
        ValueError: There is no table.
    """
    table: Any = lancedb.connect(uri).open_table(TABLE_NAME)
    functions = {}
    for tag, (dimension, embed) in embed_by_tag.items():
        column = vector_column(tag)
        functions[column] = EmbeddingFunctionConfig(
            vector_column=column,
            source_column="text",
            function=QuestionEmbeddings(dimension=dimension, embed=embed),
        )
    table.embedding_functions = functions  # a cached property
    if len(functions) > 1:
        # LanceDB asks for the name where several columns could be meant.
        table.search = partial(table.search, vector_column_name=vector_column(""))
    return cast("PlainTable", table)
