"""opencode: database and file tree give the same; reverted messages are superseded."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    parse_transcript,
    recognised,
)
from sources.conversations.formats.everywhere import everywhere
from sources.conversations.formats.mutations import broken, mutated

from anchord.sources.conversations.formats import opencode

DATABASE = ".local/share/opencode/opencode.db"
STORAGE = ".local/share/opencode/storage"
SAMPLE = Path("/work/shared/samples/opencode_sqlite/opencode.db")
MAGIC = b"SQLite format 3\0"
TIME = 1_700_000_000_000
TABLES = {
    "project": "id TEXT PRIMARY KEY, worktree TEXT",
    "session": "id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, revert TEXT, "
    "time_created INTEGER, time_updated INTEGER",
    "message": "id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT",
    "part": "id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT",
}

Parts = list[dict[str, Any]]
Messages = Mapping[str, tuple[dict[str, Any], Parts]]


def text(said: str, **more: object) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def tool(name: str, **given_: object) -> dict[str, Any]:
    return {
        "type": "tool",
        "callID": "c",
        "tool": name,
        "state": {"status": "completed", "input": given_, "output": "secret"},
    }


def asked(*parts: dict[str, Any]) -> tuple[dict[str, Any], Parts]:
    return {"role": "user", "summary": {"title": "secret"}}, list(parts)


def answered(*parts: dict[str, Any], **more: object) -> tuple[dict[str, Any], Parts]:
    return {"role": "assistant", "modelID": "opus", "providerID": "anthropic", **more}, list(parts)


TALK: Messages = {
    "msg_1": asked(text("How long does rye rise?")),
    "msg_2": answered(text("Two hours.")),
    "msg_3": asked(text("And wheat?")),
    "msg_4": answered(text("One hour.")),
}
SAID = [("How long does rye rise?", "Two hours."), ("And wheat?", "One hour.")]


OPEN: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def written(value: object) -> Any:  # noqa: ANN401 - what a column holds
    return value if value is None or isinstance(value, str) else json.dumps(value)


def in_database(messages: Messages, **about: object) -> MemoryTranscript:
    connection = sqlite3.connect(":memory:")
    OPEN.append(connection)
    for table, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {table}({columns})")
    connection.execute("INSERT INTO project VALUES ('prj', '/home/ann/bakery')")
    row = {"directory": "", "parent_id": None, "revert": None, "title": "Bread", **about}
    values = (
        row["parent_id"],
        row["directory"],
        row["title"],
        written(row["revert"]),
        TIME,
        TIME + 9000,
    )
    connection.execute("INSERT INTO session VALUES ('ses', 'prj', ?, ?, ?, ?, ?, ?)", values)
    for number, (name, (data, parts)) in enumerate(messages.items()):
        at = TIME + 1000 * number
        connection.execute(
            "INSERT INTO message VALUES (?, 'ses', ?, ?, ?)", (name, at, at, written(data))
        )
        for place, part in enumerate(parts):
            row_of_part = (f"prt_{name}_{place}", name, at, at, written(part))
            connection.execute("INSERT INTO part VALUES (?, ?, 'ses', ?, ?, ?)", row_of_part)
    return MemoryTranscript(DATABASE, MAGIC, database=connection)


def in_tree(messages: Messages, **about: object) -> MemoryTranscript:
    times = {"created": TIME, "updated": TIME + 9000}
    info = {
        "id": "ses",
        "projectID": "prj",
        "directory": "/home/ann/bakery",
        "title": "Bread",
        "time": times,
        **about,
    }
    members: dict[str, object] = {"session/prj/ses.json": info}
    for number, (name, (data, parts)) in enumerate(messages.items()):
        members[f"message/ses/{name}.json"] = {
            "id": name,
            "sessionID": "ses",
            "time": {"created": TIME + 1000 * number},
            **data,
        }
        for place, part in enumerate(parts):
            members[f"part/{name}/prt_{place}.json"] = part
    return MemoryTranscript(
        STORAGE,
        members={name: json.dumps(each).encode() for name, each in reversed(members.items())},
    )


FORMS = pytest.mark.parametrize("form", [in_database, in_tree])


def conversation(form: Any, messages: Messages, **about: object) -> ParsedTranscript:  # noqa: ANN401 - one of the two above
    return parse_transcript(opencode, form(messages, **about))


def superseded(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


def test_the_source_has_its_name() -> None:
    assert opencode.SOURCE == "opencode"


def test_a_database_with_the_three_tables_is_opencodes() -> None:
    head = MAGIC + b"..CREATE TABLE `part` (..CREATE TABLE `message` (..CREATE TABLE `session` (.."
    assert recognised(opencode, MemoryTranscript("copy.sqlite", head))
    assert recognised(opencode, MemoryTranscript("opencode-dev.db", MAGIC))


@pytest.mark.parametrize(
    ("path", "head"),
    [
        ("threads.db", MAGIC + b"CREATE TABLE threads (id)"),
        (
            "webui.db",
            MAGIC
            + b"CREATE TABLE message (id) CREATE TABLE session (id) CREATE TABLE parting (id)",
        ),
        ("opencode.db", b"no database"),
        ("opencode.json", b"{}"),
        ("storage/session_diff/ses.json", b"{}"),
        ("storage/part/msg/prt.json", b"PK"),
    ],
)
def test_other_files_are_not_opencodes(path: str, head: bytes) -> None:
    assert not recognised(opencode, MemoryTranscript(path, head))


@pytest.mark.parametrize(
    ("path", "storage"),
    [
        (f"{STORAGE}/session/prj/ses.json", STORAGE),
        (f"{STORAGE}/message/ses/msg.json", STORAGE),
        ("storage/part/msg/prt.json", "storage"),
        ("project/x/storage/session/part/ses/msg/prt.json", "project/x/storage"),
        ("storage/session/prj/ses.txt", ""),
        ("mystorage/session/prj/ses.json", ""),
        (DATABASE, ""),
    ],
)
def test_a_file_of_the_tree_belongs_to_its_storage(path: str, storage: str) -> None:
    assert opencode.transcript_folder(path) == storage
    assert recognised(opencode, MemoryTranscript(path, b'{"id": 1}')) == bool(storage)


def test_a_folder_with_sessions_and_messages_is_a_tree() -> None:
    assert opencode.matches_folder(in_tree(TALK).member_names())
    assert opencode.matches_folder(
        ["storage/session/prj/ses.json", "storage/message/ses/msg.json", "auth.json"]
    )
    assert not opencode.matches_folder(["session/prj/ses.json", "notes.md"])
    assert not opencode.matches_folder(["general/2026-05-01.json", "users.json"])


@FORMS
def test_messages_are_read_in_their_order(form: Any) -> None:  # noqa: ANN401
    parsed = conversation(form, TALK)
    assert parsed.said == SAID
    assert [exchange.id for exchange in parsed.exchanges] == ["msg_1", "msg_3"]
    assert [exchange.model for exchange in parsed.exchanges] == ["opus", "opus"]
    assert [exchange.at for exchange in parsed.exchanges] == [
        "2023-11-14T22:13:20.000Z",
        "2023-11-14T22:13:22.000Z",
    ]
    assert (parsed.heads[0].session, parsed.title, parsed.project) == (
        "ses",
        "Bread",
        "/home/ann/bakery",
    )
    assert parsed.heads[0].updated == "2023-11-14T22:13:29.000Z"
    assert not parsed.unknown


@FORMS
def test_a_message_without_a_later_time_comes_by_its_id(form: Any) -> None:  # noqa: ANN401
    carrier = form(dict(reversed(list(TALK.items()))))
    if carrier.database:
        carrier.database.execute("UPDATE message SET time_created = 0")
    else:
        carrier.members = {
            name: data.replace(b'"created"', b'"x"') for name, data in carrier.members.items()
        }
    assert parse_transcript(opencode, carrier).said == SAID


@FORMS
def test_a_sub_agents_session_names_the_one_above(form: Any) -> None:  # noqa: ANN401
    assert (
        conversation(form, TALK, **{"parent_id" if form is in_database else "parentID": "ses_0"})
        .heads[0]
        .parent
        == "ses_0"
    )


@FORMS
def test_the_folder_of_the_session_goes_before_that_of_the_project(form: Any) -> None:  # noqa: ANN401
    assert (
        conversation(form, TALK, directory="/home/ann/bakery/oven").project
        == "/home/ann/bakery/oven"
    )


@FORMS
def test_texts_of_a_message_stand_apart_and_keep_their_lines(form: Any) -> None:  # noqa: ANN401
    prose = "```py\nbake()\n\n\nserve()\n```\n  - indented"
    parsed = conversation(
        form, {"msg_1": asked(text("Go")), "msg_2": answered(text("So:"), text(prose))}
    )
    assert parsed.said == [("Go", f"So:\n\n{prose}")]


@FORMS
def test_what_opencode_wrote_itself_was_not_typed(form: Any) -> None:  # noqa: ANN401
    parts = [text("Why?"), text("Called the Read tool", synthetic=True), text("secret", ignored=True),
             {"type": "file", "mime": "text/plain", "filename": "x.py", "url": "data:,secret"}]  # fmt: skip
    parsed = conversation(
        form,
        {
            "msg_1": asked(*parts),
            "msg_2": asked(text("Continue", synthetic=True)),
            "msg_3": answered(text("So.")),
        },
    )
    assert parsed.said == [("Why?", "So.")]
    assert len(parsed.exchanges) == 1


@FORMS
def test_images_come_along_with_the_question(form: Any) -> None:  # noqa: ANN401
    parsed = conversation(
        form,
        {
            "msg_1": asked(
                text("Done?"),
                {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AA"},
            )
        },
    )
    assert parsed.said == [("Done?\n\n[image]", "")]


@FORMS
def test_a_task_that_a_person_gave_to_a_sub_agent_was_typed(form: Any) -> None:  # noqa: ANN401
    parsed = conversation(
        form, {"msg_1": asked({"type": "subtask", "prompt": "Look for mold", "agent": "x"})}
    )
    assert parsed.said == [("Look for mold", "")]


@FORMS
def test_calls_of_tools_are_lines_and_changed_files_are_named(form: Any) -> None:  # noqa: ANN401
    calls = [tool("bash", command="ls\n-l", description="x"), tool("edit", filePath="/w/oven.py", oldString="x"),
             tool("read", filePath="/w/x.py"), {"type": "patch", "hash": "h", "files": ["/w/a.py", "/w/oven.py"]}]  # fmt: skip
    parsed = conversation(
        form,
        {"msg_1": asked(text("Go")), "msg_2": answered(*calls), "msg_3": answered(text("Done."))},
    )
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools == ("[bash] ls -l", "[edit] /w/oven.py", "[read] /w/x.py")
    assert parsed.exchanges[0].files == ("/w/oven.py", "/w/a.py")


@FORMS
def test_an_unanswered_question_keeps_what_was_done_for_it(form: Any) -> None:  # noqa: ANN401
    parsed = conversation(
        form, {"msg_1": asked(text("Go")), "msg_2": answered(tool("bash", command="ls"))}
    )
    assert (parsed.said, parsed.exchanges[0].tools) == ([("Go", "")], ("[bash] ls",))


@FORMS
def test_thinking_steps_and_summaries_are_no_prose(form: Any) -> None:  # noqa: ANN401
    quiet = [
        {"type": kind, "text": "secret"}
        for kind in ("reasoning", "step-start", "step-finish", "snapshot", "retry", "agent")
    ]
    parsed = conversation(
        form,
        {**TALK, "msg_5": asked({"type": "compaction", "auto": True}), "msg_6": answered(text("All of it"), summary=True),
         "msg_7": answered(*quiet, text("Go on."))},
    )  # fmt: skip
    assert parsed.said == [SAID[0], ("And wheat?", "One hour.\n\nGo on.")]
    assert not parsed.unknown


@FORMS
def test_what_was_reverted_is_superseded(form: Any) -> None:  # noqa: ANN401
    parsed = conversation(form, TALK, revert={"messageID": "msg_3"})
    assert (parsed.said, superseded(parsed)) == (SAID[:1], SAID[1:])
    parsed = conversation(form, TALK, revert={"messageID": "msg_1", "snapshot": "x"})
    assert (parsed.said, superseded(parsed)) == ([], SAID)


@FORMS
def test_a_revert_within_a_message_leaves_that_message(form: Any) -> None:  # noqa: ANN401
    talk = {**TALK, "msg_5": answered(text("Or two."))}
    parsed = conversation(form, talk, revert={"messageID": "msg_4", "partID": "prt_9"})
    assert (parsed.said, superseded(parsed)) == (SAID, [("And wheat?", "Or two.")])


@FORMS
def test_a_revert_to_what_is_gone_reverts_nothing(form: Any) -> None:  # noqa: ANN401
    assert conversation(form, TALK, revert={"messageID": "gone"}).said == SAID


@FORMS
def test_unknown_and_broken_records_are_counted_and_lose_no_others(form: Any) -> None:  # noqa: ANN401
    odd: Messages = {
        "msg_5": ({"role": "dreamer"}, [text("x")]),
        "msg_6": ({}, []),
        "msg_7": answered({"type": "dream"}, {}),
    }
    parsed = conversation(form, {**TALK, **odd})
    assert parsed.said == SAID
    assert parsed.unknown == {
        "role dreamer": 1,
        "broken message": 1,
        "part dream": 1,
        "part without a type": 1,
    }


def test_a_broken_value_of_the_database_is_counted() -> None:
    carrier = in_database(TALK)
    assert carrier.database
    carrier.database.execute("UPDATE message SET data = '{' WHERE id = 'msg_2'")
    carrier.database.execute("UPDATE part SET data = x'ff' WHERE message_id = 'msg_4'")
    parsed = parse_transcript(opencode, carrier)
    assert parsed.said == [(question, "") for question, _ in SAID]
    assert parsed.unknown == {"broken message": 1, "broken part": 1}


def test_an_older_database_has_fewer_columns() -> None:
    connection = sqlite3.connect(":memory:")
    OPEN.append(connection)
    for statement in (
        "CREATE TABLE session(id TEXT, title TEXT)",
        "INSERT INTO session VALUES ('ses', 'Bread')",
    ):
        connection.execute(statement)
    for table in ("message", "part"):
        connection.execute(f"CREATE TABLE {table}({TABLES[table]})")
    connection.execute("INSERT INTO message VALUES ('msg_1', 'ses', 0, 0, '{\"role\": \"user\"}')")
    connection.execute(
        "INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses', 0, 0, '{\"type\": \"text\", \"text\": \"Rye?\"}')"
    )
    parsed = parse_transcript(opencode, MemoryTranscript(DATABASE, MAGIC, database=connection))
    assert (parsed.said, parsed.title) == ([("Rye?", "")], "Bread")


def test_a_database_without_its_tables_is_empty() -> None:
    OPEN.append(sqlite3.connect(":memory:"))
    assert (
        parse_transcript(opencode, MemoryTranscript(DATABASE, MAGIC, database=OPEN[0])).exchanges
        == []
    )


def test_every_session_is_read() -> None:
    carrier = in_database(TALK)
    assert carrier.database
    carrier.database.execute(
        "INSERT INTO session SELECT 'ses_2', project_id, 'ses', '', 'Cake', NULL, 0, 0 FROM session"
    )
    carrier.database.execute(
        "INSERT INTO message VALUES ('msg_9', 'ses_2', 0, 0, '{\"role\": \"user\"}')"
    )
    carrier.database.execute(
        "INSERT INTO part VALUES ('prt_9', 'msg_9', 'ses_2', 0, 0, '{\"type\": \"text\", \"text\": \"Cake?\"}')"
    )
    parsed = parse_transcript(opencode, carrier)
    assert [(each.session, each.question) for each in parsed.exchanges] == [
        ("ses", "How long does rye rise?"), ("ses", "And wheat?"), ("ses_2", "Cake?"),
    ]  # fmt: skip


def test_the_oldest_tree_has_all_below_its_sessions() -> None:
    members = {
        "session/info/ses.json": {"id": "ses", "title": "Bread"},
        "session/message/ses/msg_1.json": {"role": "user", "time": {"created": TIME}},
        "session/part/ses/msg_1/prt_1.json": text("Rye?"),
    }
    carrier = MemoryTranscript(
        STORAGE, members={name: json.dumps(each).encode() for name, each in members.items()}
    )
    assert opencode.matches_folder(carrier.member_names())
    assert (
        parse_transcript(opencode, carrier).said,
        parse_transcript(opencode, carrier).title,
    ) == (
        [("Rye?", "")],
        "Bread",
    )


def test_messages_of_a_session_that_is_lost_are_read() -> None:
    carrier = in_tree(TALK)
    carrier.members = {
        name: data for name, data in carrier.members.items() if not name.startswith("session/")
    }
    assert parse_transcript(opencode, carrier).said == SAID


def test_a_broken_file_of_the_tree_is_counted() -> None:
    carrier = in_tree(TALK)
    cut = ("session/prj/ses.json", "message/ses/msg_2.json", "part/msg_4/prt_0.json")
    carrier.members = {
        name: b'{"' if name in cut else data for name, data in carrier.members.items()
    }
    parsed = parse_transcript(opencode, carrier)
    assert parsed.said == [("How long does rye rise?", ""), ("And wheat?", "")]
    assert parsed.unknown == {"broken session": 1, "broken message": 1, "broken part": 1}


@pytest.mark.parametrize("depth", range(800, 1000, 10))
def test_nesting_beyond_measure_and_numbers_beyond_measure_are_survived(depth: int) -> None:
    deep = f'{{"type": "tool", "tool": "x", "state": {{"input": {{"command": {"[" * depth}{"]" * depth}}}}}}}'.encode()
    database, tree = in_database(TALK), in_tree(TALK)
    assert database.database
    database.database.execute("INSERT INTO part VALUES ('prt', 'msg_2', 'ses', 0, 0, ?)", (deep,))
    tree.members = {**tree.members, "part/msg_2/prt_9.json": deep,
                    "message/ses/msg_5.json": b'{"role": "user", "time": {"created": 1' + b"0" * 400 + b"}}"}  # fmt: skip
    assert parse_transcript(opencode, database).said == SAID
    assert parse_transcript(opencode, tree).said == SAID


EVERYTHING: Messages = {
    **TALK,
    "msg_5": asked(
        text("x", synthetic=True),
        {"type": "file", "mime": "image/png"},
        {"type": "subtask", "prompt": "x"},
    ),
    "msg_6": answered(tool("edit", filePath="x"), {"type": "patch", "files": ["x"]}, summary=True),
}


def unique(parsed: ParsedTranscript) -> bool:
    names = [
        (exchange.session, exchange.id) for exchange in parsed.exchanges if not exchange.superseded
    ]
    return len(set(names)) == len(names)


@pytest.mark.slow
def test_any_value_at_any_place_is_survived() -> None:
    for changed in everywhere(
        {name: {"data": data, "parts": parts} for name, (data, parts) in EVERYTHING.items()}
    ):
        rows: Any = {
            name: (json.dumps(each["data"]), [json.dumps(part) for part in each["parts"]])
            for name, each in changed.items()
            if isinstance(each, dict) and isinstance(each.get("parts"), list)
        }
        assert unique(parse_transcript(opencode, in_database(rows)))
    members = {
        name: json.loads(data)
        for name, data in in_tree(TALK, revert={"messageID": "msg_3"}).members.items()
    }
    for changed in everywhere(members):
        carrier = MemoryTranscript(
            STORAGE, members={name: json.dumps(each).encode() for name, each in changed.items()}
        )
        assert unique(parse_transcript(opencode, carrier))


@given(st.data())
def test_no_database_raises(data: st.DataObject) -> None:
    messages = {
        name: (data.draw(mutated(each[0])), [data.draw(mutated(part)) for part in each[1]])
        for name, each in EVERYTHING.items()
    }
    revert = data.draw(mutated({"messageID": "msg_3", "partID": "prt_1"}))
    carrier = in_database(messages, revert=revert)
    assert carrier.database
    cut = data.draw(st.binary(max_size=3))
    carrier.database.execute(
        "UPDATE part SET data = substr(data, 1, 9) || ? WHERE message_id = 'msg_2'", (cut,)
    )
    assert unique(parse_transcript(opencode, carrier))


@given(st.data())
def test_no_tree_raises(data: st.DataObject) -> None:
    carrier = in_tree(EVERYTHING, revert={"messageID": "msg_3"})
    carrier.members = {
        name: data.draw(broken(json.loads(each))) for name, each in carrier.members.items()
    }
    assert unique(parse_transcript(opencode, carrier))


@pytest.mark.skipif(not SAMPLE.exists(), reason="the samples are not on this machine")
def test_the_sample_is_read_in_full() -> None:
    OPEN.append(sqlite3.connect(f"file:{SAMPLE}?mode=ro&immutable=1", uri=True))
    carrier = MemoryTranscript(str(SAMPLE), SAMPLE.read_bytes(), database=OPEN[0])
    parsed = parse_transcript(opencode, carrier)
    assert recognised(opencode, MemoryTranscript("renamed", carrier.data))
    assert parsed.said == [("Hello, help me with Go", "Sure, I can help with Go.")]
    assert (parsed.title, parsed.project, parsed.exchanges[0].id) == (
        "Test Session",
        "/home/user/code/myapp",
        "msg_1",
    )
    assert not parsed.unknown
