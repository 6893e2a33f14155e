"""Files are copied whole, with their digest, privately and flushed; links and pipes are refused."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from anchord.store.backup.copying import (
    copy_file,
    flush_folders,
    hash_file,
    replace_file,
    write_file,
)

MEGABYTE = 1 << 20
CONTENT = bytes(range(256)) * (2 * MEGABYTE // 256) + b"end"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source"
    file.write_bytes(CONTENT)
    os.utime(file, ns=(1, 1_700_000_000_000_000_123))
    return file


def test_a_copy_has_the_content_the_time_and_a_private_mode(source: Path, tmp_path: Path) -> None:
    blocks: list[int] = []
    copy = tmp_path / "copy"
    open_before = len(os.listdir("/proc/self/fd"))
    assert copy_file(source, copy, blocks.append) == (len(CONTENT), DIGEST)
    assert blocks == [MEGABYTE, MEGABYTE, 3]
    assert copy.read_bytes() == CONTENT
    status = copy.stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_mtime_ns == 1_700_000_000_000_000_123
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_digest_is_read_block_by_block(source: Path) -> None:
    blocks: list[int] = []
    assert hash_file(source, blocks.append) == (len(CONTENT), DIGEST)
    assert blocks == [MEGABYTE, MEGABYTE, 3]


def test_a_write_that_takes_only_a_part_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real_write(file, bytes(data[:3])))
    assert write_file(tmp_path / "new", b"0123456789") == hashlib.sha256(b"0123456789").hexdigest()
    assert (tmp_path / "new").read_bytes() == b"0123456789"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_only_regular_files_are_read(source: Path, tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    if kind == "link":
        other.symlink_to(source)
    elif kind == "folder":
        other.mkdir()
    else:
        os.mkfifo(other)
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=r"regular|symbolic"):
        hash_file(other, lambda _: None)
    with pytest.raises(OSError, match=r"regular|symbolic"):
        copy_file(other, tmp_path / "copy", lambda _: None)
    assert not (tmp_path / "copy").exists()
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_file_that_exists_is_not_written_over(source: Path, tmp_path: Path) -> None:
    existing = tmp_path / "existing"
    existing.write_bytes(b"kept")
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileExistsError):
        copy_file(source, existing, lambda _: None)
    with pytest.raises(FileExistsError):
        write_file(existing, b"new")
    assert existing.read_bytes() == b"kept"
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_cancelled_copy_leaves_no_file_open(source: Path, tmp_path: Path) -> None:
    def cancel(_: int) -> None:
        raise KeyboardInterrupt

    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(KeyboardInterrupt):
        copy_file(source, tmp_path / "copy", cancel)
    with pytest.raises(KeyboardInterrupt):
        hash_file(source, cancel)
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_replaced_file_is_flushed_before_it_takes_the_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, left_over = tmp_path / "file", tmp_path / "file.tmp"
    file.write_bytes(b"old")
    left_over.write_bytes(b"left by a crash")
    contents: list[tuple[bool, bytes]] = []
    real_fsync = os.fsync

    def fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        contents.append((is_folder, file.read_bytes()))
        real_fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    replace_file(file, b"new")
    assert contents == [(False, b"old"), (True, b"new")]
    assert not left_over.exists()


def test_files_and_every_folder_are_flushed(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(os.fstat(file).st_ino))
    (tmp_path / "a" / "b").mkdir(parents=True)
    copy_file(source, tmp_path / "a" / "copy", lambda _: None)
    assert flushed == [(tmp_path / "a" / "copy").stat().st_ino]
    flushed.clear()
    open_before = len(os.listdir("/proc/self/fd"))
    flush_folders(tmp_path)
    folders = (tmp_path, tmp_path / "a", tmp_path / "a" / "b")
    assert set(flushed) == {folder.stat().st_ino for folder in folders}
    assert len(os.listdir("/proc/self/fd")) == open_before
