"""`worktrees = "one"` through the commands: index, explain, status, search and verify agree."""

from __future__ import annotations

import subprocess

import pytest
from cli.conftest import CATS, Shell


@pytest.fixture
def checkouts(shell: Shell) -> Shell:
    """Give an index of a repository with a worktree: one file is the same in both."""
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'name = "notes"', 'worktrees = "one"')
    shell.write("main/cats.md", CATS)
    for command in (
        "git init -q main && cd main && git add . && git -c user.name=a -c user.email=b commit -qm x",
        "cd main && git worktree add -q ../other",
    ):
        subprocess.run(["bash", "-c", command], cwd=shell.notes, env=shell.environment, check=True)
    shell.write("other/dogs.md", "# Dogs\n\nThe dog barks.\n")
    assert shell("index", "--json").json["files"] == 2
    return shell


def explained(shell: Shell, path: str) -> tuple[bool, str]:
    answer = shell("explain", str(shell.notes / path), "--json").json
    return answer["indexed"], answer["last_reason"]


def test_explain_names_the_file_that_stands_for_one(checkouts: Shell) -> None:
    reason = "equal to the main checkout's notes:main/cats.md"
    assert explained(checkouts, "other/cats.md") == (False, reason)
    printed = checkouts("explain", str(checkouts.notes / "other/cats.md")).out
    assert reason in printed
    assert explained(checkouts, "other/dogs.md")[0]


def test_a_search_finds_the_text_once_and_verify_agrees(checkouts: Shell) -> None:
    groups = checkouts("search", "kitten", "--mode", "text", "--json").json["groups"]
    assert [hit["path"] for group in groups for hit in group] == ["main/cats.md"]
    assert checkouts("verify").code == 0


def test_an_edit_of_the_main_file_brings_the_other_back(checkouts: Shell) -> None:
    checkouts.write("main/cats.md", CATS + "It purrs.\n")
    assert checkouts("index", "--json").json["files"] == 3
    assert explained(checkouts, "other/cats.md")[0]
    assert checkouts("verify").code == 0


def test_status_counts_what_is_left_out(checkouts: Shell) -> None:
    with checkouts.daemon():
        assert checkouts("sync").code == 0
        (root,) = checkouts("status", "--json").json["roots"]
        assert (root["files"], root["left_out"]) == (2, 1)
        assert "2 files, 2 chunks, 1 equal to the main checkout" in checkouts("status").out


def test_all_worktrees_come_back_without_the_option(checkouts: Shell) -> None:
    checkouts.configure("[[root]]", f'path = "{checkouts.notes}"', 'name = "notes"')
    assert checkouts("index", "--json").json["files"] == 3
    assert checkouts("verify").code == 0
