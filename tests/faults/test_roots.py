"""Groups D, A and B of FAULTS.md: roots that are deleted, renamed, emptied, unmounted, replaced or linked."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults.service import SETTINGS, Service, until

from anchord.core.deletion_guard import MIN_FILES_TO_HOLD
from anchord.core.types import Problem


@contextmanager
def mounted(*arguments: str) -> Iterator[None]:
    """Mount something for a while, where this user may."""
    place = arguments[-1]
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def state_of(service: Service, number: int = 0) -> str:
    return str(service.status()["roots"][number]["state"])


def test_d1_d2_a_root_that_is_deleted_keeps_its_rows_and_is_followed_when_it_is_made_again(
    service: Service,
) -> None:
    service.notes(3)
    service.start().sync()
    rows = service.paths()
    shutil.rmtree(service.folder)
    until(lambda: state_of(service) == "offline")
    assert service.sync()["away"] == ["docs"]
    assert service.paths() == rows
    service.folder.mkdir()
    service.notes(3)
    until(lambda: state_of(service) == "idle")
    service.write("later.md", "# Later\n\nIn the new folder.\n")
    until(lambda: "later.md" in service.paths())
    assert service.is_right()
    assert service.embedded() == 4


def test_d3_a_renamed_root_is_offline_and_what_is_written_in_it_elsewhere_is_not_taken_for_its_own(
    service: Service,
) -> None:
    service.notes(3)
    service.start().sync()
    elsewhere = service.base / "elsewhere"
    service.folder.rename(elsewhere)
    until(lambda: state_of(service) == "offline")
    (elsewhere / "000.md").write_text("# Private\n\nNot in the root any more.\n")
    service.sync()
    assert service.embedded() == 3
    elsewhere.rename(service.folder)
    until(lambda: state_of(service) == "idle")
    assert service.is_right()
    assert service.embedded() == 4


def test_d4_an_unmounted_root_keeps_its_rows_and_goes_on_when_it_is_back(service: Service) -> None:
    image = service.base / "disk"
    image.mkdir()
    with mounted("--bind", str(image), str(service.folder)):
        service.notes(5)
    with mounted("-t", "tmpfs", "anchord", str(service.folder)):
        service.notes(5)
        service.start().sync()
        assert len(service.paths()) == 5
    until(lambda: state_of(service) == "offline")
    assert service.status()["state"] == "degraded"
    assert "0 of 5 known files are in it" in service.reasons()
    service.sync()
    assert len(service.paths()) == 5
    with mounted("--bind", str(image), str(service.folder)):
        until(lambda: state_of(service) == "idle")
        service.write("later.md", "# Later\n\nOn the disk that came back.\n")
        until(lambda: "later.md" in service.paths())
        assert service.is_right()
        assert service.embedded() == 6
        service.stop()


def test_d5_another_disk_in_the_roots_place_is_not_read_and_deletes_nothing(
    service: Service,
) -> None:
    service.notes(5)
    service.start().sync()
    with mounted("-t", "tmpfs", "anchord", str(service.folder)):
        service.write("stranger.md", "# Stranger\n\nOf another disk.\n")
        until(lambda: state_of(service) == "offline")
        assert service.sync()["away"] == ["docs"]
        assert service.paths() == {f"{n:03}.md" for n in range(5)}
    until(lambda: state_of(service) == "idle")
    assert service.is_right()
    assert service.embedded() == 5


def test_d5_another_folder_is_read_once_a_person_accepts_it(service: Service) -> None:
    service.notes(5)
    service.start().sync()
    service.folder.rename(service.base / "kept")
    service.write("new.md", "# New\n\nAnother project.\n")
    until(lambda: state_of(service) == "offline")
    assert "`anchord confirm-delete docs`" in service.reasons()
    assert service.ask("confirm-delete", name="docs") == {"name": "docs", "let_go": 5}
    assert service.paths() == {"new.md"}
    assert service.reasons() == ""
    assert service.is_right()


def test_d5_a_folder_that_is_filled_again_slowly_is_accepted_when_half_of_it_is_there(
    service: Service,
) -> None:
    service.notes(4)
    service.start().sync()
    service.folder.rename(service.base / "kept")
    service.folder.mkdir()
    until(lambda: state_of(service) == "offline")
    service.notes(1)
    service.sync()
    assert len(service.paths()) == 4
    service.notes(4)
    service.sync()
    assert state_of(service) == "idle"
    assert service.is_right()
    assert service.embedded() == 4


@pytest.mark.parametrize("restarts", [False, True])
def test_d8_a_root_that_becomes_a_link_is_not_followed(service: Service, *, restarts: bool) -> None:
    service.settings = f'{SETTINGS}\n[[root]]\npath = "{service.folder}"\nname = "docs"\n'
    service.notes(3)
    service.start().sync()
    private = service.base / "private"
    private.mkdir()
    for n in range(3):
        (private / f"{n:03}.md").write_text("# Private\n\nOf another folder.\n")
    if restarts:
        service.stop()
    service.folder.rename(service.base / "kept")
    service.folder.symlink_to(private)
    if restarts:
        service.start()
    until(lambda: state_of(service) == "offline")
    (private / "000.md").write_text("# Private\n\nChanged while it is watched.\n")
    assert service.sync()["away"] == ["docs"]
    assert f'replaced by a symbolic link to "{private}"' in service.reasons()
    assert service.embedded() == (0 if restarts else 3)
    assert len(service.paths()) == 3
    service.folder.unlink()
    (service.base / "kept").rename(service.folder)
    until(lambda: state_of(service) == "idle")
    assert service.is_right()


def test_d6_a_root_that_is_emptied_is_held_until_it_is_confirmed(service: Service) -> None:
    service.notes(MIN_FILES_TO_HOLD + 10)
    service.start().sync()
    for file in service.folder.iterdir():
        file.unlink()
    held = MIN_FILES_TO_HOLD + 10
    until(lambda: service.status()["roots"][0]["held"] == held)
    assert "anchord confirm-delete docs" in service.reasons()
    assert service.sync()["held"] == {"docs": held}
    assert service.verify().differences == ()
    service.stop()
    service.start()
    assert service.sync()["held"] == {"docs": held}
    assert len(service.paths()) == held
    assert service.ask("confirm-delete", name="docs") == {"name": "docs", "let_go": held}
    assert service.paths() == set()
    assert service.reasons() == ""
    assert service.is_right()


def test_d6_a_deletion_that_takes_its_time_is_weighed_as_one(service: Service) -> None:
    service.notes(MIN_FILES_TO_HOLD + 10)
    service.start().sync()
    for file in sorted(service.folder.iterdir()):
        file.unlink()
        time.sleep(0.02)
    until(lambda: service.status()["roots"][0]["held"] == MIN_FILES_TO_HOLD + 10)
    assert len(service.paths()) == MIN_FILES_TO_HOLD + 10


def test_d6_what_left_just_before_counts_beyond_thirty_seconds_and_a_restart(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 of 80 files go at once; 30 more within 30 s make a mass deletion, until it is confirmed."""
    service.notes(80)
    service.start().sync()
    for number in range(30):
        (service.folder / f"{number:03}.md").unlink()
    until(lambda: len(service.paths()) == 50)
    for number in range(30, 60):
        (service.folder / f"{number:03}.md").unlink()
    until(lambda: service.status()["roots"][0]["held"] == 30)
    monkeypatch.setattr("anchord.daemon.writer.deletions._WINDOW_S", 0.0)
    service.rescan()
    service.sync()
    assert (service.status()["roots"][0]["held"], len(service.paths())) == (30, 50)
    service.stop()
    service.start().sync()
    assert (service.status()["roots"][0]["held"], len(service.paths())) == (30, 50)
    service.ask("confirm-delete", name="docs")
    service.sync()
    assert len(service.paths()) == 20
    for number in range(60, 79):
        (service.folder / f"{number:03}.md").unlink()
    service.sync()
    assert service.paths() == {"079.md"}
    assert service.is_right()


def test_d6_held_deletions_are_cancelled_as_soon_as_the_files_are_back(service: Service) -> None:
    service.notes(MIN_FILES_TO_HOLD + 10)
    service.start().sync()
    service.folder.rename(service.base / "kept")
    service.folder.mkdir()
    until(lambda: state_of(service) == "offline")
    for file in sorted((service.base / "kept").iterdir()):
        file.rename(service.folder / file.name)
    service.sync()
    assert service.reasons() == ""
    assert service.is_right()
    assert service.embedded() == MIN_FILES_TO_HOLD + 10


def test_fewer_files_than_that_are_deleted_at_once(service: Service) -> None:
    service.notes(MIN_FILES_TO_HOLD - 10)
    service.start().sync()
    for file in service.folder.iterdir():
        file.unlink()
    service.sync()
    assert service.paths() == set()
    assert service.is_right()


def test_many_that_are_less_than_half_are_deleted_at_once(service: Service) -> None:
    service.notes(MIN_FILES_TO_HOLD + 5, "go/")
    service.notes(MIN_FILES_TO_HOLD + 10, "stay/")
    service.start().sync()
    shutil.rmtree(service.folder / "go")
    until(lambda: len(service.paths()) == MIN_FILES_TO_HOLD + 10)
    assert service.reasons() == ""
    assert service.is_right()


def test_moved_files_are_moves_for_the_guard_and_embed_nothing(service: Service) -> None:
    service.notes(MIN_FILES_TO_HOLD + 10, "old/")
    service.start().sync()
    before = service.embedded()
    os.rename(service.folder / "old", service.folder / "new")
    service.sync()
    assert service.reasons() == ""
    assert {path.split("/")[0] for path in service.paths()} == {"new"}
    assert service.embedded() == before
    assert service.pipeline.stats.totals.actions["moved"] == MIN_FILES_TO_HOLD + 10
    assert service.is_right()


def test_a_renamed_file_is_a_move(service: Service) -> None:
    service.notes(3)
    service.start().sync()
    os.rename(service.folder / "001.md", service.folder / "renamed.md")
    until(lambda: service.paths() == {"000.md", "002.md", "renamed.md"})
    assert service.pipeline.stats.totals.actions["moved"] == 1
    assert service.embedded() == 3


def test_files_that_vanish_while_they_are_read_again_are_held_too(service: Service) -> None:
    """The backlog names files that were there; the disk goes before they are read."""
    service.notes(MIN_FILES_TO_HOLD + 10)
    service.start().sync()
    service.pipeline.set_paused(paused=True)
    service.pipeline.submit(service.writer.catalog.mark_all_for_reread).result()
    service.pipeline.submit(lambda: service.pipeline.work_queue.reconcile("docs")).result()
    service.folder.rename(service.base / "gone")
    service.folder.mkdir()
    service.pipeline.set_paused(paused=False)
    until(lambda: state_of(service) == "offline")
    assert len(service.paths()) == MIN_FILES_TO_HOLD + 10


def test_d7_a_root_that_becomes_a_file_keeps_its_rows(service: Service) -> None:
    service.notes(3)
    service.start().sync()
    service.folder.rename(service.base / "kept")
    service.folder.write_text("no folder")
    until(lambda: state_of(service) == "offline")
    service.sync()
    assert len(service.paths()) == 3
    service.folder.unlink()
    (service.base / "kept").rename(service.folder)
    until(lambda: state_of(service) == "idle")
    assert service.is_right()


def test_d8_a_root_given_by_a_link_follows_the_link(tmp_path: Path) -> None:
    one, other, link = tmp_path / "one", tmp_path / "other", tmp_path / "current"
    for folder, text in ((one, "The first."), (other, "The second.")):
        folder.mkdir()
        (folder / "a.md").write_text(f"# A\n\n{text}\n")
        (folder / "same.md").write_text("# Same\n\nThe same words.\n")
    link.symlink_to(one)
    service = Service(tmp_path, f'{SETTINGS}\n[[root]]\npath = "{link}"\nname = "docs"\n')
    try:
        service.start().sync()
        assert service.embedded() == 2
        fresh = tmp_path / "fresh"
        fresh.symlink_to(other)
        fresh.replace(link)
        until(lambda: service.status()["roots"][0]["path"] == str(other))
        service.sync()
        assert service.embedded() == 3
        (other / "b.md").write_text("# B\n\nSeen through the link.\n")
        until(lambda: "b.md" in service.paths())
        assert service.is_right()
    finally:
        service.stop()


def test_d9_a_disk_mounted_below_a_root_is_indexed_and_its_rows_are_kept_when_it_goes(
    service: Service,
) -> None:
    service.write("a.md", "# A\n\nWords.\n")
    (service.folder / "disk").mkdir()
    service.start().sync()
    with mounted("-t", "tmpfs", "anchord", str(service.folder / "disk")):
        service.notes(3, "disk/")
        until(lambda: len(service.paths()) == 4)
        service.write("disk/later.md", "# Later\n\nOn the disk.\n")
        until(lambda: len(service.paths()) == 5)
    until(lambda: service.status()["roots"][0]["held"] == 4)
    assert len(service.paths()) == 5
    service.ask("confirm-delete", name="docs")
    assert service.paths() == {"a.md"}


def test_d10_a_root_on_a_file_system_that_others_change_is_polled_as_well(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(2)
    monkeypatch.setattr("anchord.sources.watch.root_watcher.remote_fs_type", lambda *_: "nfs4")
    service.start().sync()
    assert "is on nfs4" in service.reasons()
    assert service.status()["roots"][0]["polled_dirs"] == 1
    service.write("later.md", "# Later\n\nFound by polling or by an event.\n")
    until(lambda: "later.md" in service.paths())


def test_d11_the_same_tree_bound_to_two_roots_is_followed_in_both(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    (one / "a.md").write_text("# A\n\nOnce.\n")
    roots = f'[[root]]\npath = "{one}"\n[[root]]\npath = "{other}"\n'
    service = Service(tmp_path, SETTINGS + roots)
    with mounted("--bind", str(one), str(other)):
        try:
            service.start().sync()
            (one / "b.md").write_text("# B\n\nWritten through the one.\n")
            until(lambda: service.pipeline.submit(service.writer.store.count_rows).result() == 4)
            (other / "c.md").write_text("# C\n\nWritten through the other.\n")
            until(lambda: service.pipeline.submit(service.writer.store.count_rows).result() == 6)
            assert service.is_right()
            assert service.embedded() == 3
        finally:
            service.stop()


def test_d12_a_root_that_cannot_be_listed_is_an_error_and_keeps_its_rows(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.notes(3)
    service.start().sync()
    with monkeypatch.context() as fault:
        fault.setattr(
            service.writer.files, "walk", lambda *_: Problem("permission denied: not indexed")
        )
        service.sync()
        assert "permission denied" in service.reasons()
        assert state_of(service) == "offline"
        assert len(service.paths()) == 3
    service.rescan()
    assert service.reasons() == ""


def test_d14_a_root_that_cannot_be_written_is_indexed_as_any_other(service: Service) -> None:
    service.notes(3)
    with mounted("--bind", str(service.folder), str(service.folder)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(service.folder)], check=True)
        service.start().sync()
        assert len(service.paths()) == 3
        assert service.is_right()
        service.stop()
