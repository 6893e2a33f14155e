"""Transcripts are kept byte for byte, and cost what is new in them."""

from __future__ import annotations

import errno
import json
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from sources.conversations.kept.test_pieces import transcript

from anchord.core.types import Fingerprint
from anchord.errors import StoreDamagedError, StoreError, StoreUnavailableError
from anchord.sources.conversations.kept import store as store_module
from anchord.sources.conversations.kept import writer as writer_module
from anchord.sources.conversations.kept.store import (
    KeptTranscripts,
    Place,
)
from anchord.sources.conversations.kept.versions import MAX_COMPARED_BYTES, best_version
from anchord.sources.conversations.kept.writer import ChangedMeanwhileError, KeptTranscriptsWriter


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[KeptTranscriptsWriter]:
    store = KeptTranscriptsWriter(tmp_path / "transcripts.sqlite")
    yield store
    store.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "talks").mkdir()
    return Place(str(tmp_path / "talks"), "s1.jsonl")


def save(kept: KeptTranscriptsWriter, place: Place, data: bytes) -> None:
    file = Path(place.absolute)
    file.write_bytes(data)
    status = file.stat()
    fingerprint = Fingerprint(
        status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev
    )
    with file.open("rb") as stream:
        kept.save(place, fingerprint, stream, status.st_mtime_ns)


def contents(kept: KeptTranscriptsWriter, place: Place) -> list[bytes]:
    return [b"".join(kept.read(each)) for each in kept.versions(place)]


def best(kept: KeptTranscriptsWriter, place: Place) -> bytes:
    version = best_version(kept.versions(place))
    assert version is not None
    return b"".join(kept.read(version))


def pages(kept: KeptTranscriptsWriter) -> int:
    return kept.totals().disk_bytes


def test_a_file_that_grows_is_one_version_and_costs_what_was_appended(
    kept: KeptTranscriptsWriter, place: Place
) -> None:
    data = transcript(2_000_000)
    save(kept, place, data[:1_500_000])
    before = pages(kept)
    assert before < 1_500_000
    for end in range(1_505_000, 1_555_000, 5_000):
        save(kept, place, data[:end])
    assert contents(kept, place) == [data[:1_550_000]]
    assert pages(kept) - before < 100_000


@pytest.mark.parametrize("damaged", [b"", b"\0" * 300_000, b"{}\n" * 20])
def test_what_a_file_lost_stays(kept: KeptTranscriptsWriter, place: Place, damaged: bytes) -> None:
    data = transcript(300_000)
    save(kept, place, data)
    if damaged:
        save(kept, place, damaged)
    assert best(kept, place) == data
    save(kept, place, data[:100_000])
    save(kept, place, data[:100_000] + b'{"text": "goes on"}\n')
    assert best(kept, place) == data
    assert contents(kept, place)[-1] == data[:100_000] + b'{"text": "goes on"}\n'


def test_a_document_that_is_written_again_keeps_one_version_while_it_loses_nothing(
    kept: KeptTranscriptsWriter, place: Place
) -> None:
    messages = [{"id": n, "text": f"message {n} " * 50} for n in range(100)]
    for count in range(90, 100):
        document = {"updated": count, "messages": messages[:count]}
        save(kept, place, json.dumps(document, indent=1).encode())
    assert len(kept.versions(place)) == 1
    save(kept, place, json.dumps({"updated": 0, "messages": messages[50:] * 3}).encode())
    assert len(kept.versions(place)) == 2
    assert json.loads(contents(kept, place)[0])["messages"] == messages[:99]


def test_a_change_in_the_middle_is_another_version(
    kept: KeptTranscriptsWriter, place: Place
) -> None:
    data = transcript(600_000)
    save(kept, place, data)
    changed = data[:200_000] + b"X" * 1_000 + data[201_000:]
    save(kept, place, changed)
    assert contents(kept, place) == [data, changed]
    assert kept.totals().transcript_bytes == len(data)


def test_two_files_share_what_they_have_in_common(
    kept: KeptTranscriptsWriter, place: Place
) -> None:
    data = transcript(1_000_000)
    save(kept, place, data)
    before = pages(kept)
    copy = Place(place.folder, "copy.jsonl")
    save(kept, copy, data + b'{"text": "of the copy"}\n')
    assert pages(kept) - before < 150_000
    assert kept.sharing_with([place]) == [copy]
    kept.erase([place])
    assert best(kept, copy) == data + b'{"text": "of the copy"}\n'


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    kept: KeptTranscriptsWriter, place: Place
) -> None:
    data = transcript(50_000)
    save(kept, place, data)
    file = Path(place.absolute)
    with file.open("rb") as stream, pytest.raises(ChangedMeanwhileError):
        kept.save(place, Fingerprint(90_000, 1, 1, 1, 1), stream, 1)
    assert contents(kept, place) == [data]
    known = kept.fingerprint(place)
    assert known is not None
    assert known.size == len(data)


def test_an_erased_transcript_is_in_no_file_of_the_database(
    kept: KeptTranscriptsWriter, place: Place, tmp_path: Path
) -> None:
    save(kept, place, b'{"text": "zebra-crossing-7431"}\n')
    other = Place(place.folder, "other.jsonl")
    save(kept, other, b'{"text": "stays"}\n')
    assert any(b"zebra-crossing" in each.read_bytes() for each in tmp_path.glob("transcripts*"))
    assert kept.erase(kept.find_below(place.absolute)) == 1
    kept.truncate_wal()
    assert not any(b"zebra-crossing" in each.read_bytes() for each in tmp_path.glob("transcripts*"))
    assert kept.find_below(place.folder) == [other]
    assert kept.find_below(place.folder + "/oth") == []


def test_a_refused_file_is_known_and_nothing_of_it_kept(
    kept: KeptTranscriptsWriter, place: Place
) -> None:
    save(kept, place, transcript(50_000))
    kept.refuse([place])
    assert kept.is_known(place)
    assert kept.is_refused(place)
    assert kept.find(place) == kept.find_below(place.folder) == [] or kept.versions(place) == []
    kept.accept_refused()
    assert not kept.is_known(place)


def test_only_the_user_can_read_the_database_and_damage_is_noticed(
    kept: KeptTranscriptsWriter, place: Place, tmp_path: Path
) -> None:
    file = tmp_path / "transcripts.sqlite"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    save(kept, place, transcript(50_000))
    kept._db.execute("UPDATE chunks SET content=zeroblob(100)")
    with pytest.raises(StoreDamagedError, match=r"transcripts\.sqlite"):
        best(kept, place)


def test_a_file_of_no_database_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "transcripts.sqlite"
    file.write_bytes(b"x" * 9_000)
    with pytest.raises(StoreDamagedError):
        KeptTranscriptsWriter(file)
    file.write_bytes(b"")
    assert KeptTranscripts(file, read_only=True).find_below("/") == []


def test_a_save_that_fails_gives_the_space_of_the_log_back(
    kept: KeptTranscriptsWriter, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailableError("the disk is full", "")

    monkeypatch.setattr(writer_module, "JOURNAL_BYTES", 1 << 20)
    monkeypatch.setattr(writer_module, "_require_unchanged", fail)
    with pytest.raises(StoreUnavailableError):
        save(kept, place, Random(0).randbytes(6 << 20))  # noqa: S311 - a sample
    assert (tmp_path / "transcripts.sqlite-wal").stat().st_size == 0
    assert kept.find_below("/") == []


def test_a_disk_that_is_nearly_full_is_left_to_the_index(
    kept: KeptTranscriptsWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(free=writer_module._RESERVED_BYTES + 1_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    kept.require_space(500)
    with pytest.raises(StoreUnavailableError, match="nearly full"):
        kept.require_space(501)


def test_a_reader_that_needs_the_log_is_noticed(
    kept: KeptTranscriptsWriter, place: Place, tmp_path: Path
) -> None:
    save(kept, place, transcript(50_000))
    reader = sqlite3.connect(tmp_path / "transcripts.sqlite")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM chunks").fetchone()
    kept.erase([place])
    kept._db.execute("PRAGMA busy_timeout=1")
    with pytest.raises(StoreUnavailableError, match="still in its log"):
        kept.truncate_wal()
    reader.close()
    kept.truncate_wal()


def test_records_that_contradict_each_other_are_damage(
    kept: KeptTranscriptsWriter, place: Place
) -> None:
    save(kept, place, transcript(50_000))
    kept._db.execute("PRAGMA foreign_keys=OFF")
    kept._db.execute("DELETE FROM chunks")
    with pytest.raises(StoreDamagedError, match=r"transcripts\.sqlite"):
        save(kept, place, transcript(50_000) + b"{}\n")


def test_a_new_database_appears_complete_or_can_be_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "transcripts.sqlite"
    statements = store_module._SCHEMA_SQL
    with monkeypatch.context() as patched:
        patched.setattr(store_module, "_SCHEMA_SQL", statements + "SELECT no_function();")
        with pytest.raises(StoreError):
            KeptTranscriptsWriter(file)
    KeptTranscriptsWriter(file).close()


def test_a_file_that_cannot_be_created_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "touch", fail)
    with pytest.raises(StoreUnavailableError):
        KeptTranscriptsWriter(tmp_path / "transcripts.sqlite")


@pytest.mark.parametrize("size", [600_000, 5_000_000])
def test_a_longer_file_of_the_same_name_is_another_version(
    kept: KeptTranscriptsWriter, place: Place, size: int
) -> None:
    data = transcript(size)
    save(kept, place, data)
    changed = bytearray(data + b'{"text": "more"}\n' * 20)
    for start in range(100_000, size - 100_000, 100_000):
        if start not in {200_000, 300_000}:
            changed[start : start + 1_000] = b"X" * 1_000
    if size > MAX_COMPARED_BYTES:  # Another inode.
        Path(place.absolute).rename(Path(place.absolute).with_name("former"))
    save(kept, place, bytes(changed))
    assert contents(kept, place) == [data, bytes(changed)]


def test_ten_versions_stay_with_the_newest_and_the_longest(
    kept: KeptTranscriptsWriter, place: Place
) -> None:
    longest = transcript(90_000, seed=99)
    states = [longest, *(transcript(40_000, seed=seed) for seed in range(14))]
    for state in states:
        save(kept, place, state)
    assert contents(kept, place) == [longest, *states[-9:]]
    save(kept, place, states[-2])
    assert contents(kept, place) == [longest, *states[-9:-2], states[-1], states[-2]]
    assert kept._db.execute("SELECT count(*) FROM files").fetchone() == (1,)


def test_a_file_that_was_written_again_counts_as_new(
    kept: KeptTranscriptsWriter, place: Place, tmp_path: Path
) -> None:
    data = transcript(100_000)
    for state, new_bytes in ((data, len(data)), (data + b"{}\n", 3), (b"[" + data, 1 + len(data))):
        (tmp_path / "state").write_bytes(state)
        with (tmp_path / "state").open("rb") as stream:
            assert kept.count_new_bytes(place, stream, len(state)) == new_bytes
        save(kept, place, data)
