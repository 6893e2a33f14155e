"""Which folders are further worktrees, as git itself makes, moves and deletes them."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from anchord.core.types import Root, RootedPath
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles


def git(folder: Path, *arguments: str) -> None:
    """Run git without the user's settings."""
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


class Tree:
    """Roots below one folder."""

    def __init__(self, base: Path, *names: str) -> None:
        """Have a root for each name; "" is the folder itself."""
        self.base = base
        roots = {
            name or "all": Root(name=name or "all", path=str(base / name), worktrees="one")
            for name in names
        }
        self.roots = roots
        self.files = FolderFiles(
            roots, (), MAX_FILE_BYTES, clock=lambda: time.time_ns() + 60_000_000_000
        )

    def walk(self) -> None:
        """Walk every root."""
        for name in self.roots:
            self.files.walk(name, "")

    def main_of(self, path: str, root: str = "all") -> str | None:
        """Return the main file of a path."""
        main = self.files.worktrees.main_file(RootedPath(root, path))
        return None if main is None else str(main)

    def copies(self, path: str, root: str = "all") -> set[str]:
        """Return the copies of a path."""
        return {str(each) for each in self.files.worktrees.copies_of(RootedPath(root, path))}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Give a folder with a repository `main` and its worktrees `a` and `b`."""
    base = tmp_path.resolve()
    main = base / "main"
    main.mkdir()
    git(main, "init", "-q")
    (main / "x.md").write_text("# One\n")
    git(main, "add", "x.md")
    git(main, "commit", "-qm", "one")
    for name in ("a", "b"):
        git(main, "worktree", "add", "-q", f"../{name}")
    return base


def test_a_file_of_a_worktree_belongs_to_the_one_at_its_path_in_the_main_checkout(
    repository: Path,
) -> None:
    tree = Tree(repository, "")
    tree.walk()
    assert tree.main_of("a/x.md") == "all:main/x.md"
    assert tree.main_of("a/lib/new.md") == "all:main/lib/new.md"
    assert tree.main_of("main/x.md") is None
    assert tree.main_of("other/x.md") is None
    assert tree.copies("main/x.md") == {"all:a/x.md", "all:b/x.md"}
    assert tree.copies("a/x.md") == set()


def test_worktrees_may_be_roots_of_their_own_in_any_order(repository: Path) -> None:
    tree = Tree(repository, "a", "main", "b")
    tree.walk()
    assert tree.main_of("x.md", "a") == "main:x.md"
    assert tree.main_of("x.md", "main") is None
    assert tree.copies("x.md", "main") == {"a:x.md", "b:x.md"}


def test_a_root_below_the_top_of_its_worktree_is_compared_by_the_path_within_it(
    repository: Path,
) -> None:
    for name in ("main", "a"):
        (repository / name / "docs").mkdir()
    tree = Tree(repository, "a/docs", "main/docs")
    tree.walk()
    assert tree.main_of("y.md", "a/docs") == "main/docs:y.md"


def test_where_the_main_checkout_is_in_no_root_the_first_worktree_takes_its_place(
    repository: Path,
) -> None:
    tree = Tree(repository, "b", "a")
    tree.walk()
    assert tree.main_of("x.md", "a") is None
    assert tree.main_of("x.md", "b") == "a:x.md"


@pytest.mark.parametrize("bare", [".bare", ".git"])
def test_so_it_does_for_a_bare_repository(repository: Path, bare: str) -> None:
    project = repository / "project"
    project.mkdir()
    git(repository, "clone", "-q", "--bare", "main", f"project/{bare}")
    if bare == ".bare":
        (project / ".git").write_text("gitdir: ./.bare\n")
    for name in ("one", "two"):
        git(project, "worktree", "add", "-q", name, "-b", name)
    tree = Tree(repository, "project")
    tree.walk()
    assert tree.main_of("one/x.md", "project") is None
    assert tree.main_of("two/x.md", "project") == "project:one/x.md"
    assert tree.main_of("loose.md", "project") is None
    git(project, "worktree", "remove", "one")
    tree.walk()
    assert tree.main_of("two/x.md", "project") is None


def test_a_worktree_in_a_worktree_belongs_to_the_same_main_checkout(repository: Path) -> None:
    git(repository / "a", "worktree", "add", "-q", "inner")
    git(repository / "main", "worktree", "add", "-q", "below")
    tree = Tree(repository, "")
    tree.walk()
    assert tree.main_of("a/inner/x.md") == "all:main/x.md"
    assert tree.main_of("main/below/x.md") == "all:main/x.md"
    assert tree.main_of("main/below/below/x.md") is None, "it would belong to a file of a worktree"


def test_a_clone_is_a_repository_of_its_own(repository: Path) -> None:
    git(repository, "clone", "-q", "main", "clone")
    tree = Tree(repository, "")
    tree.walk()
    assert tree.main_of("clone/x.md") is None


def test_a_clone_in_a_worktree_is_compared_with_the_same_folder_of_the_main_checkout(
    repository: Path,
) -> None:
    git(repository, "clone", "-q", "main", "a/vendor")
    tree = Tree(repository, "")
    tree.walk()
    assert tree.main_of("a/vendor/x.md") == "all:main/vendor/x.md"


def test_a_worktree_that_is_made_later_is_known_once_its_folder_is_walked(repository: Path) -> None:
    tree = Tree(repository, "")
    tree.walk()
    git(repository / "main", "worktree", "add", "-q", "../later")
    tree.files.walk("all", "later")
    assert tree.main_of("later/x.md") == "all:main/x.md"


def test_it_is_known_too_once_the_rules_are_asked_about_a_file_of_it(repository: Path) -> None:
    tree = Tree(repository, "")
    tree.files.path_filter()(RootedPath("all", "a/x.md"))
    assert tree.main_of("a/x.md") == "all:main/x.md"


def test_a_worktree_without_its_git_file_is_a_folder(repository: Path) -> None:
    tree = Tree(repository, "")
    tree.walk()
    (repository / "a" / ".git").unlink()
    tree.walk()
    assert tree.main_of("a/x.md") is None
    assert tree.main_of("b/x.md") == "all:main/x.md"


def test_worktrees_of_a_deleted_or_moved_repository_are_folders_until_they_are_repaired(
    repository: Path,
) -> None:
    tree = Tree(repository, "")
    tree.walk()
    shutil.move(repository / "main", repository / "moved")
    tree.walk()
    assert tree.main_of("a/x.md") is None
    git(repository / "moved", "worktree", "repair", "../a", "../b")
    tree.walk()
    assert tree.main_of("a/x.md") == "all:moved/x.md"


def test_a_worktree_that_was_moved_by_hand_is_still_one(repository: Path) -> None:
    shutil.move(repository / "a", repository / "elsewhere")
    tree = Tree(repository, "")
    tree.walk()
    tree.walk()
    assert tree.main_of("elsewhere/x.md") == "all:main/x.md"
    assert tree.main_of("a/x.md") is None


@pytest.mark.parametrize(
    "content", ["gitdir: /nowhere\n", "nonsense", "", "gitdir: ../main/.git\n"]
)
def test_a_git_file_that_leads_to_no_list_of_worktrees_makes_none(
    repository: Path, content: str
) -> None:
    (repository / "odd").mkdir()
    (repository / "odd" / ".git").write_text(content)
    tree = Tree(repository, "")
    tree.walk()
    assert tree.main_of("odd/x.md") is None
    assert tree.main_of("a/x.md") == "all:main/x.md"


def test_without_the_option_git_is_asked_nothing_more(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(repository, "")
    tree.roots["all"] = Root(name="all", path=str(repository))
    asked: list[str] = []
    monkeypatch.setattr("anchord.sources.files.worktrees._list_linked", asked.append)
    tree.walk()
    assert asked == []
    assert tree.main_of("a/x.md") is None


def test_a_root_of_conversations_has_no_worktrees(repository: Path) -> None:
    tree = Tree(repository, "")
    tree.walk()
    tree.roots["all"] = Root(
        name="all", path=str(repository), kind="conversations", worktrees="one"
    )
    assert tree.main_of("a/x.md") is None
