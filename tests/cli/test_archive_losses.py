"""What the archive has lost and the index still has is not deleted; what was forgotten stays away."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import NoReturn

import pytest
from cli.conftest import Shell
from cli.test_archive_verify import archive_of, delete_exchange
from cli.test_detached import (
    ALL,
    GONE,
    TURNS,
    archived,
    built_talks,
    configure,
    embedded,
    found,
    talks,
    with_other_roots_only,
)
from conversations.conftest import claude

from anchord.core.sqlite_errors import damaged_error
from anchord.core.types import FileUpdate
from anchord.errors import StoreError
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.vector_cache import SqliteVectorCache

__all__ = ["built_talks", "talks"]


@pytest.mark.parametrize("command", [["index"], ["rebuild"]], ids=" ".join)
def test_an_exchange_that_only_the_index_has_is_given_back_to_the_archive(
    talks: Shell, command: list[str]
) -> None:
    delete_exchange(talks, "q1-s2")
    before = {question: text_of(talks, question) for question in ALL}
    ran = talks(*command)
    assert "had lost 1 exchange that no transcript contains any more" in ran.err
    assert found(talks) == archived(talks) == ALL
    assert {question: text_of(talks, question) for question in ALL} == before
    assert talks("verify").code == 0


def flip_text(shell: Shell, name: str) -> None:
    """Change a bit of an exchange's compressed text. SQLite notices nothing."""
    file = shell.home / "data" / "conversations.sqlite"
    with closing(archive_of(shell)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT content FROM exchanges WHERE name=?"
        (content,) = db.execute(query, (name,)).fetchone()
    data = bytearray(file.read_bytes())
    data[data.index(content) + len(content) // 2] ^= 4
    file.write_bytes(data)


@pytest.mark.parametrize("options", [[], ["--repair"]])
def test_a_text_that_changed_in_the_archive_is_given_back_by_verify(
    talks: Shell, options: list[str]
) -> None:
    before = {question: text_of(talks, question) for question in ALL}
    flip_text(talks, "q1-s2")
    verified = talks("verify", *options)
    if options:
        assert verified.code == 0
        assert "the archive of conversations was damaged" in verified.err
    else:
        assert verified.code == 1
        assert "is damaged (the text of /claude-code/q1-s2)" in verified.err
    assert talks("index").code == 0
    assert talks("verify").code == 0
    assert found(talks) == archived(talks) == ALL
    assert {question: text_of(talks, question) for question in ALL} == before


def test_what_a_salvage_saves_differently_is_indexed_as_it_is_now(talks: Shell) -> None:
    with closing(archive_of(talks)) as db, db:
        db.execute("UPDATE heads SET title='Another title'")
        db.execute("UPDATE sessions SET title='Another title'")
    assert talks("index").code == 0
    assert talks("verify").code == 1
    (talks.home / "data" / "conversations.sqlite-damaged").touch()
    indexed = talks("index", "--json")
    assert "were saved" in indexed.err
    assert indexed.json["embedded"] == 0
    assert talks("verify").code == 0


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE files SET fingerprint=7",
        "UPDATE files SET path=7 WHERE rowid=1",
        "UPDATE files SET fingerprint=x'00'",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["index"], id="index"),
        *(
            pytest.param(each, id=" ".join(each), marks=pytest.mark.slow)
            for each in (["verify"], ["verify", "--repair"])
        ),
    ],
)
def test_a_value_of_another_type_in_the_catalog_is_damage_that_costs_nothing(
    talks: Shell, damage: str, command: list[str]
) -> None:
    with closing(sqlite3.connect(talks.home / "data" / "state.sqlite")) as db, db:
        db.execute(damage)
    talks(*command).has_no_traceback()
    indexed = talks("index", "--json")
    assert indexed.json["embedded"] == 0
    assert talks("verify").code == 0
    assert found(talks) == archived(talks) == ALL


def flip_in_file(shell: Shell, old: bytes, new: bytes) -> None:
    """Change the first occurrence of some bytes in the closed archive."""
    file = shell.home / "data" / "conversations.sqlite"
    with closing(archive_of(shell)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = file.read_bytes()
    assert old in data
    file.write_bytes(data.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"title TEXT NOT NULL", b"tytle TEXT NOT NULL", "no column title of"),
        (b"CREATE TABLE sessions(", b"CREATE TABLE sessi\xd5ns(", "is damaged"),
        (b"CREATE TABLE sessions(", b"CREATE TABLE sess \xd5ns(", "its schema is not UTF-8"),
    ],
)
def test_a_changed_bit_of_the_schema_is_damage_and_loses_nothing(
    talks: Shell, old: bytes, new: bytes, said: str
) -> None:
    flip_in_file(talks, old, new)
    indexed = talks("index")
    assert indexed.code == 0, indexed
    assert said in indexed.err
    assert "exchanges" in indexed.err
    assert talks("verify").code == 0
    assert found(talks) == archived(talks) == ALL


def test_verify_finds_a_path_that_the_index_of_the_archive_contradicts(talks: Shell) -> None:
    flip_in_file(talks, b"/claude-code/q1-s2q1-s2", b"/claude-code/q1-s3q1-s2")
    verified = talks("verify")
    assert verified.code == 1
    assert "is damaged (" in verified.err
    assert "missing from index" in verified.err
    assert talks("index").code == 0
    assert talks("verify").code == 0
    assert found(talks) == archived(talks) == ALL


def text_of(shell: Shell, question: str) -> list[str]:
    rows = [json.loads(line) for line in shell("dump").out.splitlines()]
    return [row["text"] for row in rows if row["section"].endswith(question)]


def test_an_older_archive_in_its_place_loses_nothing_that_was_said_since(talks: Shell) -> None:
    with closing(archive_of(talks)) as db, closing(sqlite3.connect(talks.base / "old")) as old:
        db.backup(old)
    later = Path(talks.write("s3.jsonl", claude(("What came later?", "Rain."), session="s3")))
    talks("index")
    later.unlink()
    talks("index")
    for file in (talks.home / "data").glob("conversations.sqlite*"):
        file.unlink()
    (talks.base / "old").rename(talks.home / "data" / "conversations.sqlite")
    assert embedded(talks) == 0
    assert found(talks) == archived(talks) == ALL | {"What came later?"}
    assert talks("verify").code == 0


def remove(shell: Shell, *names: str) -> None:
    for name in names:
        for file in (shell.home / "data").glob(f"{name}.sqlite*"):
            file.unlink()


def copy(file: Path, target: Path) -> None:
    with closing(sqlite3.connect(file)) as db, closing(sqlite3.connect(target)) as other:
        db.backup(other)


@pytest.mark.parametrize("command", [["index"], ["rebuild"]], ids=" ".join)
def test_what_only_the_table_has_outlives_the_archive_and_the_catalog(
    talks: Shell, command: list[str]
) -> None:
    remove(talks, "state", "conversations")
    ran = talks(*command)
    assert ran.code == 0, ran.err
    assert "that no transcript contains any more, restored" in ran.err
    assert found(talks) == archived(talks) == ALL
    assert talks("verify").code == 0


@pytest.mark.parametrize("command", [["index"], ["rebuild"]], ids=" ".join)
def test_exchanges_that_nothing_has_any_more_are_counted_and_named(
    talks: Shell, command: list[str]
) -> None:
    remove(talks, "conversations")
    shutil.rmtree(talks.home / "data" / "lance")
    ran = talks(*command)
    assert "2 exchanges could not be restored" in ran.err
    assert {name for name in ("q0-s2", "q1-s2", "s1") if name in ran.err} == {"q0-s2", "q1-s2"}
    assert found(talks) == archived(talks) == ALL - {question for question, _ in GONE}
    assert talks("verify").code == 0
    assert "not be restored" not in talks(*command).err


def test_exchanges_that_were_forgotten_do_not_count_as_lost(talks: Shell) -> None:
    data = talks.home / "data"
    copy(data / "state.sqlite", talks.base / "old")
    talks("forget", str(talks.notes / "s2.jsonl"), "--yes")
    remove(talks, "state")
    (talks.base / "old").rename(data / "state.sqlite")
    ran = talks("index")
    assert ran.code == 0
    assert "not be restored" not in ran.err
    assert found(talks) == archived(talks) == ALL - {question for question, _ in GONE}


def test_what_only_the_table_has_outlives_its_root_too(talks: Shell) -> None:
    configuration = talks.config.read_text("utf-8")
    with_other_roots_only(talks)
    remove(talks, "state", "conversations")
    assert talks("index").code == 0
    assert talks("index").code == 0
    assert archived(talks) == ALL
    talks.config.write_text(configuration, "utf-8")
    talks("index")
    assert found(talks) == archived(talks) == ALL
    assert talks("verify").code == 0


@pytest.mark.parametrize("command", [["index"], ["verify", "--repair"]], ids=" ".join)
def test_older_copies_of_archive_and_catalog_lose_nothing_that_was_said_since(
    talks: Shell, command: list[str]
) -> None:
    data = talks.home / "data"
    for name in ("state", "conversations"):
        copy(data / f"{name}.sqlite", talks.base / name)
    later = Path(talks.write("s3.jsonl", claude(("What came later?", "Rain."), session="s3")))
    talks("index")
    later.unlink()
    talks("index")
    remove(talks, "state", "conversations")
    for name in ("state", "conversations"):
        (talks.base / name).rename(data / f"{name}.sqlite")
    talks(*command)
    assert embedded(talks) == 0
    assert found(talks) == archived(talks) == ALL | {"What came later?"}
    assert talks("verify").code == 0


def test_logs_of_archive_and_catalog_that_are_lost_after_a_kill_lose_nothing(talks: Shell) -> None:
    with talks.daemon() as daemon:
        later = Path(talks.write("s3.jsonl", claude(("What came later?", "Rain."), session="s3")))
        assert talks("sync").code == 0
        later.unlink()
        assert talks("sync").code == 0
        daemon.kill()
        daemon.wait()
    logs = [talks.home / "data" / f"{name}.sqlite-wal" for name in ("state", "conversations")]
    for log in logs:
        assert log.stat().st_size, "what the daemon wrote is in the log alone"
        log.unlink()
    assert talks("index").code == 0
    assert found(talks) == archived(talks) == ALL | {"What came later?"}
    assert talks("verify").code == 0


@pytest.mark.parametrize("command", [["index"], ["verify", "--repair"]], ids=" ".join)
@pytest.mark.parametrize("its_folder", ["exists", "is gone"])
def test_the_archive_of_another_home_costs_nothing(
    talks: Shell, other_home: Shell, its_folder: str, command: list[str]
) -> None:
    configure(other_home, other_home.notes)
    other_home.write("s9.jsonl", claude(("Whose is this?", "Theirs."), session="s9"))
    other_home("index")
    if its_folder == "is gone":
        shutil.rmtree(other_home.notes)
    remove(talks, "conversations")
    archive = talks.home / "data" / "conversations.sqlite"
    copy(other_home.home / "data" / "conversations.sqlite", archive)
    assert talks(*command).code == 0
    assert embedded(talks) == 0
    assert found(talks) >= ALL
    assert archived(talks) == ALL | {"Whose is this?"}
    assert talks("verify").code == 0


@pytest.fixture
def other_home(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(tmp_path_factory.mktemp("other"))


def test_an_older_table_does_not_bring_back_what_was_forgotten(talks: Shell) -> None:
    table = talks.home / "data" / "lance"
    shutil.copytree(table, talks.base / "old")
    assert talks("forget", str(talks.notes / "s2.jsonl"), "--yes").code == 0
    shutil.rmtree(table)
    (talks.base / "old").rename(table)
    talks("index")
    assert found(talks) == archived(talks) == {question for question, _ in TURNS}


def test_an_archive_that_lost_everything_reads_the_transcripts_again_too(talks: Shell) -> None:
    with closing(archive_of(talks)) as db:
        db.executescript("DELETE FROM exchanges; DELETE FROM carriers")
    assert embedded(talks) == 0
    assert found(talks) == archived(talks) == ALL
    assert talks("verify").code == 0


def test_an_older_catalog_in_its_place_does_not_hide_that_a_transcript_is_gone(
    talks: Shell,
) -> None:
    catalog = talks.home / "data" / "state.sqlite"
    with (
        closing(sqlite3.connect(catalog)) as db,
        closing(sqlite3.connect(talks.base / "old")) as old,
    ):
        db.backup(old)
    later = Path(talks.write("s3.jsonl", claude(("What came later?", "Rain."), session="s3")))
    talks("index")
    later.unlink()
    for file in (talks.home / "data").glob("state.sqlite*"):
        file.unlink()
    (talks.base / "old").rename(catalog)
    assert embedded(talks) == 0
    with closing(archive_of(talks)) as db:
        paths = {path for (path,) in db.execute("SELECT path FROM carriers")}
    assert paths == {b"s1.jsonl"}
    assert found(talks) == archived(talks) == ALL | {"What came later?"}
    assert talks("verify").code == 0


def test_an_exchange_that_was_given_back_is_forgotten_with_its_session(talks: Shell) -> None:
    delete_exchange(talks, "q1-s2")
    talks("index")
    assert talks("forget", str(talks.notes / "s2.jsonl"), "--yes").code == 0
    talks("index")
    assert found(talks) == archived(talks) == {question for question, _ in TURNS}


def test_a_forgotten_transcript_stays_away_under_another_name_until_undo(shell: Shell) -> None:
    configure(shell, shell.notes)
    file = Path(shell.write("s2.jsonl", claude(*GONE)))
    shell("index")
    assert shell("forget", str(file), "--yes").code == 0
    more = (*GONE, ("Said after it was forgotten?", "Yes."))
    (shell.notes / "other.jsonl").write_bytes(claude(*more))
    file.unlink()
    shell("index")
    assert found(shell) == archived(shell) == {"Said after it was forgotten?"}
    assert shell("verify").code == 0
    assert shell("forget", str(file), "--undo").code == 0
    shell("index")
    assert found(shell) == {question for question, _ in more}


def test_what_forget_deleted_is_gone_after_a_crash_before_its_rows_were(shell: Shell) -> None:
    configure(shell, shell.notes)
    file = Path(shell.write("s2.jsonl", claude(*GONE)))
    shell("index")
    with closing(archive_of(shell)) as db:
        db.execute("PRAGMA foreign_keys=ON")
        db.execute("INSERT INTO deleted(root, path) SELECT root, path FROM exchanges")
        db.execute("DELETE FROM exchanges")
    file.unlink()
    shell("index")
    assert found(shell) == archived(shell) == set()


@pytest.mark.parametrize("has_daemon", [False, True], ids=["alone", "daemon"])
def test_a_file_whose_name_is_not_utf8_is_forgotten(shell: Shell, *, has_daemon: bool) -> None:
    configure(shell, shell.notes)
    path = shell.write(b"s\xff.jsonl", claude(*GONE))
    shell("index")
    with shell.daemon() if has_daemon else nullcontext():
        forgot = shell("forget", path, "--yes", "--json")
        assert forgot.json["path"].endswith("s\\xff.jsonl")
        assert forgot.json["exchanges"] == 2
        assert found(shell) == archived(shell) == set()
        undone = shell("forget", path, "--undo")
        assert 's\\\\xff.jsonl" may be indexed again' in undone.out
    shell("index")
    assert found(shell) == {question for question, _ in GONE}


def test_on_delete_applies_to_files_that_went_before_it_was_set_and_back(talks: Shell) -> None:
    kept = {question for question, _ in TURNS}
    configure(talks, talks.notes, "talks", 'on_delete = "delete"')
    talks("index")
    assert found(talks) == kept
    assert archived(talks) == ALL
    hits = talks("search", "chimneys", "--detached", "--json").json["detached"]
    assert [hit["reason"] for hit in hits] == ["trash"]
    assert talks("verify").code == 0
    configure(talks, talks.notes)
    assert embedded(talks) == 0
    assert found(talks) == ALL


def test_forget_that_meets_a_damaged_catalog_deletes_and_counts_all_the_same(
    talks: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(catalog: SqliteCatalog, updates: Sequence[FileUpdate]) -> None:
        monkeypatch.undo()
        del catalog, updates
        raise damaged_error(str(talks.home / "data" / "state.sqlite"), "a page cannot be read")

    monkeypatch.setattr(SqliteCatalog, "save_intents", fail_once)
    forgotten = talks("forget", "--yes", str(talks.notes / "s2.jsonl"), "--json")
    assert "the file catalog was damaged and is rebuilt" in forgotten.err
    assert forgotten.code == 0
    assert forgotten.json["exchanges"] == len(GONE)
    assert forgotten.json["rows"] == len(GONE)
    assert found(talks) == archived(talks) == {question for question, _ in TURNS}
    table = talks.home / "data" / "lance"
    files = [file for file in table.rglob("*") if file.is_file()]
    assert not [file for file in files if b"chimneys" in file.read_bytes()]


def test_forget_reads_what_a_transcript_contains_now(talks: Shell) -> None:
    """The archive knows its exchanges from a file that is gone, so nothing else leads to them."""
    again = talks.write("again.jsonl", claude(*GONE, session="s2"))
    forgotten = talks("forget", "--yes", again, "--json")
    assert forgotten.code == 0
    assert (forgotten.json["files"], forgotten.json["exchanges"]) == (1, len(GONE))
    assert found(talks) == archived(talks) == {question for question, _ in TURNS}


def test_forget_deletes_the_rows_of_a_file_that_a_lost_catalog_does_not_know(shell: Shell) -> None:
    file = shell.write("secret.md", "# Secret\n\nchimneys\n")
    shell.write("other.md", "# Other\n\nwords\n")
    assert shell("index", str(shell.notes)).code == 0
    (shell.home / "data" / "state.sqlite").unlink()
    forgotten = shell("forget", "--yes", file, "--json")
    assert forgotten.code == 0
    assert (forgotten.json["files"], forgotten.json["rows"]) == (1, 1)
    left = [json.loads(line)["path"] for line in shell("dump").out.splitlines()]
    assert left == ["other.md"]


@pytest.mark.parametrize("options", [["--yes"], ["--undo"]], ids=str)
def test_forget_of_an_empty_path_is_not_one_of_the_current_folder(
    talks: Shell, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(talks.notes)
    talks("forget", "", *options).is_refused(2, "the path is empty")
    talks("explain", "").is_refused(2, "the path is empty")
    assert archived(talks) == ALL


@pytest.mark.parametrize("is_lost", [False, True], ids=["a damaged page", "a lost file"])
def test_what_was_forgotten_stays_away_from_an_archive_that_lost_its_list(
    talks: Shell,
    is_lost: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert talks("forget", str(talks.notes / "s2.jsonl"), "--yes").code == 0
    archive = talks.home / "data" / "conversations.sqlite"
    with closing(archive_of(talks)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name='forgotten'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    if is_lost:
        archive.unlink()
    else:
        content = bytearray(archive.read_bytes())
        content[(page - 1) * size : page * size] = bytes(size)
        archive.write_bytes(content)
        archive.with_name("conversations.sqlite-damaged").touch()
    talks.write("again.jsonl", claude(*GONE, session="s2"))
    assert talks("index").code == 0
    assert found(talks) == archived(talks) == {question for question, _ in TURNS}


@pytest.mark.parametrize("content", [None, "{}", "["], ids=str)
def test_what_was_forgotten_stays_away_though_the_list_of_paths_is_lost(
    shell: Shell, content: str | None
) -> None:
    secret = shell.write("secret.md", "# Secret\n\nchimneys\n")
    shell.write("other.md", "# Other\n\nwords\n")
    assert shell("index", str(shell.notes)).code == 0
    assert shell("forget", "--yes", secret).code == 0
    file = shell.home / "data" / "asked.json"
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    assert shell("index").code == 0
    left = [json.loads(line)["path"] for line in shell("dump").out.splitlines()]
    assert left == ["other.md"]


@pytest.mark.parametrize("step", ["clear", "checkpoint_wal"])
def test_a_forget_that_was_interrupted_is_completed_by_the_next_command_that_writes(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """As many exchanges as the guard against mass deletions holds back."""
    configure(shell, shell.notes)
    turns = [(f"Question {number}?", f"chimneys{number}") for number in range(80)]
    transcript = Path(shell.write("s1.jsonl", claude(*turns)))
    assert shell("index").code == 0
    transcript.unlink()
    assert shell("index").code == 0

    def die(*_: object) -> NoReturn:
        raise StoreError("the process ends here", "")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteVectorCache, step, die)
        assert shell("forget", "--yes", str(transcript)).code != 0
    verified = shell("verify", "--json")
    assert (verified.code, verified.json["ok"]) == (1, False)
    assert "a `forget` was interrupted" in verified.err
    backups = shell.base / "backups"
    shell("backup", str(backups)).is_refused(1, "a `forget` was interrupted", "`anchord index`")
    assert not backups.exists() or not any(backups.iterdir())
    indexed = shell("index")
    assert "was interrupted, and is complete now" in indexed.err
    assert (found(shell), archived(shell)) == (set(), set())
    assert shell("verify").code == 0
    table = shell.home / "data" / "lance"
    files = [file for file in table.rglob("*") if file.is_file()]
    assert not [file for file in files if b"chimneys7" in file.read_bytes()]


def test_an_archive_that_was_read_only_for_a_moment_is_written_again(talks: Shell) -> None:
    archive = talks.home / "data" / "conversations.sqlite"
    journals = [archive.with_name(f"{archive.name}{suffix}") for suffix in ("-wal", "-shm")]
    for journal in journals:
        journal.touch()
        journal.chmod(0o400)
    assert talks("index").code == 0
    assert all(not each.exists() or each.stat().st_mode & 0o200 for each in journals)
