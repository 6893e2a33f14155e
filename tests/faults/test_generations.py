"""F9 of FAULTS.md: a changed recipe builds a new index; the old one serves and follows edits meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lancedb
import pytest
from faults.service import SETTINGS, Service, until

from anchord.chunking.chunker import split_into_chunks
from anchord.core.types import ChunkDiff, FileUpdate, RootedPath, Vector
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import AnchordError, StoreError
from anchord.index.embedders import MissingModelEmbedder
from anchord.index.generation import REBUILD, RECHUNK, BuildRequest, GenerationBuild
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table import connection as lance_table
from anchord.store.table import schema as lance_schema
from anchord.store.table.table import LanceStore
from anchord.store.table.versions import SCHEMA_VERSION

PARAGRAPHS = "\n\n".join(
    f"Paragraph {n} has some words of its own, {n * 7} of them, and an end." for n in range(12)
)
SMALL = '[chunking]\nstrategy = "paragraph"\nmin_chunk_tokens = 1\n'


def documents(service: Service, count: int = 8) -> None:
    for n in range(count):
        service.write(f"d{n}.md", f"# Document {n}\n\n{PARAGRAPHS.replace('words', f'words{n}')}\n")


def started_with(service: Service, settings: str) -> Service:
    service.stop()
    service.settings = SETTINGS + settings
    return service.start()


def built(service: Service) -> None:
    until(lambda: service.pipeline.next_generation is None)


def found(service: Service, words: str) -> set[str]:
    groups = service.ask("search", query=words, mode="text", k=100)["groups"]
    return {hit["path"] for group in groups for hit in group}


class Stepwise:
    """Limits the steps of a build."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Stop every build before its first step."""
        self.left = 0
        real = GenerationBuild.index_next_files

        def step(building: GenerationBuild, enough: Any) -> Any:  # noqa: ANN401 - as in the original
            if self.left == 0:
                return []
            self.left -= 1
            return real(building, enough)

        monkeypatch.setattr(GenerationBuild, "index_next_files", step)


def test_a_changed_strategy_is_built_beside_what_serves(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service)
    service.start().sync()
    before = service.pipeline.submit(service.writer.store.count_rows).result()
    steps = Stepwise(monkeypatch)
    started_with(service, SMALL).sync()
    assert service.status()["generation"]["why"] == "the recipe changed"
    assert service.status()["chunks"] == before
    assert found(service, "words3") == {"d3.md"}
    service.write("d3.md", "# Document 3\n\nOf quite another matter: capybaras.\n")
    until(lambda: found(service, "capybaras") == {"d3.md"})
    until(lambda: found(service, "words3") == set())
    steps.left = 1_000
    built(service)
    assert service.status()["generation"] is None
    assert service.status()["chunks"] > before
    assert found(service, "capybaras") == {"d3.md"}
    assert service.is_right()


def test_a_first_index_that_was_interrupted_builds_no_second_one(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service)
    service.start().sync()
    service.stop()
    with SqliteCatalog(service.places.catalog_file) as catalog:
        nothing = ChunkDiff(added=(), changed=(), removed=(), shifted=0, kept=0)
        catalog.save_intents(
            [
                FileUpdate(
                    origin=RootedPath("docs", f"new{n}.md"),
                    new_record=None,
                    diff=nothing,
                    texts_to_embed=(),
                    reason="a new file",
                )
                for n in range(20)
            ]
        )
    Stepwise(monkeypatch)
    service.start().sync()
    assert service.status()["generation"] is None
    assert service.is_right()


def test_the_way_back_embeds_nothing(service: Service) -> None:
    documents(service)
    service.start().sync()
    started_with(service, SMALL)
    built(service)
    assert service.embedded() > 0
    started_with(service, "")
    built(service)
    assert service.embedded() == 0
    assert service.is_right()


def test_an_interrupted_build_goes_on_where_it_was(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service, 30)
    service.start().sync()
    steps = Stepwise(monkeypatch)
    monkeypatch.setattr("anchord.index.generation._STEP_FILES", 10)
    started_with(service, SMALL).sync()
    steps.left = 2
    until(lambda: service.embedded() == 20 * 12)
    service.stop()
    service.start()
    assert service.pipeline.next_generation is not None
    assert service.pipeline.next_generation.was_resumed
    steps.left = 1_000
    built(service)
    assert service.embedded() == 10 * 12
    assert service.is_right()


def test_a_setting_that_is_taken_back_discards_what_was_built(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service)
    service.start().sync()
    steps = Stepwise(monkeypatch)
    started_with(service, SMALL).sync()
    steps.left = 1
    until(lambda: steps.left == 0)
    started_with(service, "")
    assert service.pipeline.next_generation is None
    assert not service.places.next_catalog_file.exists()
    assert sorted(path.name for path in (service.home / "data" / "lance").iterdir()) == [
        "chunks.lance"
    ]
    assert service.is_right()
    assert service.embedded() == 0


def test_a_root_with_a_strategy_of_its_own_leaves_the_others_alone(service: Service) -> None:
    other = service.base / "other"
    other.mkdir()
    documents(service)
    (other / "o.md").write_text(f"# Other\n\n{PARAGRAPHS}\n")
    roots = f'[[root]]\npath = "{service.folder}"\n[[root]]\npath = "{other}"\n'
    started_with(service, roots).sync()
    started_with(service, roots + 'strategy = "paragraph"\n')
    built(service)
    assert service.embedded() <= 13
    assert service.writer.catalog.list_records("other", "")
    assert service.is_right()


def test_a_model_of_another_size_begins_with_an_empty_table(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service)
    service.start().sync()
    texts = service.embedded()
    service.stop()
    monkeypatch.setattr(HashEmbedder, "dimension", 192)
    monkeypatch.setattr(HashEmbedder, "model_id", "hash-192/1")
    steps = Stepwise(monkeypatch)
    service.start()
    assert service.status()["generation"]["why"] == "the model changed"
    assert "is gone: only text search works" in service.reasons()
    assert found(service, "words5") == {"d5.md"}
    steps.left = 1_000
    built(service)
    assert service.embedded() == texts
    assert service.reasons() == ""
    assert found(service, "words5") == {"d5.md"}
    assert service.ask("search", query="words5", mode="vector")["groups"]
    assert service.is_right()


def test_an_older_form_of_the_table_serves_until_the_new_one_is_ready(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        real = lance_schema.table_schema

        def older(dimension: int, model: str) -> Any:  # noqa: ANN401 - of pyarrow
            schema = real(dimension, model)
            for column in ("checksum", "row_hash"):
                schema = schema.remove(schema.get_field_index(column))
            return schema.with_metadata({**schema.metadata, b"anchord.schema": b"1"})

        then.setattr(lance_table, "table_schema", older)
        documents(service)
        service.start().sync()
        service.stop()
    steps = Stepwise(monkeypatch)
    service.start()
    assert service.status()["generation"]["why"] == "a new form of the table"
    service.write("d1.md", "# Document 1\n\nWritten into the older form: okapi.\n")
    until(lambda: found(service, "okapi") == {"d1.md"})
    steps.left = 1_000
    built(service)
    assert service.writer.store.schema_version == SCHEMA_VERSION
    assert service.embedded() == 1
    assert service.is_right()


def test_rebuild_embeds_everything_again_and_reindex_rechunks_without(service: Service) -> None:
    documents(service)
    service.start().sync()
    texts = service.embedded()
    service.ask("rebuild")
    assert service.embedded() == 2 * texts
    assert service.is_right()
    service.ask("reindex", force_rechunk=True)
    assert service.embedded() == 2 * texts
    answer = service.ask("reindex")
    assert answer["actions"]["unchanged"] >= 8
    assert service.embedded() == 2 * texts
    assert service.is_right()


def test_a_rebuild_that_was_interrupted_goes_on_at_the_next_start(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service, 30)
    service.start().sync()
    texts = service.embedded()
    steps = Stepwise(monkeypatch)
    monkeypatch.setattr("anchord.index.generation._STEP_FILES", 10)
    service.pipeline.submit(lambda: service.pipeline.builds.start(REBUILD)).result()
    steps.left = 2
    until(lambda: service.embedded() == texts + 20)
    service.stop()
    service.start()
    steps.left = 1_000
    built(service)
    assert service.embedded() == texts - 20
    assert service.is_right()


def test_a_root_that_is_away_is_waited_for(service: Service) -> None:
    documents(service)
    service.start().sync()
    service.stop()
    service.folder.rename(service.base / "away")
    service.settings = f'{SETTINGS}{SMALL}[[root]]\npath = "{service.folder}"\nname = "docs"\n'
    service.start()
    until(lambda: service.status()["generation"]["waits_for"] == ["docs"])
    assert found(service, "words3") == {"d3.md"}
    (service.base / "away").rename(service.folder)
    service.pipeline.builds.next_step_at = 0.0
    built(service)
    assert service.is_right()


def test_force_rechunk_chunks_every_file_again_though_its_recipe_is_the_same(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunker that cuts differently under the same version: the table has its new chunks."""
    documents(service)
    service.start().sync()
    real = split_into_chunks

    def first_chunk(*given: Any, **options: Any) -> Any:  # noqa: ANN401 - as in the original
        return [replace(each, content="cut anew") for each in real(*given, **options)]

    monkeypatch.setattr("anchord.index.rows.split_into_chunks", first_chunk)
    service.ask("reindex")
    assert _texts(service) != {"cut anew"}
    service.ask("reindex", force_rechunk=True)
    assert _texts(service) == {"cut anew"}


def _texts(service: Service) -> set[str]:
    return service.pipeline.submit(
        lambda: {row.text for row in service.writer.store.all_rows()}
    ).result()


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(None, id="required"),
        pytest.param(REBUILD, id="on request", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("damage", ["no database", "bad pages", "lost table"])
def test_a_half_built_index_that_is_damaged_does_not_stop_the_daemon(
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    request_: BuildRequest | None,
    damage: str,
) -> None:
    documents(service, 30)
    service.start().sync()
    steps = Stepwise(monkeypatch)
    monkeypatch.setattr("anchord.index.generation._STEP_FILES", 10)
    if request_:
        service.pipeline.submit(partial(service.pipeline.builds.start, request_)).result()
    else:
        started_with(service, SMALL)
    steps.left = 2
    until(lambda: service.pipeline.next_generation.files_done == 20)  # type: ignore[union-attr]
    service.stop()
    _DAMAGES[damage](service.places.next_catalog_file, service.home / "data/lance/next.lance")
    steps.left = 1_000
    service.start()
    built(service)
    assert service.is_right()
    assert not service.places.next_catalog_file.exists()
    assert not service.restarts


def _bad_pages(catalog: Path, _: Path) -> None:
    content = catalog.read_bytes()
    catalog.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))


_DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "no database": lambda catalog, _: catalog.write_bytes(b"no catalogue at all " * 400),
    "bad pages": _bad_pages,
    "lost table": lambda _, table: shutil.rmtree(table),
}


def test_the_former_models_process_ends_when_the_new_index_takes_over(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[object] = []

    def close(embedder: object) -> None:
        closed.append(embedder)

    monkeypatch.setattr(HashEmbedder, "close", close)
    monkeypatch.setattr(MissingModelEmbedder, "close", close)
    documents(service)
    service.start().sync()
    service.stop()
    monkeypatch.setattr(HashEmbedder, "model_id", "hash-other/1")
    steps = Stepwise(monkeypatch)
    service.start()
    closed.clear()
    former = service.writer.profile.embedder
    assert former is not service.writer.configured_profile.embedder
    steps.left = 1_000
    built(service)
    assert closed == [former]
    assert service.writer.profile.embedder is service.writer.configured_profile.embedder
    service.ask("reindex", force_rechunk=True)
    assert closed == [former], "the model that goes on being used was closed"


def test_a_root_that_leaves_while_an_index_is_built_is_waited_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service, 30)
    service.start().sync()
    away = service.base / "away"
    monkeypatch.setattr("anchord.index.generation._STEP_FILES", 10)

    def build() -> tuple[tuple[str, ...], bool, bool]:
        building = GenerationBuild(service.writer, RECHUNK)
        building.index_next_files(lambda: False)
        service.folder.rename(away)
        for _ in range(6):
            building.index_next_files(lambda: False)
        is_finished_without = building.is_finished
        unavailable = building.unavailable_roots
        away.rename(service.folder)
        for _ in range(6):
            building.index_next_files(lambda: False)
        is_finished = building.is_finished
        building.delete()
        return unavailable, is_finished_without, is_finished

    assert service.pipeline.submit(build).result() == (("docs",), False, True)


def test_rows_that_are_held_are_waited_for(service: Service) -> None:
    service.notes(60)
    service.start().sync()
    service.stop()
    service.folder.rename(service.base / "kept")
    service.folder.mkdir()
    service.settings = SETTINGS + SMALL
    service.start()
    until(lambda: service.status()["generation"]["waits_for"] == ["docs"])
    assert len(service.paths()) == 60
    service.folder.rmdir()
    (service.base / "kept").rename(service.folder)
    service.sync()
    service.pipeline.builds.next_step_at = 0.0
    built(service)
    assert service.is_right()


def _one_renamed(folder: Path) -> None:
    (folder / "chunks.lance").rename(folder / "former.lance")


def _both_renamed(folder: Path) -> None:
    _one_renamed(folder)
    (folder / "next.lance").rename(folder / "chunks.lance")


_TABLE = "anchord.store.table.maintenance.promote_next_table"
_TAKE_OVER = SqliteCatalog.overwrite_from
_STEPS: dict[str, tuple[str, Callable[..., None]]] = {
    "marked": ("anchord.store.catalog.catalog.SqliteCatalog.overwrite_from", lambda *_: None),
    "catalogue in place": (
        "anchord.store.catalog.catalog.SqliteCatalog.overwrite_from",
        _TAKE_OVER,
    ),
    "next catalogue gone": (_TABLE, lambda _: None),
    "one renamed": (_TABLE, _one_renamed),
    "both renamed": (_TABLE, _both_renamed),
}
"""The step that is killed -> the state at that moment."""


def killed_at(service: Service, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Change the strategy, and stop where the new generation takes over."""
    killed = threading.Event()

    def kill(*done: Any) -> None:  # noqa: ANN401 - any object
        _STEPS[step][1](*done)
        killed.set()
        raise RuntimeError("killed")

    with monkeypatch.context() as fault:
        fault.setattr(_STEPS[step][0], kill)
        started_with(service, SMALL)
        until(killed.is_set)
        service.pipeline._stopping = True
        service.pipeline._thread.join()
        service.writer.lock.release()
        service.running = False


@pytest.mark.parametrize("step", list(_STEPS))
def test_a_kill_while_a_generation_takes_over_is_finished_at_the_next_start(
    service: Service, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    documents(service)
    service.start().sync()
    killed_at(service, monkeypatch, step)
    service.start()
    assert service.pipeline.next_generation is None
    assert service.is_right()
    assert service.embedded() == 0
    assert not service.places.promotion_marker.exists()


@pytest.mark.parametrize("damaged", ["state.sqlite", "next.sqlite"])
def test_a_catalogue_that_is_damaged_while_a_generation_takes_over_is_repaired(
    service: Service, monkeypatch: pytest.MonkeyPatch, damaged: str
) -> None:
    documents(service)
    service.start().sync()
    killed_at(service, monkeypatch, "marked")
    assert service.pipeline.next_generation
    service.pipeline.next_generation.close()
    service.writer.catalog.close()
    (service.places.data_folder / damaged).write_bytes(b"no catalogue at all " * 400)
    service.start()
    assert service.writer.repairs
    built(service)
    assert service.is_right()
    assert service.embedded() == 0
    assert not service.places.promotion_marker.exists()


def test_a_table_that_cannot_be_put_in_place_asks_for_a_new_process(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service)
    service.start().sync()

    def refuse(_: Path) -> None:
        raise PermissionError(errno.EACCES, "no")

    with monkeypatch.context() as fault:
        fault.setattr("anchord.store.table.maintenance.promote_next_table", refuse)
        started_with(service, SMALL)
        until(lambda: service.restarts)
        service.stop()
    service.start()
    assert service.pipeline.next_generation is None
    assert service.is_right()
    assert service.embedded() == 0


def test_a_generation_without_room_for_its_catalogue_is_put_in_place_once_there_is(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents(service)
    service.start().sync()

    def full(*_: object) -> None:
        raise StoreError("database or disk is full", "make room")

    with monkeypatch.context() as fault:
        fault.setattr(SqliteCatalog, "overwrite_from", full)
        started_with(service, SMALL)
        until(lambda: service.pipeline.blocked_reason == "database or disk is full")
        assert not service.places.promotion_marker.exists()
        assert found(service, "words3") == {"d3.md"}
        service.write("d3.md", "# Document 3\n\nOf quite another matter: capybaras.\n")
        until(lambda: found(service, "capybaras") == {"d3.md"})
    built(service)
    assert service.reasons() == ""
    assert service.is_right()


@pytest.mark.parametrize("question", ["search", "status", "dump"])
def test_questions_never_fail_while_generations_change(service: Service, question: str) -> None:
    documents(service)
    service.start().sync()
    for order in (RECHUNK, REBUILD, RECHUNK):
        service.pipeline.submit(partial(service.pipeline.builds.start, order)).result()
        while service.pipeline.next_generation is not None:
            _ANSWERS[question](service)
        _ANSWERS[question](service)


def _searched(service: Service) -> None:
    assert found(service, "words6") == {"d6.md"}
    assert service.ask("search", query="words6", mode="vector")["groups"]


def _counted(service: Service) -> None:
    answer = service.ask("status")
    assert (answer["files"], answer["chunks"]) == (8, 8)


def _dumped(service: Service) -> None:
    assert {row["path"] for row in service.ask("dump")} == {f"d{n}.md" for n in range(8)}


_ANSWERS = {"search": _searched, "status": _counted, "dump": _dumped}


def test_a_search_during_the_change_of_strategies_finds_by_the_one_or_the_other(
    service: Service,
) -> None:
    """The generations share no chunk id: readers must switch table and catalog together."""
    documents(service)
    service.start().sync()
    failures: list[object] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            try:
                paths = found(service, "words6")
            except AnchordError as error:
                failures.append(error)
            else:
                failures.extend([paths] * (paths != {"d6.md"}))

    for settings in (SMALL, "", SMALL):
        started_with(service, settings)
        ended.clear()
        askers = [threading.Thread(target=ask) for _ in range(3)]
        for each in askers:
            each.start()
        built(service)
        ended.set()
        for each in askers:
            each.join()
    assert failures == []


# Forgetting


def grep(service: Service, word: str) -> list[str]:
    """Return the files below the home that contain a word, in any version of any store."""
    done = subprocess.run(
        ["grep", "-rlaF", word, str(service.home)], capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def test_what_is_forgotten_is_on_no_file_of_the_index_any_more(service: Service) -> None:
    documents(service)
    secret = service.write("private/diary.md", "# Diary\n\nThe swordfish rendezvous is at noon.\n")
    service.start().sync()
    service.write("private/diary.md", "# Diary\n\nThe swordfish rendezvous is at midnight.\n")
    service.sync()
    service.pipeline.submit(service.pipeline.maintenance.compact).result()
    vectors = _vectors(service, "private/diary.md")
    assert grep(service, "swordfish")
    answer = service.ask("forget", path=str(secret))
    assert (answer["files"], answer["rows"]) == (1, 1)
    assert answer["disk_files_removed"] > 0
    assert grep(service, "swordfish") == []
    assert not any(_holds(service, vector) for vector in vectors)
    assert found(service, "swordfish") == set()
    assert (
        len(
            lancedb.connect(str(service.home / "data" / "lance"))
            .open_table("chunks")
            .list_versions()
        )
        <= 2
    )
    assert secret.exists()
    assert service.is_right()
    assert service.paths() == {f"d{n}.md" for n in range(8)}


def test_what_is_forgotten_stays_out_until_it_is_asked_for_again(service: Service) -> None:
    documents(service, 2)
    service.write("private/diary.md", "# Diary\n\nThe swordfish clause.\n")
    service.start().sync()
    service.ask("forget", path=str(service.folder / "private"))
    service.write("private/diary.md", "# Diary\n\nThe swordfish clause, amended.\n")
    service.write("private/more.md", "# More\n\nOf swordfish.\n")
    service.sync()
    assert found(service, "swordfish") == set()
    assert (
        "forgotten by a command"
        in service.ask("explain", path=str(service.folder / "private" / "more.md"))["rule"]
    )
    service.stop()
    for file in service.places.data_folder.glob("state.sqlite*"):
        file.unlink()
    service.start().sync()
    assert found(service, "swordfish") == set()
    service.ask("forget", path=str(service.folder / "private"), undo=True)
    assert found(service, "swordfish") == {"private/diary.md", "private/more.md"}
    assert service.is_right()


def _vectors(service: Service, path: str) -> Sequence[Vector]:
    def ask() -> Sequence[Vector]:
        store: LanceStore = service.writer.store
        return list(
            store.vectors_by_key_of_rows(
                [row.id for row in store.all_rows() if row.path == path]
            ).values()
        )

    return service.pipeline.submit(ask).result()


def _holds(service: Service, vector: Vector) -> bool:
    files = [Path(folder) / name for folder, _, names in os.walk(service.home) for name in names]
    return any(
        vector in file.read_bytes() for file in files if file.is_file() and not file.is_socket()
    )
