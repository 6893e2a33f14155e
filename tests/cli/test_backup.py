"""`backup` and `restore` as a user calls them: round trips, hostile folders, damage, and a full disk."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import BuiltOnce, Printed, Shell
from conversations.conftest import answer, claude

from anchord.store.backup import snapshot

pytestmark = pytest.mark.usefixtures("pylance_here")
TURNS = [(f"How is question {n} asked?", answer(f"subject{n}", 2)) for n in range(3)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, _index)


@pytest.fixture
def shell(built: BuiltOnce) -> Shell:
    """Give an index over notes, and conversations whose transcript was deleted."""
    return built.fresh()


@pytest.fixture(scope="module")
def backed_up_once(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Give such an index with a backup, for tests that change neither."""
    shell = Shell(tmp_path_factory.mktemp("c"))
    _index(shell)
    backed_up(shell)
    return shell


def _index(shell: Shell) -> None:
    talks = shell.base / "talks"
    talks.mkdir()
    (talks / "s1.jsonl").write_bytes(claude(*TURNS))
    shell.configure(
        "[[root]]", f'path = "{shell.notes}"',
        "[[root]]", f'path = "{talks}"', 'kind = "conversations"',
    )  # fmt: skip
    for number in range(4):
        shell.write(f"n{number}.md", f"# Note {number}\n\nThe word{number} is here.\n")
    assert shell("index").code == 0
    (talks / "s1.jsonl").unlink()
    assert shell("index").code == 0


def backed_up(shell: Shell, *options: str, target: str = "") -> Any:  # noqa: ANN401 - any JSON value
    return shell("backup", target or str(shell.base / "backups"), "--json", *options).json


def restored(shell: Shell, *options: str, home: str = "other") -> dict[str, Any]:
    """Restore into another home; return the environment that selects it."""
    environment: dict[str, Any] = {"ANCHORD_HOME": str(shell.base / home)}
    done = shell("restore", str(shell.base / "backups"), *options, **environment)
    assert done.code == 0, done
    return environment


def exchanges(home: Path) -> list[bytes]:
    with closing(sqlite3.connect(home / "data" / "conversations.sqlite")) as archive:
        return [row[0] for row in archive.execute("SELECT content FROM exchanges ORDER BY id")]


def checked(shell: Shell) -> Printed:
    return shell("backup", "--check", str(shell.base / "backups"))


def the_snapshots(shell: Shell) -> list[Path]:
    return sorted((shell.base / "backups").iterdir())


def test_a_restored_home_equals_the_old_one_and_embeds_nothing(shell: Shell) -> None:
    backed_up(shell)
    dump = shell("dump").out
    other = restored(shell)
    shutil.rmtree(shell.home)
    assert shell("dump", **other).out == dump
    assert shell("verify", "--vectors", "all", "--json", **other).json["differences_total"] == 0
    assert shell("index", "--json", **other).json["embedded"] == 0
    assert shell("verify", "--json", **other).json["ok"]
    assert len(exchanges(Path(other["ANCHORD_HOME"]))) == len(TURNS)


def test_a_backup_has_no_token_of_the_server(shell: Shell) -> None:
    token = shell.home / "data" / "mcp-token"
    token.write_text("x" * 43)
    assert shell("backup", str(shell.base / "backups")).code == 0
    assert not list((shell.base / "backups").rglob(token.name))


def test_a_second_backup_copies_only_what_changed(shell: Shell) -> None:
    first = backed_up(shell)
    again = backed_up(shell)
    assert first["copied_files"] == first["files"]
    assert (again["copied_files"], again["files"]) == (0, first["files"])
    shell.write("n0.md", "# Note 0\n\nAnother sentence.\n")
    assert shell("index").code == 0
    edited = backed_up(shell)
    assert 0 < edited["copied_bytes"] < edited["bytes"]
    assert checked(shell).code == 0


def test_a_backup_shares_no_file_with_the_home(backed_up_once: Shell) -> None:
    shell = backed_up_once
    files = [file for file in shell.base.rglob("*") if file.is_file() and not file.is_symlink()]
    assert [file for file in files if file.stat().st_nlink > 1] == []


def test_only_the_user_can_read_a_backup(backed_up_once: Shell) -> None:
    shell = backed_up_once
    for path in [shell.base / "backups", *(shell.base / "backups").rglob("*")]:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_keep_deletes_the_older_backups_and_the_rest_stays_whole(shell: Shell) -> None:
    backed_up(shell)
    second = backed_up(shell)
    third = backed_up(shell, "--keep", "2")
    assert [str(each) for each in the_snapshots(shell)] == [second["snapshot"], third["snapshot"]]
    assert len(third["deleted"]) == 1
    assert checked(shell).code == 0


def test_a_backup_folder_may_have_a_line_break_in_its_name(shell: Shell) -> None:
    target = str(shell.base / "two\nlines?#%41")
    made = backed_up(shell, target=target)
    assert Path(made["snapshot"]).parent == Path(target)
    assert shell("backup", "--check", target).code == 0
    other: dict[str, Any] = {"ANCHORD_HOME": str(shell.base / "other")}
    assert shell("restore", target, **other).code == 0
    assert shell("verify", "--json", **other).json["ok"]


@pytest.mark.parametrize("damage", ["flip", "truncate", "delete", "add", "link"])
@pytest.mark.parametrize("name", ["conversations.sqlite", "*.lance", "config.toml", "*.manifest"])
def test_check_names_the_damaged_file_and_restore_refuses_it_unless_it_is_of_the_table(
    backed_up_once: Shell, tmp_path: Path, damage: str, name: str
) -> None:
    shell = backed_up_once
    (original,) = the_snapshots(shell)
    folder = shutil.copytree(original, tmp_path / "backups" / original.name)
    victim = next(each for each in sorted(folder.rglob(name)) if each.is_file())
    content = victim.read_bytes()
    if damage == "flip":
        middle = len(content) // 2
        victim.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "truncate":
        victim.write_bytes(content[:-1])
    elif damage == "add":
        victim = victim.with_name("foreign")
        victim.touch()
    else:
        victim.unlink()
        if damage == "link":
            victim.symlink_to(shell.home / "config.toml")
    done = shell("backup", "--check", str(folder.parent))
    assert done.code == 1
    assert victim.name in done.out
    if damage == "add":
        return
    other: dict[str, Any] = {"ANCHORD_HOME": str(tmp_path / "other")}
    done = shell("restore", str(folder.parent), **other)
    if name in {"conversations.sqlite", "config.toml"}:
        done.is_refused(1)
        assert not (tmp_path / "other" / "config.toml").exists()
        assert [each.name for each in (tmp_path / "other" / "data").iterdir()] == ["anchord.lock"]
    else:
        assert done.code == 0
        assert "left out 1 file of the table" in done.err


@pytest.mark.parametrize("pattern", ["data/*.lance", "_versions/*.manifest", "**/*.*"])
def test_a_table_that_is_damaged_in_a_backup_is_made_again(shell: Shell, pattern: str) -> None:
    backed_up(shell)
    dump = shell("dump").out
    (folder,) = the_snapshots(shell)
    (table,) = folder.rglob("chunks.lance")
    victims = [file for file in table.glob(pattern) if file.is_file()]
    for victim in victims:
        victim.write_bytes(b"not what was written")
    other: dict[str, Any] = {"ANCHORD_HOME": str(shell.base / "other")}
    done = shell("restore", str(folder.parent), "--json", **other)
    assert set(done.json["damaged_table_files"]) == {
        str(each.relative_to(folder)) for each in victims
    }
    assert shell("index", **other).code == 0
    assert shell("dump", **other).out == dump
    assert shell("verify", "--vectors", "all", "--json", **other).json["ok"]
    assert len(exchanges(Path(other["ANCHORD_HOME"]))) == len(TURNS)


def test_a_damaged_or_missing_manifest_is_said(backed_up_once: Shell, tmp_path: Path) -> None:
    (original,) = the_snapshots(backed_up_once)
    folder = shutil.copytree(original, tmp_path / "backups" / original.name)
    manifest = folder / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-5])
    assert backed_up_once("backup", "--check", str(folder.parent)).code == 1
    manifest.unlink()
    printed = backed_up_once("backup", "--check", str(folder.parent)).out
    assert f"{folder.name}/manifest.json cannot be read: no such file or directory" in printed
    assert str(folder) not in printed


def test_a_manifest_cannot_write_outside_the_home(backed_up_once: Shell, tmp_path: Path) -> None:
    (original,) = the_snapshots(backed_up_once)
    folder = shutil.copytree(original, tmp_path / "backups" / original.name)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][0]["path"] = "../../escaped"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    other: dict[str, Any] = {"ANCHORD_HOME": str(tmp_path / "other")}
    backed_up_once("restore", str(folder), **other).is_refused(1, "outside")


def test_a_sound_database_is_not_replaced_by_a_damaged_copy_of_an_earlier_backup(
    shell: Shell,
) -> None:
    backed_up(shell)
    (first,) = the_snapshots(shell)
    archive = first / "data" / "conversations.sqlite"
    content = archive.read_bytes()
    archive.write_bytes(content[:5000] + b"\xff" + content[5001:])
    second = backed_up(shell)
    assert second["copied_files"] == 1
    assert shell("backup", "--check", second["snapshot"]).code == 0


def test_restore_refuses_a_home_that_is_not_empty_and_changes_nothing(shell: Shell) -> None:
    backed_up(shell)
    before = {file: file.read_bytes() for file in shell.home.rglob("*") if file.is_file()}
    shell("restore", str(shell.base / "backups")).is_refused(2, "not empty", "ANCHORD_HOME")
    after = {file: file.read_bytes() for file in shell.home.rglob("*") if file.is_file()}
    after.pop(shell.home / "data" / "anchord.lock")
    before.pop(shell.home / "data" / "anchord.lock")
    assert after == before


def test_restore_of_what_is_no_backup_is_refused(shell: Shell) -> None:
    other: dict[str, Any] = {"ANCHORD_HOME": str(shell.base / "other")}
    shell("restore", str(shell.notes), **other).is_refused(2, "no backup")
    shell("restore", str(shell.base / "none"), **other).is_refused(2, "no backup")


def test_a_restored_home_whose_folders_do_not_exist_keeps_everything(shell: Shell) -> None:
    backed_up(shell)
    rows = shell("dump").out
    shell.notes.rename(shell.base / "elsewhere")
    other: dict[str, Any] = {"ANCHORD_HOME": str(shell.base / "other")}
    done = shell("restore", str(shell.base / "backups"), **other)
    assert "does not exist here" in done.err
    shell("index", **other)
    assert shell("dump", **other).out == rows


def test_map_moves_the_folders_and_embeds_nothing(shell: Shell) -> None:
    given = shell.base / "old" / "given"
    given.mkdir(parents=True)
    (given / "g.md").write_text("# Given\n\nby a command\n")
    assert shell("index", str(given)).code == 0
    backed_up(shell)
    moved = shell.base / "moved"
    moved.mkdir()
    shell.notes.rename(moved / "other-name")
    (shell.base / "old").rename(moved / "old")
    maps = (f"{shell.notes}={moved / 'other-name'}", f"{shell.base / 'old'}={moved / 'old'}")
    other = restored(shell, *(part for each in maps for part in ("--map", each)))
    assert shell("index", "--json", **other).json["embedded"] == 0
    assert shell("verify", "--json", **other).json["ok"]
    shell("restore", "x", "--map", "nothing").is_refused(2, "OLD=NEW")
    shell("restore", "x", "--map", "/a=/b", "--map", "/a=/c").is_refused(2, "/a to /b and to /c")


def test_a_folder_that_is_moved_by_map_may_still_exist_at_its_former_place(shell: Shell) -> None:
    backed_up(shell)
    shutil.copytree(shell.base / "talks", shell.base / "new")
    rows = shell("dump").out
    other = restored(shell, "--map", f"{shell.base / 'talks'}={shell.base / 'new'}")
    assert shell("index", "--json", **other).json["embedded"] == 0
    assert shell("dump", **other).out == rows
    (session,) = shell("sessions", "--json", **other).json
    assert session["state"] == "deleted"


@pytest.mark.parametrize("target", ["notes/backups", "home/data/backups", "home", "link/backups"])
def test_a_backup_is_refused_where_it_would_be_indexed_or_mixed_up(
    shell: Shell, target: str
) -> None:
    (shell.base / "link").symlink_to(shell.notes)
    shell("backup", str(shell.base / target)).is_refused(2, "choose")
    assert not (shell.base / target / "data" / "backup.json").is_file() or target == "home"
    assert list(shell.notes.glob("backups")) == []


def test_a_folder_that_holds_something_else_is_refused(shell: Shell) -> None:
    target = shell.base / "backups"
    target.mkdir()
    (target / "letter.txt").write_text("dear")
    shell("backup", str(target)).is_refused(2, "letter.txt")
    (target / "letter.txt").unlink()
    (target / "2026-01-01T000000Z").symlink_to(shell.notes)
    shell("backup", str(target)).is_refused(2, "2026-01-01T000000Z")
    (target / "2026-01-01T000000Z").unlink()
    (target / "2026-01-01T000000Z.partial").symlink_to(shell.notes)
    shell("backup", str(target)).is_refused(2, "partial")
    assert (shell.notes / "n0.md").exists()


def test_a_target_that_cannot_be_written_is_refused(shell: Shell) -> None:
    shell("backup", str(shell.base / "none" / "backups")).is_refused(2, "mount")
    shell("backup", shell.write("file", "")).is_refused(2)
    shell("backup", str(shell.config)).is_refused(2)
    shell("backup", "").is_refused(2)
    if Path("/proc/self").is_dir():
        shell("backup", "/proc/backups").is_refused(1, "/proc/backups")


def test_a_full_disk_is_found_before_it_is_full(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "free_bytes", lambda _: 1000)
    shell("backup", str(shell.base / "backups")).is_refused(1, "free")
    assert the_snapshots(shell) == []


@pytest.mark.parametrize("failing_call", [1, 3, 9])
def test_a_write_that_fails_leaves_the_earlier_backup_as_it_was(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, failing_call: int
) -> None:
    backed_up(shell)
    shell.write("n1.md", "# Changed\n\nentirely\n")
    assert shell("index").code == 0
    before = the_snapshots(shell)
    left, real_fsync = failing_call, os.fsync

    def fail_once(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real_fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_once)
        shell("backup", str(shell.base / "backups")).is_refused(1, "space")
    assert the_snapshots(shell) == before
    assert checked(shell).code == 0
    backed_up(shell)
    assert checked(shell).code == 0


def test_a_backup_that_the_home_cannot_record_is_made_all_the_same(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("anchord.index.backup.save_last_backup", fail)
        made = shell("backup", str(shell.base / "backups"))
    assert made.code == 0
    assert "cannot record" in made.err
    assert len(the_snapshots(shell)) == 1
    assert checked(shell).code == 0


def test_a_damaged_archive_makes_no_backup_and_leaves_the_earlier_one(shell: Shell) -> None:
    backed_up(shell)
    before = the_snapshots(shell)
    archive = shell.home / "data" / "conversations.sqlite"
    content = archive.read_bytes()
    archive.write_bytes(content[:8192] + b"\xff" * 8192 + content[16384:])
    shell("backup", str(shell.base / "backups")).is_refused(1, "conversations.sqlite")
    assert the_snapshots(shell) == before


def test_a_home_without_an_index_has_nothing_to_back_up(shell: Shell) -> None:
    other: dict[str, Any] = {"ANCHORD_HOME": str(shell.base / "other")}
    shell("backup", str(shell.base / "b"), **other).is_refused(1, "no index")


def test_an_interrupted_replacement_of_the_index_is_finished_first(shell: Shell) -> None:
    (shell.home / "data" / "promoting").touch()
    shell("backup", str(shell.base / "b")).is_refused(1, "anchord index")
    assert shell("index").code == 0
    assert shell("backup", str(shell.base / "b")).code == 0


def test_what_was_set_aside_is_part_of_a_backup(shell: Shell) -> None:
    aside = shell.home / "data" / "damaged" / "20260101T000000-1"
    aside.mkdir(parents=True)
    (aside / "conversations.sqlite").write_bytes(b"the only copy")
    backed_up(shell)
    assert backed_up(shell)["copied_files"] == 0
    other = restored(shell)
    found = Path(other["ANCHORD_HOME"]) / "data" / "damaged" / aside.name / "conversations.sqlite"
    assert found.read_bytes() == b"the only copy"
    assert checked(shell).code == 0


def test_a_table_in_a_folder_of_its_own_is_backed_up_and_never_overwritten(shell: Shell) -> None:
    tables = shell.base / "tables"
    shell.configure("[[root]]", f'path = "{shell.notes}"', "[store]", f'uri = "{tables}"')
    assert shell("index").code == 0
    shell("backup", str(tables / "backups")).is_refused(2)
    backed_up(shell)
    other: dict[str, Any] = {"ANCHORD_HOME": str(shell.base / "other")}
    refused = shell("restore", str(shell.base / "backups"), **other)
    refused.is_refused(2, "--map")
    other = restored(shell, "--map", f"{tables}={shell.base / 'new tables'}")
    assert shell("verify", "--json", **other).json["ok"]
    assert shell("index", "--json", **other).json["embedded"] == 0


def test_the_newest_backup_is_restored_also_when_the_clock_was_set_back(shell: Shell) -> None:
    backed_up(shell)
    (first,) = the_snapshots(shell)
    first.rename(first.with_name("2999-01-01T000000Z"))
    shell.write("n9.md", "# Ninth\n")
    assert shell("index").code == 0
    assert Path(backed_up(shell)["snapshot"]).name == "2999-01-01T000000Z-002"
    assert "Ninth" in shell("dump", **restored(shell)).out
