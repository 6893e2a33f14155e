"""`verify` reads the transcripts: it says equal only of an archive that holds what they contain."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from cli.conftest import Shell
from cli.test_detached import ALL, GONE, archived, built_talks, found, talks
from conversations.conftest import claude
from conversations.test_carriers import zipped

__all__ = ["built_talks", "talks"]


def archive_of(shell: Shell) -> sqlite3.Connection:
    return sqlite3.connect(shell.home / "data" / "conversations.sqlite", isolation_level=None)


def delete_exchange(shell: Shell, name: str) -> None:
    """Delete an exchange from the archive's file, as a lost page or an older file would."""
    with closing(archive_of(shell)) as db:
        db.execute("PRAGMA foreign_keys=ON")
        assert db.execute("DELETE FROM exchanges WHERE name=?", (name,)).rowcount == 1


def test_verify_names_an_exchange_that_a_transcript_contains_and_the_archive_lacks(
    talks: Shell,
) -> None:
    assert talks("verify", "--json").json["transcripts"] == 1
    delete_exchange(talks, "q1-s1")
    talks("index")
    verified = talks("verify", "--json")
    assert verified.code == 1
    assert [
        (each["kind"], each["path"], each["chunk_id"]) for each in verified.json["differences"]
    ] == [("unarchived", "s1.jsonl", "/claude-code/q1-s1")]
    assert "/claude-code/q1-s1" in talks("verify").out
    assert talks("verify", "--repair", "--json").json["ok"]
    assert found(talks) == archived(talks) == ALL


def test_verify_names_an_exchange_whose_text_in_the_archive_is_another(talks: Shell) -> None:
    with closing(archive_of(talks)) as db:
        (stored,) = db.execute("SELECT content FROM exchanges WHERE name='q1-s1'").fetchone()
        other = zlib.compress(zlib.decompress(stored).replace(b"holds", b"loses"))
        db.execute("UPDATE exchanges SET content=? WHERE name='q1-s1'", (other,))
    assert "archived" in {each["kind"] for each in talks("verify", "--json").json["differences"]}
    assert talks("verify", "--repair", "--json").json["ok"]
    assert "loses" not in talks("dump").out


def test_verify_does_not_call_a_transcript_equal_that_it_cannot_read(talks: Shell) -> None:
    # A zip of two sessions. Then its end is lost, where the list of its members is.
    sessions = {"a.jsonl": claude(*GONE, session="a"), "b.jsonl": claude(*GONE, session="b")}
    export = Path(talks.write("export.zip", zipped(**sessions)))
    assert talks("index").code == 0
    assert talks("verify").code == 0
    size = export.stat().st_size
    export.write_bytes(export.read_bytes()[: size // 2].ljust(size, b"\0"))
    verified = talks("verify", "--json")
    assert verified.code == 1
    assert verified.json["held"] == {"talks": 1}


def test_verify_does_not_call_an_index_equal_that_holds_an_excluded_transcript(
    talks: Shell,
) -> None:
    talks.write(".gitignore", "s1.jsonl\n")
    verified = talks("verify", "--json")
    assert verified.code == 1
    assert {(each["kind"], each["path"]) for each in verified.json["differences"]} == {
        ("archived", "s1.jsonl")
    }
    assert talks("verify", "--repair", "--json").json["ok"]
    assert '"session":"s1"' not in talks("dump").out


def test_verify_does_not_call_an_index_equal_that_holds_a_transcript_deleted_and_then_excluded(
    talks: Shell,
) -> None:
    (talks.notes / "s1.jsonl").unlink()
    assert talks("index").code == 0
    talks.write(".gitignore", "s1.jsonl\n")
    verified = talks("verify", "--json")
    assert verified.code == 1
    assert {(each["kind"], each["path"]) for each in verified.json["differences"]} == {
        ("archived", "s1.jsonl")
    }
    assert talks("verify", "--repair", "--json").json["ok"]
    assert '"session":"s1"' not in talks("dump").out
    (talks.notes / ".gitignore").unlink()
    assert talks("index").code == 0
    assert '"session":"s1"' in talks("dump").out
