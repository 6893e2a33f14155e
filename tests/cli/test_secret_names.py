"""No list of conversations shows a secret that a title, a folder, an id or a repository has."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from cli.conftest import Shell
from conversations.conftest import claude

from anchord.ipc.messages.sessions import SessionAnswer
from anchord.mcp.session_answers import sessions_answer

pytestmark = pytest.mark.usefixtures("pylance_here")

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
OTHER = "ghp_" + "27D8f53A383d7023F8821d949458Bf289C5b"


def make_repository(folder: Path) -> str:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    url = f"https://me:{SECRET}@example.org/me/{SECRET}.git"
    (folder / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n')
    return str(folder)


def test_no_list_of_sessions_shows_a_secret(shell: Shell) -> None:
    talk = claude(("Why?", "So."), session="s0")
    title = {"type": "custom-title", "customTitle": f"Deploy {SECRET}", "sessionId": "s0"}
    repository = make_repository(shell.base / "checkout")
    files = {
        "title.jsonl": talk + json.dumps(title).encode() + b"\n",
        "repository.jsonl": talk.replace(b"s0", b"s1").replace(
            b"/home/me/app", repository.encode()
        ),
        f"name-{SECRET}.jsonl": talk.replace(b"s0", b"s2"),
        f"folder-{SECRET}/s.jsonl": talk.replace(b"s0", b"s3"),
        "id.jsonl": talk.replace(b"s0", SECRET.encode()),
        "cwd.jsonl": talk.replace(b"s0", b"s4").replace(b"/me/app", f"/me/{SECRET}".encode()),
        f"agent-{SECRET}.jsonl": talk.replace(b'Sidechain": false', b'Sidechain": true'),
    }
    root = shell.base / ".claude" / "projects"
    for name, data in files.items():
        file = root / "-home-me-app" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    typed = {
        "display": SECRET,
        "timestamp": 1_760_000_000_000,
        "project": f"/x/{SECRET}",
        "sessionId": OTHER,
    }
    (root.parent / "history.jsonl").write_text(json.dumps(typed) + "\n")
    shell.configure("[[root]]", f'path = "{root}"', 'kind = "conversations"')
    assert shell("index").code == 0
    listed = shell("sessions", "--json", "--subagents", "-n", "0").json
    assert len(listed) == len(files)  # Without the sub-agent's, and with what was typed alone.
    assert len(shell("sessions", "--kept", "--json").json) == 1
    said = [shell(*words.split()).out for words in ("sessions -n 0", "sessions --kept", "discover")]
    said += [shell("sessions", *more, "--json").out for more in ([], ["--kept"])]
    said += [shell("session", "s1", *how).out for how in ([], ["--markdown"], ["--html"])]
    said.append(shell("sessions", "--project", "nope").err)
    said.append(json.dumps(sessions_answer(msgspec.convert(listed, list[SessionAnswer]))))
    assert [text for text in said if SECRET in text or OTHER in text] == []
    assert said[0].count("REDACTED") >= 3
