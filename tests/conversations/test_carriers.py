"""What the index contains of sessions in several files, exports, archives, deleted files and secrets."""

from __future__ import annotations

import io
import itertools
import json
import os
import sqlite3
import zipfile
import zlib
from contextlib import closing
from pathlib import Path

import pytest
import zstandard
from conversations.conftest import ROOT, Talks, answer, claude
from sources.secrets.test_redactor import FOUND

from anchord.core.types import RootedPath
from anchord.errors import StoreError

TURNS = [(f"How is question {n} asked?", answer(f"subject{n}", 1 + n % 3)) for n in range(6)]


def export(*conversations: tuple[str, str, str], late: str = "") -> bytes:
    """Write a Claude.ai export of (uuid, question, answer) triples; `late` is added to the last answer."""
    made = []
    for number, (uuid, question, said) in enumerate(conversations):
        later = late if number == len(conversations) - 1 else ""
        words = said + later
        messages = [
            {
                "uuid": f"{uuid}-q",
                "sender": "human",
                "text": question,
                "created_at": "2026-01-02T10:00:00Z",
            },
            {
                "uuid": f"{uuid}-a",
                "sender": "assistant",
                "text": words,
                "created_at": f"2026-01-02T10:0{bool(later):d}:30Z",
            },
        ]
        made.append(
            {
                "uuid": uuid,
                "name": f"Talk {uuid}",
                "updated_at": "2026-01-02T11:00:00Z",
                "chat_messages": messages,
            }
        )
    return json.dumps(made).encode()


def zipped(**members: bytes) -> bytes:
    """Make a zip."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


MANY = [(f"c{n}", f"What of number {n}?", answer(f"number{n}")) for n in range(40)]


def test_an_exchange_has_its_columns(talks: Talks) -> None:
    talks.write("s1.jsonl", claude(("What of it?", answer("it", 6))))
    talks.sync()
    rows = talks.rows()
    assert len(rows) > 1
    assert [row.part_index for row in rows] == list(range(len(rows)))
    first = rows[0]
    assert (first.kind, first.source, first.session, first.exchange_id) == (
        "exchange",
        "claude-code",
        "s1",
        "q0-s1",
    )
    assert (first.at, first.until, first.project, first.model) == (
        "2026-01-02T10:00:00.000Z", "2026-01-02T10:00:30.000Z", "/home/me/app", "opus",
    )  # fmt: skip
    assert {row.total_parts for row in rows} == {len(rows)}
    assert {row.header_path for row in rows} == {"app > What of it?"}


def test_nothing_of_a_long_answer_is_lost(talks: Talks) -> None:
    said = answer("long", 30)
    talks.write("s1.jsonl", claude(("What of it?", said)))
    talks.sync()
    assert " ".join(talks.said().split()) == " ".join(f"What of it? {said}".split())


def test_a_short_exchange_is_kept(talks: Talks) -> None:
    talks.write("s1.jsonl", claude(("ok?", "yes"), ("unanswered?", "")))
    talks.sync()
    assert [row.text for row in talks.rows()] == ["ok?\n\nyes", "unanswered?"]


def test_a_new_export_touches_only_what_changed(talks: Talks) -> None:
    talks.write("january.zip", zipped(**{"conversations.json": export(*MANY), "users.json": b"[]"}))
    talks.sync()
    before = talks.ids()
    assert len({row.session for row in talks.rows()}) == 40
    talks.write(
        "february.zip", zipped(**{"conversations.json": export(*MANY, late=" And more of it.")})
    )
    outcomes = [outcome for outcome in talks.sync() if outcome.origin.path.startswith("/")]
    assert [outcome.origin.path for outcome in outcomes] == ["/claude-ai/c39/c39-q"]
    assert len(before - talks.ids()) == 1
    assert talks.is_right()


def test_the_older_of_two_exports_does_not_undo_the_newer_one(talks: Talks) -> None:
    talks.write("february.json", export(*MANY, late=" And more of it."))
    talks.sync()
    before = talks.ids()
    talks.write("january.json", export(*MANY))
    assert talks.cost() == (0, 0, 0)
    (talks.folder / "february.json").unlink()
    talks.sync()
    assert "And more of it" in talks.said()  # It exists in the archive only.
    assert talks.ids() == before
    assert talks.verify().differences == ()


def test_conversations_whose_file_is_deleted_are_kept_and_marked(talks: Talks) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    before = talks.ids()
    file.unlink()
    assert talks.cost() == (0, 0, 0)
    assert talks.ids() == before
    assert talks.archive.counts_by_root()[ROOT] == {
        "sessions": 1,
        "exchanges": 6,
        "source_missing": 6,
        "superseded": 0,
        "redacted": {},
    }
    assert talks.verify().differences == ()
    talks.write("again.jsonl", claude(*TURNS))
    assert talks.cost() == (0, 0, 0)
    assert talks.archive.counts_by_root()[ROOT]["source_missing"] == 0


def test_sixty_transcripts_that_go_at_once_are_kept_and_hold_nothing_up(talks: Talks) -> None:
    for n in range(60):
        talks.write(f"s{n}.jsonl", claude(TURNS[n % 6], session=f"s{n}"))
    talks.sync()
    before = talks.ids()
    for n in range(60):
        (talks.folder / f"s{n}.jsonl").unlink()
    assert talks.indexer.reconcile(ROOT).held_deletions == 0
    talks.sync()
    assert talks.ids() == before


def test_with_on_delete_they_go_with_their_file(tmp_path: Path) -> None:
    talks = Talks(tmp_path, on_delete="delete")
    file = talks.write("s1.jsonl", claude(*TURNS))
    talks.write("s2.jsonl", claude(TURNS[0], session="s2"))
    talks.sync()
    file.unlink()
    talks.sync()
    assert {row.session for row in talks.rows()} == {"s2"}
    assert talks.is_right()
    talks.close()


def test_a_resumed_session_that_copies_the_one_before_repeats_nothing(talks: Talks) -> None:
    talks.write("s1.jsonl", claude(*TURNS[:3]))
    talks.sync()
    before = talks.ids()
    copied = claude(*TURNS[:3]).replace(b'"sessionId": "s1"', b'"sessionId": "s2"')
    talks.write("s2.jsonl", copied + claude(TURNS[3], session="s2", start=3))
    talks.sync()
    assert before < talks.ids()
    assert [row.session for row in talks.rows() if row.part_index == 0] == ["s1", "s1", "s1", "s2"]
    assert talks.is_right()


def test_a_rewound_question_is_left_out_and_its_successor_found(talks: Talks) -> None:
    first = claude(*TURNS[:3])
    talks.write("s1.jsonl", first)
    talks.sync()
    lines = claude(TURNS[3], start=3).replace(
        b'"a2-s1"', b'"a0-s1"'
    )  # It follows the first answer, as the second question does.
    with (talks.folder / "s1.jsonl").open("ab") as appending:
        appending.write(lines)
    talks.sync()
    assert [row.exchange_id for row in talks.rows() if row.part_index == 0] == ["q0-s1", "q3-s1"]
    assert talks.archive.counts_by_root()[ROOT]["superseded"] == 2
    assert talks.is_right()


def test_a_title_that_comes_late_renames_the_session_and_embeds_nothing(talks: Talks) -> None:
    file = talks.write("s1.jsonl", claude(*TURNS[:3]))
    talks.sync()
    before = talks.ids()
    with file.open("ab") as appending:
        appending.write(
            json.dumps({"type": "ai-title", "aiTitle": "On questions", "sessionId": "s1"}).encode()
            + b"\n"
        )
    embedded, written, deleted = talks.cost()
    assert (embedded, written, deleted) == (0, len(before), 0)
    assert talks.ids() == before
    assert {row.header_path.partition(" > ")[0] for row in talks.rows()} == {"On questions"}
    assert talks.is_right()


def called(title: str) -> bytes:
    """Return a record with the title of a Claude Code session; nothing for ""."""
    return (
        json.dumps({"type": "ai-title", "aiTitle": title, "sessionId": "s1"}).encode() + b"\n"
        if title
        else b""
    )


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_two_files_of_a_session_the_one_written_last_names_it_whichever_is_read_last(
    talks: Talks, order: str
) -> None:
    sizes = {"a": 2, "b": 3}
    for name in order:
        file = talks.write(
            f"{name}.jsonl", claude(*TURNS[: sizes[name]]) + called(f"Told by {name}")
        )
        os.utime(file, (1_700_000_000 + sizes[name], 1_700_000_000 + sizes[name]))
        talks.sync()
    assert {row.header_path.partition(" > ")[0] for row in talks.rows()} == {"Told by b"}
    assert talks.is_right()
    assert talks.cost() == (
        0,
        0,
        0,
    )  # Both are read again: they changed within 2 s of the last read.
    os.utime(talks.folder / "a.jsonl", (1_700_000_009, 1_700_000_009))
    talks.sync()
    assert {row.header_path.partition(" > ")[0] for row in talks.rows()} == {"Told by a"}
    assert talks.is_right()


def test_a_title_goes_with_its_file_while_another_file_has_the_session(
    talks: Talks,
) -> None:
    talks.write("a.jsonl", claude(*TURNS[:2]) + called("Told by a"))
    talks.write("b.jsonl", claude(*TURNS[:3]))
    talks.sync()
    assert {row.header_path.partition(" > ")[0] for row in talks.rows()} == {"Told by a"}
    (talks.folder / "a.jsonl").unlink()
    talks.sync()
    assert "Told by a" not in {row.header_path.partition(" > ")[0] for row in talks.rows()}
    assert talks.is_right()


def test_a_session_whose_files_are_gone_keeps_its_name(talks: Talks) -> None:
    file = talks.write("a.jsonl", claude(*TURNS[:2]) + called("Told by a"))
    talks.sync()
    file.unlink()
    talks.sync()
    talks.write("b.jsonl", claude(TURNS[2], start=2))
    talks.sync()
    assert {row.header_path.partition(" > ")[0] for row in talks.rows()} == {"Told by a"}


def test_an_archive_of_the_first_schema_is_carried_on(talks: Talks) -> None:
    talks.write("a.jsonl", claude(*TURNS[:2]) + called("Told by a"))
    talks.sync()
    before = talks.contents()
    talks.close()
    with closing(sqlite3.connect(talks.base / "conversations.sqlite", isolation_level=None)) as db:
        for table in ("heads", "roots", "detached", "deleted", "forgotten"):
            db.execute(f"DROP TABLE {table}")
        db.execute("DROP INDEX exchanges_listed")
        for column in ("last_path", "detached_ns"):
            db.execute(f"ALTER TABLE exchanges DROP COLUMN {column}")
        db.execute("UPDATE carriers SET reader='1'")
        db.execute("PRAGMA user_version=1")
    talks.open()
    talks.catalogue.mark_for_reread([RootedPath(ROOT, "a.jsonl")])
    assert talks.cost() == (0, 0, 0)
    assert talks.contents() == before
    with (talks.folder / "a.jsonl").open("ab") as appending:
        appending.write(claude(TURNS[2], start=2))
    talks.sync()
    assert {row.header_path.partition(" > ")[0] for row in talks.rows()} == {"Told by a"}
    assert talks.is_right()


def test_what_is_no_conversation_is_named_and_a_note_beside_them_is_a_document(
    talks: Talks,
) -> None:
    talks.write("odd.json", b'{"some": "data"}')
    talks.write("note.md", b"# Note\n\nRemember the milk.\n")
    talks.sync()
    assert talks.problems() == {"odd.json": "not a known conversation format: not indexed"}
    assert [(row.path, row.kind) for row in talks.rows()] == [("note.md", "markdown")]
    assert talks.is_right()


def test_a_broken_line_loses_nothing_but_itself(talks: Talks) -> None:
    lines = claude(*TURNS[:3]).splitlines(keepends=True)
    talks.write("s1.jsonl", b"".join([*lines[:2], b"{broken\n", *lines[2:]]))
    talks.sync()
    assert len({row.exchange_id for row in talks.rows()}) == 3
    broken = {"s1.jsonl": "skipped 1 record of an unknown kind: broken line (1)"}
    assert talks.problems() == broken
    with (talks.folder / "s1.jsonl").open("ab") as appending:
        appending.write(claude(TURNS[3], start=3))
    talks.sync()
    assert talks.problems() == broken  # What was excluded before an append is still excluded.


@pytest.mark.parametrize(
    "data",
    [
        zipped(**{"../s2.jsonl": claude(*TURNS[:2], session="s2")}),
        zipped(**{"/s2.jsonl": claude(*TURNS[:2], session="s2")}),
        zipped(**{"conversations.json": export(*MANY[:2])[:-1] + b" " * 60_000_000 + b"]"}),
        b"PK\x03\x04 and then nothing",
    ],
    ids=["outside", "absolute", "bomb", "torn"],
)
def test_h2_a_hostile_archive_is_named_and_nothing_of_it_is_read(talks: Talks, data: bytes) -> None:
    """With an ordinary name and size each member would be read: see the test below."""
    talks.write("hostile.zip", data)
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    assert list(talks.problems()) == ["hostile.zip"]
    assert {row.session for row in talks.rows()} == {"s1"}


def test_h2_the_same_session_in_an_archive_under_an_ordinary_name_is_read(talks: Talks) -> None:
    talks.write("good.zip", zipped(**{"s2.jsonl": claude(*TURNS[:2], session="s2")}))
    talks.sync()
    assert {row.session for row in talks.rows()} == {"s2"}


@pytest.mark.parametrize(
    ("limit", "value"),
    [("MAX_MEMBERS", 3), ("MAX_TOTAL_BYTES", 1_000), ("MAX_MEMBER_BYTES", 1_000)],
)
def test_h2_an_archive_beyond_a_limit_is_named(
    talks: Talks, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(f"anchord.sources.conversations.containers.{limit}", value)
    members = {f"m{n}.txt": b"x" for n in range(4)}
    talks.write("large.zip", zipped(**{"conversations.json": export(*MANY), **members}))
    talks.sync()
    assert list(talks.problems()) == ["large.zip"]
    assert talks.rows() == []


def test_h2_a_link_in_an_archive_is_passed_over_and_the_rest_is_read(talks: Talks) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        link = zipfile.ZipInfo("conversations-001.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("conversations-002.json", export(*MANY[:2]))
    talks.write("linked.zip", data.getvalue())
    talks.sync()
    assert {row.session for row in talks.rows()} == {"c0", "c1"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_h2_of_two_members_of_one_name_the_last_is_read(talks: Talks) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("conversations.json", export(*MANY[:1]))
        archive.writestr("conversations.json", export(*MANY[1:2]))
    talks.write("twice.zip", data.getvalue())
    talks.sync()
    assert {row.session for row in talks.rows()} == {"c1"}


HOSTILE = {
    "nested without end": b'[{"uuid": "c", "chat_messages": ' + b"[" * 200_000,
    "torn": export(*MANY)[:-700],
    "huge numbers": export(*MANY[:2]).replace(b'"2026-01-02T10:00:00Z"', b"9" * 5_000),
    "lone surrogates": export(*MANY[:2])
    .replace(b"Talk c0", b"Talk \\ud800")
    .replace(b"number 1", b"number \\udfff 1"),
    "other types": export(*MANY[:2]).replace(b'"Talk c0"', b"[1]").replace(b'"human"', b"{}"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_h3_a_hostile_export_is_survived_and_the_others_are_read(talks: Talks, name: str) -> None:
    talks.write("hostile.json", HOSTILE[name])
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    assert "s1" in {row.session for row in talks.rows()}
    assert talks.is_right()


def test_h3_a_line_of_80_mb_is_passed_over_and_the_next_is_read(talks: Talks) -> None:
    lines = claude(*TURNS[:2]).splitlines(keepends=True)
    huge = (
        b'{"type": "user", "uuid": "huge", "message": {"content": "' + b"x" * 80_000_000 + b'"}}\n'
    )
    talks.write("s1.jsonl", b"".join([*lines[:2], huge, *lines[2:]]))
    talks.sync()
    assert [row.exchange_id for row in talks.rows() if row.part_index == 0] == ["q0-s1", "q1-s1"]
    assert "broken line (1)" in talks.problems()["s1.jsonl"]


SECRETS = {
    "aws": "AKIAZ7QRDVNN7HOLMWTB",
    "anthropic": "sk-ant-api03-" + "Ab3dEf9hIj" * 5,
    "github": "ghp_" + "a1B2c3D4e5" * 4,
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7\nq3Zx9\n-----END RSA PRIVATE KEY-----",
    "password-in-url": "postgres://app:hunter2hunter2@db.internal/app",
}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_stands_in_no_file_of_the_index(talks: Talks, kind: str) -> None:
    secret = SECRETS[kind]
    talks.write(
        "s1.jsonl", claude((f"Use {secret} for it, please.", f"I shall use {secret} then."))
    )
    talks.sync()
    assert f"[REDACTED:{kind}]" in talks.said()
    assert talks.archive.counts_by_root()[ROOT]["redacted"] == {kind: 2}
    core = {"private-key": "MIIEowIBAAKCAQEA7", "password-in-url": "hunter2hunter2"}.get(
        kind, secret
    ).encode()
    talks.close()
    own = [
        file
        for file in talks.base.rglob("*")
        if file.is_file() and talks.folder not in file.parents
    ]
    assert own
    assert [file for file in own if core in file.read_bytes()] == []
    talks.open()


def test_no_secret_of_any_kind_stands_in_a_file_of_the_index(talks: Talks) -> None:
    turns = [(f"Use this: {line} for it.", f"It is {line}, then.") for _, line, _ in FOUND]
    talks.write("s1.jsonl", claude(*turns))
    talks.sync()
    kinds = talks.archive.counts_by_root()[ROOT]["redacted"]
    assert {kind for kind, _, _ in FOUND} <= kinds.keys()
    talks.close()
    own = [
        file.read_bytes()
        for file in talks.base.rglob("*")
        if file.is_file() and talks.folder not in file.parents
    ]
    pieces = {
        secret: secret.splitlines()[-2 if "PRIVATE" in secret else 0].encode()
        for _, _, secret in FOUND
    }
    assert [secret for secret, piece in pieces.items() if any(piece in data for data in own)] == []
    talks.open()


def test_a_kill_between_the_archive_and_the_index_loses_nothing(talks: Talks) -> None:
    talks.write("s1.jsonl", claude(*TURNS))
    assert len(talks.take_in("s1.jsonl")) == 6  # Ingested, then killed.
    talks.close()
    talks.open()
    talks.sync()
    assert len({row.exchange_id for row in talks.rows()}) == 6
    assert talks.is_right()


def test_a_lost_archive_is_read_again_and_embeds_nothing(talks: Talks) -> None:
    talks.write("s1.jsonl", claude(*TURNS))
    talks.sync()
    before = talks.ids()
    talks.close()
    for file in talks.base.glob("conversations.sqlite*"):
        file.unlink()
    talks.open()
    talks.catalogue.mark_for_reread([RootedPath(ROOT, "s1.jsonl")])
    assert talks.cost()[0] == 0
    assert talks.ids() == before
    assert talks.is_right()


@pytest.mark.parametrize(
    "order", list(itertools.permutations(["january", "february", "march"])), ids="-".join
)
def test_whichever_export_is_read_first_the_one_with_the_last_word_counts(
    talks: Talks, order: tuple[str, ...]
) -> None:
    made = {
        "january": export(*MANY[:3]),
        "february": export(*MANY[:3], late=" The last word."),
        "march": export(*MANY[:2]),
    }
    for name in order:
        file = talks.write(f"{name}.json", made[name])
        os.utime(file, (1_700_000_000, 1_700_000_000))
        talks.sync()
    assert "The last word." in talks.said()
    assert talks.is_right()
    talks.write("february.json", made["january"])
    os.utime(talks.folder / "february.json", (1_700_000_001, 1_700_000_001))
    talks.sync()
    assert "The last word." in talks.said()  # It exists in the archive only.
    assert talks.verify().differences == ()


def test_an_exchange_without_a_file_is_not_replaced_by_a_shorter_one(talks: Talks) -> None:
    whole = claude(*TURNS[:2])
    file = talks.write("s1.jsonl", whole)
    talks.sync()
    file.unlink()
    talks.sync()
    cut = whole.splitlines(keepends=True)
    talks.write("s1.jsonl", b"".join(cut[:3]))  # The last question, without its answer.
    talks.sync()
    assert answer("subject1", 2)[:40] in talks.said()


@pytest.mark.parametrize("is_other_known", [False, True], ids=["new file", "file known before"])
def test_an_answer_that_only_the_archive_has_outlasts_another_of_the_same_time(
    talks: Talks, *, is_other_known: bool
) -> None:
    last = "The last form of the answer."
    file = talks.write("a.jsonl", claude(("How?", last)))
    talks.sync()
    if not is_other_known:
        file.unlink()
        talks.sync()
    other = talks.write("b.jsonl", claude(("How?", "The last")))
    os.utime(other, (1, 1))
    talks.sync()
    file.unlink(missing_ok=True)
    talks.sync()
    assert last in talks.said()
    talks.write("b.jsonl", claude(("How?", "A text of its own.")))
    talks.sync()
    assert "A text of its own." in talks.said()
    kept = [json.loads(each.content)["answer"] for each in talks.archive.detached_exchanges()]
    assert kept == [last]
    assert talks.verify().differences == ()


def test_preambles_of_two_sessions_are_two(talks: Talks) -> None:
    for name in ("s1", "s2"):
        lines = claude(TURNS[0], session=name).splitlines(keepends=True)
        talks.write(f"{name}.jsonl", lines[1].replace(b"subject0", name.encode()))
    talks.sync()
    assert [row.session for row in talks.rows()] == ["s1", "s2"]
    assert talks.is_right()


@pytest.mark.parametrize("name", ["broken.jsonl.zst", "broken.vscdb", "broken.zip"])
def test_a_damaged_carrier_is_named_and_the_others_are_read(talks: Talks, name: str) -> None:
    whole = claude(*TURNS)
    data = {
        "broken.jsonl.zst": zstandard.compress(whole)[:-20],
        "broken.vscdb": b"SQLite format 3\0" + b"cursorDiskKV" * 400,
        "broken.zip": zipped(**{"conversations.json": export(*MANY)})[:300],
    }
    talks.write(name, data[name])
    talks.write("s1.jsonl", claude(*TURNS[:2]))
    talks.sync()
    assert list(talks.problems()) == [name]
    assert "s1" in {row.session for row in talks.rows()}


def test_a_full_disk_is_trouble_with_the_store_and_no_problem_of_the_file(talks: Talks) -> None:
    talks.write("s1.jsonl", claude(*((f"What of {n}?", answer(f"thing{n}", 9)) for n in range(30))))
    (pages,) = talks.archive._db.execute("PRAGMA page_count").fetchone()
    talks.archive._db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError):
        talks.sync()
    talks.archive._db.execute("PRAGMA max_page_count=100000")
    talks.sync()
    assert not talks.problems()
    assert talks.is_right()


@pytest.mark.parametrize("wanted", [False, True])
def test_004_14_15_summaries_are_indexed_when_they_are_asked_for(
    tmp_path: Path,
    wanted: bool,  # noqa: FBT001 - a parameter
) -> None:
    talks = Talks(tmp_path, summaries=wanted)
    compacted = {"type": "user", "uuid": "u9", "isCompactSummary": True, "sessionId": "s1",
                 "message": {"role": "user", "content": "This session is being continued: they spoke of anchors."}}  # fmt: skip
    talks.write("s1.jsonl", claude(*TURNS[:2]) + json.dumps(compacted).encode() + b"\n")
    made = json.loads(export(*MANY[:1]))
    made[0]["summary"] = "They spoke of number 0."
    talks.write("export.json", json.dumps(made).encode())
    talks.sync()
    summaries = [(row.kind, row.session, row.text) for row in talks.rows() if row.kind == "summary"]
    spoken = [
        ("summary", "s1", compacted["message"]["content"]),  # type: ignore[index]
        ("summary", "c0", "They spoke of number 0."),
    ]
    assert sorted(summaries) == (sorted(spoken) if wanted else [])
    assert talks.is_right()
    talks.close()


def test_new_rules_clean_an_exchange_whose_transcript_is_gone(talks: Talks) -> None:
    secret = SECRETS["github"]
    file = talks.write("s1.jsonl", claude(("Use KEY for it, please.", "I shall use KEY then.")))
    talks.sync()
    file.unlink()
    talks.sync()
    # What an older version of the rules did not find.
    db = sqlite3.connect(talks.base / "conversations.sqlite")
    (stored,) = db.execute("SELECT content FROM exchanges").fetchone()
    content = zlib.decompress(stored).replace(b"KEY", secret.encode())
    db.execute("UPDATE exchanges SET content=?, digest='x'", (zlib.compress(content),))
    db.execute("UPDATE sessions SET title=?", (f"About {secret}",))
    db.commit()
    db.close()
    assert talks.archive.redact_stored("rules 2") == 1
    assert talks.archive.redact_stored("rules 2") == 0
    talks.sync()
    assert "I shall use [REDACTED:github] then." in talks.said()
    (row,) = talks.rows()
    assert row.header_path.startswith("About [REDACTED:github]")
    assert talks.archive.counts_by_root()[ROOT]["redacted"] == {"github": 2}
    talks.close()
    assert secret.encode() not in (talks.base / "conversations.sqlite").read_bytes()
    talks.open()
