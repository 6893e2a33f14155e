"""Work that needs pylance, done in the test's own process: starting one for it costs 0.7 s of CPU.

The process itself is tested in `store/table/test_compaction.py`.
"""

from __future__ import annotations

import pytest

from anchord.store.table.compaction import CompactionRequest, CompactionWorker, compact_table


def _compact(_: CompactionWorker, request: CompactionRequest) -> list[str]:
    return compact_table(request)


@pytest.fixture
def pylance_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compact tables in this process."""
    monkeypatch.setattr(CompactionWorker, "__call__", _compact)
