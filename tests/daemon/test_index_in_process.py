"""What `index` in a process without a daemon does and costs."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from conversations.conftest import claude

import anchord
from anchord.config.file import load_config
from anchord.config.paths import find_paths
from anchord.core.types import ChangedDuringRead, RootedPath
from anchord.daemon.engine import InProcessService
from anchord.daemon.writer import outcomes
from anchord.index.generation import BuildRequest, GenerationBuild
from anchord.index.opening import open_writer
from anchord.index.session import IndexWriter
from anchord.ipc import requests
from anchord.ipc.messages.upkeep import IndexAnswer
from anchord.sources.files import rule_files

ALL = ["ants.md", "bees.md", "deep/crickets.md"]


def text_of(subject: str) -> str:
    return f"# {subject.title()}\n\nEverything there is to say about {subject} is said here.\n"


@dataclass
class Folder:
    """A folder, and runs over it, each with an index opened anew."""

    base: Path

    @property
    def folder(self) -> Path:
        """Return the indexed folder."""
        return self.base / "docs"

    @property
    def home(self) -> Path:
        """Return the home."""
        return self.base / "home"

    def configure(self, *lines: str) -> None:
        """Write the configuration of one root."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        text = "\n".join(('[embedding]\nprovider = "hash"', "[[root]]", *lines))
        (self.home / "config.toml").write_text(text + "\n")

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def index(self, *paths: str) -> IndexAnswer:
        """Bring the index up to date."""
        with anchord.open(self.home) as engine:
            return engine.index(list(paths))

    def open(self) -> IndexWriter:
        """Open the index for writing; the caller closes it."""
        paths = find_paths({"ANCHORD_HOME": str(self.home)})
        return open_writer(paths, load_config(paths.config_file), ())

    def indexed(self) -> list[str]:
        """Return the paths that have rows, after checking that the index is right."""
        with anchord.open(self.home) as engine:
            assert engine.verify(vectors=None).ok
            return sorted({row.path for row in engine.dump()})


@pytest.fixture
def docs(tmp_path: Path) -> Folder:
    """Give three files that are not indexed yet."""
    made = Folder(tmp_path)
    made.configure(f'path = "{made.folder}"')
    for subject in ("ants", "bees", "deep/crickets"):
        made.write(f"{subject}.md", text_of(subject.rpartition("/")[2]))
    return made


def test_f12_a_second_run_embeds_nothing_and_writes_nothing(docs: Folder) -> None:
    first = docs.index()
    assert (first.embedded, first.upserted, first.actions["indexed"]) == (3, 3, 3)
    second = docs.index()
    done = (second.embedded, second.reused, second.upserted, second.deleted)
    assert done == (0, 0, 0, 0)
    assert docs.indexed() == ALL


def test_an_edit_costs_its_chunk_and_a_deletion_nothing(docs: Folder) -> None:
    docs.index()
    docs.write("ants.md", text_of("aphids"))
    (docs.folder / "bees.md").unlink()
    done = docs.index()
    assert (done.embedded, done.upserted, done.deleted) == (1, 1, 2)
    assert (done.actions["indexed"], done.actions["removed"]) == (1, 1)
    assert docs.indexed() == ["ants.md", "deep/crickets.md"]


def test_b6_a_renamed_folder_costs_no_embedding(docs: Folder) -> None:
    docs.index()
    (docs.folder / "deep").rename(docs.folder / "elsewhere")
    done = docs.index()
    assert (done.embedded, done.upserted, done.deleted) == (0, 1, 1)
    assert docs.indexed() == ["ants.md", "bees.md", "elsewhere/crickets.md"]


def test_a_folder_that_is_in_no_root_is_added(docs: Folder, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "wasps.md").write_text(text_of("wasps"))
    assert docs.index(str(other)).files == 4
    assert docs.indexed() == [*ALL, "wasps.md"]


def test_h1_what_the_rules_leave_out_is_not_indexed_and_newly_ignored_rows_go(docs: Folder) -> None:
    docs.write(".env", "TOKEN=1\n")
    docs.write("id_rsa", "KEY\n")
    docs.write("node_modules/m.md", "# No\n")
    docs.index()
    assert docs.indexed() == ALL
    docs.write(".gitignore", "deep/\n")
    assert docs.index().deleted == 1
    assert docs.indexed() == ["ants.md", "bees.md"]


def test_h5_a_binary_file_with_a_text_name_is_listed_and_the_others_go_on(docs: Folder) -> None:
    (docs.folder / "noise.md").write_bytes(bytes(range(256)) * 16)
    (docs.folder / "utf16.md").write_bytes(text_of("wasps").encode("utf-16"))
    done = docs.index()
    assert done.actions["failed"] == 1
    noise = str(docs.folder / "noise.md")
    found = [(problem.path, problem.reason) for problem in done.problems]
    assert found == [(noise, "binary content: not indexed")]
    assert "utf16.md" in docs.indexed()


def test_f6_rows_that_went_behind_our_back_are_written_again(docs: Folder) -> None:
    docs.index()
    writer = docs.open()
    writer.store.delete_rows(writer.store.all_ids()[:1])
    writer.close()
    done = docs.index()
    assert (done.embedded, done.upserted) == (1, 1)
    assert docs.indexed() == ALL


def test_after_an_unclean_stop_equal_numbers_are_not_believed(docs: Folder) -> None:
    docs.index()
    writer = docs.open()
    (row, *_) = writer.store.all_rows()
    vectors = writer.store.vectors_by_key_of_rows([row.id])
    writer.store.delete_rows([row.id])
    writer.store.upsert([replace(row, id="0" * 32)], vectors)
    writer.catalog.set_meta("clean", "0")
    writer.close()
    docs.index()
    assert docs.indexed() == ALL


def test_d1_a_root_that_is_away_is_named_and_its_rows_are_kept(docs: Folder) -> None:
    docs.index()
    docs.folder.rename(docs.base / "away")
    done = docs.index()
    assert done.away == ('"docs": the folder does not exist',)
    assert (done.chunks, done.upserted, done.deleted) == (3, 0, 0)
    (docs.base / "away").rename(docs.folder)
    done = docs.index()
    assert (done.away, done.embedded) == ((), 0)


def test_a_root_that_left_the_configuration_leaves_the_index(docs: Folder) -> None:
    docs.index()
    other = docs.base / "other"
    other.mkdir()
    docs.configure(f'path = "{other}"')
    assert docs.index().chunks == 0
    assert docs.indexed() == []


def test_a_root_under_a_new_name_embeds_nothing(docs: Folder) -> None:
    docs.index()
    docs.configure(f'path = "{docs.folder}"', 'name = "renamed"')
    assert docs.index().embedded == 0
    with anchord.open(docs.home) as engine:
        assert {row.root for row in engine.dump()} == {"renamed"}


def test_a_table_in_a_new_place_is_filled_though_the_recipe_changes_too(docs: Folder) -> None:
    """The new index begins as a copy of the table, which lacks all rows at that moment."""
    docs.index()
    table = ["[store]", f'uri = "{docs.base / "tables"}"']
    docs.configure(f'path = "{docs.folder}"', "[chunking]", 'strategy = "window"', *table)
    assert docs.index().chunks == 3
    assert docs.indexed() == ALL


def test_a_conversation_root_that_leaves_needs_no_new_index(
    docs: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = docs.base / "talks"
    talks.mkdir()
    more = ["[[root]]", f'path = "{talks}"', 'kind = "conversations"']
    docs.configure(f'path = "{docs.folder}"', *more)
    (talks / "s1.jsonl").write_bytes(claude(("What?", "That.")))
    assert docs.index().chunks == 4
    docs.configure(f'path = "{docs.folder}"')
    started: list[object] = []
    start = GenerationBuild.__init__

    def noted(build: GenerationBuild, writer: IndexWriter, request: BuildRequest) -> None:
        started.append(request)
        start(build, writer, request)

    monkeypatch.setattr(GenerationBuild, "__init__", noted)
    assert docs.index().chunks == 3
    assert started == []


class _Restless:
    """Files of which one is being written each time it is read, so often."""

    def __init__(self, files: object, name: str, times: int) -> None:
        self._files = files
        self._name = name
        self._left = times

    def __getattr__(self, name: str) -> object:
        return getattr(self._files, name)

    def read(self, origin: RootedPath) -> object:
        if origin.path == self._name and self._left:
            self._left -= 1
            return ChangedDuringRead()
        return self._files.read(origin)  # type: ignore[attr-defined]


@pytest.fixture
def service(docs: Folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcessService]:
    """Give the index, open for writing."""
    monkeypatch.setattr(outcomes, "_MAX_RETRIES", 3)
    paths = find_paths({"ANCHORD_HOME": str(docs.home)})
    opened = InProcessService(paths, require_roots=True)
    yield opened
    opened.close()


def index_while_written(service: InProcessService, times: int) -> IndexAnswer:
    """Index while `ants.md` is being written so many times."""
    planner = service._writer.indexer._planner
    planner._files = _Restless(planner._files, "ants.md", times)  # type: ignore[assignment]
    return service.ask(requests.index([]))


def test_a_file_that_is_being_written_is_tried_again(service: InProcessService) -> None:
    done = index_while_written(service, 2)
    assert (done.actions["indexed"], done.problems) == (3, ())


def test_a_file_that_is_written_all_the_time_is_named_and_the_others_are_indexed(
    service: InProcessService, docs: Folder
) -> None:
    done = index_while_written(service, 1_000)
    assert done.actions["indexed"] == 2
    (problem,) = done.problems
    assert problem.path == str(docs.folder / "ants.md")
    assert problem.reason == "it kept changing while it was read: not indexed"


def test_what_is_quiet_again_is_no_problem_any_more(service: InProcessService) -> None:
    assert len(index_while_written(service, 4).problems) == 1
    assert service.ask(requests.index([])).problems == ()


def test_an_ignore_file_that_cannot_be_read_for_a_moment_hides_nothing_from_the_answer(
    docs: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs.write(".gitignore", "cicadas.md\n")
    read_whole, failures = rule_files._read_whole, iter([errno.EIO])

    def read_or_fail(descriptor: int) -> bytes:
        for number in failures:
            raise OSError(number, os.strerror(number))
        return read_whole(descriptor)

    monkeypatch.setattr(rule_files, "SETTLE_NS", 50_000_000)
    monkeypatch.setattr(rule_files, "_read_whole", read_or_fail)
    answer = docs.index()
    assert (answer.files, answer.problems) == (len(ALL), ())
    assert docs.indexed() == ALL


def test_an_index_that_lost_its_table_does_not_wait_for_files_whose_folder_was_replaced(
    docs: Folder,
) -> None:
    docs.index()
    docs.folder.rename(docs.base / "elsewhere")
    docs.write("other.md", text_of("others"))
    shutil.rmtree(docs.home / "data" / "lance" / "chunks.lance")
    answer = docs.index()
    assert answer.chunks == 0
    assert [reason.partition(":")[0] for reason in answer.away] == ['"docs"']
    shutil.rmtree(docs.folder)
    (docs.base / "elsewhere").rename(docs.folder)
    assert docs.index().away == ()
    assert docs.indexed() == ALL
