"""`anchord index` without a daemon: everything once; a second run finds nothing to do, an interrupted one is gone on from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from anchord.config.paths import find_paths
from anchord.config.schema import Config, EmbeddingConfig, RootConfig
from anchord.core.types import ChangedDuringRead, Problem, RootedPath
from anchord.errors import UsageError
from anchord.index import run_once as oneshot
from anchord.index.integrity.repair import verify_index
from anchord.index.opening import open_writer
from anchord.index.run_once import RunSummary, index_once
from anchord.index.session import IndexWriter


def text_of(subject: str) -> str:
    return f"# {subject.title()}\n\nEverything there is to say about {subject} is said here.\n"


@dataclass
class Once:
    """A folder, and runs over it, each with an index opened anew."""

    base: Path

    @property
    def folder(self) -> Path:
        """Return the indexed folder."""
        return self.base / "docs"

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def open(self, *roots: RootConfig) -> IndexWriter:
        """Open the index, by default of the folder alone."""
        places = find_paths({"ANCHORD_HOME": str(self.base / "home")})
        places.create_folders()
        entries = roots or (RootConfig(path=str(self.folder)),)
        return open_writer(
            places, Config(root=entries, embedding=EmbeddingConfig(provider="hash")), ()
        )

    def run(
        self, *paths: str, progress: Callable[[int, int, str], None] = lambda *_: None
    ) -> tuple[RunSummary, int]:
        """Run once; return what was done and the changes that were made to the table."""
        writer = self.open()
        try:
            return index_once(writer, paths, progress), writer.indexer.commit_count
        finally:
            writer.close()

    def indexed(self) -> list[str]:
        """Return the paths that have rows, after checking that the index is right."""
        writer = self.open()
        try:
            assert verify_index(writer, None).differences == ()
            return sorted({row.path for row in writer.store.all_rows()})
        finally:
            writer.close()


@pytest.fixture
def once(tmp_path: Path) -> Once:
    """Give three files that are not indexed yet."""
    made = Once(tmp_path)
    for subject in ("ants", "bees", "deep/crickets"):
        made.write(f"{subject}.md", text_of(subject.rpartition("/")[2]))
    return made


def test_f12_a_second_run_embeds_nothing_and_commits_nothing(once: Once) -> None:
    first, commits = once.run()
    assert (first.embedded, first.upserted, first.actions["indexed"]) == (3, 3, 3)
    assert commits >= 1
    second, commits = once.run()
    assert (second.embedded, second.reused, second.upserted, second.deleted, commits) == (
        0,
        0,
        0,
        0,
        0,
    )
    assert once.indexed() == ["ants.md", "bees.md", "deep/crickets.md"]


def test_an_edit_costs_its_chunk_and_a_deletion_nothing(once: Once) -> None:
    once.run()
    once.write("ants.md", text_of("aphids"))
    (once.folder / "bees.md").unlink()
    summary, _ = once.run()
    assert (summary.embedded, summary.upserted, summary.deleted) == (1, 1, 2)
    assert (summary.actions["indexed"], summary.actions["removed"]) == (1, 1)
    assert once.indexed() == ["ants.md", "deep/crickets.md"]


def test_b6_a_renamed_folder_costs_no_embedding(once: Once) -> None:
    once.run()
    (once.folder / "deep").rename(once.folder / "elsewhere")
    summary, _ = once.run()
    assert (summary.embedded, summary.upserted, summary.deleted) == (0, 1, 1)
    assert once.indexed() == ["ants.md", "bees.md", "elsewhere/crickets.md"]


def test_only_what_the_paths_name_is_looked_at(once: Once) -> None:
    summary, _ = once.run(str(once.folder / "deep"))
    assert summary.embedded == 1
    summary, _ = once.run(str(once.folder))
    assert summary.embedded == 2
    assert once.indexed() == ["ants.md", "bees.md", "deep/crickets.md"]


def test_a_folder_with_a_like_name_is_not_taken_along(once: Once) -> None:
    once.write("deeper/d.md", text_of("drones"))
    once.run(str(once.folder / "deep"))
    writer = once.open()
    assert {row.path for row in writer.store.all_rows()} == {"deep/crickets.md"}
    writer.close()


def test_a_path_in_no_root_is_refused(once: Once, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is in no indexed folder"):
        once.run(str(tmp_path))


def test_h1_what_the_rules_leave_out_is_not_indexed_and_newly_ignored_rows_go(once: Once) -> None:
    once.write(".env", "TOKEN=1\n")
    once.write("id_rsa", "KEY\n")
    once.write("node_modules/m.md", "# No\n")
    once.run()
    assert once.indexed() == ["ants.md", "bees.md", "deep/crickets.md"]
    once.write(".gitignore", "deep/\n")
    summary, _ = once.run()
    assert summary.deleted == 1
    assert once.indexed() == ["ants.md", "bees.md"]


def test_h5_a_binary_file_with_a_text_name_is_listed_and_the_others_go_on(once: Once) -> None:
    (once.folder / "noise.md").write_bytes(bytes(range(256)) * 16)
    (once.folder / "utf16.md").write_bytes(text_of("wasps").encode("utf-16"))
    summary, _ = once.run()
    assert summary.actions["failed"] == 1
    writer = once.open()
    assert [
        (failure.origin.path, failure.problem.reason) for failure in writer.catalog.list_failures()
    ] == [("noise.md", "binary content: not indexed")]
    writer.close()
    assert "utf16.md" in once.indexed()


def test_progress_goes_up_to_what_is_due(once: Once) -> None:
    told: list[tuple[int, int, str]] = []
    once.run(progress=lambda *told_now: told.append(told_now))
    assert [(done, total) for done, total, doing in told if doing == "indexing"] == [
        (1, 3),
        (2, 3),
        (3, 3),
    ]
    assert told[0][2] == "looking for changes"


def test_an_interrupted_run_is_gone_on_from(once: Once) -> None:
    def interrupt(done: int, total: int, doing: str) -> None:
        del total, doing
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once.run(progress=interrupt)
    summary, _ = once.run()
    assert summary.embedded + summary.reused <= 3
    assert once.indexed() == ["ants.md", "bees.md", "deep/crickets.md"]


def test_f6_rows_that_went_behind_our_back_are_written_again(once: Once) -> None:
    once.run()
    writer = once.open()
    writer.store.delete_rows(writer.store.all_ids()[:1])
    writer.close()
    summary, _ = once.run()
    assert (summary.embedded, summary.upserted) == (1, 1)
    assert once.indexed() == ["ants.md", "bees.md", "deep/crickets.md"]


def test_after_an_unclean_stop_equal_numbers_are_not_believed(once: Once) -> None:
    once.run()
    writer = once.open()
    (row, *_) = writer.store.all_rows()
    vectors = writer.store.vectors_by_key_of_rows([row.id])
    writer.store.delete_rows([row.id])
    writer.store.upsert([replace(row, id="0" * 32)], vectors)
    writer.catalog.set_meta("clean", "0")
    writer.close()
    once.run()
    assert once.indexed() == ["ants.md", "bees.md", "deep/crickets.md"]


def test_d1_a_root_that_is_away_is_named_and_its_rows_are_kept(once: Once) -> None:
    once.run()
    once.folder.rename(once.base / "away")
    summary, commits = once.run()
    assert summary.warnings == ['"docs": the folder does not exist']
    assert commits == 0
    (once.base / "away").rename(once.folder)
    summary, _ = once.run()
    assert (summary.warnings, summary.embedded) == ([], 0)


def test_a_root_that_left_the_configuration_leaves_the_index(once: Once, tmp_path: Path) -> None:
    once.run()
    (tmp_path / "other").mkdir()
    writer = once.open(RootConfig(path=str(tmp_path / "other")))
    assert list(writer.store.all_rows()) == []
    writer.close()


def test_a_root_under_a_new_name_embeds_nothing(once: Once) -> None:
    once.run()
    writer = once.open(RootConfig(path=str(once.folder), name="renamed"))
    try:
        summary = index_once(writer, (), lambda *_: None)
        assert {row.root for row in writer.store.all_rows()} == {"renamed"}
    finally:
        writer.close()
    assert summary.embedded == 0


class _Restless:
    """Files of which some are always being written."""

    def __init__(self, files: object, names: Sequence[str], times: int) -> None:
        self._files = files
        self._names = names
        self._left = times

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def read(self, origin: RootedPath) -> object:
        if origin.path in self._names and self._left:
            self._left -= 1
            return ChangedDuringRead()
        return self._files.read(origin)  # type: ignore[attr-defined]


@pytest.fixture
def restless(once: Once, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], RunSummary]]:
    """Run while `ants.md` is being written so many times."""
    monkeypatch.setattr(oneshot, "_PAUSE_S", 0.0)
    writer = once.open()

    def run(times: int) -> RunSummary:
        restless_files = _Restless(writer.files, ["ants.md"], times)
        monkeypatch.setattr(writer.indexer._planner, "_files", restless_files)
        return index_once(writer, (), lambda *_: None)

    yield run
    writer.close()


def test_a_file_that_is_being_written_is_tried_again(restless: Callable[[int], RunSummary]) -> None:
    summary = restless(3)
    assert (summary.actions["indexed"], summary.problems) == (3, [])


def test_a_file_that_is_written_all_the_time_is_named_and_the_others_are_indexed(
    restless: Callable[[int], RunSummary],
) -> None:
    summary = restless(1_000)
    assert summary.actions["indexed"] == 2
    assert summary.problems == [
        (RootedPath("docs", "ants.md"), Problem("it kept changing while it was read: not indexed"))
    ]
