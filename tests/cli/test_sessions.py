"""Transcripts that are deleted: listed, shown, restored byte for byte, also on another machine."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import BuiltOnce, Shell
from conversations.conftest import answer, claude
from rich.cells import cell_len

from anchord.cli.output.markup import _render
from anchord.cli.output.session_table import session_lines
from anchord.ipc.messages.sessions import SessionAnswer

pytestmark = pytest.mark.usefixtures("pylance_here")

CLAUDE = "aaaaaaaa-0000-4000-8000-000000000001"
CODEX = "bbbbbbbb-0000-7000-8000-000000000002"
GEMINI = "cccccccc-0000-4000-8000-000000000003"
PI = "dddddddd-0000-4000-8000-000000000004"
SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def claude_session(number: int = 1) -> tuple[str, bytes]:
    session = CLAUDE[:-2] + f"{number:02}"
    said = f"```python\nprint({number})\n```\nThe token is {SECRET}. A List<int>, `a<b`."
    data = claude(("Why is <b>it</b> slow?", said), ("And now?", answer("now")), session=session)
    return f".claude/projects/-home-me-app/{session}.jsonl", data


def codex_session(number: int = 2) -> tuple[str, bytes]:
    session = CODEX[:-2] + f"{number:02}"
    records: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": session, "cwd": "/home/me/app"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Build the parser"}},
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "It is built."}},
    ]
    lines = [json.dumps({"timestamp": "2026-02-01T10:00:00.000Z", **each}) for each in records]
    name = f"rollout-2026-02-01T10-00-00-{session}.jsonl"
    return f".codex/sessions/2026/02/01/{name}", "\n".join([*lines, ""]).encode()


def gemini_session(number: int = 3) -> tuple[str, bytes]:
    session = GEMINI[:-2] + f"{number:02}"
    at = {"timestamp": "2026-03-01T10:00:00.000Z"}
    document = {
        "sessionId": session,
        "projectHash": "0" * 64,
        "startTime": at["timestamp"],
        "lastUpdated": at["timestamp"],
        "messages": [
            {"id": "1", "type": "user", "content": "Name a colour", **at},
            {"id": "2", "type": "gemini", "content": "Blue.", **at},
        ],
    }
    name = f"session-2026-03-01T10-00-{number:08}.json"
    return f".gemini/tmp/{'0' * 64}/chats/{name}", json.dumps(document, indent=2).encode()


def pi_session(number: int = 4) -> tuple[str, bytes]:
    session = PI[:-2] + f"{number:02}"
    records: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": session, "cwd": "/home/me/app"},
        {
            "type": "message",
            "id": "m1",
            "parentId": None,
            "message": {"role": "user", "content": "Rename it"},
        },
        {
            "type": "message",
            "id": "m2",
            "parentId": "m1",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Renamed."}]},
        },
    ]
    lines = [json.dumps({"timestamp": "2026-04-01T10:00:00.000Z", **each}) for each in records]
    name = f"2026-04-01T10-00-00-000Z_{session}.jsonl"
    return f".pi/agent/sessions/--home-me-app--/{name}", "\n".join([*lines, ""]).encode()


AGENTS = (claude_session, codex_session, gemini_session, pi_session)


def index(shell: Shell) -> None:
    for make in AGENTS:
        path, data = make()
        file = shell.base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    shell.configure()
    assert shell("discover", "--add", "--yes").code == 0
    assert shell("index").code == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index)


@pytest.fixture
def shell(built: BuiltOnce) -> Shell:
    return built.fresh()


@pytest.fixture(scope="module")
def built_and_swept(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index_and_sweep)


@pytest.fixture
def swept(built_and_swept: BuiltOnce) -> Shell:
    """Every assistant has deleted its transcripts."""
    return built_and_swept.fresh()


def index_and_sweep(shell: Shell) -> None:
    index(shell)
    for make in AGENTS:
        (shell.base / make()[0]).unlink()
    assert shell("index").code == 0


def test_deleted_transcripts_are_listed_and_restored_byte_for_byte(swept: Shell) -> None:
    listed = swept("sessions", "--json").json
    assert [(each["id"], each["state"], each["kept"]) for each in listed] == [
        (PI, "deleted", True),
        (GEMINI, "deleted", True),
        (CODEX, "deleted", True),
        (CLAUDE, "deleted", True),
    ]
    for session, make in zip((CLAUDE, CODEX, GEMINI, PI), AGENTS, strict=True):
        path, data = make()
        said = swept("session", session[:8], "--restore").out
        assert said == f'Restored "{swept.base / path}" ({len(data):,} bytes).\n'
        assert (swept.base / path).read_bytes() == data
        assert "is there already, with the same" in swept("session", session, "--restore").out
    assert swept("index").code == 0
    assert {each["state"] for each in swept("sessions", "--json").json} == {"here"}


def test_a_transcript_without_an_exchange_is_restored_by_its_path(shell: Shell) -> None:
    path, data = codex_session(9)
    first_line = data.splitlines(keepends=True)[0]
    file = shell.base / path
    file.write_bytes(first_line)
    assert shell("index").code == 0
    file.unlink()
    assert shell("index").code == 0
    assert len(shell("sessions", "--json").json) == len(AGENTS)
    said = shell("session", str(file), "--restore").out
    assert said == f'Restored "{file}" ({len(first_line)} bytes).\n'
    assert file.read_bytes() == first_line
    shell("session", f"{file}x", "--restore").is_refused(2, "no session")


def test_a_file_that_is_in_the_way_is_left_as_it_is(swept: Shell) -> None:
    file = swept.base / claude_session()[0]
    file.write_bytes(b"mine\n" * 1_000)
    swept("session", CLAUDE, "--restore").is_refused(2, "is another file", "--to FILE")
    assert file.read_bytes() == b"mine\n" * 1_000
    elsewhere = swept.base / "elsewhere.jsonl"
    assert swept("session", CLAUDE, "--restore", "--to", str(elsewhere)).code == 0
    assert elsewhere.read_bytes() == claude_session()[1]
    file.write_bytes(claude_session()[1] + b"{}\n")
    assert "and more" in swept("session", CLAUDE, "--restore").out


def test_what_a_transcript_lost_is_restored(shell: Shell) -> None:
    path, data = claude_session()
    (shell.base / path).write_bytes(data[:200])
    assert shell("index").code == 0
    (shell.base / path).unlink()
    said = shell("session", CLAUDE, "--restore").out
    assert (shell.base / path).read_bytes() == data
    assert "It has 2 versions: " in said
    whole, cut = re.findall(r"([0-9a-f]{8}) of ", said)
    (shell.base / path).unlink()
    assert shell("session", CLAUDE, "--restore", "--version", cut).code == 0
    assert (shell.base / path).read_bytes() == data[:200]
    # Its name stays the same when another state goes on, and is the latest then.
    (shell.base / path).write_bytes(data[:400])
    assert shell("index").code == 0
    (shell.base / path).unlink()
    assert shell("session", CLAUDE, "--restore", "--version", whole[:4]).code == 0
    assert (shell.base / path).read_bytes() == data
    shell("session", CLAUDE, "--restore", "--version", "N").is_refused(2, "no version", whole)


def test_a_session_reads_as_a_chat_as_markdown_and_as_html(swept: Shell) -> None:
    shown = swept("session", CLAUDE[:9]).out
    assert "Why is <b>it</b> slow?" in shown
    assert "Claude Code, project app, 02 Jan 2026" in shown
    assert "A List<int>, a<b." in shown
    assert "transcript was deleted, and can be restored" in " ".join(shown.split())
    markdown = swept("session", CLAUDE, "--markdown").out
    assert "```python\nprint(1)\n```" in markdown
    page = swept("session", CLAUDE, "--html").out
    assert "<b>it</b>" not in page
    assert "&lt;b&gt;it&lt;/b&gt;" in page
    assert "<pre><code>print(1)\n</code></pre>" in page
    assert "<script" not in page
    for text in (shown, markdown, page, swept("session", CLAUDE, "--json").out):
        assert SECRET not in text
    assert len(swept("session", CLAUDE, "--json").json["exchanges"]) == 2


def test_the_command_that_resumes_a_session_is_printed(shell: Shell) -> None:
    assert shell("session", CODEX, "--resume").out == f"codex resume {CODEX}\n"
    path = shell.base / pi_session()[0]
    assert shell("session", PI, "--resume").out == f"pi --session {path}\n"
    shell("session", CODEX, "--resume", "--run", PATH="/nowhere").is_refused(2, "is not installed")
    (shell.base / codex_session()[0]).unlink()
    assert "--restore" in shell("session", CODEX, "--resume").err
    shell("session", CODEX, "--resume", "--run").is_refused(2, "transcript is not there")


@pytest.mark.parametrize("width", [60, 80, 106, 120])
def test_the_table_fits_the_terminal(width: int) -> None:
    session = SessionAnswer(
        id=CLAUDE,
        agent="vscode-copilot",
        project="a-project-with-a-long-name",
        project_path="/p",
        title="\u4e16\u754c [bold] " * 20,
        started_at="",
        last_at="2026-01-02T10:00:00.000Z",
        turns=1234,
        files=567,
        state="prompts-only",
        path="",
        root="talks",
    )
    lines = list(session_lines([session, session], width, datetime(2026, 2, 1, tzinfo=UTC)))
    plain = [_render(line, with_codes=False) for line in lines]
    assert max(map(cell_len, plain)) <= width, plain
    assert "1,234 turns" in plain[0]


def test_keep_raw_false_keeps_what_was_said_alone(shell: Shell) -> None:
    shell.write("s1.jsonl", claude(("What?", "That."), session=CLAUDE.replace("a", "e")))
    shell.configure(
        "[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"', "keep_raw = false"
    )
    assert shell("index").code == 0
    (listed,) = shell("sessions", "--root", "notes", "--json").json
    assert not listed["kept"]
    shell("session", listed["id"], "--restore").is_refused(2, "is not kept, only what was said")


def test_forget_erases_the_bytes_too_also_of_a_moved_transcript(shell: Shell) -> None:
    database = shell.home / "data" / "transcripts.sqlite"
    path, data = claude_session()
    moved = (shell.base / path).parent / "moved" / Path(path).name
    moved.parent.mkdir()
    shutil.move(shell.base / path, moved)
    assert shell("index").code == 0
    assert shell("forget", "--yes", str(moved)).code == 0
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT count(*) FROM versions").fetchone() == (len(AGENTS) - 1,)
    # A copy under another name is read, and nothing of it is kept.
    moved.with_name("copy.jsonl").write_bytes(data)
    assert shell("index").code == 0
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT count(*) FROM versions").fetchone() == (len(AGENTS) - 1,)
    assert shell("forget", "--undo", str(moved)).code == 0
    assert shell("index").code == 0
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT count(*) FROM versions").fetchone()[0] >= len(AGENTS)


def test_forget_erases_a_deleted_transcript_that_the_forgotten_one_resumed(shell: Shell) -> None:
    database = shell.home / "data" / "transcripts.sqlite"
    path, data = claude_session()
    first = shell.base / path
    resumed = first.with_name(CLAUDE.replace("a", "f") + ".jsonl")
    # The lines of the first, with the ids of their messages and another id of the session.
    lines = [{**json.loads(each), "sessionId": resumed.stem} for each in data.splitlines()]
    resumed.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    assert shell("index").code == 0
    first.unlink()
    assert shell("index").code == 0
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT count(*) FROM versions").fetchone() == (len(AGENTS) + 1,)
    assert shell("forget", "--yes", str(resumed)).code == 0
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT count(*) FROM versions").fetchone() == (len(AGENTS) - 1,)


def test_bytes_that_were_away_when_their_file_was_forgotten_are_erased_at_the_next_start(
    shell: Shell,
) -> None:
    database = shell.home / "data" / "transcripts.sqlite"
    away = database.with_name("away")
    database.rename(away)
    assert shell("forget", "--yes", str(shell.base / claude_session()[0])).code == 0
    away.replace(database)
    assert shell("index").code == 0
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("SELECT count(*) FROM versions").fetchone() == (len(AGENTS) - 1,)


def test_lost_and_damaged_bytes_are_told_and_kept_again(shell: Shell) -> None:
    database = shell.home / "data" / "transcripts.sqlite"
    database.unlink()
    said = shell("index")
    assert (said.code, "file of kept transcripts was missing: it had 4" in said.err) == (0, True)
    assert all(each["kept"] for each in shell("sessions", "--json").json)
    database.write_bytes(b"no database at all " * 1_000)
    said = shell("index")
    assert (said.code, "kept transcripts was damaged" in said.err) == (0, True)
    assert all(each["kept"] for each in shell("sessions", "--json").json)
    assert "has all of its 1 session, byte for byte" in shell("doctor").out


def test_transcripts_in_the_trash_lose_their_bytes_with_it(shell: Shell) -> None:
    path, _ = claude_session()
    text = shell.config.read_text()
    shell.config.write_text(
        text.replace('kind = "conversations"', 'kind = "conversations"\non_delete = "delete"')
    )
    (shell.base / path).unlink()
    assert shell("index").code == 0
    assert len([each for each in shell("sessions", "--json").json if each["kept"]]) == 4
    with closing(sqlite3.connect(shell.home / "data" / "conversations.sqlite")) as db:
        db.execute("DELETE FROM exchanges WHERE root IN (SELECT key FROM detached)")
        db.commit()
    assert shell("index").code == 0
    with closing(sqlite3.connect(shell.home / "data" / "transcripts.sqlite")) as db:
        # The file was gone for seconds, and not for 30 days.
        assert db.execute("SELECT count(*) FROM versions").fetchone() == (4,)
        assert db.execute("UPDATE files SET gone_ns=1 WHERE gone_ns>0").rowcount == 1
        db.commit()
    assert shell("index").code == 0
    with closing(sqlite3.connect(shell.home / "data" / "transcripts.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM versions").fetchone() == (3,)


def test_no_bytes_are_erased_when_the_archive_was_lost(shell: Shell) -> None:
    text = shell.config.read_text()
    shell.config.write_text(
        text.replace('kind = "conversations"', 'kind = "conversations"\non_delete = "delete"')
    )
    (shell.base / claude_session()[0]).unlink()
    assert shell("index").code == 0
    with closing(sqlite3.connect(shell.home / "data" / "transcripts.sqlite")) as db:
        db.execute("UPDATE files SET gone_ns=1")
        db.commit()
    for file in (shell.home / "data").glob("conversations.sqlite*"):
        file.unlink()
    assert shell("index").code == 0
    with closing(sqlite3.connect(shell.home / "data" / "transcripts.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM versions").fetchone() == (4,)


def test_doctor_warns_of_transcripts_that_will_be_deleted(shell: Shell) -> None:
    (shell.base / ".claude" / "settings.json").write_text('{"cleanupPeriodDays": 7}')
    assert "after 7 days" in shell("doctor").out
    path, data = claude_session()
    (shell.base / path).with_name("new.jsonl").write_bytes(data.replace(b"-0000-", b"-1111-"))
    assert "of its 2 sessions, 1 is not archived yet" in shell("doctor").out
    shell.configure()
    assert "its 2 sessions in" in shell("doctor").out
    (shell.base / path).unlink()
    assert "is not indexed" in shell("doctor").out


def test_doctor_does_not_count_a_transcript_as_kept_that_is_not(shell: Shell) -> None:
    database = shell.home / "data" / "transcripts.sqlite"
    file = shell.base / claude_session()[0]
    assert "byte for byte" in shell("doctor").out
    data = file.read_bytes()
    file.write_bytes(data + b"{}\n")
    assert "1 transcript is not kept byte for byte" in shell("doctor").out
    assert shell("index").code == 0
    assert "has all of its 1 session, byte for byte" in shell("doctor").out
    with closing(sqlite3.connect(database)) as db:  # As of a file that outgrew the limit.
        db.execute("UPDATE versions SET size=size-1")
        db.commit()
    assert "1 transcript is not kept byte for byte" in shell("doctor").out
    with closing(sqlite3.connect(database)) as db:  # As of a file that may not be kept.
        db.execute("DELETE FROM versions")
        db.commit()
    assert "1 transcript is not kept byte for byte" in shell("doctor").out


def moved_home(shell: Shell, base: Path) -> Shell:
    """Back up, and restore in the home of another machine, where the assistants are installed."""
    backups = shell.base / "backups"
    assert shell("backup", str(backups)).code == 0
    other = Shell(base)
    shutil.rmtree(other.home)
    other.home.mkdir(mode=0o700)
    for folder in (".claude/projects", ".codex/sessions", ".gemini/tmp", ".pi/agent/sessions"):
        (other.base / folder).mkdir(parents=True)
    assert other("restore", str(backups), "--map", f"{shell.base}={other.base}").code == 0
    return other


def test_a_swept_home_is_restored_on_another_machine(swept: Shell, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = moved_home(swept, tmp_path / "other")
    shutil.rmtree(swept.home)
    for folder in (".claude", ".codex", ".gemini", ".pi"):
        shutil.rmtree(swept.base / folder)
    assert other("index").code == 0
    assert [each["state"] for each in other("sessions", "--json").json] == ["deleted"] * 4
    for session, make in zip((CLAUDE, CODEX, GEMINI, PI), AGENTS, strict=True):
        path, data = make()
        assert other("session", session, "--restore").code == 0
        assert (other.base / path).read_bytes() == data


def test_without_the_roots_folder_it_is_said_where_the_program_looks(swept: Shell) -> None:
    shutil.rmtree(swept.base / ".codex")
    swept("session", CODEX, "--restore").is_refused(2, "does not exist on this machine", "--to ")


def test_sessions_that_were_gone_before_are_listed_with_their_prompts(shell: Shell) -> None:
    gone = "eeeeeeee-0000-4000-8000-000000000005"
    typed = [
        {
            "display": "Write a parser",
            "timestamp": 1_750_000_000_000,
            "project": "/home/me/old",
            "sessionId": gone,
        },
        {
            "display": f"use {SECRET}",
            "timestamp": 1_750_000_060_000,
            "project": "/home/me/old",
            "sessionId": gone,
        },
        {"display": "known", "timestamp": 1_750_000_000_000, "project": "/p", "sessionId": CLAUDE},
        {"display": "of an old version", "timestamp": 1_750_000_000_000, "project": "/p"},
    ]
    history = "".join(f"{json.dumps(each)}\n" for each in typed) + "{torn"
    (shell.base / ".claude" / "history.jsonl").write_text(history)
    codex = json.dumps({"session_id": CODEX.replace("b", "f"), "ts": 1_760_000_000, "text": "hi"})
    (shell.base / ".codex" / "history.jsonl").write_text(codex)
    listed = {each["id"]: each for each in shell("sessions", "--json").json}
    assert len(listed) == 6
    only = listed[gone]
    assert (only["state"], only["title"], only["turns"], only["kept"]) == (
        "prompts-only",
        "Write a parser",
        2,
        False,
    )
    assert (only["project"], only["last_at"]) == ("old", "2025-06-15T15:07:40.000Z")
    shown = shell("session", gone[:8]).out
    assert "only the prompts are known" in " ".join(shown.split())
    assert SECRET not in shown
    folder = str(shell.base / ".claude" / "projects" / "-home-me-old")
    Path(folder).mkdir()
    assert shell("forget", "--yes", folder).code in {0, 1}
    assert gone not in shell("sessions", "--json").out


@pytest.mark.slow
def test_fifty_sessions_of_four_agents_survive_a_sweep_and_a_move(tmp_path: Path) -> None:
    base = tmp_path / "one"
    base.mkdir()
    shell = Shell(base)
    written = {}
    for number in range(50):
        path, data = AGENTS[number % 4](number)
        file = base / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        written[path] = data
    shell.configure()
    assert shell("discover", "--add", "--yes").code == 0
    assert shell("index").code == 0
    for path in written:
        (base / path).unlink()
    # A mass deletion is held for a confirmation, and changes nothing of this.
    assert shell("index").code in {0, 1}
    (tmp_path / "two").mkdir()
    other = moved_home(shell, tmp_path / "two")
    shutil.rmtree(base)
    assert other("index").code == 0
    listed = other("sessions", "-n", "0", "--json").json
    assert len(listed) == 50
    for each in listed:
        assert other("session", each["id"], "--restore").code == 0
    assert all((other.base / path).read_bytes() == data for path, data in written.items())
