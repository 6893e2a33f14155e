"""`blame`, and the filters of `search` for conversations: who changed a file, where, with what, on which branch."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import BuiltOnce, Shell

from anchord.core.types import Row
from anchord.sources.files.git_blame import blame_lines, parse_porcelain
from anchord.store.table.table import LanceStore

GIT = {
    "GIT_AUTHOR_NAME": "Ada [bold]\x1b[31m", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | GIT, check=True, capture_output=True
    )


def said(
    session: str,
    day: int,
    project: Path,
    question: str,
    calls: list[tuple[str, dict[str, Any]]],
    *,
    branch: str = "main",
) -> bytes:
    """Return a Claude Code session of one exchange with tool calls."""
    common = {"sessionId": session, "cwd": str(project), "gitBranch": branch, "isSidechain": False}
    at = f"2026-01-{day:02}T10:00"
    blocks: list[dict[str, Any]] = [{"type": "text", "text": f"Done: {question}"}]
    blocks += [
        {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}
        for number, (name, arguments) in enumerate(calls)
    ]
    lines = [
        {"type": "user", "uuid": f"q-{session}", "parentUuid": None, "timestamp": f"{at}:00Z", "message": {"role": "user", "content": question}, **common},
        {"type": "assistant", "uuid": f"a-{session}", "parentUuid": f"q-{session}", "timestamp": f"{at}:30Z",
         "message": {"id": f"m-{session}", "model": "opus", "content": blocks}, **common},
    ]  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def build(shell: Shell) -> None:
    app, other = shell.base / "app", shell.base / "other"
    for folder in (app, other):
        (folder / "src").mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        (folder / "src" / "parse.py").write_text("one\ntwo\n")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "First [red]parser")
    git(app, "worktree", "add", "-q", str(shell.base / "tree"))
    (app / "src" / "parse.py").write_text("one\nTWO\nthree\n")
    git(app, "commit", "-q", "-a", "-m", "Second parser")
    shell.configure(
        "[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"', 'name = "talks"'
    )
    edit = ("Edit", {"file_path": f"{app}/src/parse.py"})
    shell.write("s1.jsonl", said("s1", 1, app, "Why does the parser fail?", [edit]))
    shell.write(
        "s2.jsonl",
        said("s2", 2, shell.base / "tree", "Rewrite the parser in the worktree", [("Write", {"file_path": f"{shell.base}/tree/src/parse.py"})], branch="feature/x"),
    )  # fmt: skip
    shell.write(
        "s3.jsonl",
        said("s3", 3, app, "Show the parser", [("Bash", {"command": "sed -n 1,9p src/parse.py"})]),
    )
    shell.write(
        "s4.jsonl",
        said(
            "s4",
            4,
            other,
            "The parser of another project",
            [("Edit", {"file_path": f"{other}/src/parse.py"})],
        ),
    )
    shell.write(
        "s5.jsonl",
        said("s5", 5, app, "A parser test", [("Edit", {"file_path": f"{app}/src/test_parse.py"})]),
    )
    assert shell("index").code == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, build)


@pytest.fixture
def shell(built: BuiltOnce) -> Shell:
    return built.fresh()


def touches(shell: Shell, file: str, *options: str) -> list[tuple[str, str, bool]]:
    answer = shell("blame", file, "--json", *options).json
    return [(each["session"], each["how"], each["elsewhere"]) for each in answer["touches"]]


def test_the_exchanges_that_changed_a_file_come_newest_first_from_every_checkout(
    shell: Shell,
) -> None:
    in_app = [("s3", "named", False), ("s2", "edited", True), ("s1", "edited", False)]
    assert touches(shell, f"{shell.base}/app/src/parse.py") == in_app
    in_tree = [("s3", "named", True), ("s2", "edited", False), ("s1", "edited", True)]
    assert touches(shell, f"{shell.base}/tree/src/parse.py") == in_tree
    assert touches(shell, f"{shell.base}/other/src/parse.py") == [("s4", "edited", False)]
    shell("blame", f"{shell.base}/app/src/gone.py").is_refused(1, "does not exist")
    answer = shell("blame", f"{shell.base}/app/src/parse.py", "--json", "-n", "1").json
    assert (len(answer["touches"]), answer["omitted"], answer["inside"]) == (1, 2, "src/parse.py")
    (touch,) = answer["touches"]
    assert (touch["agent"], touch["project"], touch["question"]) == (
        "claude-code",
        "app",
        "Show the parser",
    )


def test_only_the_rows_that_are_shown_are_read(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    get_rows = LanceStore.get_rows

    def counted(store: LanceStore, ids: Sequence[str]) -> Sequence[Row]:
        counts.append(len(ids))
        return get_rows(store, ids)

    monkeypatch.setattr(LanceStore, "get_rows", counted)
    file = f"{shell.base}/app/src/parse.py"
    assert touches(shell, file, "-n", "1") == [("s3", "named", False)]
    assert counts == [1]


def test_the_commits_of_the_lines_come_after_them_with_nothing_unescaped(shell: Shell) -> None:
    answer = shell("blame", f"{shell.base}/app/src/parse.py:2-3", "--json").json
    (commit,) = answer["commits"]
    assert (commit["subject"], commit["lines"], answer["git"]) == ("Second parser", [[2, 3]], "")
    printed = shell("blame", "src/parse.py", cwd=shell.base / "app")
    assert printed.code == 0
    lines = printed.out.splitlines()
    assert "Show the parser" in lines[1]
    assert "named in a tool call" in lines[0]
    assert "in another checkout" in lines[2]
    assert "First [red]parser" in printed.out
    assert "\x1b[31m" not in printed.out
    assert "lines 2-3" in printed.out


def test_without_git_or_a_repository_or_such_lines_the_conversations_are_shown(
    shell: Shell,
) -> None:
    file = f"{shell.base}/app/src/parse.py"
    lost = shell("blame", file, "--json", PATH="/nowhere")
    assert "git is not installed" in lost.json["git"]
    assert len(lost.json["touches"]) == 3
    assert "has only 3 lines" in shell("blame", f"{file}:9-12", "--json").json["git"]
    outside = shell("blame", f"{shell.notes}/s1.jsonl")
    assert "No indexed conversation changed" in outside.out
    assert "not a git repository" in outside.err


@pytest.mark.parametrize("lines", ["0", "0-9", "9-2", "x", "", "1-", "-3", "1,2", "1-2-3"])
def test_a_wrong_range_of_lines_is_refused(shell: Shell, lines: str) -> None:
    file = f"{shell.base}/app/src/parse.py:{lines}"
    shell("blame", file).is_refused(2, f'"{lines}" is no range of lines', "FILE:10-20")


def test_a_file_that_is_neither_there_nor_known_is_an_error(shell: Shell) -> None:
    app = shell.base / "app"
    for name in ("nope.py", "nope.py:3", "nope.py:x"):
        refused = shell("blame", name, "--json", cwd=app)
        refused.is_refused(1, "does not exist, and no indexed conversation names it")
    # One that was deleted is known, and one with such a name comes before its lines.
    (app / "src" / "parse.py").unlink()
    assert shell("blame", "src/parse.py:1-2", cwd=app).code == 0
    (app / "a:x").write_text("")
    assert shell("blame", "a:x", cwd=app).code == 0


@pytest.mark.parametrize(
    ("options", "sessions"),
    [
        (("--file", "src/parse.py"), {"s1", "s2", "s3", "s4"}),
        (("--file", "parse.py", "--project", "app"), {"s1", "s2", "s3"}),
        (("--file", "test_parse.py"), {"s5"}),
        (("--file", "arse.py"), set()),
        (("--branch", "feature/x"), {"s2"}),
        (("--branch", "feature"), set()),
        (("--project", "other"), {"s4"}),
        (("--project", "no such' OR true --"), set()),
        (("--tool", "bash"), {"s3"}),
        (("--tool", "Edit"), {"s1", "s4", "s5"}),
        (("--tool", "Ed"), set()),
        (("--agent", "CLAUDE"), {"s1", "s2", "s3", "s4", "s5"}),
        (("--agent", "codex"), set()),
    ],
)
def test_a_filter_lets_only_its_conversations_through(
    shell: Shell, options: tuple[str, ...], sessions: set[str]
) -> None:
    found = shell("search", "parser", "--show-chunks", "--mode", "text", "--json", *options).json
    assert {group[0]["session"] for group in found["groups"]} == sessions


def test_a_file_filter_takes_a_path_of_this_machine(shell: Shell) -> None:
    found = shell(
        "search", "parser", "--show-chunks", "--mode", "text", "--json", "--file", "parse.py",
        cwd=shell.base / "tree" / "src",
    ).json  # fmt: skip
    assert {group[0]["session"] for group in found["groups"]} == {"s1", "s2", "s3", "s4"}


def test_git_runs_nothing_that_a_repository_configures(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    evil.chmod(0o755)
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "a.py").write_text("one\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "First")
    (repository / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    for setting in (
        "core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv",
        "diff.external", "core.pager", "core.editor", "gpg.program", "core.sshCommand", "core.alternateRefsCommand",
    ):  # fmt: skip
        git(repository, "config", setting, str(evil))
    (repository / "a.py").write_text("one\nchanged\n")
    (commit,), reason = blame_lines(str(repository / "a.py"))
    assert (commit.subject, commit.lines, reason) == ("First", [(1, 1)], "")
    assert not marker.exists()


def test_a_name_with_magic_is_a_name(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    name = ":(top)*.py --contents"
    (tmp_path / name).write_text("one\n")
    git(tmp_path, "--literal-pathspecs", "add", name)
    git(tmp_path, "commit", "-q", "-m", "Odd")
    (commit,), _ = blame_lines(str(tmp_path / name))
    assert commit.subject == "Odd"


def test_a_subject_that_looks_like_a_header_is_a_subject() -> None:
    hash_of = "a" * 40
    output = f"{hash_of} 1 1 1\nauthor {'b' * 40} 1 1\nauthor-time 99999999999999999\nsummary author-time 0\nfilename x\n\t{'c' * 40} 1 1\n"
    (commit,) = parse_porcelain(output.encode()).values()
    assert (commit.hash, commit.author, commit.at) == (hash_of, f"{'b' * 40} 1 1", "")
    assert (commit.subject, commit.lines) == ("author-time 0", [(1, 1)])
