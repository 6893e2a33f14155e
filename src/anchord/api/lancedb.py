"""anchord's table in LanceDB's own interface."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from anchord.config.paths import paths_of_home
from anchord.daemon.access import open_index_reader
from anchord.store.table.plain_table import PlainTable, open_plain_table


@contextmanager
def open_table(home: str | os.PathLike[str] | None = None) -> Iterator[PlainTable]:
    """Open the table with plain LanceDB; questions are embedded with the model of the index.

    `table.search("how do I restore a backup")` searches by meaning, `query_type="fts"` by words and
    `query_type="hybrid"` by both. Only read it: anchord writes it, also meanwhile.

    Args:
        home: The folder in which anchord keeps its files, as in ANCHORD_HOME. None for that of
            ANCHORD_HOME, or without it for this user's own folders.

    Yields:
        A `lancedb.table.Table`; docs/reference/chunk.md has its columns.

    Raises:
        StoreError: There is no index yet, or it cannot be opened.
        ConfigError: The configuration is not valid.
    """
    with open_index_reader(paths_of_home(home)) as reader:
        profile = reader.profile
        embedders = {"": profile.embedder, **profile.further.embedders}
        yield open_plain_table(
            reader.store.uri,
            {
                tag: (embedder.dimension, partial(embedder.embed, is_query=True))
                for tag, embedder in embedders.items()
            },
        )
