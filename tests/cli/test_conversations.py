"""Conversation commands: add, search by session and time, show with neighbours, discover, check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import BuiltOnce, Shell
from conversations.conftest import answer, claude

from anchord.index import file_planner, reconcile
from anchord.search import answers

TURNS = [
    ("How do anchors keep their ids?", answer("anchor")),
    ("And what of the kittens?", "They sleep on the sofa."),
    ("Which day was it?", "A Friday."),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index_two_sessions)


@pytest.fixture
def talking(built: BuiltOnce) -> Shell:
    return built.fresh()


def index_two_sessions(shell: Shell) -> None:
    shell.configure(
        "[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"', 'name = "talks"'
    )
    shell.write("s1.jsonl", claude(*TURNS))
    shell.write(
        "s2.jsonl",
        claude(("What of the kittens in May?", "They grew."), session="s2").replace(
            b"2026-01-02", b"2026-05-02"
        ),
    )
    assert shell("index").code == 0


def test_an_exchange_is_one_group_with_what_is_reported_of_it(talking: Shell) -> None:
    groups = talking("search", "kittens", "--json").json["groups"]
    assert [group[0]["session"] for group in groups[:2]] == ["s1", "s2"] or [
        g[0]["session"] for g in groups[:2]
    ] == [
        "s2",
        "s1",
    ]
    (best,) = next(group for group in groups if group[0]["exchange_id"] == "q1-s1")
    said = "user: And what of the kittens?\n\nassistant: They sleep on the sofa."
    assert f"{said}\n\nuser: Which day was it?\n\nassistant: A Friday." in best["text"]
    assert best["heading"] == "How do anchors keep their ids?, project app, 2 January 2026"
    assert (best["source"], best["project"], best["model"]) == (
        "claude-code",
        "/home/me/app",
        "opus",
    )
    assert (best["at"], best["until"]) == ("2026-01-02T10:01:00.000Z", "2026-01-02T10:01:30.000Z")
    assert (best["turn"], best["part_index"], best["total_parts"]) == (2, 0, 1)
    assert best["file"] == str(talking.notes / "s1.jsonl")


@pytest.mark.parametrize(
    ("options", "sessions"),
    [
        ((), {"s1", "s2"}),
        (("--session", "s2"), {"s2"}),
        (("--since", "2026-03-01"), {"s2"}),
        (("--until", "2026-03-01"), {"s1"}),
        (("--since", "2026-01-02T10:01", "--until", "2026-01-02T10:01:59"), {"s1"}),
        (("--kind", "exchange"), {"s1", "s2"}),
        (("--kind", "markdown"), set()),
        (("--room", "general", "--session", "s1"), {"s1"}),
        (("--room", "planning"), set()),
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "text"])
def test_a_search_is_kept_to_a_session_a_time_a_kind_or_a_room(
    talking: Shell, options: tuple[str, ...], sessions: set[str], mode: str
) -> None:
    found = talking("search", "kittens", "--mode", mode, "--json", "-k", "50", *options).json[
        "groups"
    ]
    assert {
        hit["session"] for group in found for hit in group if "kittens" in hit["text"]
    } == sessions


def test_no_exchange_is_joined_that_the_query_excludes(talking: Shell) -> None:
    groups = talking("search", "sofa -Friday", "--json").json["groups"]
    (best,) = next(group for group in groups if group[0]["exchange_id"] == "q1-s1")
    assert "They sleep on the sofa." in best["text"]
    assert "Friday" not in best["text"]


def test_joined_exchanges_keep_to_a_budget(talking: Shell) -> None:
    small = talking("search", "kittens", "--json", "--budget", "300").json
    assert len(small["groups"]) == 1
    assert small["omitted"] == 3
    assert "kittens" in small["groups"][0][0]["text"]


def test_a_time_that_is_none_is_refused(talking: Shell) -> None:
    talking("search", "kittens", "--since", "someday").is_refused(
        2, 'cannot read "someday" as a date', "2026-01-31"
    )


def test_show_whole_prints_the_exchange_and_leads_to_its_neighbours(talking: Shell) -> None:
    (first, *_), *_ = talking("search", "anchors keep ids", "--json", "-k", "1").json["groups"]
    shown = talking("show", first["id"], "--whole", "--json").json
    assert len(shown["chunks"]) == first["total_parts"]
    assert {chunk["turn"] for chunk in shown["chunks"]} == {first["turn"]} == {1}
    talk = shown["conversation"]
    assert (talk["session"], talk["number"], talk["exchanges"], talk["previous"]) == (
        "s1",
        1,
        3,
        None,
    )
    assert talk["next"]["question"] == "And what of the kittens?"
    onward = talking("show", talk["next"]["id"], "--whole")
    assert "They sleep on the sofa." in onward.out
    assert "exchange 2 of 3" in onward.out
    assert "previous: anchord show" in onward.out


def test_explain_counts_the_exchanges_of_a_file_and_their_chunks(talking: Shell) -> None:
    result = talking("explain", str(talking.notes / "s1.jsonl"), "--json").json
    rows = [
        row
        for line in talking("dump").out.splitlines()
        if (row := json.loads(line))["session"] == "s1"
    ]
    assert (result["indexed"], result["exchanges"], result["chunks"]) == (True, 3, len(rows))
    assert (
        f"{len(rows)} chunks of 3 exchanges"
        in talking("explain", str(talking.notes / "s1.jsonl")).out
    )


def test_explain_knows_no_limit_for_a_file_of_conversations(
    talking: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 20_000
    for module in (answers, file_planner, reconcile):
        monkeypatch.setattr(module, "MAX_FILE_BYTES", limit)
    big = claude(("What is long?", "Very long it is. " * (limit // 17)), session="s3")
    talking.write("s3.jsonl", big)
    assert len(big) > limit
    assert talking("index").code == 0
    result = talking("explain", str(talking.notes / "s3.jsonl"), "--json").json
    assert (result["indexed"], result["exchanges"]) == (True, 1)
    assert result["chunks"] > 10
    assert result["decision"] in {
        "skip",
        "read",
    }  # It is read again: it changed within 2 s of the last read.


def test_status_of_the_roots_and_errors_name_what_cannot_be_read(talking: Shell) -> None:
    talking.write("odd.json", '{"a": 1}')
    (failure,) = talking("index", "--json").json["problems"]
    (root,) = talking("roots", "--json").json
    assert (root["kind"], root["files"]) == ("conversations", 2)
    assert failure["reason"] == "not a known conversation format: not indexed"


def test_a_running_daemon_takes_a_new_exchange_in_and_counts_it(talking: Shell) -> None:
    with talking.daemon():
        file = talking.notes / "s1.jsonl"
        with file.open("ab") as appending:
            appending.write(claude(("Where do the penguins live?", "In the south."), start=3))
        (best, *_), *_ = talking("search", "penguins", "--fresh", "--mode", "text", "--json").json[
            "groups"
        ]
        said = "user: Where do the penguins live?\n\nassistant: In the south."
        assert best["text"].endswith(said)
        file.unlink()
        assert talking("sync").code == 0
        assert talking("search", "penguins", "--mode", "text", "--json").json["groups"]
        (root,) = talking("status", "--json").json["roots"]
        result = root["conversations"]
        assert (result["sessions"], result["exchanges"], result["redacted"]) == (2, 5, {})
        assert talking("verify").code == 0


def test_a_planted_key_is_in_no_file_and_in_no_answer(talking: Shell) -> None:
    keys = ["AKIAZ7QRDVNN7HOLMWTB", f"ghp_{'a1B2c3D4e5' * 4}", "hunter2hunter2"]
    with talking.daemon():
        with (talking.notes / "s1.jsonl").open("ab") as appending:
            appending.write(
                claude(
                    (f"Use {keys[0]} and {keys[1]}?", f"With postgres://me:{keys[2]}@db/x."),
                    start=3,
                )
            )
        printed = [
            talking(*call).out
            for call in (
                ("sync",),
                ("search", "use postgres", "--json"),
                ("dump",),
                ("status", "--json"),
            )
        ]
        (root,) = talking("status", "--json").json["roots"]
        assert root["conversations"]["redacted"] == {"aws": 1, "github": 1, "password-in-url": 1}
    assert "REDACTED:aws" in printed[1]
    kept = [
        file
        for file in talking.base.rglob("*")
        if file.is_file() and talking.notes not in file.parents
    ]
    assert talking.base / "run.log" in kept
    for key in keys:
        assert not any(key in text for text in printed)
        assert [file for file in kept if key.encode() in file.read_bytes()] == []


def test_forget_takes_a_session_out_of_every_file(talking: Shell) -> None:
    assert talking("forget", "--yes", str(talking.notes / "s1.jsonl")).code == 0
    assert {
        hit["session"]
        for group in talking("search", "sofa", "--json").json["groups"]
        for hit in group
    } == {"s2"}
    data = b"".join(
        file.read_bytes() for file in (talking.home / "data").rglob("*") if file.is_file()
    )
    assert b"sleep on the sofa" not in data
    assert talking("index").code == 0
    assert {
        hit["session"]
        for group in talking("search", "sofa", "--json").json["groups"]
        for hit in group
    } == {"s2"}


def test_chunk_reads_a_file_of_conversations(talking: Shell) -> None:
    checked = talking("chunk", str(talking.notes / "s1.jsonl"), "--check", "--json").json
    assert (checked["ok"], checked["lines_not_covered"]) == (True, 0)
    chunks = talking("chunk", str(talking.notes / "s1.jsonl"), "--json").json
    assert {chunk["id"] for chunk in chunks} == {
        hit["id"]
        for group in talking(
            "search", "s", "--session", "s1", "-k", "50", "--show-chunks", "--json"
        ).json["groups"]
        for hit in group
    }


def test_004_19_discover_lists_and_with_yes_adds_what_is_there(shell: Shell) -> None:
    for name, session, day in (
        (".claude/projects/-home-me-app", "s1", b"2026-01-02"),
        (".config/claude/projects/x", "s2", b"2026-03-02"),
    ):
        folder = shell.base / name
        folder.mkdir(parents=True)
        transcript = claude(*TURNS, session=session).replace(b"2026-01-02", day)
        (folder / f"{session}.jsonl").write_bytes(transcript)
    (shell.base / ".codex" / "sessions").mkdir(parents=True)
    shell.configure()
    listed = shell("discover", "--json").json
    assert [(each["program"], each["files"], each["root"]) for each in listed] == [
        ("Claude Code", 1, ""),
        ("Claude Code", 1, ""),
    ]
    assert listed[0]["path"] == str(shell.base / ".claude" / "projects")
    assert "[[root]]" not in shell.config.read_text()
    assert shell("discover", "--add", "--yes").code == 0
    assert all(each["root"] for each in shell("discover", "--json").json)
    assert shell("index").code == 0
    assert {
        hit["session"]
        for group in shell("search", "kittens", "--json").json["groups"]
        for hit in group
    } == {"s1", "s2"}


def test_run_takes_a_folder_of_conversations(shell: Shell) -> None:
    shell.write("s1.jsonl", claude(*TURNS))
    try:
        assert shell.process("start", "--kind", "conversations", str(shell.notes)).code == 0
        assert shell("sync").code == 0
        (root,) = shell("roots", "--json").json
        assert (root["kind"], root["files"]) == ("conversations", 1)
    finally:
        assert shell.process("stop").code == 0
    assert Path(shell.home / "data" / "conversations.sqlite").exists()


def damage_contents(shell: Shell) -> None:
    """Overwrite all pages of the archive but the first: it opens, and no exchange can be read."""
    file = shell.home / "data" / "conversations.sqlite"
    data = bytearray(file.read_bytes())
    data[4 * 4096 :] = b"\xff" * (len(data) - 4 * 4096)
    file.write_bytes(data)


@pytest.mark.parametrize(
    "command", [("search", "kittens"), ("search", "kittens", "--json"), ("explain", "s1.jsonl")]
)
def test_a_command_that_meets_a_damaged_archive_says_so_in_one_line(
    talking: Shell, command: tuple[str, ...]
) -> None:
    damage_contents(talking)
    words = [str(talking.notes / word) if word.endswith("jsonl") else word for word in command]
    result = talking(*words)
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "conversations.sqlite is damaged" in result.err
    assert "anchord restart" in result.err


def test_doctor_finds_a_damaged_archive(talking: Shell) -> None:
    assert "4 exchanges, its pages are sound" in talking("doctor").out
    damage_contents(talking)
    result = talking("doctor")
    assert result.code == 1
    assert "conversations.sqlite is damaged" in result.out
