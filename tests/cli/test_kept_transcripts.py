"""Transcripts without a conversation, damaged ones, and what is in the way of a restore."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from cli.conftest import BuiltOnce, Shell
from conversations.conftest import claude

from anchord.sources.conversations.kept import restore

pytestmark = pytest.mark.usefixtures("pylance_here")

TALK = "aaaaaaaa-0000-4000-8000-000000000001"
DATA = claude(("What is it?", "A parser. " * 40), ("And now?", "Nothing."), session=TALK)
SUBAGENT = DATA.replace(b'"isSidechain": false', b'"isSidechain": true')


def index(shell: Shell) -> None:
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"')
    shell.write(f"app/{TALK}.jsonl", DATA)
    shell.write(f"app/{TALK}/agent-1.jsonl", SUBAGENT)
    shell.write(f"copy/{TALK}.jsonl", DATA)
    assert shell("index").code == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index)


@pytest.fixture
def shell(built: BuiltOnce) -> Shell:
    return built.fresh()


@pytest.fixture
def talk(shell: Shell) -> Path:
    """The session's transcript, alone."""
    (shell.notes / "copy" / f"{TALK}.jsonl").unlink()
    assert shell("index").code == 0
    return shell.notes / "app" / f"{TALK}.jsonl"


def test_every_kept_transcript_is_listed_with_its_reason_read_and_restored(shell: Shell) -> None:
    listed = shell("sessions").out
    assert "2 more kept transcripts have no conversation of their own" in listed
    agent = shell.notes / f"app/{TALK}/agent-1.jsonl"
    (owner,) = shell("sessions", "--json").json
    copy = next(
        str(shell.notes / f"{folder}/{TALK}.jsonl")
        for folder in ("app", "copy")
        if not owner["path"].startswith(str(shell.notes / folder))
    )
    others = {each["path"]: each["note"] for each in shell("sessions", "--kept", "--json").json}
    assert others[str(agent)].startswith("nobody asked anything in it")
    assert others[copy] == f'what was said in it is in the session "{TALK}", too'
    assert others.keys() == {str(agent), copy}
    assert str(agent) in shell("sessions", "--kept").out
    assert "Nobody asked anything in it" in shell("session", str(agent)).out
    assert shell("session", f"./{agent.name}", "--json", cwd=agent.parent).json["kept"]
    assert "Nobody asked" in shell("session", str(agent), "--markdown").out
    assert "Nobody asked" in shell("session", str(agent), "--html").out
    shell("session", str(agent), "--resume").is_refused(2, "no conversation of its own")
    agent.unlink()
    assert shell("index").code == 0
    states = {each["path"]: each["state"] for each in shell("sessions", "--kept", "--json").json}
    assert states == {str(agent): "deleted", copy: "here"}
    assert shell("session", str(agent), "--restore").code == 0
    assert agent.read_bytes() == SUBAGENT
    assert shell("sessions", "--kept", "--root", "notes", "--agent", "codex").out == ""


@pytest.mark.parametrize(
    ("loss", "state"),
    [(DATA[:300], "shorter"), (bytes(len(DATA)), "damaged"), (DATA[:900] + bytes(99), "damaged")],
)
@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_transcript_that_lost_something_says_so_and_the_whole_one_is_offered(
    shell: Shell, talk: Path, loss: bytes, state: str, *, is_indexed: bool
) -> None:
    talk.write_bytes(loss)
    if is_indexed:
        assert shell("index").code == 0
    (listed,) = shell("sessions", "--json").json
    assert (listed["state"], listed["kept"]) == (state, True)
    assert state in shell("sessions").out
    assert state in shell("session", TALK, "--resume").err
    beside = str(talk.with_name(f"{TALK}.restored.jsonl"))
    refused = shell("session", TALK, "--restore")
    refused.is_refused(2, state, f"{len(DATA):,} bytes are kept", f"--to {beside}")
    assert talk.read_bytes() == loss
    assert shell("session", TALK, "--restore", "--to", beside).code == 0
    assert Path(beside).read_bytes() == DATA


def test_a_transcript_that_grew_has_lost_nothing(shell: Shell, talk: Path) -> None:
    talk.write_bytes(DATA + b"{}\n")
    assert [each["state"] for each in shell("sessions", "--json").json] == ["here"]


@pytest.mark.parametrize("is_root", [True, False])
def test_a_restore_follows_no_link_below_the_root_or_in_its_place(
    shell: Shell, talk: Path, *, is_root: bool
) -> None:
    outside = shell.base / "outside"
    link = shell.notes if is_root else talk.parent
    link.rename(outside)
    link.symlink_to(outside)
    for file in outside.rglob(f"{TALK}.jsonl"):
        file.unlink()
    before = sorted(outside.rglob("*"))
    refused = shell("session", TALK, "--restore")
    refused.is_refused(2, f'"{link}" is a symbolic link to "{outside}"', "--to FOLDER")
    assert sorted(outside.rglob("*")) == before
    assert shell("session", TALK, "--restore", "--to", str(link / "mine" / "talk.jsonl")).code == 0
    assert (outside / "mine" / "talk.jsonl").read_bytes() == DATA


def test_a_link_that_appears_during_a_restore_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="link"):
        restore.write_transcript([b"x"], str(tmp_path / "root"), "link/file")
    assert os.listdir(tmp_path / "outside") == []
    restore.write_transcript([b"x", b"y"], str(tmp_path / "root"), "a/b/file")
    assert (tmp_path / "root/a/b/file").read_bytes() == b"xy"
    with pytest.raises(FileExistsError):
        restore.write_transcript([b"z"], str(tmp_path / "root"), "a/b/file")
    assert os.listdir(tmp_path / "root/a/b") == ["file"]


def test_a_full_disk_is_told_and_leaves_nothing(
    shell: Shell, talk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk.unlink()

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    shell("session", TALK, "--restore").is_refused(75, "the disk of", "is full", "try again")
    assert os.listdir(talk.parent) == [TALK]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_a_full_disk_behind_the_output_of_a_session_can_pass(shell: Shell) -> None:
    printed = shell.script(f"$anchord session {TALK} > /dev/full")
    assert (printed.code, "no space left on device" in printed.err) == (75, True)


@pytest.mark.parametrize("thing", ["agent", "root", "project"])
def test_an_unknown_name_is_a_mistake_and_the_known_ones_are_listed(
    shell: Shell, thing: str
) -> None:
    known = {"agent": "claude-code", "root": "notes", "project": "app"}[thing]
    shell("sessions", f"--{thing}", "nope").is_refused(2, f'no {thing} "nope"', f'"{known}"')
    assert shell("sessions", "--project", "/nowhere").code == 0
    assert "Found none that match." in shell("sessions", "--project", "/nowhere").err
