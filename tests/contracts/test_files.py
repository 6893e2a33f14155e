"""The contract of every tree, on the fake and on folders; `sources/files/` tests what only a disk has."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from fakes import SECOND, FakeFiles, HandClock

from anchord.core.ports import FileTree
from anchord.core.types import (
    Absent,
    FileContent,
    Fingerprint,
    PathMatch,
    Problem,
    Root,
    RootedPath,
    WalkResult,
)
from anchord.sources.files.folder_files import FolderFiles

ROOT = "notes"


def at(path: str) -> RootedPath:
    return RootedPath(ROOT, path)


class Tree(Protocol):
    """A tree that a test can change, and the port under test."""

    @property
    def files(self) -> FileTree:
        """The port under test."""

    def write(self, path: str, text: str) -> None:
        """Write a file, at a later time than any before."""

    def remove(self, path: str) -> None:
        """Delete a file."""

    def move(self, path: str, to: str) -> None:
        """Rename a file."""

    def spoil(self, path: str) -> None:
        """Create something that is not a file."""

    def exclude(self, name: str) -> None:
        """Exclude a file of the top folder by a rule."""

    def vanish(self) -> None:
        """Delete the root."""


class FakeTree:
    """A dict."""

    def __init__(self) -> None:
        """Start empty."""
        self.clock = HandClock()
        self.files = FakeFiles(self.clock)

    def write(self, path: str, text: str) -> None:
        """Write."""
        self.clock.move(1)
        self.files.put(at(path), text)

    def remove(self, path: str) -> None:
        """Delete."""
        self.files.remove(at(path))

    def move(self, path: str, to: str) -> None:
        """Rename."""
        self.clock.move(1)
        self.files.move(at(path), at(to))

    def spoil(self, path: str) -> None:
        """Say so."""
        self.files.problems[at(path)] = Problem("a named pipe: not indexed")

    def exclude(self, name: str) -> None:
        """Say so."""
        self.files.excluded[at(name)] = f"excluded by the configuration: {name}"

    def vanish(self) -> None:
        """Say so."""
        self.files.gone.add(ROOT)


@dataclass
class FolderTree:
    """A folder."""

    folder: Path
    excluded: tuple[str, ...] = ()
    now_s: int = 1_000

    @property
    def files(self) -> FolderFiles:
        """Open the folder with its present rules."""
        return FolderFiles(
            {ROOT: Root(name=ROOT, path=str(self.folder), exclude=self.excluded)}, (), 10_000
        )

    def write(self, path: str, text: str) -> None:
        """Write."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.now_s += 1
        os.utime(file, (self.now_s, self.now_s))

    def remove(self, path: str) -> None:
        """Delete."""
        (self.folder / path).unlink()

    def move(self, path: str, to: str) -> None:
        """Rename."""
        (self.folder / path).rename(self.folder / to)

    def spoil(self, path: str) -> None:
        """Create a named pipe."""
        os.mkfifo(self.folder / path)

    def exclude(self, name: str) -> None:
        """Exclude a file by a pattern."""
        self.excluded = (*self.excluded, name)

    def vanish(self) -> None:
        """Rename the folder."""
        self.folder.rename(self.folder.with_name("gone"))


@pytest.fixture(params=["fake", "folder"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    """Return an empty tree of either kind."""
    folder = Path(os.path.realpath(tmp_path)) / "tree"
    folder.mkdir()
    return FakeTree() if request.param == "fake" else FolderTree(folder)


def seen(tree: Tree, path: str) -> Fingerprint:
    fingerprint = tree.files.fingerprint(at(path))
    assert isinstance(fingerprint, Fingerprint)
    return fingerprint


def walked(tree: Tree, prefix: str = "") -> Mapping[str, Fingerprint]:
    walk = tree.files.walk(ROOT, prefix)
    assert isinstance(walk, WalkResult)
    return {found.path: found.fingerprint for found in walk.files}


def test_an_empty_tree_is_walked_and_holds_nothing(tree: Tree) -> None:
    walk = tree.files.walk(ROOT, "")
    assert isinstance(walk, WalkResult)
    assert walk == WalkResult(listed_folders=("",), top_device=walk.top_device)
    assert walk.top_device
    assert isinstance(tree.files.fingerprint(at("a.md")), Absent)
    assert isinstance(tree.files.read(at("a.md")), Absent)


def test_a_file_is_read_with_the_fingerprint_that_is_seen(tree: Tree) -> None:
    tree.write("sub/a.md", "naïve")
    assert tree.files.read(at("sub/a.md")) == FileContent("naïve".encode(), seen(tree, "sub/a.md"))
    assert seen(tree, "sub/a.md").size == 6
    assert walked(tree) == {"sub/a.md": seen(tree, "sub/a.md")}


def test_two_files_of_one_content_have_two_fingerprints(tree: Tree) -> None:
    tree.write("a.md", "text")
    tree.write("b.md", "text")
    assert seen(tree, "a.md") != seen(tree, "b.md")


def test_writing_changes_the_fingerprint_and_keeps_the_inode(tree: Tree) -> None:
    tree.write("a.md", "one")
    before = seen(tree, "a.md")
    tree.write("a.md", "two")
    after = seen(tree, "a.md")
    assert (after.size, after.inode) == (before.size, before.inode)
    assert after.mtime_ns == before.mtime_ns + SECOND


def test_a_moved_file_keeps_its_content_size_time_and_inode(tree: Tree) -> None:
    tree.write("a.md", "text")
    before = seen(tree, "a.md")
    tree.move("a.md", "b.md")
    after = seen(tree, "b.md")
    assert (after.size, after.mtime_ns, after.inode) == (before.size, before.mtime_ns, before.inode)
    assert isinstance(tree.files.fingerprint(at("a.md")), Absent)
    assert list(walked(tree)) == ["b.md"]


def test_a_removed_file_is_absent(tree: Tree) -> None:
    tree.write("a.md", "text")
    tree.remove("a.md")
    assert isinstance(tree.files.read(at("a.md")), Absent)
    assert walked(tree) == {}


def test_a_prefix_restricts_a_walk_to_a_folder(tree: Tree) -> None:
    for path in ("a/x.md", "a/b/y.md", "ab/z.md", "a.md"):
        tree.write(path, "text")
    assert sorted(walked(tree, "a")) == ["a/b/y.md", "a/x.md"]
    assert sorted(walked(tree, "a/b")) == ["a/b/y.md"]


@pytest.mark.parametrize("prefix", ["gone", "a/gone", "a.md"])
def test_a_walk_below_what_is_no_folder_is_absent(tree: Tree, prefix: str) -> None:
    tree.write("a.md", "text")
    tree.write("a/b.md", "text")
    assert isinstance(tree.files.walk(ROOT, prefix), Absent)


def test_what_is_no_file_is_the_same_problem_however_it_is_met(tree: Tree) -> None:
    tree.write("a.md", "text")
    tree.spoil("pipe.md")
    problem = tree.files.fingerprint(at("pipe.md"))
    assert isinstance(problem, Problem)
    assert tree.files.read(at("pipe.md")) == problem
    walk = tree.files.walk(ROOT, "")
    assert isinstance(walk, WalkResult)
    assert walk.file_problems == (("pipe.md", problem),)
    assert [found.path for found in walk.files] == ["a.md"]


def test_what_the_rules_keep_out_is_there_but_not_in_a_walk(tree: Tree) -> None:
    tree.write("a.md", "text")
    tree.write("b.md", "text")
    tree.exclude("b.md")
    walk = tree.files.walk(ROOT, "")
    assert isinstance(walk, WalkResult)
    assert ([found.path for found in walk.files], walk.skipped_count) == (["a.md"], 1)
    assert tree.files.path_filter()(at("a.md")).is_included
    refused = PathMatch(is_included=False, reason="excluded by the configuration: b.md")
    assert tree.files.path_filter()(at("b.md")) == refused
    assert isinstance(tree.files.fingerprint(at("b.md")), Fingerprint)


def test_a_root_that_is_gone_is_absent_in_every_way(tree: Tree) -> None:
    tree.write("a.md", "text")
    tree.vanish()
    assert isinstance(tree.files.walk(ROOT, ""), Absent)
    assert isinstance(tree.files.fingerprint(at("a.md")), Absent)
    assert isinstance(tree.files.read(at("a.md")), Absent)
