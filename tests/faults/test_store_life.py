"""Group F of FAULTS.md: crashes, power loss, failing and full disks, and the recovery of the stores."""

from __future__ import annotations

import gc
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import lance
import pytest
from faults.service import SETTINGS, Service, until
from faults.test_roots import mounted

from anchord.core.types import Vector
from anchord.daemon.writer.maintenance import COMPACTIONS_PER_INDEX_MERGE
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import EmbedderError
from anchord.index.integrity.verify import DifferenceKind
from anchord.store.table import maintenance as lance_upkeep
from anchord.store.table.table import LanceStore

pytestmark = pytest.mark.usefixtures("pylance_here")


def table(service: Service) -> Path:
    return service.home / "data" / "lance" / "chunks.lance"


def reopened(service: Service) -> Service:
    service.start().sync()
    return service


def killed(service: Service) -> None:
    """Stop without recording a clean stop."""
    service.stop()
    with sqlite3.connect(service.places.catalog_file) as catalogue:
        catalogue.execute("UPDATE meta SET value='0' WHERE key='clean'")
    catalogue.close()


def test_f5_a_damaged_catalogue_is_set_aside_and_rebuilt_with_the_vectors_of_the_table(
    service: Service,
) -> None:
    service.notes(20)
    service.start().sync()
    service.stop()
    file = service.places.catalog_file
    file.write_bytes(b"torn" * 1000)
    reopened(service)
    assert service.embedded() == 0
    assert service.is_right()
    (repair,) = service.status()["repairs"]
    assert "the file catalog was damaged and is rebuilt" in repair
    assert [path.name for path in service.places.damaged_folder.rglob("state.sqlite")] == [
        "state.sqlite"
    ]


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_f5_damaged_pages_of_the_catalogue_are_found_after_an_unclean_stop(
    service: Service, at: float
) -> None:
    service.notes(60)
    service.start().sync()
    killed(service)
    data = bytearray(service.places.catalog_file.read_bytes())
    middle = int(len(data) * at) // 4096 * 4096
    data[middle : middle + 4096] = Random(at).randbytes(4096)  # noqa: S311 - any bytes
    service.places.catalog_file.write_bytes(data)
    reopened(service)
    assert service.is_right()
    assert service.embedded() == 0


@pytest.mark.parametrize("end", ["clean", "killed"])
def test_f6_a_lost_catalogue_is_rebuilt_and_its_roots_are_remembered(
    service: Service, end: str
) -> None:
    service.notes(10)
    service.start().sync()
    service.stop() if end == "clean" else killed(service)
    for file in service.places.data_folder.glob("state.sqlite*"):
        file.unlink()
    (service.folder / "000.md").unlink()
    service.settings = SETTINGS
    reopened(service)
    assert service.embedded() == 0
    assert service.is_right()


def test_f6_a_lost_table_is_rebuilt_from_the_files(service: Service) -> None:
    service.notes(10)
    service.start().sync()
    service.stop()
    lance_upkeep.move_table_aside(table(service).parent, service.base / "elsewhere")
    reopened(service)
    assert service.is_right()
    assert service.embedded() == 10


def test_f6_a_table_that_is_older_than_the_catalogue_is_repaired(service: Service) -> None:
    service.notes(5)
    service.start().sync()
    service.stop()
    lance_upkeep.clone_to_next_table(table(service).parent)
    reopened(service)
    service.notes(5, "new/")
    (service.folder / "001.md").unlink()
    service.sync()
    service.stop()
    lance_upkeep.promote_next_table(table(service).parent)
    reopened(service)
    assert service.is_right()


def test_f6_a_catalogue_that_is_older_than_the_table_is_repaired(service: Service) -> None:
    service.notes(5)
    service.start().sync()
    service.stop()
    before = service.places.catalog_file.read_bytes()
    reopened(service)
    service.notes(5, "new/")
    (service.folder / "001.md").unlink()
    service.sync()
    service.stop()
    service.places.catalog_file.write_bytes(before)
    reopened(service)
    assert service.is_right()
    assert service.embedded() == 0


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "nul", "ones", "column"])
def test_a_manifest_that_a_power_loss_left_torn_is_set_aside_and_the_version_before_it_serves(
    service: Service, damage: str
) -> None:
    service.notes(6)
    service.start().sync()
    service.write("last.md", "# Last\n\nOf the version that is torn.\n")
    service.sync()
    killed(service)
    newest = min((table(service) / "_versions").glob("*.manifest"))
    data = newest.read_bytes()
    garbage = Random(1).randbytes(len(data))  # noqa: S311 - any bytes
    torn = {"empty": b"", "cut": data[: len(data) // 2], "garbage": garbage}
    # Lance reads the first without an error, as a table without columns; at the second it panics.
    torn |= {"nul": bytes(len(data)), "ones": b"\xff" * (len(data) - 16) + data[-16:]}
    # It opens, and has a column that nobody writes.
    torn |= {"column": data.replace(b"search_text", b"search_tex|")}
    newest.write_bytes(torn[damage])
    reopened(service)
    assert "went back to the one before" in service.status()["repairs"][0]
    assert service.is_right()
    service.write("later.md", "# Later\n\nWritten as ever.\n")
    assert service.is_right()


def test_a_table_of_which_no_version_opens_is_set_aside_and_rebuilt(service: Service) -> None:
    service.notes(6)
    service.start().sync()
    service.stop()
    for manifest in (table(service) / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"")
    reopened(service)
    assert "is rebuilt from the files" in service.status()["repairs"][0]
    assert service.is_right()
    assert service.embedded() == 0  # Their vectors are in the data files that were set aside.


def test_temporary_files_of_a_killed_writer_are_swept(service: Service) -> None:
    service.notes(2)
    service.start().sync()
    service.stop()
    left = table(service) / "_versions" / ".tmp_9.manifest_abc"
    left.write_bytes(b"half")
    reopened(service)
    assert not left.exists()
    assert "1 temporary files" in service.status()["repairs"][0]


def test_a_flipped_bit_is_found_by_verify_and_repaired_alone(service: Service) -> None:
    service.notes(30)
    service.start().sync()
    lance_upkeep.maintain(service.writer.store)
    service.stop()
    data = max((table(service) / "data").glob("*.lance"), key=lambda file: file.stat().st_size)
    content = bytearray(data.read_bytes())
    vector = HashEmbedder().embed(["# Note 7\n\nWords of note 7."])[0]
    at = content.find(vector)
    if at < 0:
        pytest.skip("this version of the format does not keep vectors as they are")
    content[at + len(vector) - 2] ^= 0x40
    data.write_bytes(content)
    service.start().sync()
    found = service.verify()
    assert [(d.kind, d.origin.path) for d in found.differences] == [
        (DifferenceKind.SPOILED, "007.md")
    ]
    answer = service.ask("verify", repair=True)
    assert answer["ok"]
    assert service.embedded() == 1
    assert service.is_right()


def test_a_flipped_bit_is_found_by_the_checks_in_the_background(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(12)
    monkeypatch.setattr("anchord.daemon.writer.maintenance._CHECK_EVERY_S", 0.05)
    service.start().sync()
    service.pipeline.submit(lambda: _plant(service.writer.store)).result()
    until(lambda: service.status()["upkeep"]["mended"] >= 1)
    until(lambda: service.status()["last_verified_age_s"] is not None)
    assert service.is_right()


def _plant(store: LanceStore) -> None:
    row = next(store.all_rows())
    store.upsert([replace(row, text="of another time")], store.vectors_by_key_of_rows([row.id]))


def fill_up(file: Path) -> None:
    """Fill the disk."""
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while os.write(descriptor, b"x" * 4096):
            pass
    os.close(descriptor)


def test_f3_a_full_disk_is_reported_and_when_there_is_room_again_it_goes_on_by_itself(
    service: Service,
) -> None:
    with mounted("-t", "tmpfs", "-o", "size=3m", "anchord", str(service.home)):
        service.places.create_folders()
        service.notes(3)
        service.start().sync()
        ballast = service.home / "ballast"
        fill_up(ballast)
        for n in range(12):
            service.write(
                f"big{n}.md",
                f"# Big {n}\n\n"
                + "".join(f"Sentence {m} of {n} goes here.\n\n" for m in range(400)),
            )
        until(lambda: "indexing is blocked" in service.reasons())
        assert service.status()["state"] == "degraded"
        assert service.status()["pending"] > 0
        ballast.unlink()
        for n in range(3, 12):
            (service.folder / f"big{n}.md").unlink()
        until(lambda: not service.reasons())
        assert service.is_right()
        service.stop()


def test_f10_an_embedder_that_fails_holds_the_work_with_a_reason_and_loses_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(2)
    service.start().sync()

    def failing(*_: object, **__: object) -> None:
        raise EmbedderError("the model failed: out of memory")

    with monkeypatch.context() as fault:
        fault.setattr(HashEmbedder, "embed", failing)
        service.write("new.md", "# New\n\nWords.\n")
        until(lambda: "out of memory" in service.reasons())
        assert service.status()["pending"] == 1
    until(lambda: "new.md" in service.paths())
    assert service.reasons() == ""
    assert service.is_right()


def test_f11_a_text_that_the_model_cannot_embed_is_named_and_found_by_words_and_the_others_go_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = HashEmbedder.embed
    asked: list[str] = []

    def refusing(
        embedder: HashEmbedder, texts: Sequence[str], *, query: bool = False
    ) -> Sequence[Vector]:
        """Return zeros, as the port requires, for a text that crashes every process."""
        asked.extend(texts)
        vectors = real(embedder, texts, is_query=query)
        return [
            bytes(len(v)) if "poison" in text else v for text, v in zip(texts, vectors, strict=True)
        ]

    monkeypatch.setattr(HashEmbedder, "embed", refusing)
    service.notes(6)
    bad = f"# Bad\n\n{'It holds poison. ' * 40}\n"
    service.write("bad.md", f"# Good\n\n{'It is harmless. ' * 40}\n\n{bad}")
    service.start().sync()
    assert service.paths() == {"bad.md", *(f"{n:03}.md" for n in range(6))}
    (listed,) = service.status()["failed"]
    assert (listed["path"].rpartition("/")[2], listed["partial"]) == ("bad.md", True)
    assert (
        listed["reason"]
        == "lines 5-7 crash the embedding process: only word search finds them; `anchord rebuild` tries again"
    )
    assert service.reasons() == ""
    assert service.is_right(), "a vector of zeros is what a rebuild would give as well"

    asked.clear()
    service.write("bad.md", f"# Good\n\n{'It is harmless, and changed. ' * 30}\n\n{bad}")
    service.write("copy.md", bad)
    service.sync()
    assert not [text for text in asked if "poison" in text], "it is not tried again"
    assert [f["path"].rpartition("/")[2] for f in service.status()["failed"]] == [
        "bad.md",
        "copy.md",
    ]
    service.write("bad.md", "# Good\n\nIt is harmless now.\n")
    (service.folder / "copy.md").unlink()
    service.sync()
    assert service.status()["failed"] == []
    assert service.is_right()


def test_damage_seen_while_running_asks_for_a_new_process(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(2)
    service.start().sync()
    monkeypatch.setattr(service.writer.indexer, "reconcile", _malformed)
    service.pipeline._wake_writer()
    service.pipeline.work_queue._next_reconcile = 0.0
    until(lambda: service.restarts)
    service.stop()
    assert reopened(service).is_right()


def _malformed(*_: object, **__: object) -> None:
    raise sqlite3.DatabaseError("database disk image is malformed")


def test_a_writer_that_grew_too_large_asks_for_a_new_process(service: Service) -> None:
    service.settings += "[store]\nmax_memory_mb = 1\n"
    service.notes(2)
    service.start()
    until(lambda: service.restarts)
    assert "max_memory_mb" in service.restarts[0]


def test_f12_a_restart_without_changes_embeds_reads_and_commits_nothing(service: Service) -> None:
    service.notes(30)
    service.start().sync()
    service.stop()
    time.sleep(2.1)  # Until the files are too old to be racy: then their times are trusted.
    service.start().sync()
    service.stop()
    service.start().sync()
    status = service.status()
    assert (status["embedded_total"], status["commits_total"]) == (0, 0)
    assert service.pipeline.stats.files_done == 0


def test_f8_ten_folds_that_fail_are_reported_and_nothing_is_dropped(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(3)
    service.start().sync()

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("lance error: interrupted")

    with monkeypatch.context() as fault:
        fault.setattr("lance.dataset", broken)
        service.pipeline.submit(service.pipeline.maintenance.compact).result()
        assert (
            "maintenance of the index failed: the table cannot be opened: lance error: interrupted"
            in service.reasons()
        )
    service.pipeline.submit(service.pipeline.maintenance.compact).result()
    assert service.reasons() == ""
    assert service.is_right()


def test_what_the_process_before_left_without_an_index_is_folded_at_the_first_rest(
    service: Service,
) -> None:
    """Otherwise every search of an interrupted first index scans all rows, until twenty more commits."""
    service.notes(300)
    service.start().sync()
    service.stop()
    store = service.start().writer.store
    service.sync()
    assert store.count_unindexed_rows() >= 300
    upkeep = service.pipeline.maintenance
    service.pipeline.submit(lambda: upkeep.compact_if_due(idle_s=3600.0)).result()
    assert store.count_unindexed_rows() == 0


def test_a_first_index_is_folded_at_the_first_rest_however_few_commits_it_took(
    service: Service,
) -> None:
    service.start().sync()
    service.notes(300)
    service.sync()
    pipeline = service.pipeline
    assert service.writer.store.count_unindexed_rows() >= 300
    assert service.writer.indexer.commit_count < 20
    pipeline.submit(lambda: pipeline.maintenance.compact_if_due(idle_s=2.9)).result()
    assert pipeline.maintenance.compaction_count == 0
    pipeline.submit(lambda: pipeline.maintenance.compact_if_due(idle_s=3.0)).result()
    assert service.writer.store.count_unindexed_rows() == 0


def test_at_a_long_rest_a_single_commit_is_folded_and_then_nothing_is_left_to_do(
    service: Service,
) -> None:
    """Also one of an earlier process: its fragment makes every search slower."""
    service.notes(3)
    service.start().sync()
    service.stop()
    pipeline = service.start().pipeline
    upkeep, store = pipeline.maintenance, service.writer.store
    service.sync()
    for turn in range(2):
        assert store.count_unindexed_rows() > 0
        pipeline.submit(lambda: upkeep.compact_if_due(idle_s=60.0)).result()
        assert upkeep.compaction_count == turn
        pipeline.submit(lambda: upkeep.compact_if_due(idle_s=300.0)).result()
        assert upkeep.compaction_count == turn + 1
        assert store.count_unindexed_rows() == 0
        pipeline.submit(lambda: upkeep.compact_if_due(idle_s=3600.0)).result()
        assert upkeep.compaction_count == turn + 1
        service.write("000.md", "# Note\n\nWritten again.\n")
        service.sync()


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="Linux tells which files a process has open"
)
@pytest.mark.slow
def test_files_of_an_index_that_was_merged_are_not_held_open_for_ever(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached index keeps its files open: deleting them frees no disk space."""
    monkeypatch.setattr(lance_upkeep, "_MIN_VERSION_AGE", lance_upkeep._MIN_VERSION_AGE * 0)
    service.notes(1500)
    service.start()
    held = []
    for turn in range(2 * COMPACTIONS_PER_INDEX_MERGE):
        service.write("000.md", f"# Note\n\nRewritten {turn} times.\n")
        service.sync()
        for query in ("rewritten", "note times", "words of"):
            service.ask("search", query=query)
        service.pipeline.submit(service.pipeline.maintenance.compact).result()
        held.append(_held_open(service))
    assert held[COMPACTIONS_PER_INDEX_MERGE - 1] == held[-1] == 0
    assert set(_parts(service)) == {1}


def _parts(service: Service) -> list[int]:
    """Return the number of parts of each index."""
    dataset = lance.dataset(f"{service.home}/data/lance/chunks.lance")
    return [
        dataset.stats.index_stats(index.name)["num_indices"] for index in dataset.describe_indices()
    ]


def _held_open(service: Service) -> int:
    gc.collect()
    names = [
        os.readlink(f"/proc/self/fd/{number}")
        for number in os.listdir("/proc/self/fd")
        if _is_open(number)
    ]
    return sum(str(service.home) in name and name.endswith(" (deleted)") for name in names)


def _is_open(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


def test_parts_of_the_indices_become_one_when_there_is_nothing_else_to_do(service: Service) -> None:
    service.notes(20)
    upkeep = service.start().pipeline.maintenance
    service.sync()
    for turn in range(4):
        service.write("000.md", f"# Note\n\nRewritten {turn} times.\n")
        service.sync()
        service.pipeline.submit(upkeep.compact).result()
    apart = set(_parts(service))
    assert min(apart) > 1
    service.pipeline.submit(lambda: upkeep.compact_if_due(idle_s=10.0)).result()
    assert set(_parts(service)) == apart
    service.pipeline.submit(lambda: upkeep.compact_if_due(idle_s=30.0)).result()
    assert set(_parts(service)) == {1}
    passes = upkeep.compaction_count
    service.pipeline.submit(lambda: upkeep.compact_if_due(idle_s=60.0)).result()
    assert upkeep.compaction_count == passes


def test_processes_that_live_for_one_fold_each_merge_the_parts_of_the_indices_too(
    service: Service,
) -> None:
    service.notes(20)
    for turn in range(COMPACTIONS_PER_INDEX_MERGE):
        service.start()
        service.write("000.md", f"# Note\n\nRewritten {turn} times.\n")
        service.sync()
        service.pipeline.submit(service.pipeline.maintenance.compact).result()
        service.stop()
    assert set(_parts(service)) == {1}
