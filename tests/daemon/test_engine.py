"""An index that a program opens in its own process."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

import anchord
from anchord.config.paths import find_paths
from anchord.daemon.access import open_index_reader
from anchord.daemon.writer.loop import WriterLoop
from anchord.daemon.writer.maintenance import Maintenance
from anchord.daemon.writer.turn_work import TurnWork
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import (
    AlreadyRunningError,
    EmbedderError,
    StoreError,
    TimeoutExpiredError,
    UsageError,
)
from anchord.index import commit
from anchord.index.generation import GenerationBuild
from anchord.store.table.table import LanceStore
from anchord.store.writer_lock import WriterLock


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give a home with a root of two files that is not indexed yet."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "soup.md").write_text("# Soup\n\nBoil the onions slowly.\n")
    (notes / "bread.md").write_text("# Bread\n\nKnead the dough.\n")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    settings = f'[embedding]\nprovider = "hash"\n[[root]]\npath = "{notes}"\nname = "notes"\n'
    (home / "config.toml").write_text(settings)
    return home


def found(index: anchord.Engine, words: str) -> list[str]:
    return [group[0].path for group in index.search(words, mode="text").groups]


def test_it_indexes_searches_and_verifies(home: Path) -> None:
    with anchord.open(home) as index:
        done = index.index()
        assert (done.files, done.chunks, done.embedded) == (2, 2, 2)
        assert found(index, "onions") == ["soup.md"]
        assert index.verify(vectors=None).ok
        assert [root.name for root in index.roots()] == ["notes"]
        (chunk,) = index.show(path="soup.md", root="notes").chunks
        assert chunk.text == "# Soup\n\nBoil the onions slowly."


def test_it_forgets_and_lets_in_again(home: Path) -> None:
    soup = str(home.parent / "notes" / "soup.md")
    with anchord.open(home) as index:
        index.index()
        assert index.forget(soup, preview=True).files == 1
        assert index.forget(soup).rows == 1
        assert found(index, "onions") == []
        index.forget(soup, undo=True)
        assert found(index, "onions") == ["soup.md"]


def test_a_search_reads_beside_a_writer_and_writing_is_refused(home: Path) -> None:
    with anchord.open(home) as index:
        index.index()
    lock = WriterLock(find_paths({"ANCHORD_HOME": str(home)}).lock_file)
    try:
        with anchord.open(home) as index:
            assert found(index, "onions") == ["soup.md"]
            assert index.errors() == ()
            assert len(index.dump()) == 2
            with pytest.raises(AlreadyRunningError):
                index.index()
            assert found(index, "dough") == ["bread.md"]
    finally:
        lock.release()


def test_a_reader_sees_what_another_writer_writes_and_rebuilds(home: Path) -> None:
    with anchord.open(home) as index:
        index.index()
    with anchord.open(home) as reader:
        assert found(reader, "zebra") == []
        (home.parent / "notes" / "zoo.md").write_text("# Zoo\n\nA zebra.\n")
        with anchord.open(home) as writer:
            writer.sync()
        assert found(reader, "zebra") == ["zoo.md"]
        with anchord.open(home) as writer:
            writer.rebuild()
        assert found(reader, "zebra") == ["zoo.md"]


def test_a_fresh_search_indexes_first(home: Path) -> None:
    with anchord.open(home) as index:
        assert index.search("onions", mode="text", fresh=True).groups[0][0].path == "soup.md"


def test_the_lock_is_released_and_closing_again_is_no_error(home: Path) -> None:
    index = anchord.open(home)
    index.index()
    index.close()
    index.close()
    WriterLock(find_paths({"ANCHORD_HOME": str(home)}).lock_file).release()


def test_the_lock_is_released_though_the_writer_thread_cannot_be_stopped(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = anchord.open(home)
    index.index()
    stop = WriterLoop.stop

    def fail(loop: WriterLoop) -> NoReturn:
        stop(loop)
        raise OSError("the disk is full")

    with monkeypatch.context() as fault:
        fault.setattr(WriterLoop, "stop", fail)
        with pytest.raises(OSError, match="the disk is full"):
            index.close()
    index.close()
    WriterLock(find_paths({"ANCHORD_HOME": str(home)}).lock_file).release()


def test_what_was_repaired_at_opening_is_told(home: Path) -> None:
    with anchord.open(home) as index:
        index.index()
        assert index.repairs == []
    catalog_file = find_paths({"ANCHORD_HOME": str(home)}).catalog_file
    catalog_file.write_bytes(b"no database" * 1_000)
    with anchord.open(home) as index:
        index.verify(repair=True)
        (repair,) = index.repairs
    assert "catalog" in repair


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.search("words", k=0),
        lambda index: index.search("words", expand=-1),
        lambda index: index.show("1f", context=-1),
        lambda index: index.sync(timeout=-1),
        lambda index: index.search(3),
        lambda index: index.pause(),
        lambda index: index.shutdown(),
    ],
)
def test_what_is_out_of_range_or_needs_a_daemon_is_refused_before_anything_opens(
    home: Path, call: Callable[[anchord.Engine], object]
) -> None:
    with anchord.open(home) as index, pytest.raises(UsageError):
        call(index)
    assert not (home / "data").exists()


def test_closing_leaves_rows_in_the_indices_that_other_readers_use(home: Path) -> None:
    for n in range(210):
        (home.parent / "notes" / f"{n}.md").write_text(f"# Note {n}\n\nOnions {n}.\n")
    with anchord.open(home) as index:
        index.index()
    with open_index_reader(find_paths({"ANCHORD_HOME": str(home)})) as reader:
        assert isinstance(reader.store, LanceStore)
        assert reader.store.count_unindexed_rows() == 0


def test_an_error_or_ctrl_c_closes_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compacted: list[str] = []
    monkeypatch.setattr(Maintenance, "finish_before_end", lambda _: compacted.append("once"))

    def index_and_raise() -> NoReturn:
        with anchord.open(home) as index:
            index.index()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_and_raise()
    assert compacted == []
    with anchord.open(home) as index:
        index.index()
    assert compacted == ["once"]


def test_without_an_index_a_search_says_so(home: Path) -> None:
    with anchord.open(home) as index, pytest.raises(StoreError, match="there is no index yet"):
        index.search("onions")


def test_nothing_is_printed(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with anchord.open(home) as index:
        index.index()
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("method", ["index", "sync", "rescan", "verify", "reindex"])
def test_a_disk_that_stays_full_ends_every_call_with_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "state.sqlite")

    with anchord.open(home) as index:
        index.index()
    (home.parent / "notes" / "soup.md").write_text("# Soup\n\nBoil the leeks slowly.\n")
    monkeypatch.setattr(TurnWork, "index", fail)
    monkeypatch.setattr(WriterLoop, "_build", fail)
    calls: dict[str, Callable[[anchord.Engine], object]] = {
        "index": lambda index: index.index(),
        "sync": lambda index: index.sync(),
        "rescan": lambda index: index.rescan(),
        "verify": lambda index: (index.reindex(force_rechunk=True), index.verify(repair=True)),
        "reindex": lambda index: index.reindex(),
    }
    with (
        anchord.open(home) as index,
        pytest.raises((StoreError, TimeoutExpiredError), match=r"full|free space"),
    ):
        calls[method](index)


def test_a_model_that_keeps_failing_ends_every_call_with_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise EmbedderError("the model's file is broken", "")

    monkeypatch.setattr(TurnWork, "fill_vectors", fail)
    monkeypatch.setattr(HashEmbedder, "is_immediate", False)  # Words come first.
    monkeypatch.setattr(commit, "DIRECT_TEXTS", -1)
    monkeypatch.setattr(commit, "DIRECT_S", 0.0)
    with (
        anchord.open(home) as index,
        pytest.raises(StoreError, match=r"brought up to date: the model's file is broken"),
    ):
        index.index()


def test_a_new_index_that_cannot_take_over_ends_the_call_with_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left to index meanwhile: that must not look like a step that succeeded."""

    def fail(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "state.sqlite")

    monkeypatch.setattr("anchord.daemon.writer.backoff._FIRST_PAUSE_S", 0.04)
    monkeypatch.setattr(GenerationBuild, "promote", fail)
    with anchord.open(home) as index:
        index.index()
        with pytest.raises(StoreError, match=r"cannot be finished: .*full"):
            index.reindex(force_rechunk=True)
