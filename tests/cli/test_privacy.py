"""No secret of a project file, a name or a conversation is in any file of the home; `privacy` says where they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Shell
from sources.secrets.examples import filled

GITHUB = filled("ghp_{36}")
ANTHROPIC = filled("sk-ant-api03-{93w}AA")
GITLAB = filled("glpat-{20}")
PASSWORD = filled("{6}7{6}")
SESSION = filled("npm_{36}")
STRIPE = filled("sk_live_{24}")
PLANTED = (GITHUB, ANTHROPIC, GITLAB, PASSWORD, SESSION, STRIPE)
KEY_FILE = "-----BEGIN PRIVATE KEY-----\n" + filled("{64b}") + "\n-----END PRIVATE KEY-----\n"


def line(kind: str, number: int, text: str) -> str:
    """Return a record of a session whose title, folder and id hold secrets."""
    return json.dumps({
        "type": kind, "uuid": f"{kind}{number}", "sessionId": f"s-{SESSION}", "cwd": f"/home/me/{GITLAB}/app",
        "timestamp": f"2026-01-0{number}T10:00:00Z", "message": {"role": kind, "content": text},
    })  # fmt: skip


def plant(shell: Shell) -> None:
    """Write files and a session that hold secrets."""
    shell.write("guide.md", f"# Deploy with {GITHUB}\n\nThe zebra key is {ANTHROPIC}.\n\nSecond.\n")
    shell.write("app.py", f'def connect():\n    return open_db(password="{PASSWORD}")  # giraffe\n')
    shell.write(f"backup-{STRIPE}.md", "# Walrus\n\nA file whose name holds a secret.\n")
    shell.write(f"{GITLAB}/inside.md", "# Penguin\n\nA file in such a folder.\n")
    shell.write("server.txt", KEY_FILE)
    shell.write("plain.md", "# Plain\n\nNothing to hide about the ostrich.\n")
    talks = shell.base / "talks"
    talks.mkdir()
    session = [
        json.dumps({"type": "summary", "summary": f"Fix {GITHUB}", "leafUuid": "assistant2"}),
        line("user", 1, f"Why does {ANTHROPIC} fail with the flamingo?"),
        line("assistant", 2, f"Because `curl -u me:{PASSWORD} https://example.org` is needed."),
    ]
    (talks / "s.jsonl").write_text("\n".join(session) + "\n")
    shell.configure(
        f'[[root]]\npath = "{shell.notes}"',
        f'[[root]]\npath = "{talks}"\nkind = "conversations"',
    )


def holding(home: Path) -> list[str]:
    """Return the files of a home that hold a planted value, but the configuration."""
    return [
        f"{file.relative_to(home)}: {planted[:8]}"
        for file in home.rglob("*")
        if file.is_file() and file.name != "config.toml"
        for planted in PLANTED
        if planted.encode() in file.read_bytes() or planted in str(file)
    ]


@pytest.fixture
def planted(shell: Shell) -> Shell:
    plant(shell)
    shell("index")
    return shell


def test_no_planted_secret_is_in_the_home_and_what_was_around_it_is_found(planted: Shell) -> None:
    assert holding(planted.home) == []
    rows = [json.loads(row) for row in planted("dump").out.splitlines()]
    dumped = json.dumps(rows)
    assert [value for value in PLANTED if value in dumped] == []
    for word in ("zebra", "giraffe", "Walrus", "Penguin", "ostrich", "flamingo"):
        assert word in dumped
    assert {row["path"] for row in rows} >= {
        "guide.md", "app.py", "backup-[REDACTED:stripe].md", "[REDACTED:gitlab]/inside.md",
    }  # fmt: skip
    assert any(row.get("project") == "/home/me/[REDACTED:gitlab]/app" for row in rows)
    assert not [row for row in rows if row["path"] == "server.txt"]


def test_a_redacted_file_is_read_again_only_when_it_changes(planted: Shell) -> None:
    assert "0 texts embedded now, 0 vectors reused" in planted("index").out


def test_lines_are_those_of_the_file(planted: Shell) -> None:
    rows = [json.loads(row) for row in planted("dump").out.splitlines()]
    (row,) = [row for row in rows if row["path"] == "guide.md"]
    assert (row["start_line"], row["end_line"]) == (1, 5)


def test_forget_leaves_no_planted_secret_and_no_name(planted: Shell) -> None:
    file = planted.notes / f"backup-{STRIPE}.md"
    assert planted("forget", "--yes", str(file)).code == 0
    assert holding(planted.home) == []
    assert "Walrus" not in planted("dump").out
    planted("index")
    assert "Walrus" not in planted("dump").out


def test_the_report_names_kinds_and_files_and_no_secret(planted: Shell) -> None:
    report = planted("privacy", "report", "--json").json
    by_path = {file["path"]: file["secrets"] for file in report["files"]}
    assert by_path["guide.md"] == {"anthropic": 1, "github": 1}
    assert by_path["app.py"] == {"assigned": 1}
    assert [file["path"] for file in report["left_out"]] == ["server.txt"]
    printed = planted("privacy", "report").out
    assert "guide.md" in printed
    assert [value for value in PLANTED if value in printed] == []


def test_check_names_the_line_and_not_the_secret_where_no_terminal_is(planted: Shell) -> None:
    checked = planted("privacy", "check", str(planted.notes / "guide.md"))
    assert checked.code == 1
    assert "1: github  # Deploy with [REDACTED:github]" in checked.out
    assert GITHUB not in checked.out
    assert planted("privacy", "check", str(planted.notes / "plain.md")).code == 0


def test_chunk_gives_the_ids_of_the_index(planted: Shell) -> None:
    chunked = planted("chunk", str(planted.notes / "guide.md"), "--json").json
    rows = [json.loads(row) for row in planted("dump").out.splitlines()]
    assert {each["id"] for each in chunked} == {
        row["id"] for row in rows if row["path"] == "guide.md"
    }


def test_files_whose_names_hold_a_secret_or_a_line_end_are_indexed(shell: Shell) -> None:
    shell.write("a\nb: c d.md", "# One\n\nThe zebra.\n")
    shell.write("f\ng: h i/two.md", "# Two\n\nThe giraffe.\n")
    talks = shell.base / "talks"
    talks.mkdir()
    for name in (f"password={PASSWORD}.txt", "passwd:1-5kzabc.txt"):
        (talks / name).write_text(f"User: Where is {name[:5]}?\n\nAssistant: The walrus has it.\n")
    shell.configure(
        f'[[root]]\npath = "{shell.notes}"',
        f'[[root]]\npath = "{talks}"\nkind = "conversations"',
    )
    assert shell("index").code == 0
    rows = [json.loads(row) for row in shell("dump").out.splitlines()]
    assert [row["path"] for row in rows if row["root"] == "notes"] == [
        "a\nb: c d.md",
        "f\ng: h i/two.md",
    ]
    assert sum("The walrus has it." in row["text"] for row in rows) == 2
    assert shell("verify").code == 0
    explained = shell("explain", str(shell.notes / "a\nb: c d.md"), "--json").json
    assert (explained["indexed"], explained["problem"]) == (True, None)


def test_off_replaces_nothing_and_conversations_leaves_files_alone(shell: Shell) -> None:
    plant(shell)
    configured = shell.config.read_text()
    shell.config.write_text(f'{configured}[privacy]\nredact = "conversations"\n')
    shell("index")
    dumped = shell("dump").out
    assert f"Deploy with {GITHUB}" in dumped
    assert "[REDACTED:anthropic] fail" in dumped
    shell.config.write_text(f"{configured}[privacy]\nredact = true\n")
    shell("index")
    assert GITHUB not in shell("dump").out
