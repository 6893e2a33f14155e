"""Operations on one file's content: the ways in which editors and tools save a file.

An operation takes the tree and a random generator, changes something, and returns a short description; `NotNow` if the
tree has nothing for it. Paths are printed with `!r`: they can contain line feeds and invalid UTF-8.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable
from random import Random

from faults.texts import edited, markdown, sentence, text_for
from faults.tree import NotNow, Tree

Operation = Callable[[Tree, Random], str]
_LIMIT = 2_000_000
_DAY_S = 86_400


def create(tree: Tree, rng: Random) -> str:
    """Create a file."""
    path = tree.new_path(rng)
    tree.write(path, text_for(path, rng))
    return f"create {path!r}"


def write_in_place(tree: Tree, rng: Random) -> str:
    """A1: open, truncate, write."""
    path, text = tree.any_text(rng)
    new, what = edited(text, rng)
    tree.write(path, new)
    return f"write {path!r}: {what}"


def save_by_rename(tree: Tree, rng: Random) -> str:
    """A2, A3: rename a temporary file, from the same or another folder, over the file."""
    path, text = tree.any_text(rng)
    new, what = edited(text, rng)
    tree.keep(path)
    if rng.random() < 0.5:
        beside = os.path.join(os.path.dirname(path), f".tmp{rng.randrange(1000)}")
        tree.touch(beside)
        temporary = tree.full(beside)
    else:
        temporary = os.path.join(tree.outside, "temporary")
    with open(temporary, "wb") as stream:
        stream.write(new.encode())
    os.replace(temporary, tree.full(path))
    tree.touch(path)
    return f"save {path!r} by rename: {what}"


def save_with_backup(tree: Tree, rng: Random) -> str:
    """A4 vim: rename to a backup, write, unlink the backup; A5: as safe write of JetBrains, the backup under another name."""
    path, text = tree.any_text(rng)
    new, what = edited(text, rng)
    tree.keep(path)
    backup = path + rng.choice(("~", "___jb_old___", ".bak.md"))
    try:
        os.rename(tree.full(path), tree.full(backup))
    except OSError:
        raise NotNow from None  # A name of 255 bytes is too long for a backup suffix.
    with open(tree.full(path), "wb") as stream:
        stream.write(new.encode())
    os.unlink(tree.full(backup))
    tree.touch(path, backup)
    return f"save {path!r} with a backup: {what}"


def save_unnamed(tree: Tree, rng: Random) -> str:
    """A6: written without a name (O_TMPFILE), then linked."""
    if not hasattr(os, "O_TMPFILE"):
        raise NotNow
    path = tree.new_path(rng)
    descriptor = os.open(os.path.dirname(tree.full(path)), os.O_TMPFILE | os.O_WRONLY)
    own = os.open("/proc/self/fd", os.O_RDONLY)
    try:
        os.write(descriptor, text_for(path, rng).encode())
        os.link(
            str(descriptor), tree.full(path), src_dir_fd=own, follow_symlinks=True
        )  # Only with a folder it is linkat(2).
    finally:
        os.close(own)
        os.close(descriptor)
    tree.touch(path)
    return f"create {path!r} by O_TMPFILE"


def truncate_and_rewrite(tree: Tree, rng: Random) -> str:
    """A7: emptied, then written in pieces; or the emptied file is what stays."""
    path, text = tree.any_text(rng)
    tree.write(path, b"")
    if rng.random() < 0.3:
        return f"empty {path!r}"
    new, what = edited(text, rng)
    data = new.encode()
    with open(tree.full(path), "ab", buffering=0) as stream:
        stream.writelines(data[at : at + 400] for at in range(0, len(data), 400))
    return f"truncate {path!r} and rewrite: {what}"


def append(tree: Tree, rng: Random) -> str:
    """A12: append a line to a log."""
    path = tree.any_file(rng)
    with open(tree.full(path), "ab") as stream:
        stream.write(f"{sentence(rng)}\n".encode())
    tree.touch(path)
    return f"append to {path!r}"


def same_size_same_time(tree: Tree, rng: Random) -> str:
    """A8: as many bytes as before, and the time of writing set back."""
    path, text = tree.any_text(rng)
    letters = [n for n, letter in enumerate(text) if letter.isascii() and letter.isalpha()]
    if not letters:
        raise NotNow
    at = rng.choice(letters)
    seen = os.stat(tree.full(path))
    tree.write(path, text[:at] + rng.choice("abcdefgh") + text[at + 1 :])
    os.utime(tree.full(path), ns=(seen.st_atime_ns, seen.st_mtime_ns))
    return f"edit {path!r} at {at}, size and mtime as before"


def map_and_write(tree: Tree, rng: Random) -> str:
    """A14: change bytes through mmap: no watcher gets an event before the file is closed."""
    path, text = tree.any_text(rng)
    size = len(text.encode())
    if not size:
        raise NotNow
    tree.keep(path)
    with open(tree.full(path), "r+b") as stream, mmap.mmap(stream.fileno(), 0) as mapped:
        mapped[rng.randrange(size)] = rng.choice(b"abcdefgh")
        mapped.flush()
    return f"change {path!r} by mmap"


def touch(tree: Tree, rng: Random) -> str:
    """A9, E8: change only the times; also to the future and the distant past."""
    path = tree.any_file(rng)
    now = os.stat(tree.full(path)).st_mtime
    time = rng.choice((now + rng.random(), now + 400 * _DAY_S, now - _DAY_S, 0.0))
    os.utime(tree.full(path), (time, time))
    tree.touch(path)
    return f"touch {path!r}"


def change_mode(tree: Tree, rng: Random) -> str:
    """A9: change only the permissions."""
    path = tree.any_file(rng)
    os.chmod(tree.full(path), rng.choice((0o600, 0o644, 0o755)))
    tree.touch(path)
    return f"chmod {path!r}"


def save_unchanged(tree: Tree, rng: Random) -> str:
    """A10: the same bytes again, in place or by another inode."""
    path = tree.any_file(rng)
    data = tree.read(path)
    if rng.random() < 0.5:
        tree.unlink(path)
    tree.write(path, data)
    return f"save {path!r} as it is"


def undo(tree: Tree, rng: Random) -> str:
    """Restore former content of a file, under its name or another one."""
    if not tree.earlier:
        raise NotNow
    path, data = rng.choice(tree.earlier)
    to = path if rng.random() < 0.8 else tree.any_file(rng)
    if not tree.is_file(to):
        raise NotNow
    tree.write(to, data)
    return f"undo: {to!r} as {path!r} was"


def write_bad_bytes(tree: Tree, rng: Random) -> str:
    """H5: write invalid UTF-8, a NUL, another encoding, or binary data."""
    path, text = tree.any_text(rng)
    data = text.encode()
    at = rng.randint(0, len(data))
    name, bad = rng.choice(
        (
            ("a byte that is no UTF-8", data[:at] + b"\xff\xfe\xfd" + data[at:]),
            ("a NUL", data[:at] + b"\0" + data[at:]),
            ("half a character", data + "é".encode()[:1]),
            ("UTF-16", text.encode("utf-16")),
            ("a surrogate", data[:at] + b"\xed\xa0\x80" + data[at:]),
            ("binary", rng.randbytes(rng.randint(1, 3000))),
            ("nothing but blanks", b" \n\t\n" * rng.randint(1, 5)),
        )
    )
    tree.write(path, bad)
    return f"write {name} to {path!r}"


def grow(tree: Tree, rng: Random) -> str:
    """A13: grow a file past the size limit (with a hole), and shrink it later."""
    grown = [path for path in tree.files() if os.lstat(tree.full(path)).st_size > _LIMIT]
    if grown:
        path = rng.choice(grown)
        os.truncate(tree.full(path), len(tree.read(path).rstrip(b"\0")))
        tree.touch(path)
        return f"shrink {path!r} to what it was"
    path = tree.any_file(rng)
    tree.keep(path)
    os.truncate(tree.full(path), _LIMIT + rng.randint(1, 1000))
    tree.touch(path)
    return f"grow {path!r} past the limit"


def write_through_link(tree: Tree, rng: Random) -> str:
    """A15: hard-link a file outside the root and write through that name: no watcher gets an event."""
    path, text = tree.any_text(rng)
    tree.keep(path)
    with tempfile.TemporaryDirectory(dir=tree.outside) as folder:
        second = os.path.join(folder, "second")
        os.link(tree.full(path), second)
        new, what = edited(text, rng)
        with open(second, "wb") as stream:
            stream.write(new.encode())
    return f"write {path!r} by another name outside: {what}"


def write_large(tree: Tree, rng: Random) -> str:
    """A document of more texts than are embedded between two commits (64)."""
    path, _ = tree.any_text(rng)
    if not path.endswith((".md", ".txt")):
        raise NotNow
    tree.write(path, "\n\n".join(markdown(rng) for _ in range(14)))
    return f"write a large text to {path!r}"
