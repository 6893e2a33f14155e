"""Brings an index that a test has opened up to date, as the daemon's writer does."""

from __future__ import annotations

from anchord.daemon.readiness import finish_generation
from anchord.daemon.writer.loop import WriterLoop
from anchord.index.metrics import WorkCounters
from anchord.index.session import IndexWriter


def index_all(writer: IndexWriter) -> WorkCounters:
    """Index all that is due, and return what was done. The writer stays open."""
    loop = WriterLoop(writer, writer.config.without_watching())
    loop.start()
    try:
        assert finish_generation(loop) == []
        assert loop.wait_for_sync(None), loop.blocked_reason
    finally:
        loop.stop()
    return loop.stats.totals
