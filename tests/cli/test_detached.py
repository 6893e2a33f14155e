"""The archive keeps conversations that leave the index, and they can come back."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from cli.conftest import BuiltOnce, Shell
from conversations.conftest import answer, claude

TURNS = [(f"What is subject {n}?", answer(f"subject{n}")) for n in range(4)]
GONE = [("Where do gulls sleep?", "On chimneys, said the assistant."), ("Why?", "For warmth.")]


def archived(shell: Shell) -> set[str]:
    """Return every question in the archive's file, detached or not, read without anchord."""
    with closing(sqlite3.connect(shell.home / "data" / "conversations.sqlite")) as db:
        rows = db.execute("SELECT content FROM exchanges").fetchall()
    return {json.loads(zlib.decompress(content))["question"] for (content,) in rows}


def found(shell: Shell) -> set[str]:
    """Return the questions of all indexed exchanges."""
    rows = [json.loads(line) for line in shell("dump").out.splitlines()]
    return {row["parent_section"] for row in rows if row.get("source")}


def embedded(shell: Shell) -> int:
    """Index; return how many texts were embedded."""
    ran = shell("index", "--json")
    assert ran.code == 0, ran.err
    return int(ran.json["embedded"])


ALL = {question for question, _ in TURNS + GONE}


def configure(shell: Shell, folder: Path, name: str = "talks", *more: str) -> None:
    shell.configure(
        "[[root]]", f'path = "{folder}"', 'kind = "conversations"', f'name = "{name}"', *more
    )


@pytest.fixture(scope="module")
def built_talks(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index_two_sessions)


@pytest.fixture
def talks(built_talks: BuiltOnce) -> Shell:
    """Return an index of two sessions, one of which lost its transcript file."""
    return built_talks.fresh()


def index_two_sessions(shell: Shell) -> None:
    configure(shell, shell.notes)
    shell.write("s1.jsonl", claude(*TURNS))
    gone = Path(shell.write("s2.jsonl", claude(*GONE, session="s2")))
    assert shell("index").code == 0
    gone.unlink()
    assert shell("index").code == 0
    assert found(shell) == ALL


def without_configuration(shell: Shell) -> None:
    shell.config.rename(shell.config.with_suffix(".lost"))


def with_an_empty_configuration(shell: Shell) -> None:
    shell.config.write_text("", "utf-8")


def with_other_roots_only(shell: Shell) -> None:
    other = shell.base / "other"
    other.mkdir()
    (other / "a.md").write_text("# A\n\nText.\n", "utf-8")
    configure(shell, other, "other")


@pytest.mark.parametrize(
    "lose", [without_configuration, with_an_empty_configuration, with_other_roots_only]
)
def test_a_configuration_that_was_lost_costs_nothing(
    talks: Shell, lose: Callable[[Shell], None]
) -> None:
    configuration = talks.config.read_text("utf-8")
    lose(talks)
    talks("index")
    assert archived(talks) == ALL
    talks.config.write_text(configuration, "utf-8")
    assert embedded(talks) == 0
    assert found(talks) == ALL
    assert talks("verify", "--vectors", "all").code == 0


@pytest.mark.parametrize("command", [["index"], ["confirm-delete", "talks"]], ids=" ".join)
def test_a_command_without_any_root_is_refused_before_anything_is_deleted(
    talks: Shell, command: list[str]
) -> None:
    configuration = talks.config.read_text("utf-8")
    talks.configure()
    refused = talks(*command)
    assert refused.code == 2
    assert "no folders to index" in refused.err
    talks.config.write_text(configuration, "utf-8")
    assert found(talks) == ALL


def test_a_removed_root_is_kept_named_found_and_comes_back(talks: Shell) -> None:
    removed = talks("remove", "talks", "--json")
    assert removed.json["detached_exchanges"] == 6
    assert archived(talks) == ALL
    talks("add", str(talks.base / "notes"), "--kind", "project", "--name", "other")
    hits = talks("search", "chimneys", "--detached", "--json").json["detached"]
    assert [(hit["question"], hit["reason"], hit["root"]) for hit in hits] == [
        ("Where do gulls sleep?", "root", "talks")
    ]
    assert hits[0]["transcript"] == str(talks.notes / "s2.jsonl")
    found_nothing = talks("search", "chimneys", "--json").json
    assert found_nothing["detached"] == []
    assert found_nothing["note"].endswith(
        "6 exchanges are kept but not indexed, and not searched: --detached searches them"
    )
    assert "kept but not indexed" not in talks("search", "chimneys", "--detached").err
    shown = talks("search", "chimneys", "--detached").out
    assert "On chimneys, said the assistant." in shown
    talks("remove", "other")
    assert talks("add", str(talks.notes), "--kind", "conversations").code == 0
    assert embedded(talks) == 0
    assert found(talks) == ALL


@pytest.mark.parametrize("change", ["same", "moved", "excluded", "deleting"])
def test_verify_is_not_equal_before_a_returned_root_has_its_conversations_again(
    talks: Shell, change: str
) -> None:
    """What only the archive has of it is in no file that could be compared."""
    talks("remove", "talks")
    more: list[str] = []
    folder = talks.notes
    if change == "moved":
        folder = folder.rename(talks.base / "elsewhere")
    elif change == "excluded":
        more = ['exclude = ["s2.jsonl"]']
    elif change == "deleting":
        more = ['on_delete = "delete"']
    configure(talks, folder, "talks", *more)
    listed = talks("verify", "--json").json["differences"]
    only_here = {each["chunk_id"] for each in listed if each["path"].endswith("s2.jsonl")}
    expected = 0 if change in {"excluded", "deleting"} else len(GONE)
    assert {each["kind"] for each in listed} == {"unarchived"}
    assert len(only_here) == expected
    assert embedded(talks) == 0
    assert talks("verify").code == 0


def test_remove_says_what_stays(talks: Shell) -> None:
    printed = talks("remove", "talks").out
    assert "its conversations are kept (6 exchanges)" in printed


def test_a_root_that_gets_another_name_keeps_its_conversations(talks: Shell) -> None:
    configure(talks, talks.notes, "conversations")
    assert embedded(talks) == 0
    assert found(talks) == ALL


def test_a_root_whose_folder_was_moved_keeps_its_conversations(talks: Shell) -> None:
    talks("remove", "talks")
    configure(talks, talks.notes.rename(talks.base / "elsewhere"))
    assert embedded(talks) == 0
    assert found(talks) == ALL


def test_an_outer_root_takes_over_the_conversations_of_an_inner_one(shell: Shell) -> None:
    inner = shell.notes / "inner"
    inner.mkdir()
    configure(shell, inner, "inner")
    kept = inner / "s1.jsonl"
    kept.write_bytes(claude(*TURNS))
    gone = inner / "s2.jsonl"
    gone.write_bytes(claude(*GONE, session="s2"))
    shell("index")
    gone.unlink()
    shell("index")
    configure(shell, shell.notes, "outer")
    assert embedded(shell) == 0
    assert found(shell) == ALL
    configure(shell, inner, "inner")
    assert shell("index").code == 0
    assert archived(shell) == ALL
    configure(shell, shell.notes, "outer")
    assert shell("index").code == 0
    assert found(shell) == ALL
    assert shell("verify").code == 0


def test_a_root_that_becomes_a_folder_inside_keeps_what_a_copy_outside_contains_too(
    shell: Shell,
) -> None:
    """The exchanges stayed with the copy, and the file inside counted as read."""
    inner = shell.notes / "inner"
    inner.mkdir()
    (shell.notes / "copy.jsonl").write_bytes(claude(*TURNS))
    configure(shell, shell.notes)
    shell("index")
    (inner / "s1.jsonl").write_bytes(claude(*TURNS))
    shell("index")
    for folder in (inner, shell.notes, inner):
        configure(shell, folder)
        assert embedded(shell) == 0
        assert found(shell) == {question for question, _ in TURNS}
        assert shell("verify").code == 0


def test_another_folder_under_the_same_name_does_not_get_them(talks: Shell) -> None:
    talks("remove", "talks")
    other = talks.base / "other"
    other.mkdir()
    (other / "s9.jsonl").write_bytes(claude(("Another?", "Another."), session="s9"))
    configure(talks, other)
    assert talks("index").code == 0
    assert found(talks) == {"Another?"}
    assert archived(talks) == ALL | {"Another?"}


def test_a_root_that_becomes_a_project_and_conversations_again_loses_nothing(
    talks: Shell,
) -> None:
    configuration = talks.config.read_text("utf-8")
    talks.config.write_text(configuration.replace("conversations", "project"), "utf-8")
    assert talks("index").code == 0
    assert found(talks) == set()
    assert archived(talks) == ALL
    talks.config.write_text(configuration, "utf-8")
    assert talks("index").code == 0
    assert found(talks) == ALL


@pytest.mark.parametrize("command", [["reindex"], ["reindex", "--force-rechunk"], ["rebuild"]])
def test_reading_everything_again_loses_nothing(talks: Shell, command: list[str]) -> None:
    assert talks(*command).code == 0
    assert found(talks) == ALL


def test_what_on_delete_drops_is_in_the_trash_for_thirty_days(shell: Shell) -> None:
    configure(shell, shell.notes, "talks", 'on_delete = "delete"')
    file = Path(shell.write("s1.jsonl", claude(*GONE)))
    shell.write("s2.jsonl", claude(*TURNS, session="s2"))
    shell("index")
    file.unlink()
    shell("index")
    assert found(shell) == {question for question, _ in TURNS}
    hits = shell("search", "chimneys", "--detached", "--json").json["detached"]
    assert [(hit["question"], hit["reason"]) for hit in hits] == [
        ("Where do gulls sleep?", "trash")
    ]
    _age_the_trash(shell, days=29)
    shell("index")
    assert archived(shell) == ALL
    _age_the_trash(shell, days=2)
    shell("index")
    assert archived(shell) == {question for question, _ in TURNS}


@pytest.mark.parametrize("left", ["half", "nothing", "zeros"])
def test_on_delete_lets_nothing_go_of_a_file_that_was_cut_off(shell: Shell, left: str) -> None:
    configure(shell, shell.notes, "talks", 'on_delete = "delete"')
    file = Path(shell.write("s1.jsonl", claude(*TURNS)))
    shell("index")
    whole = file.read_bytes()
    half = b"".join(whole.splitlines(keepends=True)[:4])
    file.write_bytes({"half": half, "nothing": b"", "zeros": b"\0" * len(whole)}[left])
    shell("index")
    assert found(shell) == {question for question, _ in TURNS}
    _age_the_trash(shell, days=31)
    shell("index")
    assert archived(shell) == {question for question, _ in TURNS}


def test_what_comes_back_replaces_no_other_question_under_the_same_id(shell: Shell) -> None:
    """Ids such as `user-1` are repeated: the earlier of the two was deleted, and existed only here."""
    configure(shell, shell.notes, "talks", 'on_delete = "delete"')
    first = Path(shell.write("s1.jsonl", claude(("Which colour?", "Blue."))))
    assert shell("index").code == 0
    first.unlink()
    assert shell("index").code == 0
    other = claude(("Which town?", "Oslo.")).replace(b'"sessionId": "s1"', b'"sessionId": "other"')
    shell.write("other.jsonl", other)
    assert shell("index").code == 0
    assert found(shell) == {"Which town?"}
    configure(shell, shell.notes)
    assert embedded(shell) == 0
    assert found(shell) == archived(shell) == {"Which colour?", "Which town?"}
    assert shell("verify").code == 0


def test_what_comes_back_from_the_trash_is_stored_once(shell: Shell) -> None:
    configure(shell, shell.notes, "talks", 'on_delete = "delete"')
    file = Path(shell.write("s1.jsonl", claude(*GONE)))
    shell("index")
    file.unlink()
    shell("index")
    shell.write("s1.jsonl", claude(*GONE))
    assert embedded(shell) == 0
    assert found(shell) == {question for question, _ in GONE}
    assert shell("search", "chimneys", "--detached", "--json").json["detached"] == []


def _age_the_trash(shell: Shell, days: int) -> None:
    with closing(sqlite3.connect(shell.home / "data" / "conversations.sqlite")) as db, db:
        db.execute("UPDATE exchanges SET detached_ns=detached_ns-? WHERE detached_ns>0",
                   (days * 24 * 3600 * 10**9,))  # fmt: skip


def test_forget_says_what_exists_nowhere_else_and_deletes_it_only_with_yes(talks: Shell) -> None:
    path = str(talks.notes / "s2.jsonl")
    refused = talks("forget", path)
    assert refused.code == 2
    assert "2 exchanges of conversations (2 of which exist nowhere else)" in refused.err
    assert "--yes" in refused.err
    assert found(talks) == ALL
    assert talks("forget", path, "--yes").code == 0
    assert found(talks) == archived(talks) == {question for question, _ in TURNS}


def test_forget_deletes_what_is_detached_too(talks: Shell) -> None:
    talks("remove", "talks")
    assert talks("forget", str(talks.notes), "--yes").code == 0
    assert archived(talks) == set()


def test_what_an_existing_transcript_lost_is_not_trashed_by_a_later_on_delete(
    talks: Shell,
) -> None:
    (talks.notes / "s1.jsonl").write_bytes(b"")
    assert talks("index").code == 0
    configure(talks, talks.notes, "talks", 'on_delete = "delete"')
    assert talks("index").code == 0
    assert found(talks) == {question for question, _ in TURNS}
    assert archived(talks) == ALL


@pytest.mark.parametrize("has_both", [False, True], ids=["moved root", "moved file"])
def test_forget_deletes_what_a_moved_transcript_left_behind(
    talks: Shell, *, has_both: bool
) -> None:
    inner, old = talks.notes / "inner", talks.base / "old"
    inner.mkdir()
    old.mkdir()
    (talks.notes / "s1.jsonl").rename(inner / "moved.jsonl")
    if has_both:
        (inner / "moved.jsonl").rename(old / "moved.jsonl")
        configure(
            talks, talks.notes, "talks", "[[root]]", f'path = "{old}"', 'kind = "conversations"'
        )
    else:
        configure(talks, inner)
    moved = (old if has_both else inner) / "moved.jsonl"
    assert talks("index").code == 0
    assert archived(talks) == ALL
    assert talks("forget", str(moved), "--yes").code == 0
    assert archived(talks) == {question for question, _ in GONE}
    assert not found(talks) & {question for question, _ in TURNS}


def test_forget_of_a_transcript_that_was_just_renamed_keeps_it_out_under_any_name(
    talks: Shell,
) -> None:
    """Its former name counted as another file that contains the same, which nobody had forgotten."""
    renamed = (talks.notes / "s1.jsonl").rename(talks.notes / "renamed.jsonl")
    forgotten = talks("forget", "--yes", str(renamed), "--json").json
    assert (forgotten["exchanges"], forgotten["also_in"]) == (len(TURNS), [])
    renamed.rename(talks.notes / "again.jsonl")
    assert talks("index").code == 0
    assert found(talks) == {question for question, _ in GONE}
    assert talks("verify").code == 0


def test_forget_of_what_is_not_indexed_fails_with_one_line(talks: Shell) -> None:
    failed = talks("forget", str(talks.notes / "typo.jsonl"))
    assert failed.code == 1
    assert len(failed.err.splitlines()) == 1
    assert "nothing of" in failed.err
    assert found(talks) == ALL
    talks.write("typo.jsonl", claude(("Written later?", "Yes."), session="s3"))
    talks("index")
    assert "Written later?" in found(talks)


def test_forget_says_that_a_copy_it_never_read_stays_out_as_well(talks: Shell) -> None:
    talks.write("copy.jsonl", (talks.notes / "s1.jsonl").read_bytes())
    forgot = talks("forget", str(talks.notes / "s1.jsonl"), "--yes")
    assert "a file that is not indexed yet contains them" in forgot.out
    assert talks("index").code == 0
    assert found(talks) == ALL - {question for question, _ in TURNS}


def test_forget_leaves_damaged_copies_that_were_set_aside(talks: Shell) -> None:
    copy = talks.home / "data" / "damaged" / "20260101T000000-1" / "conversations.sqlite"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(b"a person may still want this")
    forgot = talks("forget", str(talks.notes / "s1.jsonl"), "--yes")
    assert forgot.code == 0
    assert "damaged copies" in forgot.err
    assert copy.read_bytes() == b"a person may still want this"


def test_an_archive_that_was_lost_is_read_again_from_the_transcripts_and_the_rows(
    talks: Shell,
) -> None:
    for file in (talks.home / "data").glob("conversations.sqlite*"):
        file.unlink()
    ran = talks("index", "--json")
    assert ran.json["embedded"] == 0
    assert "2 exchanges that no transcript contains" in ran.err
    assert archived(talks) == found(talks) == ALL


def test_an_archive_that_was_lost_with_all_that_only_it_had_is_reported(talks: Shell) -> None:
    other = talks.base / "other"
    other.mkdir()
    configure(talks, other, "other")
    assert talks("index").code == 0
    for file in (talks.home / "data").glob("conversations.sqlite*"):
        file.unlink()
    ran = talks("index")
    assert f"{len(ALL)} exchanges that were kept and not indexed" in ran.err
    assert "anchord restore" in ran.err
    assert "exchanges that were kept" not in talks("index").err


def test_what_another_file_contains_too_returns_from_there_after_forget(talks: Shell) -> None:
    copy = talks.notes / "copy.jsonl"
    copy.write_bytes((talks.notes / "s1.jsonl").read_bytes())
    assert talks("index").code == 0
    forgot = talks("forget", str(copy), "--yes", "--json")
    assert forgot.json["also_in"] == ["s1.jsonl"]
    assert talks("index").code == 0
    assert found(talks) == archived(talks) == ALL
    assert talks("verify").code == 0


def test_forget_of_a_torn_copy_leaves_an_answer_that_only_the_archive_has(talks: Shell) -> None:
    torn = claude(*TURNS).rsplit(b"\n", 2)[0] + b"\n"
    assert answer("subject3").encode() not in torn
    (talks.notes / "s1.jsonl").rename(talks.notes / "moved.jsonl")
    for name in ("moved.jsonl", "copy.jsonl"):
        (talks.notes / name).write_bytes(torn)
    assert talks("index").code == 0
    forgot = talks("forget", str(talks.notes / "copy.jsonl"), "--yes", "--json")
    assert (forgot.code, forgot.json["exchanges"]) == (0, 3)
    assert talks("index").code == 0
    assert found(talks) == archived(talks) == ALL
    assert "subject3" in talks("search", "subject3", "--json").json["groups"][0][0]["text"]
    assert talks("verify").code == 0


def test_conversations_that_return_to_a_root_are_found_while_its_folder_is_away(
    talks: Shell,
) -> None:
    other = talks.base / "other"
    other.mkdir()
    configure(talks, other, "other")
    talks("index")
    assert found(talks) == set()
    talks.notes.rename(talks.base / "away")
    configure(talks, talks.notes)
    assert embedded(talks) == 0
    assert found(talks) == ALL
    assert talks("search", "chimneys", "--json").json["groups"]


def test_an_index_that_lost_its_table_is_whole_when_everything_was_chunked_again(
    talks: Shell,
) -> None:
    shutil.rmtree(talks.home / "data" / "lance" / "chunks.lance")
    ran = talks("reindex", "--force-rechunk", "--json")
    assert (ran.json["files"], ran.json["chunks"]) == (1, len(ALL))
    assert found(talks) == ALL


def test_two_roots_that_swap_their_names_keep_their_own_conversations(shell: Shell) -> None:
    other = shell.base / "other"
    other.mkdir()
    (other / "s9.jsonl").write_bytes(claude(("Another?", "Another."), session="s9"))
    gone = Path(shell.write("s2.jsonl", claude(*GONE, session="s2")))

    def name_them(first: str, second: str) -> None:
        shell.configure(
            "[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"', f'name = "{first}"',
            "[[root]]", f'path = "{other}"', 'kind = "conversations"', f'name = "{second}"',
        )  # fmt: skip
        assert shell("index").code == 0

    def in_root(name: str) -> set[str]:
        rows = [json.loads(line) for line in shell("dump").out.splitlines()]
        return {row["parent_section"] for row in rows if row["root"] == name}

    name_them("one", "two")
    gone.unlink()
    for first, second in (("two", "one"), ("one", "two")):
        name_them(first, second)
        assert in_root(first) == {question for question, _ in GONE}
        assert in_root(second) == {"Another?"}
        assert shell("search", "another", "--detached", "--json").json["detached"] == []
    assert shell("verify").code == 0


def test_what_an_outer_root_took_over_returns_to_the_inner_one(shell: Shell) -> None:
    inner = shell.notes / "inner"
    inner.mkdir()
    (shell.notes / "outside.jsonl").write_bytes(claude(("Outside?", "Yes."), session="s7"))
    configure(shell, inner, "inner")
    gone = inner / "s2.jsonl"
    gone.write_bytes(claude(*GONE, session="s2"))
    (inner / "s1.jsonl").write_bytes(claude(*TURNS))
    shell("index")
    gone.unlink()
    for folder, name in ((shell.notes, "outer"), (inner, "inner")):
        configure(shell, folder, name)
        assert shell("index").code == 0
    assert found(shell) == ALL
    hits = shell("search", "outside", "--detached", "--json").json["detached"]
    assert [hit["question"] for hit in hits] == ["Outside?"]
    configure(shell, shell.notes, "outer")
    assert shell("index").code == 0
    assert shell("forget", str(gone), "--yes").code == 0
    assert found(shell) == {question for question, _ in TURNS} | {"Outside?"}


def test_forget_of_a_folder_around_a_root_is_refused(talks: Shell) -> None:
    refused = talks("forget", str(talks.base), "--yes")
    assert refused.code == 2
    assert "contains the indexed folder" in refused.err
    assert archived(talks) == ALL


@pytest.mark.parametrize("damaged", ["meta", "roots", "exchanges_due"])
def test_a_page_that_opening_does_not_read_is_salvaged_by_the_same_command(
    talks: Shell, damaged: str
) -> None:
    other = talks.base / "other"
    other.mkdir()
    configure(talks, other, "other")
    assert talks("index").code == 0
    archive = talks.home / "data" / "conversations.sqlite"
    with closing(sqlite3.connect(archive)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT rootpage FROM sqlite_master WHERE name=?"
        (page,) = db.execute(query, (damaged,)).fetchone()
    with archive.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)
    configure(talks, talks.notes)
    ran = talks("index")
    assert ran.code == 0, ran.err
    assert "conversations was damaged" in ran.err
    assert archived(talks) == ALL
    assert talks("verify").code == 0
