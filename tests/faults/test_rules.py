"""Ignore rules in a running daemon: excluded files leave at once, and saving the rules lets nothing in."""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path

import pytest
from faults.service import SETTINGS, Service, until
from index.running import index_all

from anchord.core.deletion_guard import MIN_FILES_TO_HOLD


def failed_paths(service: Service) -> dict[str, str]:
    return {str(each["path"]): str(each["reason"]) for each in service.status()["failed"]}


def cached_vectors(service: Service) -> int:
    with sqlite3.connect(service.places.vector_cache_file) as db:
        (count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
    db.close()
    return int(count)


def has_walked_since(service: Service, walks: int) -> bool:
    return service.pipeline.work_queue.reconcile_count > walks


def test_a_rule_file_that_is_deleted_and_written_again_lets_nothing_in(service: Service) -> None:
    service.notes(3, "private/")
    service.write("a.md", "# A\n\nFor everybody.\n")
    rules = service.write(".gitignore", "private/\n")
    service.start().sync()
    for _ in range(3):
        walks = service.pipeline.work_queue.reconcile_count
        rules.unlink()
        until(partial(has_walked_since, service, walks))
        service.write(".gitignore", "private/\n")
        service.rescan()
    assert service.paths() == {"a.md"}
    assert service.embedded() == 1


def test_a_rule_file_that_is_gone_is_believed_and_sync_waits_for_what_it_lets_in(
    service: Service,
) -> None:
    service.notes(3, "private/")
    rules = service.write(".gitignore", "private/\n")
    service.start().sync()
    assert service.paths() == set()
    rules.unlink()
    service.sync()
    assert len(service.paths()) == 3
    assert service.is_right()


def test_sync_returns_when_a_root_goes_whose_rules_have_not_settled(service: Service) -> None:
    rules = service.write(".gitignore", "private/\n")
    service.start().sync()
    rules.unlink()
    service.pipeline.submit(lambda: service.pipeline.work_queue.reconcile("docs")).result()
    assert service.pipeline.work_queue.pending_paths
    service.pipeline.submit(lambda: service.pipeline.remove_root("docs")).result()
    assert service.pipeline.work_queue.pending_paths == set()
    assert service.sync()["synced"]


@pytest.mark.parametrize("how", ["rule", "configuration", "unreadable"])
def test_what_becomes_excluded_leaves_at_once_with_its_vectors_and_is_not_held(
    service: Service, how: str
) -> None:
    count = MIN_FILES_TO_HOLD + 10
    settings = f'{SETTINGS}\n[[root]]\npath = "{service.folder}"\nname = "docs"\n'
    service.settings = settings
    service.notes(count, "private/")
    service.notes(5)
    service.start().sync()
    if how == "rule":
        service.write(".anchordignore", "private/\n")
    elif how == "unreadable":
        (service.folder / "private" / ".gitignore").mkdir()
    else:
        service.stop()
        service.settings = settings + 'exclude = ["private/"]\n'
        service.start()
    assert service.sync()["held"] == {}
    assert service.paths() == {f"{n:03}.md" for n in range(5)}
    assert service.reasons() == ""
    assert service.is_right()
    # Unknown rules exclude nothing: the vectors stay until the rules are known.
    assert cached_vectors(service) == (count if how == "unreadable" else 0)
    verified = service.ask("verify")
    assert verified["held"] == {}
    assert verified["unread_rules"] == ({"docs": 1} if how == "unreadable" else {})
    assert verified["ok"] is (how != "unreadable")
    if how == "unreadable":
        reported = failed_paths(service)[str(service.folder / "private" / ".gitignore")]
        assert "nothing in its folder is indexed until it can be" in reported


def test_files_that_are_excluded_do_not_hide_others_that_are_missing(service: Service) -> None:
    missing = MIN_FILES_TO_HOLD + 10
    service.notes(missing, "gone/")
    service.notes(missing, "private/")
    service.start().sync()
    service.stop()
    service.write(".gitignore", "private/\n")
    for file in (service.folder / "gone").iterdir():
        file.unlink()
    service.start()
    assert service.sync()["held"] == {"docs": missing}
    assert {path.split("/")[0] for path in service.paths()} == {"gone"}
    assert service.verify().differences == ()


def test_what_comes_back_into_scope_is_read_again(service: Service) -> None:
    service.notes(3, "private/")
    service.start().sync()
    rules = service.write(".gitignore", "private/\n")
    service.sync()
    assert service.paths() == set()
    service.write("private/000.md", "# Changed\n\nWhile it was out.\n")
    rules.write_text("")
    service.sync()
    assert len(service.paths()) == 3
    assert service.is_right()


def test_rules_that_cannot_be_read_after_a_restart_are_the_last_good_ones(service: Service) -> None:
    service.notes(3, "private/")
    service.write("a.md", "# A\n\nFor everybody.\n")
    rules = service.write(".gitignore", "private/\n")
    service.start().sync()
    service.stop()
    rules.unlink()
    rules.mkdir()
    service.start()
    service.sync()
    assert service.paths() == {"a.md"}
    assert "its last good rules stay in force" in failed_paths(service)[str(rules)]
    rules.rmdir()
    service.sync()
    assert len(service.paths()) == 4
    assert failed_paths(service) == {}


def test_one_run_without_a_daemon_waits_for_rules_to_settle(service: Service) -> None:
    service.notes(1, "private/")
    rules = service.write(".gitignore", "private/\n")
    service.start().sync()
    rules.unlink()
    service.stop()
    service.start()
    service.pipeline.stop()
    index_all(service.writer)
    assert {row.path for row in service.writer.store.all_rows()} == {"private/000.md"}


def test_a_rule_above_the_root_holds_as_soon_as_it_is_written(service: Service) -> None:
    (service.base / ".git").mkdir()
    (service.base / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for folder in ("objects", "refs"):
        (service.base / ".git" / folder).mkdir()
    service.notes(2)
    service.write("secret.md", "# Secret\n\nNot for the index.\n")
    service.start().sync()
    assert len(service.paths()) == 3
    (service.base / ".gitignore").write_text("secret*\n")
    until(lambda: service.paths() == {"000.md", "001.md"})
    assert service.is_right()
    os.unlink(Path(service.base, ".gitignore"))
    until(lambda: len(service.paths()) == 3)
