"""`anchord run` that ends itself by SIGKILL at a step of its work.

    ANCHORD_KILL="upsert after 2"

`prepare_kill` arms it in the daemon's process as this variable says. The step is one of `PLACES`; the moment is before the call, after it, or `during` it: after the milliseconds of
ANCHORD_KILL_AFTER_MS. The number selects the call. The rest of the daemon is unchanged, but the table is compacted
after every second commit, because otherwise no compaction would happen in so short a run.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

PLACES = {
    "read": "anchord.sources.files.folder_files:FolderFiles.read",
    "chunk": "anchord.index.file_planner:prepare_rows",
    "embed": "anchord.embedding.hash_embedder:HashEmbedder.embed",
    "intend": "anchord.store.catalog.catalog:SqliteCatalog.save_intents",
    "upsert": "anchord.store.table.table:LanceStore.upsert",
    "vanished": "anchord.store.vector_cache:SqliteVectorCache.put",
    "delete": "anchord.store.table.table:LanceStore.delete_rows",
    "apply": "anchord.store.catalog.catalog:SqliteCatalog.confirm_updates",
    "fill": "anchord.store.table.table:LanceStore.set_vectors",
    "maintain": "anchord.store.table.maintenance:maintain",
}
"""Step -> `module:name` of its function."""
_COMMITS = 2


def die() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # The signal arrives before the sleep ends.


def kill_at(place: str, moment: str, nth: int, after_ms: float) -> None:
    """Make the n-th call of a step end the process."""
    module, _, name = PLACES[place].partition(":")
    holder: Any = importlib.import_module(module)
    *outer, name = name.split(".")
    for part in outer:
        holder = getattr(holder, part)
    real: Callable[..., Any] = getattr(holder, name)
    calls = 0

    def deadly(*args: Any, **named: Any) -> Any:  # noqa: ANN401 - any call
        nonlocal calls
        calls += 1
        if calls == nth and moment == "before":
            die()
        if calls == nth and moment == "during":
            threading.Timer(after_ms / 1000, die).start()
        result = real(*args, **named)
        if calls == nth and moment == "after":
            die()
        return result

    setattr(holder, name, deadly)


def prepare_kill() -> None:
    """Make the daemon of this process end as the environment variables say."""
    place, moment, nth = os.environ["ANCHORD_KILL"].split()
    kill_at(place, moment, int(nth), float(os.environ.get("ANCHORD_KILL_AFTER_MS", "1")))
    upkeep: Any = importlib.import_module("anchord.daemon.writer.maintenance")
    assert hasattr(upkeep, "COMPACT_AFTER_COMMITS")
    upkeep.COMPACT_AFTER_COMMITS = _COMMITS
    if place == "fill":
        # Every text is written before its vector; the next daemon finds and fills them.
        commit: Any = importlib.import_module("anchord.index.commit")
        commit.DIRECT_TEXTS, commit.DIRECT_S = -1, 0.0
        model: Any = importlib.import_module("anchord.embedding.hash_embedder")
        model.HashEmbedder.is_immediate = False
