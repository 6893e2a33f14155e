"""Real trees with every kind of difficult file."""

from __future__ import annotations

import inspect
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from anchord.core.types import (
    Absent,
    ChangedDuringRead,
    FileContent,
    Fingerprint,
    Problem,
    Root,
    RootedPath,
    WalkResult,
)
from anchord.sources.files import folder_files as files_module
from anchord.sources.files.folder_files import FolderFiles

LIMIT = 1_000
LINK = Absent("a symbolic link: not followed; its target is indexed at its own path")
NO_FILE = Absent()

_needs_another_user = pytest.mark.skipif(
    os.geteuid() == 0, reason="root reads folders and files whatever their modes say"
)
_needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="no /proc to count open files in"
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return the folder of the root `notes`, with another folder outside the root."""
    folder = Path(os.path.realpath(tmp_path)) / "notes"
    folder.mkdir()
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    return folder


def serve(tree: Path, root: Root | None = None, own_state: tuple[str, ...] = ()) -> FolderFiles:
    return FolderFiles({"notes": root or Root(name="notes", path=str(tree))}, own_state, LIMIT)


def write(tree: Path, path: str, text: str = "text") -> Path:
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def at(path: str) -> RootedPath:
    return RootedPath("notes", path)


def walked(tree: Path, prefix: str = "", root: Root | None = None) -> WalkResult:
    walk = serve(tree, root).walk("notes", prefix)
    assert isinstance(walk, WalkResult)
    return walk


def paths(walk: WalkResult) -> list[str]:
    return sorted(found.path for found in walk.files)


def lists_nothing(tree: Path, prefix: str) -> bool:
    walk = serve(tree).walk("notes", prefix)
    return not isinstance(walk, WalkResult) or not (
        walk.files or walk.file_problems or walk.folder_problems
    )


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


# Plain files


def test_a_file_is_read_between_two_equal_fingerprints(tree: Path) -> None:
    file = write(tree, "a/b.md", "hello")
    seen = serve(tree).fingerprint(at("a/b.md"))
    stat = file.stat()
    assert seen == Fingerprint(
        size=5,
        mtime_ns=stat.st_mtime_ns,
        ctime_ns=stat.st_ctime_ns,
        inode=stat.st_ino,
        device=stat.st_dev,
    )
    assert serve(tree).read(at("a/b.md")) == FileContent(b"hello", seen)


def test_an_empty_file_is_read(tree: Path) -> None:
    write(tree, "a.md", "")
    content = serve(tree).read(at("a.md"))
    assert isinstance(content, FileContent)
    assert content.data == b""


@pytest.mark.parametrize("path", ["a.md", "no/such/folder/a.md", "file.md/a.md"])
def test_what_is_not_there_is_absent(tree: Path, path: str) -> None:
    write(tree, "file.md")
    assert serve(tree).fingerprint(at(path)) == NO_FILE
    assert serve(tree).read(at(path)) == NO_FILE


def test_a_name_that_is_too_long_is_a_problem(tree: Path) -> None:
    assert serve(tree).fingerprint(at("x" * 300 + ".md")) == Problem(
        "file name too long: not indexed"
    )


def test_a_folder_is_absent_however_it_is_asked_for(tree: Path) -> None:
    (tree / "folder.md").mkdir()
    assert serve(tree).fingerprint(at("folder.md")) == Absent("a folder")
    assert serve(tree).read(at("folder.md")) == Absent("a folder")


def test_a_root_that_is_gone_is_absent_in_every_way(tree: Path) -> None:
    served = serve(tree / "gone")
    assert served.fingerprint(at("a.md")) == NO_FILE
    assert served.read(at("a.md")) == NO_FILE
    assert served.walk("notes", "") == NO_FILE


@pytest.mark.parametrize(
    "name", [b"caf\xe9.md", b"new\nline.md", b'it\'s "x".md', b" .md", "日本.md".encode()]
)
def test_a_file_of_any_name_is_walked_and_read(tree: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_text("text")
    path = os.fsdecode(name)
    assert paths(walked(tree)) == [path]
    content = serve(tree).read(at(path))
    assert isinstance(content, FileContent)
    assert content.data == b"text"


# The rules on disk


def test_a_walk_lists_what_the_rules_let_in_and_counts_the_rest(tree: Path) -> None:
    for path in (
        "a.md",
        "sub/b.py",
        ".hidden.md",
        "picture.png",
        "node_modules/c.md",
        "sub/.git/d.md",
    ):
        write(tree, path)
    walk = walked(tree)
    assert paths(walk) == ["a.md", "sub/b.py"]
    assert walk.skipped_count == 4
    assert (walk.file_problems, walk.folder_problems, walk.unreadable_folders) == ((), (), ())


def test_a_walk_gives_the_fingerprints_that_a_look_gives(tree: Path) -> None:
    write(tree, "a.md")
    write(tree, "sub/b.md")
    assert {f.path: f.fingerprint for f in walked(tree).files} == {
        path: serve(tree).fingerprint(at(path)) for path in ("a.md", "sub/b.md")
    }


def test_ignore_files_of_every_folder_hold_for_walks_and_single_paths(tree: Path) -> None:
    write(tree, ".git/info/exclude", "excluded.md\n")
    write(tree, ".gitignore", "*.txt\n/build/\n")
    write(tree, "sub/.gitignore", "!keep.txt\n")
    write(tree, "sub/.anchordignore", "private/\n")
    kept = ["a.md", "sub/keep.txt", "sub/build/a.md"]
    dropped = ["excluded.md", "a.txt", "build/a.md", "sub/b.txt", "sub/private/a.md"]
    for path in (*kept, *dropped):
        write(tree, path)
    assert paths(walked(tree)) == sorted(kept)
    served = serve(tree)
    assert all(served.path_filter()(at(path)).is_included for path in kept)
    assert not any(served.path_filter()(at(path)).is_included for path in dropped)
    assert (
        served.path_filter()(at("excluded.md")).reason
        == "ignored by .git/info/exclude:1 excluded.md"
    )


def test_an_ignore_file_brings_back_what_the_repository_s_own_exclude_took(tree: Path) -> None:
    write(tree, ".git/info/exclude", "a.md\n")
    write(tree, ".gitignore", "!a.md\n")
    write(tree, "a.md")
    assert paths(walked(tree)) == ["a.md"]


IGNORED: dict[str, tuple[bytes, bytes]] = {
    "with a byte order mark": (b"\xef\xbb\xbfa.md\n", b"a.md"),
    "with CRLF": (b"a.md\r\n", b"a.md"),
    "without a last line end": (b"b.md\na.md", b"a.md"),
    "with blanks after": (b"a.md  \n", b"a.md"),
    "of bytes that are no UTF-8": (b"caf\xe9.md\n", b"caf\xe9.md"),
    "beside a line that is no UTF-8": (b"\xff\xfe\na.md\n", b"a.md"),
    "with a line separator in a name": ("a\u2028.md\n".encode(), "a\u2028.md".encode()),
    "with a next-line mark in a name": ("a\u0085.md\n".encode(), "a\u0085.md".encode()),
    "with a form feed in a name": (b"a\x0c.md\n", b"a\x0c.md"),
}


@pytest.mark.parametrize(("patterns", "name"), IGNORED.values(), ids=IGNORED)
def test_an_ignore_file_is_read_as_git_reads_it(tree: Path, patterns: bytes, name: bytes) -> None:
    (tree / ".gitignore").write_bytes(patterns)
    Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).touch()
    write(tree, "other.md")
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    asked = subprocess.run(
        ["git", "check-ignore", "-z", "--stdin"],
        cwd=tree,
        input=name,
        capture_output=True,
        check=True,
    )
    assert asked.stdout == name + b"\0"
    assert paths(walked(tree)) == ["other.md"]


def test_the_own_state_is_not_walked(tree: Path) -> None:
    write(tree, "state/a.md")
    write(tree, "b.md")
    walk = serve(tree, own_state=(str(tree / "state"),)).walk("notes", "")
    assert isinstance(walk, WalkResult)
    assert paths(walk) == ["b.md"]


def test_a_walk_below_a_prefix_knows_the_rules_above_it(tree: Path) -> None:
    write(tree, ".gitignore", "a.md\n")
    write(tree, "sub/.gitignore", "b.md\n")
    for name in "abc":
        write(tree, f"sub/deep/{name}.md")
        write(tree, f"{name}.md")
    assert paths(walked(tree, "sub/deep")) == ["sub/deep/c.md"]
    assert paths(walked(tree, "sub")) == ["sub/deep/c.md"]


def test_a_walk_below_an_ignored_folder_lists_nothing(tree: Path) -> None:
    write(tree, ".gitignore", "sub/\n")
    write(tree, "sub/deep/a.md")
    assert paths(walked(tree, "sub")) == paths(walked(tree, "sub/deep")) == []


@pytest.mark.parametrize("prefix", ["gone", "sub/gone", "a.md"])
def test_a_walk_below_what_is_no_folder_says_so(tree: Path, prefix: str) -> None:
    write(tree, "a.md")
    write(tree, "sub/b.md")
    assert serve(tree).walk("notes", prefix) == NO_FILE


def test_a_very_deep_tree_is_walked(tree: Path) -> None:
    deep = "/".join("d" * 200)
    write(tree, f"{deep}/a.md")
    assert paths(walked(tree)) == [f"{deep}/a.md"]


# Not a file


def test_a_named_pipe_is_a_problem_and_blocks_no_one(tree: Path) -> None:
    os.mkfifo(tree / "pipe.md")
    pipe = Problem("a named pipe: not indexed")
    assert serve(tree).fingerprint(at("pipe.md")) == pipe
    assert serve(tree).read(at("pipe.md")) == pipe
    assert walked(tree).file_problems == (("pipe.md", pipe),)


def test_a_socket_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="a") as folder,
        socket.socket(socket.AF_UNIX) as listening,
    ):
        tree = Path(os.path.realpath(folder))
        monkeypatch.chdir(tree)  # A socket's path may be no longer than about a hundred bytes.
        listening.bind("socket.md")
        assert serve(tree).fingerprint(at("socket.md")) == Problem("a socket: not indexed")
        assert isinstance(serve(tree).read(at("socket.md")), Problem)
        assert walked(tree).file_problems == (("socket.md", Problem("a socket: not indexed")),)


@_needs_another_user
def test_a_folder_that_cannot_be_listed_is_named_as_unread(tree: Path) -> None:
    write(tree, "closed/a.md")
    write(tree, "open/b.md")
    (tree / "closed").chmod(0)
    try:
        walk = walked(tree)
        problem = Problem("permission denied: not indexed")
        assert (walk.unreadable_folders, walk.folder_problems) == (
            ("closed",),
            (("closed", problem),),
        )
        assert paths(walk) == ["open/b.md"]
        assert serve(tree).walk("notes", "closed") == problem
        assert serve(tree).fingerprint(at("closed/a.md")) == problem
    finally:
        (tree / "closed").chmod(0o700)


@_needs_another_user
def test_a_file_that_cannot_be_read_is_a_problem(tree: Path) -> None:
    write(tree, "a.md").chmod(0)
    assert isinstance(serve(tree).fingerprint(at("a.md")), Fingerprint)
    assert serve(tree).read(at("a.md")) == Problem("permission denied: not indexed")


# Symbolic links


def test_a_link_to_a_file_is_left_to_its_target(tree: Path) -> None:
    write(tree, "a.md")
    (tree / "link.md").symlink_to("a.md")
    walk = walked(tree)
    assert paths(walk) == ["a.md"]
    assert (walk.file_problems, walk.skipped_count) == ((), 1)
    assert serve(tree).fingerprint(at("link.md")) == LINK
    assert isinstance(serve(tree).read(at("link.md")), Absent)


def test_a_dangling_link_is_a_problem(tree: Path) -> None:
    (tree / "link.md").symlink_to("nothing.md")
    problem = Problem("symbolic link to nothing: not indexed")
    assert walked(tree).file_problems == (("link.md", problem),)
    assert serve(tree).fingerprint(at("link.md")) == problem


def test_links_in_a_loop_are_a_problem(tree: Path) -> None:
    (tree / "one.md").symlink_to("two.md")
    (tree / "two.md").symlink_to("one.md")
    problem = Problem("symbolic link in a loop: not indexed")
    assert sorted(walked(tree).file_problems) == [("one.md", problem), ("two.md", problem)]


@pytest.mark.parametrize("target", [".", "..", "../..", "/"])
def test_a_link_to_a_folder_above_it_is_named_and_not_followed(tree: Path, target: str) -> None:
    write(tree, "sub/a.md")
    (tree / "sub" / "up").symlink_to(target)
    walk = walked(tree)
    problem = Problem("symbolic link to a folder above it: not followed")
    assert paths(walk) == ["sub/a.md"]
    assert walk.folder_problems == (("sub/up", problem),)
    assert serve(tree).fingerprint(at("sub/up")) == problem


def test_a_link_out_of_the_root_is_not_followed(tree: Path) -> None:
    (tree / "out").symlink_to("../outside")
    (tree / "secret.md").symlink_to("../outside/secret.md")
    walk = walked(tree)
    assert (paths(walk), walk.file_problems, walk.folder_problems) == ([], (), ())
    for path in ("out/secret.md", "secret.md"):
        assert isinstance(serve(tree).fingerprint(at(path)), Absent)
        assert isinstance(serve(tree).read(at(path)), Absent)


@pytest.mark.parametrize("target", ["../outside", "sub"])
def test_a_walk_below_a_link_lists_nothing(tree: Path, target: str) -> None:
    # A new link is hinted by its path, and that the fingerprint finds no file there leads to a walk below it.
    write(tree, "sub/a.md")
    (tree / "out").symlink_to(target)
    assert lists_nothing(tree, "out")


def test_a_walk_below_a_folder_behind_a_link_lists_nothing(tree: Path) -> None:
    write(tree.parent, "outside/deep/a.md")
    (tree / "out").symlink_to("../outside")
    assert lists_nothing(tree, "out/deep")


def test_a_folder_swapped_for_a_link_leads_nowhere(tree: Path) -> None:
    write(tree, "sub/secret.md", "mine")
    assert paths(walked(tree)) == ["sub/secret.md"]
    (tree / "sub").rename(tree / "was")
    (tree / "sub").symlink_to("../outside")
    assert serve(tree).fingerprint(at("sub/secret.md")) == NO_FILE
    assert serve(tree).read(at("sub/secret.md")) == NO_FILE
    assert paths(walked(tree)) == ["was/secret.md"]


def test_a_root_reached_through_a_link_above_it_is_served(tree: Path) -> None:
    write(tree, "sub/a.md")
    (tree.parent / "link").symlink_to("notes")
    content = serve(tree.parent / "link" / "sub").read(at("a.md"))
    assert isinstance(content, FileContent)


def test_a_root_that_is_a_link_is_not_followed(tree: Path) -> None:
    write(tree, "a.md")
    (tree.parent / "link").symlink_to("notes")
    served = serve(tree.parent / "link")
    assert served.fingerprint(at("a.md")) == NO_FILE
    assert served.read(at("a.md")) == NO_FILE
    assert served.walk("notes", "") == NO_FILE
    with pytest.raises(OSError, match="director"):
        served.open(at("a.md"))


# Files that are written while they are read

Change = Callable[[int], None]


def reads_with(monkeypatch: pytest.MonkeyPatch, change: Change) -> list[int]:
    """Have a change happen right after each reading; return a list that grows with their sizes."""
    read, sizes = files_module._read_exactly, []

    def changing(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        sizes.append(len(data))
        change(len(sizes))
        return data

    monkeypatch.setattr(files_module, "_read_exactly", changing)
    monkeypatch.setattr(files_module, "_PAUSE_S", 0)
    return sizes


def rewritten(file: Path, text: str, count: int) -> None:
    file.write_text(text)
    os.utime(file, ns=(count, count))  # Two writes within the clock's tick would look like none.


def test_a_file_written_once_while_it_is_read_is_read_again(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tree, "a.md", "before")
    sizes = reads_with(monkeypatch, lambda n: rewritten(file, "after!!", n) if n == 1 else None)
    content = serve(tree).read(at("a.md"))
    assert isinstance(content, FileContent)
    assert content == FileContent(b"after!!", content.fingerprint)
    assert sizes == [6, 7]
    assert serve(tree).fingerprint(at("a.md")) == content.fingerprint


def test_a_file_rewritten_all_the_time_is_unstable(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tree, "a.md", "same size")
    sizes = reads_with(monkeypatch, lambda n: rewritten(file, f"same siz{n}", n))
    assert serve(tree).read(at("a.md")) == ChangedDuringRead()
    assert 1 < len(sizes) < 10


def test_a_file_cut_while_it_is_read_is_unstable(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tree, "a.md", "x" * 100)
    reads_with(monkeypatch, lambda n: os.truncate(file, 100 - n))
    assert serve(tree).read(at("a.md")) == ChangedDuringRead()


def test_a_log_that_grows_all_the_time_is_taken_as_it_was(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tree, "a.md", "line 0\n")

    def grow(count: int) -> None:
        with file.open("a") as stream:
            stream.write(f"line {count}\n")

    sizes = reads_with(monkeypatch, grow)
    content = serve(tree).read(at("a.md"))
    assert isinstance(content, FileContent)
    assert content.data == file.read_bytes()[: sizes[-1]]
    assert len(content.data) == content.fingerprint.size == sizes[-1]
    assert serve(tree).fingerprint(at("a.md")) != content.fingerprint


def test_a_file_swapped_while_it_is_read_is_read_as_one_of_the_two(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, new = write(tree, "a.md", "old"), write(tree, "new.txt", "newer")
    reads_with(monkeypatch, lambda n: os.replace(new, file) if n == 1 else None)
    content = serve(tree).read(at("a.md"))
    assert isinstance(content, FileContent)
    assert content.data == b"old"
    assert content.fingerprint != serve(tree).fingerprint(at("a.md"))


# Sizes


def test_a_file_as_large_as_the_limit_is_read_whole(tree: Path) -> None:
    write(tree, "a.md", "x" * LIMIT)
    content = serve(tree).read(at("a.md"))
    assert isinstance(content, FileContent)
    assert len(content.data) == LIMIT


def test_a_file_over_the_limit_is_seen_with_its_size(tree: Path) -> None:
    write(tree, "a.md", "x" * (LIMIT + 1))
    seen = serve(tree).fingerprint(at("a.md"))
    assert isinstance(seen, Fingerprint)
    assert seen.size == LIMIT + 1
    assert paths(walked(tree)) == ["a.md"]


def test_a_file_over_the_limit_is_never_read_in_part_as_if_it_were_whole(tree: Path) -> None:
    # It may have grown past the limit after the look that let it through.
    write(tree, "a.md", "x" * (LIMIT + 1))
    assert not isinstance(serve(tree).read(at("a.md")), FileContent)


# Open files


@_needs_proc
def test_no_file_stays_open(tree: Path) -> None:
    write(tree, "sub/a.md")
    write(tree, "sub/.gitignore", "b.md\n")
    os.mkfifo(tree / "sub" / "pipe.md")
    (tree / "sub" / "link.md").symlink_to("a.md")
    served, before = serve(tree), open_files()
    for path in (
        "sub/a.md",
        "sub/none.md",
        "none/a.md",
        "sub/pipe.md",
        "sub/link.md",
        "sub/a.md/b.md",
    ):
        served.fingerprint(at(path))
        served.read(at(path))
        served.path_filter()(at(path))
    served.walk("notes", "")
    assert open_files() == before


@_needs_proc
def test_no_file_stays_open_when_a_folder_has_the_name_of_a_file(tree: Path) -> None:
    (tree / ".gitignore").mkdir()
    (tree / "a.md").mkdir()
    served, before = serve(tree), open_files()
    served.walk("notes", "")
    served.read(at("a.md"))
    assert open_files() == before


def test_the_rules_of_any_number_of_nested_folders_are_read(tree: Path) -> None:
    depth = len(inspect.stack(0))
    path = "d/" * 150 + "deep.md"
    write(tree, path)
    write(tree, "d/d/.gitignore", "*.log\n")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 100)
    try:
        served = serve(tree).path_filter()
        assert served(RootedPath("notes", path)).is_included
        assert not served(RootedPath("notes", f"{path}.log")).is_included
    finally:
        sys.setrecursionlimit(limit)
