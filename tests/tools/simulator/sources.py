"""Steps that change files, transcripts, rules, roots and the configuration. None of them runs the program."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from tools.simulator.transcripts import kind_of, new_name, say
from tools.simulator.world import Root, World

Change = Callable[[World, Random], None]
_BULK = 60
"""More files than may be deleted without a confirmation."""
_PATTERNS = ("*.txt", "inner/", "bulk/", "note3.md", "note4.md")


def _document(world: World, rng: Random) -> Path:
    folder = rng.choice(("docs", "docs", "docs/inner"))
    return world.base / folder / f"note{rng.randrange(6)}{rng.choice(('.md', '.md', '.txt'))}"


def _any(world: World, rng: Random, kind: str) -> Path | None:
    files = world.files_below(kind)
    return rng.choice(files) if files else None


def write_file(world: World, rng: Random) -> None:
    """Write a document, new or over an old one."""
    path = _document(world, rng)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(world.new_text(rng.randrange(1, 6)))


def append_file(world: World, rng: Random) -> None:
    """Add lines to a document."""
    if path := _any(world, rng, "project"):
        with path.open("a") as file:
            file.write("\n" + world.new_text(1))


def edit_file(world: World, rng: Random) -> None:
    """Replace a document by one that shares its first half."""
    if path := _any(world, rng, "project"):
        data = path.read_bytes().replace(b"\0", b"")
        path.write_bytes(
            data[: len(data) // 2].rsplit(b"\n", 1)[0] + b"\n" + world.new_text(1).encode()
        )


def _rename(world: World, rng: Random, kind: str) -> None:
    path = _any(world, rng, kind)
    if path is None:
        return
    suffix = path.suffix
    name = f"moved{rng.randrange(100)}{suffix}"
    if kind == "conversations" and kind_of(path) == "codex":
        name = f"rollout-{name}"
    folders = ("talks", "talks/old") if kind == "conversations" else ("docs", "docs/inner")
    target = world.base / rng.choice(folders) / name
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
    if kind == "conversations":
        world.note_a_rename(path, target)


def rename_file(world: World, rng: Random) -> None:
    """Rename a document."""
    _rename(world, rng, "project")


def rename_talk(world: World, rng: Random) -> None:
    """Rename a transcript."""
    _rename(world, rng, "conversations")


def _delete(world: World, rng: Random, kind: str) -> None:
    if path := _any(world, rng, kind):
        world.keep(path)
        path.unlink()


def delete_file(world: World, rng: Random) -> None:
    """Delete a document."""
    _delete(world, rng, "project")


def delete_talk(world: World, rng: Random) -> None:
    """Delete a transcript, as assistants do after a while."""
    _delete(world, rng, "conversations")


def _spoil(world: World, rng: Random, kind: str, how: str) -> None:
    path = _any(world, rng, kind)
    if path is None:
        return
    world.keep(path)
    data = path.read_bytes()
    cut = rng.randrange(len(data) + 1)
    spoiled = {
        "truncate": data[:cut],
        "tear": data[: data.rfind(b"\n", 0, cut) + 1],
        "empty": b"",
        "nul": b"\0" * len(data),
        "nul_end": data[:cut] + b"\0" * (len(data) - cut),
    }
    path.write_bytes(spoiled[how])


def truncate_file(world: World, rng: Random) -> None:
    """Cut a document off anywhere, or empty it."""
    _spoil(world, rng, "project", rng.choice(("truncate", "empty")))


def nul_file(world: World, rng: Random) -> None:
    """Overwrite a document, or its end, with NUL, as after a power loss."""
    _spoil(world, rng, "project", rng.choice(("nul", "nul_end")))


def truncate_talk(world: World, rng: Random) -> None:
    """Cut a transcript off anywhere, or empty it."""
    _spoil(world, rng, "conversations", rng.choice(("truncate", "empty")))


def tear_talk(world: World, rng: Random) -> None:
    """Cut a transcript off after a whole line."""
    _spoil(world, rng, "conversations", "tear")


def nul_talk(world: World, rng: Random) -> None:
    """Overwrite a transcript, or its end, with NUL."""
    _spoil(world, rng, "conversations", rng.choice(("nul", "nul_end")))


def restore_file(world: World, rng: Random) -> None:
    """Write a former content of a file back."""
    if world.attic:
        path = rng.choice(sorted(world.attic))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(world.attic[path])


def say_something(world: World, rng: Random) -> None:
    """Add an exchange to a transcript, new or old."""
    path = _any(world, rng, "conversations")
    if path is None or rng.random() < 0.3:
        path = world.base / rng.choice(("talks", "talks", "talks/old")) / new_name(rng)
    say(path, world.exchanges)
    world.exchanges += 1


def copy_talk(world: World, rng: Random) -> None:
    """Copy a transcript under another name."""
    if path := _any(world, rng, "conversations"):
        prefix = "rollout-" if kind_of(path) == "codex" else ""
        copy = path.with_name(f"{prefix}copy{rng.randrange(10)}{path.suffix}")
        if copy != path:
            world.note_a_copy(path)
            shutil.copyfile(path, copy)


def write_many(world: World, rng: Random) -> None:
    """Write more documents than may be deleted without a confirmation."""
    del rng
    folder = world.base / "docs" / "bulk"
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(_BULK):
        (folder / f"many{number:02}.md").write_text(world.new_text(1))


def delete_many(world: World, rng: Random) -> None:
    """Delete all of these."""
    del rng
    shutil.rmtree(world.base / "docs" / "bulk", ignore_errors=True)


def ignore(world: World, rng: Random) -> None:
    """Write an ignore file with one pattern or two."""
    folder = world.base / rng.choice(("docs", "docs/inner"))
    folder.mkdir(parents=True, exist_ok=True)
    name = rng.choice((".gitignore", ".anchordignore"))
    (folder / name).write_text("".join(f"{each}\n" for each in rng.sample(_PATTERNS, 2)))


def unignore(world: World, rng: Random) -> None:
    """Delete an ignore file."""
    rules = sorted([*world.base.glob("docs/**/.gitignore"), *world.base.glob("docs/**/.*ignore")])
    if rules:
        rng.choice(rules).unlink()


def ignore_talks(world: World, rng: Random) -> None:
    """Exclude some transcripts, or one."""
    talk = _any(world, rng, "conversations")
    patterns = ["*.jsonl", "*.json", "old/", *([talk.name] if talk else [])]
    (world.base / "talks" / ".gitignore").write_text(f"{rng.choice(patterns)}\n")


def unignore_talks(world: World, rng: Random) -> None:
    """Include all transcripts again."""
    del rng
    (world.base / "talks" / ".gitignore").unlink(missing_ok=True)


# Configuration and roots


def lose_config(world: World, rng: Random) -> None:
    """Lose the configuration: it is empty, or under another name."""
    file = world.home / "config.toml"
    if not file.exists():
        return
    if rng.random() < 0.5:
        file.write_text("")
    else:
        file.rename(world.home / "config.away")
    world.has_config = False


def restore_config(world: World, rng: Random) -> None:
    """Write the configuration that should be."""
    del rng
    world.write_config()


def rename_root(world: World, rng: Random) -> None:
    """Give a root another name in the configuration."""
    if world.roots:
        at = rng.randrange(len(world.roots))
        world.roots[at] = replace(world.roots[at], name=f"root{rng.randrange(10_000)}")
        world.write_config()


def drop_root(world: World, rng: Random) -> None:
    """Delete a root from the configuration file."""
    if len(world.roots) > 1:
        world.roots.pop(rng.randrange(len(world.roots)))
        world.write_config()


def put_roots_back(world: World, rng: Random) -> None:
    """Configure both trees again, under the names that they have or had first."""
    del rng
    for folder, kind in (("docs", "project"), ("talks", "conversations")):
        if not any(root.folder.startswith(folder) for root in world.roots):
            world.roots.append(new_root(world, folder, kind))
    world.write_config()


def new_root(world: World, folder: str, kind: str) -> Root:
    """Return a root whose name is free."""
    taken = {root.name for root in world.roots}
    name = folder.replace("/", "-")
    return Root(name if name not in taken else f"{name}-again", folder, kind)


def set_on_delete(world: World, rng: Random) -> None:
    """Let a root of conversations drop or keep what its deleted transcripts said."""
    for at, root in enumerate(world.roots):
        if root.kind == "conversations":
            world.roots[at] = replace(root, on_delete=rng.choice(("delete", "delete", "keep")))
            world.write_config()


def nest_root(world: World, rng: Random) -> None:
    """Let a root end at its inner folder, or reach to the outer one again."""
    if world.roots:
        at = rng.randrange(len(world.roots))
        root = world.roots[at]
        inner = {"docs": "docs/inner", "talks": "talks/old"}
        outer = {value: key for key, value in inner.items()}
        folder = (inner | outer)[root.folder]
        name = root.name if rng.random() < 0.5 else f"root{rng.randrange(10_000)}"
        world.roots[at] = replace(root, name=name, folder=folder)
        world.write_config()


def replace_root(world: World, rng: Random) -> None:
    """Put a link to another folder, an empty folder or nothing in the place of a root's folder."""
    # A link that is there when a root is first read is what the user configured.
    known = [root for root in world.roots if root in world.indexed_roots]
    whole = [root for root in known if root.folder in ("docs", "talks")]
    if not whole or world.moved_roots:
        return
    root = rng.choice(whole)
    folder, away = world.folder_of(root), world.base / f"{root.folder}-away"
    folder.rename(away)
    world.moved_roots[root.folder] = away
    how = rng.choice(("link", "empty", "nothing"))
    if how == "link":
        folder.symlink_to(world.base / "elsewhere")
    elif how == "empty":
        folder.mkdir()


def put_folders_back(world: World, rng: Random) -> None:
    """Undo `replace_root`."""
    del rng
    for folder, away in world.moved_roots.items():
        here = world.base / folder
        if here.is_symlink():
            here.unlink()
        elif here.exists():
            shutil.rmtree(here)
        away.rename(here)
    world.moved_roots.clear()


CHANGES_CONFIG = frozenset(
    {lose_config, restore_config, rename_root, drop_root, put_roots_back, nest_root, set_on_delete}
)
"""After these a daemon has to be asked to read its configuration."""
