"""Operations on names, folders, rules, links and pipes: changes of the tree, not only of a file's content."""

from __future__ import annotations

import ctypes
import io
import os
import shutil
import tarfile
import unicodedata
from random import Random

from faults.texts import edited, text_for
from faults.tree import MOST_FILES, NotNow, Tree

_EXCHANGE = 2
_AT_FDCWD = -100
ODD_NAMES = (
    "two\nlines.md",
    "trailing .md ",
    "right\u202eto left.md",
    'quote\'s "name" %.md',
    "bad \udcff byte.md",
    "bad \\xff byte.md",
    unicodedata.normalize("NFC", "caf\u00e9.md"),
    unicodedata.normalize("NFD", "caf\u00e9.md"),
    "Note.md",
    "NOTE.MD",
    "l" * 252 + ".md",
    "-rf.md",
    "[a].md",
    "*.md",
    ".env",
    "a.min.js",
)
_RULES = (
    "*.txt",
    "docs/",
    "docs/*\n!docs/a.md",
    "**/deep",
    "/a.md",
    "*\n!*.md",
    "[",
    "note.md\n!note.md",
    "src",
    "x.md",
    "",
)


def delete(tree: Tree, rng: Random) -> str:
    """Delete a file."""
    path = tree.any_file(rng)
    tree.unlink(path)
    return f"delete {path!r}"


def rename(tree: Tree, rng: Random) -> str:
    """Rename a file, in its folder or into another."""
    path, to = tree.any_file(rng), tree.new_path(rng)
    tree.rename(path, to)
    return f"rename {path!r} to {to!r}"


def rename_over(tree: Tree, rng: Random) -> str:
    """Rename a file over another one."""
    path, to = tree.any_file(rng), tree.any_file(rng)
    tree.keep(to)
    tree.rename(path, to)
    return f"rename {path!r} over {to!r}"


def rename_case(tree: Tree, rng: Random) -> str:
    """A17: change only the case of a name."""
    path = tree.any_file(rng)
    to = os.path.join(os.path.dirname(path), os.path.basename(path).swapcase())
    if os.path.lexists(tree.full(to)):
        raise NotNow
    tree.rename(path, to)
    return f"rename {path!r} to {to!r}"


def rename_folder(tree: Tree, rng: Random) -> str:
    """B6: rename a folder, sometimes to a name that a file could have."""
    path = tree.any_folder(rng)
    to = tree.new_path(rng, rng.choice(("moved", "docs", "y.md", "notes", "node_modules")))
    if f"{to}/".startswith(f"{path}/"):
        raise NotNow
    tree.rename(path, to)
    return f"rename folder {path!r} to {to!r}"


def chain(tree: Tree, rng: Random) -> str:
    """B7: b becomes c, a becomes b, and there is a new a."""
    one, two = tree.any_file(rng), tree.any_file(rng)
    three = tree.new_path(rng)
    if one == two:
        raise NotNow
    tree.rename(two, three)
    tree.rename(one, two)
    tree.write(one, text_for(one, rng))
    return f"chain {one!r} -> {two!r} -> {three!r}, and a new {one!r}"


def exchange(tree: Tree, rng: Random) -> str:
    """A16, B8: swap two files or folders atomically (RENAME_EXCHANGE)."""
    folders = rng.random() < 0.5
    one, two = (
        (tree.any_folder(rng), tree.any_folder(rng))
        if folders
        else (tree.any_file(rng), tree.any_file(rng))
    )
    if one == two or f"{one}/".startswith(f"{two}/") or f"{two}/".startswith(f"{one}/"):
        raise NotNow
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None or call(
        _AT_FDCWD, os.fsencode(tree.full(one)), _AT_FDCWD, os.fsencode(tree.full(two)), _EXCHANGE
    ):
        raise NotNow
    tree.touch(one, two)
    return f"exchange {one!r} and {two!r}"


def file_to_folder(tree: Tree, rng: Random) -> str:
    """A18: replace a file by a folder with a file; sometimes by a file again."""
    path = tree.any_file(rng)
    data = tree.read(path)
    tree.unlink(path)
    os.mkdir(tree.full(path))
    tree.write(os.path.join(path, "a.md"), text_for("a.md", rng))
    if rng.random() < 0.5:
        return f"{path!r} becomes a folder"
    tree.remove_folder(path)
    tree.write(path, data)
    return f"{path!r} becomes a folder and a file again"


def folder_to_file(tree: Tree, rng: Random) -> str:
    """A18 reversed: replace a folder by a file."""
    path = tree.any_folder(rng)
    tree.remove_folder(path)
    tree.write(path, text_for(path, rng))
    return f"folder {path!r} becomes a file"


def make_folders(tree: Tree, rng: Random) -> str:
    """B1: `mkdir -p`, and files immediately afterwards."""
    deep = os.path.join("new", f"n{rng.randrange(3)}", *("d" * rng.randint(1, 3)))
    if len(tree.files()) >= MOST_FILES:
        raise NotNow
    tree.touch("new")
    try:
        os.makedirs(tree.full(deep), exist_ok=True)
    except OSError:
        raise NotNow from None  # A parent of the path is not a folder.
    for name in ("a.md", "b.txt"):
        tree.write(os.path.join(deep, name), text_for(name, rng))
    return f"mkdir -p {deep!r} and two files"


def copy_folder(tree: Tree, rng: Random) -> str:
    """B2, B3: `cp -r` (new times), or unpack an archive (original times)."""
    path = tree.any_folder(rng)
    inside = [file for file in tree.files() if file.startswith(path + "/")]
    to = tree.new_path(rng, rng.choice(("copy", "docs", "twin.md")))
    if len(inside) > MOST_FILES // 3 or f"{to}/".startswith(f"{path}/"):
        raise NotNow
    shutil.copytree(
        tree.full(path), tree.full(to), symlinks=True, copy_function=shutil.copy, ignore=_pipes
    )
    if rng.random() < 0.5:
        for file in inside:
            seen = os.lstat(tree.full(file))
            os.utime(tree.full(to + file[len(path) :]), ns=(seen.st_atime_ns, seen.st_mtime_ns))
    tree.touch(to)
    return f"copy folder {path!r} to {to!r}"


def _pipes(folder: str, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if os.path.lexists(p := os.path.join(folder, name)) and not _is_plain(p)
    ]


def _is_plain(path: str) -> bool:
    return os.path.isfile(path) or os.path.isdir(path) or os.path.islink(path)


def unpack(tree: Tree, rng: Random) -> str:
    """B3: unpack an archive with old times over existing files."""
    names = [f"un/packed/{name}" for name in ("a.md", "b.md", "c.txt")]
    taken = [path for path in names if os.path.lexists(tree.full(path)) and not tree.is_file(path)]
    if taken or len(tree.files()) >= MOST_FILES:
        raise NotNow
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in names:
            data = text_for(name, rng).encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(data), 1_000_000_000
            archive.addfile(entry, io.BytesIO(data))
    stream.seek(0)
    tree.touch("un", *names)
    try:
        with tarfile.open(fileobj=stream) as archive:
            archive.extractall(tree.folder, filter="data")
    except OSError:
        raise NotNow from None  # A parent of the path is not a folder.
    return "unpack an archive to 'un'"


def remove_folder(tree: Tree, rng: Random) -> str:
    """B5, B9: rm -rf."""
    path = tree.any_folder(rng)
    tree.remove_folder(path)
    return f"rm -rf {path!r}"


def move_out_and_in(tree: Tree, rng: Random) -> str:
    """B4, B5: move a folder out of the root, or move one back that was changed meanwhile."""
    away = sorted(entry.name for entry in os.scandir(tree.outside) if entry.name.startswith("away"))
    if away and rng.random() < 0.6:
        to = tree.new_path(rng, "back")
        inside = os.path.join(tree.outside, away[0])
        with open(os.path.join(inside, "written outside.md"), "w") as stream:
            stream.write(text_for("a.md", rng))
        os.rename(inside, tree.full(to))
        tree.touch(to)
        return f"move a folder in as {to!r}"
    path = tree.any_folder(rng)
    os.rename(tree.full(path), os.path.join(tree.outside, f"away{rng.randrange(10**6)}"))
    tree.touch(path)
    return f"move folder {path!r} out"


def change_rules(tree: Tree, rng: Random) -> str:
    """H1: create, change or delete an ignore file, or put a folder in its place."""
    folder = rng.choice(("", "", *tree.folders()))
    path = os.path.join(
        folder, rng.choice((".gitignore", ".gitignore", ".ignore", ".anchordignore"))
    )
    if tree.is_folder(path):
        tree.remove_folder(path)
        return f"rm -rf {path!r}"
    if os.path.lexists(tree.full(path)) and (rng.random() < 0.5 or not tree.is_file(path)):
        tree.unlink(path)
        return f"delete {path!r}"
    rules = rng.choice(_RULES)
    tree.write(path, rules + "\n" * rng.randint(0, 1))
    return f"write {path!r}: {rules!r}"


def make_link(tree: Tree, rng: Random) -> str:
    """E5, E6: create a symbolic link to inside, outside, a parent, itself or nothing; sometimes over a file."""
    target = rng.choice(("a.md", "docs", "..", str(tree.outside), "nothing", "itself"))
    if rng.random() < 0.4:
        path = tree.any_file(rng)
        tree.unlink(path)
    else:
        path = tree.new_path(rng, rng.choice(("", "link.md", "link", ".gitignore")))
    os.symlink(os.path.basename(path) if target == "itself" else target, tree.full(path))
    tree.touch(path)
    return f"link {path!r} to {target.replace(str(tree.outside), 'outside')!r}"


def make_pipe(tree: Tree, rng: Random) -> str:
    """E7: create a named pipe with the name of a document."""
    path = tree.new_path(rng, rng.choice(("", "pipe.md", ".gitignore")))
    os.mkfifo(tree.full(path))
    tree.touch(path)
    return f"make pipe {path!r}"


def drop_oddity(tree: Tree, rng: Random) -> str:
    """Delete a link or pipe; sometimes create a file of its name."""
    odd = tree.others()
    if not odd:
        raise NotNow
    path = rng.choice(odd)
    tree.unlink(path)
    if rng.random() < 0.5:
        tree.write(path, text_for(path, rng))
        return f"{path!r} becomes a file"
    return f"remove {path!r}, which was no file"


def odd_name(tree: Tree, rng: Random) -> str:
    """E1 to E4: names with line feeds, invalid UTF-8, NFC and NFD twins, quotes, 255 bytes."""
    path = tree.new_path(rng, rng.choice(ODD_NAMES))
    if rng.random() < 0.5:
        tree.rename(source := tree.any_file(rng), path)
        return f"rename {source!r} to {path!r}"
    tree.write(path, text_for(path, rng))
    return f"create {path!r}"


def copy(tree: Tree, rng: Random) -> str:
    """Copy a file, sometimes with a small edit: most of its texts are already embedded."""
    path, text = tree.any_text(rng)
    to = tree.new_path(rng)
    new, what = edited(text, rng) if rng.random() < 0.5 else (text, "nothing")
    tree.write(to, new)
    return f"copy {path!r} to {to!r}, changing {what}"


def link_inside(tree: Tree, rng: Random) -> str:
    """A15: hard-link a file inside the root; later writes change both names, with an event for one."""
    path, to = tree.any_file(rng), tree.new_path(rng)
    os.link(tree.full(path), tree.full(to))
    tree.touch(to)
    return f"hard link {path!r} as {to!r}"


def switch_branch(tree: Tree, rng: Random) -> str:
    """B10: restore an earlier state of the tree by renames as git does; delete newer files."""
    now = {path: tree.read(path) for path in tree.files()}
    if not tree.snapshots or rng.random() < 0.4:
        tree.snapshots = [*tree.snapshots[-2:], now]
        return "remember the tree as a branch"
    branch = rng.choice(tree.snapshots)
    tree.snapshots = [*tree.snapshots[-2:], now]
    for path in sorted({*now, *branch}):
        if now.get(path) == branch.get(path):
            continue
        if path in now:
            tree.unlink(path)
        if path in branch and tree.is_folder(os.path.dirname(path)):
            tree.write(path, branch[path])
    return "switch to an earlier branch"
