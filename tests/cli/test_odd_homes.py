"""Homes whose names have characters that are special in URIs, SQL or a shell; one is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Shell, until

pytestmark = pytest.mark.usefixtures("pylance_here")
NAMES = (
    "a?b=c&d",
    "a#b",
    "a%20b%",
    "two  words ",
    'it\'s "so"; $x `y`',
    "ä漢 e\u0301 \u2028",
    "back\\slash*[x]{y}",
    "s3:",
    "-x ~",
)
REFUSED = {
    "line\nbreak": "control character",
    "tab\tstop": "control character",
    "delete\x7f": "control character",
    "escape\x1b[2J": "control character",
    "caf\udce9": "is not valid UTF-8",
}


def settings(home: Path) -> dict[str, Any]:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('embedding.provider = "hash"\n')
    return {"ANCHORD_HOME": str(home)}


@pytest.mark.parametrize("name", NAMES)
def test_everything_works_in_a_home_with_an_odd_name(shell: Shell, name: str) -> None:
    home = settings(shell.base / name)
    other: dict[str, Any] = {"ANCHORD_HOME": str(shell.base / f"{name}2")}
    target = str(shell.base / f"{name}3")
    shell.write("a.md", "# One\n\nA wombat digs.\n")
    for command in (
        ["index", str(shell.notes)],
        ["verify", "--vectors", "all"],
        ["backup", target],
        ["backup", "--check", target],
        ["doctor"],
    ):
        done = shell(*command, **home)
        assert done.code == 0, done
    assert sorted(path.name for path in (shell.base / name / "data" / "lance").iterdir()) == [
        "chunks.lance"
    ]
    restored = shell("restore", target, **other)
    assert restored.code == 0, restored
    assert "wombat" in shell("search", "wombat", **other).out
    assert shell("verify", **other).code == 0
    assert shell("dump", **other).out == shell("dump", **home).out


def test_the_daemon_works_in_a_home_with_an_odd_name(shell: Shell) -> None:
    odd = shell.base / "a?b#c%20d 'e' 漢"
    shell.environment |= settings(odd)
    shell.home = odd
    shell.write("a.md", "# One\n\nA wombat digs.\n")
    (odd / "config.toml").write_text(
        f'embedding.provider = "hash"\n[[root]]\npath = "{shell.notes}"\n'
    )
    with shell.daemon():
        assert shell("sync").code == 0
        shell.write("b.md", "# Two\n\nAn aardvark eats.\n")
        until(lambda: "aardvark" in shell("search", "aardvark", "--mode", "text").out)
        assert shell("verify").code == 0
        assert shell("backup", str(shell.base / "b?#%")).code == 0


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("command", ["index", "search", "status", "start", "doctor"])
def test_a_home_that_the_table_could_not_be_in_is_refused_at_once(
    shell: Shell, name: str, command: str
) -> None:
    home = shell.base / name
    arguments = [command, "words"] if command == "search" else [command]
    done = shell(*arguments, ANCHORD_HOME=str(home))
    assert REFUSED[name] in done.err + done.out
    assert "set ANCHORD_HOME to a folder with another name" in (done.err + done.out).replace(
        "\n", " "
    )
    assert name not in done.err + done.out
    assert done.code == (1 if command == "doctor" else 2)
    assert not home.exists()


@pytest.mark.parametrize(
    "name",
    [
        "conversations.sqlite",
        "state.sqlite",
        "vectors.sqlite",
        "parsing",
        "poison.json",
        "backup.json",
        "asked.json",
        "seen.json",
    ],
)
def test_a_named_pipe_in_the_place_of_a_file_of_the_home_holds_nothing_up(
    shell: Shell, name: str
) -> None:
    shell.write("a.md", "# One\n\nA wombat digs.\n")
    shell.configure(f"[[root]]\npath = '{shell.notes}'")
    assert shell("index").code == 0
    file = shell.home / "data" / name
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    for command in (["index"], ["search", "wombat", "--mode", "text"], ["verify"], ["doctor"]):
        done = shell(*command)
        assert done.code in {0, 1, 75}, done
        assert done.code == 0 or command == ["doctor"] or "is not a file" in done.err
    file.unlink(missing_ok=True)
    assert shell("index").code == 0
    assert "wombat" in shell("search", "wombat", "--mode", "text").out
