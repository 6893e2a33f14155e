"""Cursor: databases and transcripts are read; messages undone by a checkpoint are superseded."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sources.conversations.formats.carriers import (
    MemoryTranscript,
    ParsedTranscript,
    jsonl,
    parse_transcript,
    recognised,
)
from sources.conversations.formats.everywhere import everywhere
from sources.conversations.formats.mutations import broken, mutated, survives

from anchord.sources.conversations.formats import cursor

DATABASE = "Cursor/User/globalStorage/state.vscdb"
LINES = ".cursor/projects/home-ann-bakery/agent-transcripts/c1/c1.jsonl"
PLAIN = ".cursor/projects/home-ann-bakery/agent-transcripts/c1.txt"
SAMPLE = Path("/work/shared/samples/cursor/state.vscdb")
MAGIC = b"SQLite format 3\0"
CREATED, UPDATED = 1_700_000_000_000, 1_700_000_009_000


OPEN: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def database(
    values: Mapping[str, object], older: Mapping[str, object] | None = None
) -> MemoryTranscript:
    connection = sqlite3.connect(":memory:")
    OPEN.append(connection)
    for table, rows in (("cursorDiskKV", values), ("ItemTable", older or {})):
        connection.execute(f"CREATE TABLE {table}(key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)")
        written = [
            (key, each if each is None or isinstance(each, str | bytes) else json.dumps(each))
            for key, each in rows.items()
        ]
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", written)
    return MemoryTranscript(
        DATABASE, MAGIC + b"CREATE TABLE cursorDiskKV(key)", database=connection
    )


def composer(*headers: str, **more: object) -> dict[str, object]:
    listed = [{"bubbleId": key, "type": 1 if key.startswith("u") else 2} for key in headers]
    return {
        "name": "Bread",
        "createdAt": CREATED,
        "lastUpdatedAt": UPDATED,
        "fullConversationHeadersOnly": listed,
        **more,
    }


def asked(said: str, **more: object) -> dict[str, object]:
    return {"type": 1, "text": said, **more}


def answered(said: str, **more: object) -> dict[str, object]:
    return {"type": 2, "text": said, **more}


def conversation(about: object, **bubbles: object) -> ParsedTranscript:
    return parse_transcript(
        cursor,
        database(
            {
                "composerData:c1": about,
                **{f"bubbleId:c1:{key}": each for key, each in bubbles.items()},
            }
        ),
    )


def superseded(parsed: ParsedTranscript) -> list[tuple[str, str]]:
    return [
        (exchange.question, exchange.answer) for exchange in parsed.exchanges if exchange.superseded
    ]


TALK: dict[str, object] = {
    "u1": asked("How long does rye rise?"),
    "a1": answered("Two hours."),
    "u2": asked("And wheat?"),
    "a2": answered("One hour."),
}
SAID = [("How long does rye rise?", "Two hours."), ("And wheat?", "One hour.")]
ALL = tuple(TALK)


def test_the_source_has_its_name() -> None:
    assert cursor.SOURCE == "cursor"


def test_a_database_with_cursors_table_is_cursors() -> None:
    assert recognised(
        cursor,
        MemoryTranscript("x.db", MAGIC + b"... CREATE TABLE cursorDiskKV (key TEXT, value BLOB)"),
    )
    assert recognised(
        cursor, MemoryTranscript("Library/Cursor/User/globalStorage/state.vscdb", MAGIC)
    )


def test_another_database_is_not() -> None:
    assert not recognised(
        cursor,
        MemoryTranscript(
            "Code/User/globalStorage/state.vscdb", MAGIC + b"CREATE TABLE ItemTable (key)"
        ),
    )
    assert not recognised(cursor, MemoryTranscript("x.db", b"cursorDiskKV"))


def test_the_order_is_that_of_the_list_and_not_that_of_the_rows() -> None:
    parsed = conversation(composer(*ALL), **dict(reversed(TALK.items())))
    assert parsed.said == SAID
    assert [exchange.id for exchange in parsed.exchanges] == ["u1", "u2"]
    assert (parsed.heads[0].session, parsed.title, parsed.heads[0].updated) == (
        "c1",
        "Bread",
        "2023-11-14T22:13:29.000Z",
    )
    assert not parsed.unknown


def test_a_conversation_that_holds_its_bubbles_needs_no_rows() -> None:
    inline = [
        {**table, "bubbleId": key}
        for key, table in (("u1", asked("Rye?")), ("a1", answered("Two hours.")))
    ]
    parsed = conversation({"name": "Bread", "conversation": inline})
    assert parsed.said == [("Rye?", "Two hours.")]
    assert [exchange.id for exchange in parsed.exchanges] == ["u1"]


def test_without_a_list_the_order_is_that_of_the_rows() -> None:
    assert conversation({"name": "Bread"}, **TALK).said == SAID


def test_every_conversation_is_a_session_of_its_own() -> None:
    values = {"composerData:c1": composer("u1"), "composerData:c2": composer("u1"),
              "bubbleId:c1:u1": asked("One"), "bubbleId:c2:u1": asked("Two"), "bubbleId:c3:u1": asked("Lost")}  # fmt: skip
    parsed = parse_transcript(cursor, database(values))
    assert [(exchange.session, exchange.question) for exchange in parsed.exchanges] == [
        ("c1", "One"),
        ("c2", "Two"),
    ]


def test_conversations_of_older_versions_lie_in_the_folders_database() -> None:
    tab = {
        "tabId": "t1",
        "chatTitle": "Cake",
        "bubbles": [{"type": "user", "text": "Cake?"}, {"type": "ai", "text": "Bake it."}],
    }
    whole = {
        "composerId": "c2",
        "name": "Rolls",
        "conversation": [{**asked("Rolls?"), "bubbleId": "u1"}],
    }
    older = {"composer.composerData": {"allComposers": [whole, {"composerId": "c3"}, {**whole, "composerId": "c1"}]},
             "workbench.panel.aichat.view.aichat.chatdata": {"tabs": [tab]}, "other": {"tabs": [tab]}}  # fmt: skip
    values = {"composerData:c1": composer("u1"), "bubbleId:c1:u1": asked("Bread?")}
    parsed = parse_transcript(cursor, database(values, older))
    assert [(each.session, each.question, each.answer) for each in parsed.exchanges] == [
        ("c1", "Bread?", ""), ("c2", "Rolls?", ""), ("t1", "Cake?", "Bake it."),
    ]  # fmt: skip
    assert [head.title for head in parsed.heads] == ["Bread", "Rolls", "Cake"]


def test_a_database_without_its_tables_is_empty() -> None:
    OPEN.append(sqlite3.connect(":memory:"))
    assert (
        parse_transcript(cursor, MemoryTranscript(DATABASE, MAGIC, database=OPEN[0])).exchanges
        == []
    )


@pytest.mark.parametrize("key", ["text", "rawText", "content"])
def test_the_text_of_a_bubble_has_had_three_names(key: str) -> None:
    assert conversation(composer("u1"), u1={"type": 1, "text": "", key: "Rye?"}).said == [
        ("Rye?", "")
    ]


def test_the_editors_document_counts_where_there_is_no_text() -> None:
    paragraphs = [{"type": "paragraph", "children": [{"type": "text", "text": "Rye "}, {"type": "mention", "text": "@a.py"}]},
                  {"type": "paragraph", "children": [{"type": "text", "text": "or"}, {"type": "linebreak"},
                                                     {"type": "text", "text": "wheat?"}]}]  # fmt: skip
    rich = json.dumps({"root": {"type": "root", "children": paragraphs}})
    assert conversation(composer("u1"), u1={"type": 1, "text": "", "richText": rich}).said == [
        ("Rye @a.py\nor\nwheat?", "")
    ]


def test_times_are_those_of_the_bubbles_or_of_the_conversation() -> None:
    parsed = conversation(
        composer(*ALL),
        **{
            **TALK,
            "u2": asked("x", createdAt="2026-05-01T10:00:00.5Z"),
            "a2": answered("y", timestamp=UPDATED),
        },
    )
    assert [(exchange.at, exchange.until) for exchange in parsed.exchanges] == [
        ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:20.000Z"),
        # The answer has an earlier time than its question: an exchange ends with its latest.
        ("2026-05-01T10:00:00.500Z", "2026-05-01T10:00:00.500Z"),
    ]


def test_the_model_is_that_of_the_bubble_or_of_the_conversation() -> None:
    about = composer(*ALL, modelConfig={"modelName": "opus"})
    parsed = conversation(
        about, **{**TALK, "a2": answered("One hour.", modelInfo={"modelName": "sonnet"})}
    )
    assert [exchange.model for exchange in parsed.exchanges] == ["opus", "sonnet"]


@pytest.mark.parametrize(
    ("about", "bubble", "project"),
    [
        (
            {"workspaceIdentifier": {"id": "x", "uri": {"fsPath": "/home/ann/bakery"}}},
            {},
            "/home/ann/bakery",
        ),
        ({}, {"workspaceProjectDir": "/home/ann/bakery"}, "/home/ann/bakery"),
        ({}, {"workspaceUris": ["file:///home/ann/my%20bakery"]}, "/home/ann/my bakery"),
        ({}, {"workspaceUris": ["file:///c%3A/bakery"]}, "c:/bakery"),
        (
            {},
            {"workspaceUris": ["vscode-remote://ssh-remote+%7B%22x%22%3A1%7D/srv/bakery"]},
            "/srv/bakery",
        ),
        ({}, {"workspaceUris": ["nonsense", 1]}, ""),
    ],
)
def test_the_project_is_the_folder_that_the_conversation_was_in(
    about: dict[str, object], bubble: dict[str, object], project: str
) -> None:
    assert conversation(composer("u1", **about), u1=asked("Rye?", **bubble)).project == project


def test_a_sub_agents_conversation_names_the_one_above() -> None:
    assert (
        conversation(composer("u1", subagentInfo={"parentComposerId": "c0"}), u1=asked("x"))
        .heads[0]
        .parent
        == "c0"
    )


def test_calls_of_tools_are_lines_and_changed_files_are_named() -> None:
    run = answered(
        "",
        toolFormerData={
            "name": "run_terminal_cmd",
            "rawArgs": '{"command": "ls\\n-l"}',
            "result": "secret",
        },
    )
    edit = answered(
        "",
        toolFormerData={
            "name": "edit_file_v2",
            "params": '{"relativeWorkspacePath": "oven.py"}',
            "rawArgs": "{",
        },
    )
    read = answered("Done.", toolFormerData={"name": "read_file", "params": {"targetFile": "x.py"}})
    odd = answered("", toolFormerData={"tool": 7, "rawArgs": "[1]"})
    parsed = conversation(
        composer("u1", "a1", "a2", "a3", "a4"), u1=asked("Go"), a1=run, a2=edit, a3=read, a4=odd
    )
    assert parsed.said == [("Go", "Done.")]
    assert parsed.exchanges[0].tools == (
        "[run_terminal_cmd] ls -l",
        "[edit_file_v2] oven.py",
        "[read_file] x.py",
        "[tool]",
    )
    assert parsed.exchanges[0].files == ("oven.py",)


def test_thinking_is_no_prose_and_what_cursor_wrote_itself_was_not_typed() -> None:
    headers = composer(*ALL, "s1", "s2", "t1")
    listed = [*headers["fullConversationHeadersOnly"]]  # type: ignore[misc]
    listed[-2] = {"bubbleId": "s2", "type": 1, "grouping": {"isSimulatedMsg": True}}
    parsed = conversation(
        {**headers, "fullConversationHeadersOnly": listed}, **TALK, s1=asked("A task has finished", isSimulatedMsg=True),
        s2=asked("Continue"), t1=answered("hm", isThought=True, thinking={"text": "hm"}),
    )  # fmt: skip
    assert parsed.said == SAID
    assert len(parsed.exchanges) == 2


def test_images_come_along_with_the_question() -> None:
    assert conversation(composer("u1"), u1=asked("Done?", images=[{"uuid": "x"}])).said == [
        ("Done?\n\n[image]", "")
    ]


def test_what_is_not_in_the_list_is_superseded() -> None:
    left = {
        "u8": asked("And spelt?", createdAt="2026-05-01T10:00:00Z"),
        "a8": answered("No idea.", createdAt="2026-05-01T10:00:01Z"),
    }
    parsed = conversation(
        composer(*ALL),
        **dict(reversed(left.items())),
        **TALK,
        t=answered("", toolFormerData={"name": "x"}),
    )
    assert parsed.said == SAID
    assert superseded(parsed) == [("And spelt?", "No idea.")]


def test_an_answer_that_is_not_in_the_list_is_put_to_no_other_question() -> None:
    parsed = conversation(
        composer("u1", "a1"), u1=TALK["u1"], a1=TALK["a1"], a9=answered("Three hours.")
    )
    assert parsed.said == SAID[:1]
    assert superseded(parsed) == [("", "Three hours.")]


def test_a_listed_bubble_that_is_lost_loses_no_other() -> None:
    assert conversation(composer("u0", *ALL), **TALK).said == SAID


def test_a_bubble_without_a_type_has_that_of_the_list() -> None:
    assert conversation(
        composer("u1", "a1"), u1={"text": "Rye?"}, a1={"text": "Two hours."}
    ).said == [("Rye?", "Two hours.")]


def test_unknown_and_broken_values_are_counted() -> None:
    odd = {
        "x1": {"type": 99, "message": "secret"},
        "x2": "{",
        "x3": {"text": "secret"},
        "x4": {"type": [1], "text": "secret"},
    }
    parsed = conversation(composer(*ALL), **TALK, **odd)
    assert parsed.said == SAID
    assert parsed.unknown == {"bubble 99": 1, "broken bubble": 1, "bubble without a type": 2}
    parsed = parse_transcript(
        cursor,
        database({"composerData:c1": "{", "composerData:c2": None, "composerData:c3": b"\xff"}),
    )
    assert parsed.unknown == {"broken conversation": 2}


def line(role: str, *content: object) -> dict[str, object]:
    return {"role": role, "message": {"content": list(content)}}


def block(said: str) -> dict[str, object]:
    return {"type": "text", "text": said}


def query(said: str, before: str = "", after: str = "") -> dict[str, object]:
    return block(f"{before}<user_query>\n{said}\n</user_query>{after}")


def use(tool: str, **given_: object) -> dict[str, object]:
    return {"type": "tool_use", "name": tool, "input": given_}


def transcript(*records: object) -> ParsedTranscript:
    return parse_transcript(cursor, MemoryTranscript(LINES, jsonl(*records)))


def plain(text: str) -> ParsedTranscript:
    return parse_transcript(cursor, MemoryTranscript(PLAIN, text.encode()))


SPOKEN = [line("user", query("How long does rye rise?")), line("assistant", block("Two hours.")),
          line("user", query("And wheat?")), line("assistant", block("One hour."))]  # fmt: skip


def test_a_transcript_is_known_by_its_lines() -> None:
    assert recognised(cursor, MemoryTranscript("any.jsonl", jsonl(*SPOKEN)))
    assert recognised(cursor, MemoryTranscript(PLAIN, b"user:\nhi\n"))


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (
            "a.jsonl",
            jsonl({"type": "user", "uuid": "u", "message": {"role": "user", "content": "hi"}}),
        ),
        (
            "a.jsonl",
            jsonl({"type": "message", "id": "x", "message": {"role": "user", "content": []}}),
        ),
        ("a.jsonl", jsonl({"role": "user", "content": "hi"})),
        ("a.jsonl", jsonl({"type": "item", "role": "user", "message": {"content": "hi"}})),
        ("notes.txt", b"user:\nhi\nassistant:\nho\n"),
        (PLAIN, b"nothing of the kind\n"),
        ("a.md", jsonl(*SPOKEN)),
    ],
)
def test_other_files_are_no_transcripts(path: str, data: bytes) -> None:
    assert not recognised(cursor, MemoryTranscript(path, data))


def test_a_transcript_is_read_in_its_order() -> None:
    parsed = transcript(*SPOKEN, {"type": "turn_ended", "status": "success"})
    assert parsed.said == SAID
    assert [exchange.id for exchange in parsed.exchanges] == [
        f"at-{exchange.offset}" for exchange in parsed.exchanges
    ]
    assert (parsed.heads[0].session, parsed.project, parsed.heads[0].parent) == (
        "c1",
        "home-ann-bakery",
        "",
    )
    assert not parsed.unknown


def test_a_last_line_without_an_end_is_read() -> None:
    assert parse_transcript(cursor, MemoryTranscript(LINES, jsonl(*SPOKEN)[:-1])).said == SAID


def test_a_sub_agents_transcript_names_the_session_above() -> None:
    path = LINES.replace("c1/c1.jsonl", "c1/subagents/c2.jsonl")
    head = parse_transcript(cursor, MemoryTranscript(path, jsonl(*SPOKEN))).heads[0]
    assert (head.session, head.parent) == ("c2", "c1")


def test_a_text_in_place_of_blocks_is_prose() -> None:
    records = [
        {"role": "user", "message": {"content": "Rye?"}},
        {"role": "assistant", "message": {"content": "Two hours."}},
    ]
    assert transcript(*records).said == [("Rye?", "Two hours.")]


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("<user_query>\nRye?\n\nOr wheat?\n</user_query>", "Rye?\n\nOr wheat?"),
        ("<user_info>\nOS\n</user_info>\n\n<attached_files>\n<a>\n</attached_files>\n<user_query>Rye?</user_query>", "Rye?"),
        ("<user_query>Rye?</user_query>\n<open_and_recently_viewed_files>x</open_and_recently_viewed_files>", "Rye?"),
        ("<user_query>One</user_query><user_query>Two</user_query>\nThree", "One\n\nTwo\n\nThree"),
        ("<user_query>Cut of", "Cut of"),
        ("<attached_files>\nCut of", ""),
        ("What is `<user_query>` and <rules>x</rules>?", "What is `<user_query>` and <rules>x</rules>?"),
        ("<div>Why?</div>", "<div>Why?</div>"),
    ],
)  # fmt: skip
def test_wrappers_are_not_typed_and_all_else_is(said: str, typed: str) -> None:
    assert transcript(line("user", block(said))).said == ([(typed, "")] if typed else [])


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("Wednesday, Sep 16, 2026, 8:21 AM (UTC-4)", "2026-09-16T12:21:00.000Z"),
        ("Friday, Jul 3, 2026, 12:36 PM (UTC+5:30)", "2026-07-03T07:06:00.000Z"),
        ("Jul 3, 2026, 12:05 AM (UTC)", "2026-07-03T00:05:00.000Z"),
        ("Friday, Jul 3, 2026, 3:36 PM", ""),
        ("Friday, Foo 3, 2026, 3:36 PM (UTC)", ""),
        ("Friday, Jul 99, 2026, 3:36 PM (UTC)", ""),
        ("Thu, Jun 18, 2026", ""),
    ],
)
def test_a_stamp_among_the_contexts_is_the_time_of_the_question(stamp: str, at: str) -> None:
    parsed = transcript(line("user", query("Rye?", before=f"<timestamp>{stamp}</timestamp>\n")))
    assert (parsed.said, parsed.exchanges[0].at) == ([("Rye?", "")], at)


def test_every_month_is_known() -> None:
    names = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    stamps = [f"<timestamp>{name} 1, 2026, 1:05 AM (UTC)</timestamp>" for name in names]
    parsed = transcript(*(line("user", query("Rye?", before=stamp)) for stamp in stamps))
    assert [exchange.at for exchange in parsed.exchanges] == [
        f"2026-{month:02}-01T01:05:00.000Z" for month in range(1, 13)
    ]


@pytest.mark.parametrize(
    "tag",
    [
        *(
            "timestamp",
            "user_info",
            "attached_files",
            "open_and_recently_viewed_files",
            "additional_data",
            "project_context",
        ),
        *(
            "project_layout",
            "git_status",
            "system_reminder",
            "system-reminder",
            "system_notification",
            "task_notification",
        ),
        *(
            "agent_skills",
            "agent_transcripts",
            "manually_attached_skills",
            "user_rules",
            "always_applied_workspace_rules",
        ),
        *("hooks_context", "mcp_file_system", "plugin_info", "image_files", "dynamic_tools"),
    ],
)
def test_every_context_is_known(tag: str) -> None:
    assert transcript(
        line("user", query("Rye?", before=f"<{tag}>\nsecret\n</{tag}>\n\n"))
    ).said == [("Rye?", "")]


@pytest.mark.parametrize(
    "key",
    [
        "path",
        "file_path",
        "filePath",
        "target_file",
        "targetFile",
        "relativeWorkspacePath",
        "target_notebook",
    ],
)
def test_a_changed_file_has_had_many_names(key: str) -> None:
    parsed = transcript(
        line("user", query("Go")), line("assistant", use("Write", contents="x", **{key: "a.md"}))
    )
    assert parsed.exchanges[0].files == ("a.md",)


@pytest.mark.parametrize(
    ("tool", "changes"),
    [
        *(
            (name, True)
            for name in (
                "Edit",
                "MultiEdit",
                "Write",
                "StrReplace",
                "Delete",
                "EditNotebook",
                "ApplyPatch",
            )
        ),
        *(
            (name, True)
            for name in (
                "edit_file",
                "edit_file_v2",
                "search_replace",
                "write",
                "delete_file",
                "apply_patch",
            )
        ),
        *(
            (name, False)
            for name in ("Read", "Shell", "read_file", "list_dir", "TodoWrite", "overwrite_memory")
        ),
    ],
)
def test_some_tools_change_files(tool: str, *, changes: bool) -> None:
    parsed = transcript(line("user", query("Go")), line("assistant", use(tool, path="a.md")))
    assert parsed.exchanges[0].files == (("a.md",) if changes else ())


def test_an_image_in_a_transcript_comes_along_with_the_question() -> None:
    assert transcript(line("user", query("Done?"), {"type": "image"})).said == [
        ("Done?\n\n[image]", "")
    ]


def test_calls_in_a_transcript_are_lines_and_changed_files_are_named() -> None:
    calls = [
        use("Shell", command="ls\n-l"),
        use("StrReplace", path="oven.py", new_string="x"),
        use("Read", path="x.py"),
    ]
    results = line("user", {"type": "tool_result", "content": "secret"})
    parsed = transcript(
        line("user", query("Go")),
        line("assistant", block("Let me see."), *calls),
        results,
        line("assistant", block("Done.")),
    )
    assert parsed.said == [("Go", "Let me see.\n\nDone.")]
    assert parsed.exchanges[0].tools == ("[Shell] ls -l", "[StrReplace] oven.py", "[Read] x.py")
    assert parsed.exchanges[0].files == ("oven.py",)
    assert not parsed.unknown


def test_unknown_lines_are_counted_and_lose_no_others() -> None:
    odd = [
        line("system", block("x")),
        line("tool", block("x")),
        line("dreamer", block("x")),
        {"type": "odd"},
        {"x": 1},
    ]
    parsed = parse_transcript(
        cursor,
        MemoryTranscript(
            LINES,
            jsonl(*SPOKEN[:2], *odd, line("assistant", {"type": "dream"}))
            + b"{\n\n"
            + jsonl(*SPOKEN[2:]),
        ),
    )
    assert parsed.said == SAID
    assert parsed.unknown == {
        "dreamer": 1,
        "odd": 1,
        "record without a role": 1,
        "broken line": 1,
        "block dream": 1,
    }


def test_a_plain_transcript_is_read_in_its_order() -> None:
    parsed = plain(
        "user:\n<user_query>\nHow long does rye rise?\n</user_query>\n\nassistant:\nTwo hours.\n"
        "user:\nAnd wheat?\nassistant:\nOne hour."
    )
    assert parsed.said == SAID
    assert [exchange.id for exchange in parsed.exchanges] == ["at-0", "at-80"]
    assert (parsed.heads[0].session, parsed.project) == ("c1", "home-ann-bakery")


def test_the_steps_of_a_plain_transcript_are_no_prose() -> None:
    parsed = plain(
        "user:\nGo\nassistant:\n[Thinking]\n  secret\n\n  more\nLet me see.\n"
        "[Tool call] Shell\n  command=ls\n[Tool result] Shell\n  secret\n"
        "tool:\nsecret\nassistant:\n[Tool call] Read path=x.py\nDone:\n\n    indented\n"
    )
    assert parsed.said == [("Go", "Let me see.\n\nDone:\n\n    indented")]
    assert parsed.exchanges[0].tools == ("[Shell]", "[Read] path=x.py")


def test_speakers_in_a_fence_are_code() -> None:
    answer = "Like so:\n```yaml\nuser:\n  name: ann\nassistant:\n[Tool call] x\n```"
    parsed = plain(
        f"user:\n<user_query>\n```\nHow?\n</user_query>\nassistant:\n{answer}\nuser:\nThanks\n"
    )
    assert parsed.said == [("```\nHow?", answer), ("Thanks", "")]


def test_lines_before_the_first_speaker_are_counted() -> None:
    assert plain("odd\n\nuser:\nHello\n").unknown == {"text before the first message": 1}


@pytest.mark.parametrize("depth", range(800, 1000, 10))
def test_nesting_beyond_measure_and_numbers_beyond_measure_are_survived(depth: int) -> None:
    deep = f'{{"command": {"[" * depth}{"]" * depth}}}'
    bubble = f'{{"type": 2, "text": "x", "createdAt": 1{"0" * 400}, "toolFormerData": {{"name": "t", "params": {deep}}}}}'
    parsed = conversation(composer("u1", "a0", "u2", createdAt=10**400), **{**TALK, "a0": bubble})
    assert [question for question, _ in parsed.said] == ["How long does rye rise?", "And wheat?"]
    spoken = f'{{"role": "assistant", "message": {{"content": [{{"type": "tool_use", "name": "t", "input": {deep}}}]}}}}\n'
    assert (
        parse_transcript(
            cursor,
            MemoryTranscript(LINES, jsonl(*SPOKEN[:2]) + spoken.encode() + jsonl(*SPOKEN[2:])),
        ).said
        == SAID
    )


ROWS = {
    "composerData:c1": composer(
        *ALL, workspaceIdentifier={"uri": {"fsPath": "/x"}}, modelConfig={"modelName": "m"}
    ),
    "bubbleId:c1:u1": asked("Rye?", workspaceUris=["file:///x"], images=[1], richText="{}"),
    "bubbleId:c1:a1": answered(
        "Two.", createdAt=CREATED, toolFormerData={"name": "edit", "params": {"path": "x"}}
    ),
    "bubbleId:c1:u9": asked("Left?", createdAt="2026-05-01T10:00:00Z"),
    "composerData:c2": {"conversation": [asked("x", bubbleId="u1"), answered("y", bubbleId="a1")]},
}


OLDER = {
    "composer.composerData": {"allComposers": [{"composerId": "c9", "conversation": [asked("x")]}]}
}


def test_any_value_at_any_place_is_survived() -> None:
    for values in everywhere(ROWS):
        assert parse_transcript(
            cursor, database({key: json.dumps(each) for key, each in values.items()})
        ).exchanges
    for older in everywhere(OLDER):
        parse_transcript(
            cursor, database({}, {key: json.dumps(each) for key, each in older.items()})
        )
    for records in everywhere(
        [*SPOKEN[:2], line("assistant", use("Edit", path="x"), block("y")), {"type": "turn_ended"}]
    ):
        survives(cursor, LINES, jsonl(*records))


@given(mutated(ROWS), mutated(OLDER))
def test_no_database_raises(values: dict[str, object], older: dict[str, object]) -> None:
    parsed = parse_transcript(cursor, database(values, older))
    names = [(exchange.session, exchange.id) for exchange in parsed.exchanges]
    assert len(set(names)) == len(names)


@given(
    broken(
        [*SPOKEN, line("assistant", use("Edit", path="x"), block("y")), {"type": "turn_ended"}],
        lines=True,
    )
)
def test_no_transcript_raises(data: bytes) -> None:
    survives(cursor, LINES, data)


PIECES = [
    "user:",
    "assistant:",
    "tool:",
    "[Tool call] x",
    "[Thinking]",
    "  in",
    "",
    "```",
    "<user_query>",
    "</user_query>",
    "said",
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5)), st.binary(max_size=5))
def test_no_plain_transcript_raises(pieces: list[str], end: bytes) -> None:
    survives(cursor, PLAIN, "\n".join(pieces).encode("utf-8", "surrogatepass") + end)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant"]),
            st.sampled_from(["one", "two\n\nthree", "- four"]),
        ),
        min_size=1,
    )
)
def test_nothing_that_was_said_in_a_plain_transcript_is_lost(turns: list[tuple[str, str]]) -> None:
    parsed = plain("".join(f"{role}:\n{said}\n" for role, said in turns))
    words = [
        word
        for exchange in parsed.exchanges
        for text in (exchange.question, exchange.answer)
        for word in text.split()
    ]
    assert words == [word for _, said in turns for word in said.split()]


@pytest.mark.skipif(not SAMPLE.exists(), reason="the samples are not on this machine")
def test_the_sample_is_read_in_full() -> None:
    OPEN.append(sqlite3.connect(f"file:{SAMPLE}?mode=ro&immutable=1", uri=True))
    parsed = parse_transcript(
        cursor, MemoryTranscript(str(SAMPLE), SAMPLE.read_bytes(), database=OPEN[0])
    )
    assert [(each.session, each.question, each.answer) for each in parsed.exchanges] == [
        ("comp-fixture-headers", "User content from rawText", "Assistant content from content"),
        ("comp-fixture-remote-uri", "", "Workspace from vscode remote URI"),
        ("comp-fixture-file-uri", "Workspace from file URI", ""),
    ]
    assert [head.project for head in parsed.heads] == [
        "/workspace/cursor-fixture", "/home/ubuntu/remote-cursor", "/home/tester/cursor project",
    ]  # fmt: skip
    assert parsed.unknown == {"bubble 99": 1}
