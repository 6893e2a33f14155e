"""Work that needs pylance, done in the test's own process: starting one for it costs 0.7 s of CPU.

The processes themselves are tested in `store/table/test_compaction.py` and `live/test_backup.py`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from anchord.store.table import pinned_files
from anchord.store.table.compaction import CompactionRequest, CompactionWorker, compact_table


class _Lister:
    """Lists the files of a table as `python -m anchord.store.table.pinned_files` does."""

    def __init__(self, *_: object) -> None: ...

    def call_or_kill(self, _timeout_s: float, request: dict[str, str]) -> object:
        answer = pinned_files._list(Path(request["table"]))
        return msgspec.json.decode(msgspec.json.encode(answer))

    def shut_down(self) -> None: ...


def _compact(_: CompactionWorker, request: CompactionRequest) -> list[str]:
    return compact_table(request)


@pytest.fixture
def pylance_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compact tables and list their files in this process."""
    monkeypatch.setattr(pinned_files, "WorkerProcess", _Lister)
    monkeypatch.setattr(CompactionWorker, "__call__", _compact)
