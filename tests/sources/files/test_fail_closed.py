"""Ignore files that are unreadable, missing or being saved let nothing in; a root keeps its folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from anchord.core.types import Absent, FileContent, Problem, Root, RootedPath, WalkResult
from anchord.sources.files import rule_files
from anchord.sources.files.folder_files import FolderFiles
from anchord.sources.files.rule_files import SETTLE_NS, RuleFiles
from anchord.sources.files.source_memory import GitSettings, RootIdentity, SourceMemory

MEMORY = "seen.json"


class Clock:
    """The wall clock, moved forward by hand."""

    def __init__(self) -> None:
        """Start now."""
        self.later_ns = 0

    def __call__(self) -> int:
        """Return the time."""
        return time.time_ns() + self.later_ns

    def settle(self) -> None:
        """Let every change of a file become old."""
        self.later_ns += 2 * SETTLE_NS


class Tree:
    """A root `notes` with private files; its files are served as by one process after another."""

    def __init__(self, base: Path) -> None:
        """Make the files, and read the rules once."""
        self.base, self.folder, self.clock = base, base / "notes", Clock()
        for path in ("a.md", "private.md", "sub/b.md", "sub/secret.md"):
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text("text")
        self.restart()

    def restart(self) -> None:
        """Open the files as a new process does."""
        self.memory = SourceMemory(self.base / MEMORY)
        roots = {"notes": Root(name="notes", path=str(self.folder))}
        self.files = FolderFiles(roots, (), 1_000, self.memory, self.clock)

    def walk(self) -> WalkResult:
        """Walk the root."""
        walk = self.files.walk("notes", "")
        assert isinstance(walk, WalkResult)
        return walk

    def included(self) -> set[str]:
        """Return the files of a walk; fingerprints of single paths must agree."""
        found = {each.path for each in self.walk().files}
        match = self.files.path_filter()
        everything = ("a.md", "private.md", "sub/b.md", "sub/secret.md")
        assert found == {
            each for each in everything if match(RootedPath("notes", each)).is_included
        }
        return found

    def problems(self) -> dict[str, str]:
        """Return what a walk says about folders and rules."""
        return {path: problem.reason for path, problem in self.walk().folder_problems}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Give a tree without rules."""
    return Tree(Path(os.path.realpath(tmp_path)))


def spoil_by_folder(file: Path) -> None:
    file.mkdir()


def spoil_by_dangling_link(file: Path) -> None:
    file.symlink_to("nothing")


def spoil_by_link(file: Path) -> None:
    (file.parent / "patterns").write_text("other\n")
    file.symlink_to("patterns")


def spoil_by_pipe(file: Path) -> None:
    os.mkfifo(file)


def spoil_by_size(file: Path) -> None:
    file.write_bytes(b"# more and more\n" * 70_000)


def spoil_by_encoding(file: Path) -> None:
    file.write_bytes("private.md\n".encode("utf-16"))


def spoil_by_power_loss(file: Path) -> None:
    file.write_bytes(bytes(512))


SPOILED: list[tuple[Callable[[Path], None], str]] = [
    (spoil_by_folder, "it is not a regular file"),
    (spoil_by_dangling_link, "it is a symbolic link"),
    (spoil_by_link, "it is a symbolic link"),
    (spoil_by_pipe, "it is not a regular file"),
    (spoil_by_size, "it is larger than 1,000,000 bytes"),
    (spoil_by_encoding, "it is not UTF-8 text"),
    (spoil_by_power_loss, "it is not UTF-8 text"),
]


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".anchordignore"])
@pytest.mark.parametrize(("spoil", "reason"), SPOILED)
def test_without_last_good_rules_nothing_below_is_included(
    tree: Tree, name: str, spoil: Callable[[Path], None], reason: str
) -> None:
    spoil(tree.folder / "sub" / name)
    assert tree.included() == {"a.md", "private.md"}
    reported = tree.problems()[f"sub/{name}"]
    assert reported.startswith(f"cannot be read ({reason}): nothing in its folder is indexed until")
    assert reported.endswith("make it a readable file, or delete it")


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("spoil", "reason"), SPOILED)
def test_the_last_good_rules_stay_in_force(
    tree: Tree, spoil: Callable[[Path], None], reason: str, *, restarts: bool
) -> None:
    rules = tree.folder / ".gitignore"
    rules.write_text("private.md\nsecret*\n")
    assert tree.included() == {"a.md", "sub/b.md"}
    rules.unlink()
    spoil(rules)
    if restarts:
        tree.restart()
    for _ in range(2):
        assert tree.included() == {"a.md", "sub/b.md"}
        assert tree.problems()[".gitignore"].startswith(
            f"cannot be read ({reason}): its last good rules stay in force"
        )
        tree.clock.settle()


@pytest.mark.parametrize("error", [5, 13, 24, 116])
def test_an_error_of_the_disk_is_no_empty_file(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    (tree.folder / ".gitignore").write_text("private.md\n")
    (tree.folder / "sub" / ".gitignore").write_text("secret.md\n")

    def fail(*_: object) -> bytes:
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as fault:
        fault.setattr(rule_files, "_read_whole", fail)
        assert tree.included() == set()
    assert tree.included() == {"a.md", "sub/b.md"}
    with monkeypatch.context() as fault:
        fault.setattr(rule_files, "_read_whole", fail)
        assert tree.included() == {"a.md", "sub/b.md"}


@pytest.mark.parametrize(("error", "may_pass"), [(5, True), (24, True), (116, True), (13, False)])
@pytest.mark.parametrize("is_known", [False, True])
def test_rules_that_an_error_hides_are_read_again_once_if_it_may_pass(
    tree: Tree,
    monkeypatch: pytest.MonkeyPatch,
    error: int,
    may_pass: bool,  # noqa: FBT001 - a column of the table
    is_known: bool,  # noqa: FBT001 - likewise
) -> None:
    (tree.folder / ".gitignore").write_text("private.md\n")
    if is_known:
        tree.walk()
    rules = tree.files.rules

    def fail(*_: object) -> bytes:
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as fault:
        fault.setattr(rule_files, "_read_whole", fail)
        tree.walk()
        wait_s = rules.settle_in_s("notes")
        assert (wait_s is not None) == may_pass
        tree.clock.settle()
        tree.walk()
        assert rules.settle_in_s("notes") is None
    tree.walk()
    assert rules.settle_in_s("notes") is None


def test_an_error_that_lasted_does_not_let_a_half_saved_file_in(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = tree.folder / ".gitignore"
    rules.write_text("private.md\nsecret.md\n")
    assert tree.included() == {"a.md", "sub/b.md"}

    def fail(*_: object) -> bytes:
        raise OSError(5, os.strerror(5))

    with monkeypatch.context() as fault:
        fault.setattr(rule_files, "_read_whole", fail)
        tree.walk()
        tree.clock.later_ns += 30_000_000_000
        tree.walk()
    rules.write_text("")
    os.utime(rules, ns=(tree.clock(), tree.clock()))
    assert tree.included() == {"a.md", "sub/b.md"}
    tree.clock.settle()
    assert "private.md" in tree.included()


def test_a_save_that_deletes_the_file_first_lets_nothing_in(tree: Tree) -> None:
    rules = tree.folder / ".gitignore"
    rules.write_text("private.md\n")
    assert "private.md" not in tree.included()
    rules.unlink()
    assert "private.md" not in tree.included()
    wait_s = tree.files.rules.settle_in_s("notes")
    assert wait_s is not None
    assert 0 < wait_s <= SETTLE_NS / 1e9
    rules.write_text("private.md\n")
    assert "private.md" not in tree.included()
    assert tree.files.rules.settle_in_s("notes") is None


def test_a_file_that_stays_away_is_believed_once_its_folder_is_quiet(tree: Tree) -> None:
    rules = tree.folder / ".gitignore"
    rules.write_text("private.md\n")
    tree.walk()
    rules.unlink()
    tree.restart()
    assert "private.md" not in tree.included()
    (tree.folder / "more.png").write_text("The burst goes on.")
    assert "private.md" not in tree.included()
    tree.clock.settle()
    assert "private.md" in tree.included()
    assert tree.files.rules.settle_in_s("notes") is None
    rules.mkdir()
    assert tree.included() == set()


def test_a_folder_that_is_never_quiet_is_believed_after_ten_seconds(tmp_path: Path) -> None:
    clock, memory = Clock(), SourceMemory()
    reader = RuleFiles(memory, clock)
    file = tmp_path / ".gitignore"
    memory.rules[str(file)] = b"private\n"

    def absent() -> None:
        raise FileNotFoundError

    def lines() -> tuple[tuple[str, ...], ...]:
        (tmp_path / f"{clock.later_ns}").touch()
        os.utime(tmp_path)
        return reader.read(str(file), absent).layers  # type: ignore[arg-type]

    clock.later_ns = -1_000_000_000_000  # The file system's clock is ahead.
    assert lines() == (("private", ""),)
    clock.later_ns += 9_000_000_000
    assert lines() == (("private", ""),)
    clock.later_ns += 2_000_000_000
    assert lines() == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("private.md\nsecret.md\n", "secret.md\n"),
        ("private.md\n", ""),
        ("private.md\n", "priv"),
        ("private.md\n", "private.md\n!private.md\n"),
        ("!private.md\nprivate.md\n", "private.md\n!private.md\n"),
        ("*\n!a.md\n", "!a.md\n"),
        ("private.md\n", "#private.md\n"),
    ],
)
def test_rules_that_ignore_less_are_believed_once_the_file_is_quiet(
    tree: Tree, before: str, after: str
) -> None:
    rules = tree.folder / ".gitignore"
    rules.write_text(before)
    assert "private.md" not in tree.included()
    rules.write_text(after)
    assert "private.md" not in tree.included()
    assert tree.files.rules.settle_in_s("notes") is not None
    tree.clock.settle()
    assert "private.md" in tree.included()
    assert tree.files.rules.settle_in_s("notes") is None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a.md\n", "a.md\nprivate.md\n"),
        ("a.md\n", "# comment\n\nprivate.md\na.md\n"),
        ("*.md\n!private.md\n", "*.md\n"),
        ("*.txt\n!a.txt\n", "*.txt\n!a.txt\nprivate.md\n"),
    ],
)
def test_rules_that_ignore_more_hold_at_once(tree: Tree, before: str, after: str) -> None:
    rules = tree.folder / ".gitignore"
    rules.write_text(before)
    assert "private.md" in tree.included()
    rules.write_text(after)
    assert "private.md" not in tree.included()
    assert tree.files.rules.settle_in_s("notes") is None


def test_what_is_newly_ignored_holds_at_once_though_other_rules_went(tree: Tree) -> None:
    rules = tree.folder / ".gitignore"
    rules.write_text("private.md\n")
    tree.walk()
    rules.write_text("a.md\n")
    assert tree.included() == {"sub/b.md", "sub/secret.md"}
    match = tree.files.path_filter()
    assert match(RootedPath("notes", "a.md")).reason == "ignored by .gitignore:1 a.md"
    tree.clock.settle()
    assert tree.included() == {"private.md", "sub/b.md", "sub/secret.md"}


def test_rules_wait_for_a_folder_that_was_deleted(tree: Tree) -> None:
    rules = tree.folder / "sub" / ".gitignore"
    rules.write_text("secret.md\n")
    assert tree.included() == {"a.md", "private.md", "sub/b.md"}
    (tree.folder / "sub").rename(tree.base / "away")
    tree.clock.settle()
    assert tree.walk().files
    assert not tree.files.path_filter()(RootedPath("notes", "sub/secret.md")).is_included
    (tree.folder / "sub").mkdir()
    (tree.folder / "sub" / "secret.md").write_text("text")
    tree.clock.later_ns = 0
    assert {each.path for each in tree.walk().files} == {"a.md", "private.md"}


def test_rules_of_a_root_that_is_away_are_not_forgotten(tree: Tree) -> None:
    (tree.folder / ".gitignore").write_text("private.md\n")
    tree.walk()
    tree.folder.rename(tree.base / "away")
    tree.clock.settle()
    assert tree.files.walk("notes", "") == Absent()
    assert not tree.files.path_filter()(RootedPath("notes", "private.md")).is_included
    assert [*tree.memory.rules.values()] == [b"private.md\n"]


# Stored rules


def test_what_was_seen_is_kept_whatever_the_bytes_of_its_names(tmp_path: Path) -> None:
    memory = SourceMemory(tmp_path / MEMORY)
    path = os.fsdecode(b"/a/\xff\xc3\xbc/.gitignore")
    memory.rules[path] = bytes(range(256))
    memory.roots["n"] = RootIdentity(path=path, link="", device=1, inode=2)
    memory.repositories[path] = GitSettings(path, ignores_case=True)
    memory.save()
    again = SourceMemory(tmp_path / MEMORY)
    assert (again.rules, again.roots, again.repositories) == (
        memory.rules,
        memory.roots,
        memory.repositories,
    )


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version": 2}', b'{"version": 1, "rules": 3}', b"\xff"]
)
def test_a_damaged_memory_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MEMORY).write_bytes(content)
    memory = SourceMemory(tmp_path / MEMORY)
    assert (memory.rules, memory.roots) == ({}, {})
    memory.rules["/a"] = b"x"
    memory.save()
    assert SourceMemory(tmp_path / MEMORY).rules == {"/a": b"x"}


def test_a_reader_sees_what_the_writer_saved_later_and_saves_nothing(tmp_path: Path) -> None:
    writer = SourceMemory(tmp_path / MEMORY)
    reader = SourceMemory(tmp_path / MEMORY, read_only=True)
    writer.rules["/a"] = b"x"
    writer.save()
    reader.refresh()
    assert reader.rules == {"/a": b"x"}
    reader.rules["/b"] = b"y"
    reader.save()
    assert SourceMemory(tmp_path / MEMORY).rules == {"/a": b"x"}


# The folder of a root


def known(count: int) -> Callable[[], list[str]]:
    return lambda: [f"{n}.md" for n in range(count)]


def refill(tree: Tree, count: int) -> None:
    """Put another folder in the root's place, with some of the files that `known` names."""
    tree.folder.rename(tree.base / f"was{count}")
    tree.folder.mkdir()
    for n in range(count):
        (tree.folder / f"{n}.md").write_text("text")


@pytest.mark.parametrize(("present", "accepted"), [(0, False), (4, False), (5, True), (10, True)])
def test_another_folder_is_accepted_if_half_of_the_known_files_are_in_it(
    tree: Tree, present: int, *, accepted: bool
) -> None:
    assert tree.files.check_root("notes", known(10), accept=False) == ""
    refill(tree, present)
    refused = tree.files.check_root("notes", known(10), accept=False)
    if accepted:
        assert refused == ""
        assert {each.path for each in tree.walk().files} == {*known(present)()}
        return
    assert f"{present} of 10 known files are in it" in refused
    assert "`anchord confirm-delete notes`" in refused
    assert isinstance(tree.files.walk("notes", ""), Absent)
    assert tree.files.check_root("notes", known(10), accept=True) == ""
    assert isinstance(tree.files.walk("notes", ""), WalkResult)


def test_nothing_of_a_folder_that_was_not_accepted_is_read(tree: Tree) -> None:
    tree.files.check_root("notes", known(0), accept=False)
    assert isinstance(tree.files.read(RootedPath("notes", "a.md")), FileContent)
    refill(tree, 0)
    for path in ("a.md", "sub/b.md"):
        (tree.folder / path).parent.mkdir(exist_ok=True)
        (tree.folder / path).write_text("of another folder")
        assert tree.files.fingerprint(RootedPath("notes", path)) == Absent()
        assert tree.files.read(RootedPath("notes", path)) == Absent()
        with pytest.raises(OSError, match="another folder"):
            tree.files.open(RootedPath("notes", path))
    # A folder of it is not called gone either: its rows would be deleted.
    assert tree.files.walk("notes", "sub") == Problem("its root is away")
    assert tree.files.walk("notes", "gone") == Problem("its root is away")


def test_a_link_in_the_place_of_a_root_is_never_accepted(tree: Tree) -> None:
    tree.files.check_root("notes", known(0), accept=False)
    real = tree.base / "real"
    tree.folder.rename(real)
    tree.folder.symlink_to(real)
    for accept in (False, True):
        refused = tree.files.check_root("notes", known(0), accept=accept)
        assert f'symbolic link to "{real}", which' in refused


def test_a_root_without_known_files_or_never_seen_before_may_have_any_folder(tree: Tree) -> None:
    assert tree.files.check_root("notes", known(10), accept=False) == ""
    refill(tree, 1)
    assert tree.files.check_root("notes", known(0), accept=False) == ""


def test_a_folder_that_is_away_is_neither_accepted_nor_refused(tree: Tree) -> None:
    tree.files.check_root("notes", known(3), accept=False)
    before = tree.memory.roots["notes"]
    tree.folder.rename(tree.base / "away")
    assert tree.files.check_root("notes", known(3), accept=True) == ""
    assert tree.memory.roots["notes"] == before
