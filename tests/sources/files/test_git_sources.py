"""Every source of git's ignore rules, with git as the reference: the same files are excluded.

The first table has the situations of git's tests t0008 and t3001 in other trees.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools.git_trees.judge import files_below, git, ignored_by_git, judge_batch, judge_trees, walked

from anchord.core.types import Root, RootedPath
from anchord.sources.files import git_repositories
from anchord.sources.files.folder_files import FolderFiles
from anchord.sources.files.source_memory import SourceMemory

LATER_NS = 60_000_000_000


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home folder with the user's settings of git, for git and for anchord alike."""
    folder = Path(os.path.realpath(tmp_path)) / "home"
    (folder / "git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


@pytest.fixture
def tree(home: Path) -> Path:
    """Give an empty repository."""
    folder = home.parent / "tree"
    folder.mkdir()
    git(folder, "init", "--quiet", home=home)
    return folder


def fill(folder: Path, contents: Mapping[str, str]) -> None:
    for path, text in contents.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def served(folder: Path, memory: SourceMemory | None = None) -> FolderFiles:
    """Serve a folder as a root that includes every kind of file; all rules have settled."""
    root = Root(name="tree", path=str(folder), include=("*",))
    return FolderFiles({"tree": root}, (), 1_000, memory, lambda: time.time_ns() + LATER_NS)


def left_out(folder: Path) -> set[str]:
    """Return the files that a walk leaves out."""
    return files_below(folder) - walked(served(folder), "tree")


def reason(folder: Path, path: str) -> str:
    """Return which rule decides on a file."""
    return served(folder).path_filter()(RootedPath("tree", path)).reason


SITUATIONS: dict[str, tuple[dict[str, str], str]] = {
    "names at the top and in a folder": ({".gitignore": "draft\ntmp-*\nout/\n"}, "draft tmp-1 sub/draft sub/tmp-2 out/a sub/out/b keep sub/keep"),
    "a file named like a folder that is ignored": ({".gitignore": "out/\n"}, "out sub/out/a"),
    "patterns of each level": (
        {".gitignore": "x\n", "a/.gitignore": "y*\n*z\n", "a/b/.gitignore": "four\n# a comment\n\n!y1\n!xx*\n"},
        "x a/x a/y1 a/b/y1 a/b/y2 a/wz a/b/wz a/b/four a/four a/b/xxx",
    ),
    "rules inside an ignored folder": (
        {".gitignore": "gone/\n", "gone/.gitignore": "!*\n"}, "gone/a gone/deep/b kept/a"),
    "a folder brought back, and what it holds": ({".gitignore": "*\n!sub\n!sub/a\n"}, "a sub/a sub/b"),
    "an ignored folder wins over what is said of its content": ({".gitignore": "one\n!one/a\n"}, "one/a b"),
    "a folder brought back wins nothing for its content": ({".gitignore": "!one\none/a\n"}, "one/a one/b"),
    "a later exception": ({".gitignore": "a*\n!ab\n"}, "aa ab ac"),
    "carriage returns": ({".gitignore": "*.1\r\n/*.3\r\n!*.6\r\n"}, "a.1 a.3 sub/a.3 a.6"),
    "a whole name and its beginning": ({"a/.gitignore": "/git/\n"}, "a/git/x a/git-more/y"),
    "the same without a slash before": ({"a/.gitignore": "git/\n"}, "a/git/x a/git-more/y a/b/git/z"),
    "a pattern longer than what it meets": ({".gitignore": "/three/a.3[abc]\n"}, "three/a.3 three/a.3a"),
    "two stars before a name": ({".gitignore": "**/a.1\n"}, "a.1 one/a.1 one/two/a.1 one/b.1"),
    "two stars that touch a name": ({".gitignore": "one**a.1\n"}, "one/a.1 one/two/a.1 onea.1"),
    "folders of any depth brought back with one kind of file": (
        {".gitignore": "data/**\n!data/**/\n!data/**/*.txt\n"}, "file data/file data/d1/f data/d1/f.txt data/d2/e/f.txt data/d2/f"),
    "spaces at the end": ({".gitignore": "tail   \nkept\\ \\ \nhalf\\   \n"}, "tail half"),
    "escaped marks": ({".gitignore": "\\#hidden\n\\!loud\n\\*\n"}, "#hidden !loud * other"),
    "an empty file of rules": ({".gitignore": ""}, "a b/c"),
    "the repository's own exclude file": ({".git/info/exclude": "per-repo\n"}, "per-repo sub/per-repo other"),
    "an exclude file that a .gitignore overrules": ({".git/info/exclude": "a\n", ".gitignore": "!a\n"}, "a b"),
    "the user's exclude file": ({"../home/git/ignore": "globalone\n!globaltwo\nglobalthree\n"}, "globalone globaltwo sub/globalthree"),
    "the user's exclude file and the repository's": ({"../home/git/ignore": "usual\n", ".git/info/exclude": "!usual\n"}, "usual sub/usual"),
    "the user's exclude file with a slash": ({"../home/git/ignore": "/top\nsub/low\n"}, "top sub/top sub/low low"),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_situation_of_git_s_own_tests_is_judged_as_git_does(
    tree: Path, home: Path, situation: str
) -> None:
    rules, paths = SITUATIONS[situation]
    fill(tree, rules | dict.fromkeys(paths.split(), "text"))
    assert left_out(tree) == ignored_by_git(tree, home) & files_below(tree)


def test_spaces_and_backslashes_at_the_end_are_read_as_git_reads_them(
    tree: Path, home: Path
) -> None:
    names = ["1  ", "2 \\", "3 \\", "4   \\ ", "5 \\ \\ ", "6 \\a\\", "7"]
    lines = ["1 \\    ", "2 \\\\", "3 \\\\ ", "4   \\\\\\    ", "5 \\\\ \\\\\\   ", "6 \\\\a\\\\"]
    fill(tree, {".gitignore": "\n".join(lines) + "\n"} | dict.fromkeys(names, "text"))
    assert left_out(tree) == ignored_by_git(tree, home) == set(names[:-1])


def test_rules_of_folders_above_the_root_hold(tree: Path, home: Path) -> None:
    fill(tree, {
        ".gitignore": "secret*\n/projects/one/only-here\nprojects/*/by-path\n",
        "projects/.gitignore": "middle\n!secret-but-fine\n",
        ".git/info/exclude": "/projects/one/excluded\n",
    })  # fmt: skip
    inside = (
        "secret.md",
        "deep/secret.txt",
        "only-here",
        "deep/only-here",
        "by-path",
        "middle",
        "excluded",
        "secret-but-fine",
        "a",
    )
    fill(tree / "projects" / "one", dict.fromkeys(inside, "text"))
    above = {path.removeprefix("projects/one/") for path in ignored_by_git(tree, home)}
    assert left_out(tree / "projects" / "one") == above
    assert above == {"secret.md", "deep/secret.txt", "only-here", "by-path", "middle", "excluded"}
    assert reason(tree / "projects" / "one", "secret.md") == "ignored by ../../.gitignore:1 secret*"


def test_a_folder_that_the_user_named_is_in_although_git_ignores_the_folder(tree: Path) -> None:
    fill(tree, {".gitignore": "/build/\n*.log\n", "build/a.md": "text", "build/b.log": "text"})
    assert left_out(tree / "build") == {"b.log"}


def test_above_the_top_of_the_repository_nothing_counts(tree: Path) -> None:
    fill(tree.parent, {".gitignore": "*\n", "tree/a.md": "text"})
    assert left_out(tree) == set()


def test_a_nested_repository_adds_its_rules_to_those_around_it(tree: Path, home: Path) -> None:
    inner = tree / "vendor" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init", "--quiet", home=home)
    fill(tree, {".gitignore": "outer\n"})
    fill(inner, {".git/info/exclude": "mine\n/top\n", ".gitignore": "!outer-too\n"})
    fill(inner, dict.fromkeys(("outer", "mine", "top", "deep/top", "a"), "text"))
    assert ignored_by_git(inner, home) == {"mine", "top"}
    assert left_out(tree) == {f"vendor/inner/{name}" for name in ("mine", "top", "outer")}
    assert left_out(inner) == {"mine", "top"}


def test_a_linked_worktree_shares_the_exclude_file_of_the_main_one(tree: Path, home: Path) -> None:
    fill(tree, {"a.md": "text", ".git/info/exclude": "private\n"})
    git(tree, "add", "a.md", home=home)
    git(
        tree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "a", home=home
    )
    other = tree.parent / "other"
    git(tree, "worktree", "add", "--quiet", str(other), home=home)
    fill(other, {"private": "text", "sub/private": "text"})
    assert ignored_by_git(other, home) == {"private", "sub/private"}
    assert left_out(other) == {"private", "sub/private"}
    assert reason(other, "private") == "ignored by ../tree/.git/info/exclude:1 private"


def test_a_submodule_has_an_exclude_file_of_its_own(tree: Path, home: Path) -> None:
    """A submodule's `.git` is a file that names a folder in the outer repository's `.git`."""
    module, data = tree / "module", tree / ".git" / "modules" / "module"
    module.mkdir()
    data.parent.mkdir()
    git(module, "init", "--quiet", home=home)
    (module / ".git").rename(data)
    (module / ".git").write_text("gitdir: ../.git/modules/module\n")
    git(module, "config", "core.worktree", "../../../module", home=home)
    fill(data, {"info/exclude": "own\n"})
    fill(tree, {".git/info/exclude": "outer\n"})
    fill(module, {"own": "text", "outer": "text", "a": "text"})
    assert ignored_by_git(module, home) == {"own"}
    assert left_out(tree) - {"module/.git"} == {"module/own", "module/outer"}


def test_settings_count_wherever_git_reads_them(tree: Path, home: Path) -> None:
    fill(home, {
        ".gitconfig": f'[includeIf "gitdir:{tree}/"]\n\tpath = more\n',
        "more": "[core]\n\texcludesFile = ~/mine\n",
        "mine": "from-the-home\n",
    })  # fmt: skip
    fill(tree, {"from-the-home": "text", "local": "text", "a": "text"})
    assert left_out(tree) == ignored_by_git(tree, home) == {"from-the-home"}
    fill(home, {"other": "local\n"})
    git(tree, "config", "core.excludesFile", str(home / "other"), home=home)
    assert left_out(tree) == ignored_by_git(tree, home) == {"local"}


def test_an_exclude_file_behind_a_link_is_read(tree: Path, home: Path) -> None:
    fill(home, {"real": "a\n"})
    (home / "git" / "ignore").symlink_to(home / "real")
    (tree / ".git" / "info" / "exclude").unlink(missing_ok=True)
    (tree / ".git" / "info" / "exclude").symlink_to(home / "real")
    fill(tree, {"a": "text", "b": "text"})
    assert left_out(tree) == ignored_by_git(tree, home) == {"a"}


def test_a_repository_that_ignores_case(tree: Path, home: Path) -> None:
    git(tree, "config", "core.ignoreCase", "true", home=home)
    fill(tree, {".gitignore": "Secret*\n/SUB/[A-C].md\n"})
    fill(tree, dict.fromkeys(("secret.md", "SECRET", "sub/b.md", "Sub/C.MD", "sub/d.md"), "text"))
    assert (
        left_out(tree)
        == ignored_by_git(tree, home)
        == {"secret.md", "SECRET", "sub/b.md", "Sub/C.MD"}
    )


def test_a_repository_that_git_refuses_is_closed_until_git_trusts_it(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tree, {"a.md": "text"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    memory = SourceMemory()
    walk = served(tree, memory).walk("tree", "")
    assert walk.files == ()  # type: ignore[union-attr]
    ((path, problem),) = walk.folder_problems  # type: ignore[union-attr]
    assert path == f"{tree}/.git"
    assert "nothing of it is indexed" in problem.reason
    assert f"git config --global --add safe.directory {tree}" in problem.reason
    fill(home, {".gitconfig": f"[safe]\n\tdirectory = {tree}\n"})
    files = served(tree, memory)
    assert walked(files, "tree") == {"a.md"}
    # What was trusted once keeps its settings when it is refused again.
    (home / ".gitconfig").unlink()
    walk = served(tree, memory).walk("tree", "")
    assert [found.path for found in walk.files] == ["a.md"]  # type: ignore[union-attr]
    assert "last known settings" in walk.folder_problems[0][1].reason  # type: ignore[union-attr]


def test_a_git_that_does_not_answer_is_no_reason_to_let_anything_in(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tree, {"a.md": "text"})
    asked = []

    def hang(*arguments: object, **__: object) -> None:
        asked.append(arguments)
        raise subprocess.TimeoutExpired("git", 1)

    monkeypatch.setattr(subprocess, "run", hang)
    files = served(tree)
    for _ in range(3):
        walk = files.walk("tree", "")
        assert walk.files == ()  # type: ignore[union-attr]
        assert "git did not answer" in walk.folder_problems[0][1].reason  # type: ignore[union-attr]
    assert len(asked) == 1, "each question costs 20 s"
    now = time.monotonic()
    monkeypatch.undo()
    monkeypatch.setattr(time, "monotonic", lambda: now + 600)
    assert walked(files, "tree") == {"a.md"}


@pytest.mark.parametrize("name", ["HEAD", "config", "commondir", "config.worktree"])
def test_a_named_pipe_in_a_repository_is_found_before_git_waits_for_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fill(tree, {"a.md": "text"})
    file = tree / ".git" / name
    former = file.read_bytes() if file.exists() else None
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    files = served(tree)
    with monkeypatch.context() as patch:
        patch.setattr(git_repositories, "_run_git", lambda *_: pytest.fail("git would wait"))
        walk = files.walk("tree", "")
        assert walk.files == ()  # type: ignore[union-attr]
        reason = walk.folder_problems[0][1].reason  # type: ignore[union-attr]
        assert f"{file} is not a regular file" in reason
    file.unlink()
    if former is not None:
        file.write_bytes(former)
    assert files.rules.has_outside_changes("tree")
    assert walked(files, "tree") == {"a.md"}


def test_without_git_on_the_machine_the_default_places_count(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tree, {".git/info/exclude": "mine\n", ".gitignore": "CASE\n"})
    fill(tree, dict.fromkeys(("mine", "user", "case", "a"), "text"))
    fill(home, {"git/ignore": "user\n"})
    git(tree, "config", "core.ignoreCase", "true", home=home)
    monkeypatch.setenv("PATH", str(home / "no programs"))
    assert left_out(tree) == {"mine", "user", "case"}


def test_git_is_asked_once_until_its_settings_change(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tree, {"a.md": "text", "b.md": "text"})
    asked = []
    real = git_repositories._run_git

    def ask(*arguments: Any) -> Any:  # noqa: ANN401 - git's
        asked.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(git_repositories, "_run_git", ask)
    files = served(tree)
    assert walked(files, "tree") == walked(files, "tree") == {"a.md", "b.md"}
    assert len(asked) == 1
    assert not files.rules.has_outside_changes("tree")
    fill(home, {".gitconfig": f"[core]\n\texcludesFile = {home}/mine\n", "mine": "a.md\n"})
    assert files.rules.has_outside_changes("tree")
    assert walked(files, "tree") == {"b.md"}
    assert len(asked) == 2


@pytest.mark.parametrize("path", ["home/git/ignore", "tree/.git/info/exclude", "tree/.gitignore"])
def test_a_change_without_an_event_is_noticed(tree: Path, path: str) -> None:
    fill(tree, {"sub/a.md": "text", "sub/b.md": "text"})
    files = served(tree / "sub")
    assert walked(files, "tree") == {"a.md", "b.md"}
    assert not files.rules.has_outside_changes("tree")
    fill(tree.parent, {path: "a.md\n"})
    assert files.rules.has_outside_changes("tree")
    assert walked(files, "tree") == {"b.md"}


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rng=st.randoms(use_true_random=False))
def test_random_trees_are_judged_as_git_does(
    tmp_path_factory: pytest.TempPathFactory, rng: Random
) -> None:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("batch")))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CONFIG_HOME", str(base / "home"))
        assert judge_batch(base, 3, rng).differences == []


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_ten_thousand_random_trees_are_judged_as_git_does() -> None:
    verdict = judge_trees(10_000, seed=1)
    assert verdict.trees == 10_000
    assert verdict.differences == []
