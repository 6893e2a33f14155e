"""What a search shows: a budget of tokens, one hit for what several worktrees contain, and the window."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import PATIENCE_S, Shell

from anchord import open as open_engine
from anchord.core.token_counts import field_tokens

WORKTREES = 10
PARTS = 12
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x07\x1b]*(?:\x07|\x1b\\)")


def _page(part: int) -> str:
    lines = [f"# Part {part}", "", f"The wombat{part} of this part digs, number {part}."]
    lines += ["", "A wombat sleeps in the burrow. " * 6]
    return "\n".join(lines)


@pytest.fixture(scope="module", params=["index", "daemon"])
def shell(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shell]:
    """Return an index of ten worktrees of one repository, two of them roots, and of a guide."""
    made = Shell(tmp_path_factory.mktemp("c"))
    for number in range(WORKTREES):
        for part in range(PARTS):
            made.write(f"tree{number}/part{part}.md", _page(part))
    sections = ("Storage", "Retries", "Limits")
    guide = [
        f"## {name}\n\n" + "\n\n".join(f"{name} of the numbat, rule {n}. " * 9 for n in range(5))
        for name in sections
    ]
    made.write("guide/guide.md", "# Guide\n\n" + "\n\n".join(guide) + "\n")
    others = made.base / "others"
    for part in range(PARTS):
        file = others / f"part{part}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(_page(part))
    made.configure(f'[[root]]\npath = "{made.notes}"', f'[[root]]\npath = "{others}"')
    assert made("index").code == 0
    if request.param == "index":
        yield made
        return
    with made.daemon():
        assert made("sync").code == 0
        yield made


def _found(shell: Shell, *arguments: str, cwd: Path | None = None) -> list[list[dict[str, Any]]]:
    groups: list[list[dict[str, Any]]] = shell("search", *arguments, "--json", cwd=cwd).json[
        "groups"
    ]
    return groups


# One hit a content


def test_ten_hits_in_ten_worktrees_are_ten_contents_and_each_names_its_copies(
    shell: Shell,
) -> None:
    groups = _found(shell, "wombat burrow digs", "-k", "10")
    assert len({group[0]["content_hash"] for group in groups}) == len(groups) == 10
    best = groups[0][0]
    assert len(best["also_at"]) == WORKTREES
    assert {place["root"] for place in (best, *best["also_at"])} == {"notes", "others"}
    for copy in best["also_at"]:
        assert copy["file"].endswith(copy["path"])
        assert (copy["start_line"], copy["end_line"]) == (best["start_line"], best["end_line"])


@pytest.mark.parametrize("folder", ["notes/tree7", "others"])
def test_of_copies_the_one_below_the_callers_folder_is_shown(shell: Shell, folder: str) -> None:
    groups = _found(shell, "wombat burrow digs", cwd=shell.base / folder)
    assert len(groups) == 10
    inside = f"{shell.base / folder}/"
    assert all(hit["file"].startswith(inside) for group in groups for hit in group)


def test_without_a_callers_folder_all_are_shown_from_one_worktree(shell: Shell) -> None:
    groups = _found(shell, "wombat burrow digs")
    assert len({os.path.dirname(hit["file"]) for group in groups for hit in group}) == 1


def test_filters_hold_for_the_copy_that_is_shown_and_for_those_it_names(shell: Shell) -> None:
    for options, prefix in (
        (("--root", "others"), shell.base / "others"),
        (("--path", str(shell.notes / "tree3")), shell.notes / "tree3"),
    ):
        groups = _found(shell, "wombat burrow", *options, cwd=shell.notes / "tree7")
        assert len(groups) == 10
        files = [
            place["file"] for group in groups for hit in group for place in (hit, *hit["also_at"])
        ]
        assert all(file.startswith(f"{prefix}/") for file in files)


def test_the_terminal_names_the_copies_in_one_line(shell: Shell) -> None:
    printed = shell("search", "wombat7", "-k", "1", "--mode", "text", cwd=shell.notes / "tree7")
    head, copies, *_ = printed.out.splitlines()
    assert head.startswith("part7.md:3  Part 7  ")
    assert copies.startswith("  also in: ")
    assert copies.count("part7.md:1") == WORKTREES


# A budget


def test_a_budget_limits_what_is_shown_and_makes_sections_whole(shell: Shell) -> None:
    answer = shell("search", "numbat retries", "--budget", "700", "--json").json
    passages = [hit for group in answer["groups"] for hit in group]
    assert sum(field_tokens(hit["text"]) for hit in passages) <= 700
    best = passages[0]
    assert best["section"] == "Guide > Retries"
    assert len(best["ids"]) > 1
    assert "rule 0" in best["text"]
    assert "rule 4" in best["text"]
    unlimited = shell("search", "numbat retries", "--json").json
    assert unlimited["omitted"] == 0
    assert len(answer["groups"]) + answer["omitted"] == len(unlimited["groups"])


def test_a_budget_prints_whole_passages(shell: Shell) -> None:
    arguments = ("search", "numbat retries", "--budget", "700")
    answer = shell(*arguments, "--json").json
    printed = shell(*arguments).out
    for group in answer["groups"]:
        for hit in group:
            lines = [line for line in hit["text"].splitlines() if line.strip()]
            assert all(f"    {line}\n" in printed for line in lines)


def test_a_budget_that_is_no_budget_is_refused(shell: Shell) -> None:
    shell("search", "numbat", "--budget", "10").is_refused(2, "300")


def test_a_budget_and_a_folder_mean_the_same_in_python(shell: Shell) -> None:
    if (shell.home / "run" / "anchord.sock").exists():
        pytest.skip("the same code answers")
    with open_engine(shell.home) as index:
        inside = str(shell.notes / "tree7")
        answer = index.search("wombat burrow digs", budget=700, cwd=inside)
    passages = [passage for group in answer.groups for passage in group]
    assert sum(field_tokens(passage.text) for passage in passages) <= 700
    assert all((passage.file or "").startswith(inside) for passage in passages)
    assert answer.omitted > 0


# The window


def _on_a_terminal(shell: Shell, *arguments: str, columns: int, rows: int) -> list[str]:
    """Return what a command prints on a terminal of this size, without colours and links."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {"TERM": "xterm-256color", "COLUMNS": "", "LINES": ""}
    process = subprocess.Popen(
        [sys.executable, "-m", "anchord", *arguments],
        env=shell.environment | environment,
        cwd=shell.base,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=subprocess.DEVNULL,
    )
    os.close(terminal)
    output = b""
    try:
        while data := os.read(controller, 65_536):
            output += data
    except OSError:  # Linux reports the end of the other side in this way.
        pass
    os.close(controller)
    assert process.wait(PATIENCE_S) == 0
    assert b"\x1b[" in output
    return _ESCAPES.sub("", output.decode()).splitlines()


def test_on_a_terminal_the_best_hit_is_in_view_and_elsewhere_nothing_is_wrapped(
    shell: Shell,
) -> None:
    arguments = ("search", "wombat burrow digs")
    lines = _on_a_terminal(shell, *arguments, columns=60, rows=40)
    assert len(lines) <= 38
    assert all(len(line) <= 60 for line in lines)
    assert lines[0].split(":")[0].endswith(".md")
    assert "    A wombat sleeps in the burrow. A wombat sleeps in" in lines
    piped = shell(*arguments).out
    assert "    " + "A wombat sleeps in the burrow. " * 6 in piped
    assert "\x1b" not in piped
