"""Files that are written or replaced as a whole leave nothing behind."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from anchord.store.backup.copying import replace_file, write_file


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_written_file_is_closed(tmp_path: Path) -> None:
    before = open_files()
    assert write_file(tmp_path / "new", b"content") == hashlib.sha256(b"content").hexdigest()
    assert open_files() == before
    assert (tmp_path / "new").read_bytes() == b"content"


def test_a_file_that_cannot_be_flushed_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError("the disk is full")

    before = open_files()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="the disk is full"):
            write_file(tmp_path / "new", b"content")
    assert open_files() == before


@pytest.mark.parametrize("leftover", [None, b"half of an earlier one"])
def test_a_file_is_replaced_whether_or_not_an_earlier_attempt_left_one(
    tmp_path: Path, leftover: bytes | None
) -> None:
    file = tmp_path / "manifest"
    file.write_bytes(b"old")
    if leftover is not None:
        (tmp_path / "manifest.tmp").write_bytes(leftover)
    replace_file(file, b"new")
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]
