"""A restore compares every byte with the manifest: damage of the table is left out, other damage refused."""

from __future__ import annotations

import errno
import hashlib
import stat
from pathlib import Path

import pytest

from anchord.errors import StoreDamagedError, UsageError
from anchord.store.backup import restore as module
from anchord.store.backup.manifest import MANIFEST_NAME, BackedUpFile, Manifest
from anchord.store.backup.restore import copy_snapshot, find_snapshot

TABLE_FILE = "data/lance/chunks.lance/data/a.lance"
FILES = {"config.toml": b"[watch]\n", "data/state.sqlite": b"state", TABLE_FILE: b"rows"}


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    folder = tmp_path / "backups" / "2026-01-01T000000Z"
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def manifest() -> Manifest:
    files = tuple(
        BackedUpFile(
            path=path, size=len(content), mtime_ns=1, sha256=hashlib.sha256(content).hexdigest()
        )
        for path, content in FILES.items()
    )
    return Manifest(anchord="1", created="", home="", files=files)


def restored(snapshot: Path, tmp_path: Path) -> tuple[dict[str, bytes], list[str]]:
    destination = tmp_path / "restored"
    destination.mkdir()
    left_out = copy_snapshot(snapshot, manifest(), destination, lambda *_: None)
    files = [file for file in destination.rglob("*") if file.is_file()]
    return {str(file.relative_to(destination)): file.read_bytes() for file in files}, left_out


def test_every_file_is_restored_privately_flushed_and_counted(
    snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    progress: list[tuple[int, int]] = []
    monkeypatch.setattr(module, "flush_folders", flushed.append)
    destination = tmp_path / "restored"
    told = copy_snapshot(snapshot, manifest(), destination, lambda *each: progress.append(each))
    assert told == []
    assert {path: (destination / path).read_bytes() for path in FILES} == FILES
    assert progress == [(8, 17), (13, 17), (17, 17)]
    assert flushed == [destination]
    assert stat.S_IMODE((destination / "data").stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", ["missing", "a link", "other bytes", "shorter"])
@pytest.mark.parametrize("path", list(FILES))
def test_only_damaged_files_of_the_table_are_left_out(
    snapshot: Path, tmp_path: Path, damage: str, path: str
) -> None:
    victim = snapshot / path
    content = victim.read_bytes()
    victim.unlink()
    if damage == "a link":
        victim.symlink_to(tmp_path)
    elif damage != "missing":
        victim.write_bytes(content[:-1] if damage == "shorter" else content[::-1])
    if path == TABLE_FILE:
        files, left_out = restored(snapshot, tmp_path)
        assert left_out == [TABLE_FILE]
        assert files == {name: FILES[name] for name in FILES if name != TABLE_FILE}
        return
    with pytest.raises(StoreDamagedError, match="is missing or damaged"):
        restored(snapshot, tmp_path)


@pytest.mark.parametrize("path", [TABLE_FILE, "config.toml"])
def test_a_disk_that_cannot_be_read_or_written_ends_the_restore(
    snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def copy(source: Path, *_: object) -> tuple[int, str]:
        if source == snapshot / path:
            raise OSError(errno.ENOSPC, "No space left on device")
        content = source.read_bytes()
        return len(content), hashlib.sha256(content).hexdigest()

    monkeypatch.setattr(module, "copy_file", copy)
    with pytest.raises(OSError, match="No space"):
        restored(snapshot, tmp_path)


def test_the_newest_snapshot_is_found_or_the_one_that_is_named(
    snapshot: Path, tmp_path: Path
) -> None:
    later = snapshot.with_name("2026-02-01T000000Z")
    later.mkdir()
    assert find_snapshot(snapshot.parent) == later
    (snapshot / MANIFEST_NAME).touch()
    assert find_snapshot(snapshot) == snapshot
    for other in (tmp_path, tmp_path / "nowhere", snapshot / "config.toml"):
        with pytest.raises(UsageError, match="holds no backup"):
            find_snapshot(other)
