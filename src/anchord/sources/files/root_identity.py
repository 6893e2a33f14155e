"""Whether the folder at a root's path is still the one that its rows were made from.

Device and inode alone do not say it: both change when a folder is cloned again, restored, or
mounted over a network. So a folder with other numbers is accepted if at least half of the root's
known files are in it, and else refused: then the rows stay until the folder is back or a person
accepts the new one. A symbolic link is never accepted, unless it is what the user configured.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from anchord.core.quoting import quote_command, quote_name
from anchord.core.types import Root
from anchord.sources.files.source_memory import RootIdentity, SourceMemory

_MAX_SAMPLE = 1_000
"""So many of the known files are looked for."""


def keep_configured_folders(roots: Iterable[Root], memory: SourceMemory) -> list[Root]:
    """Return the roots; those whose folder has become a link since it was configured stay there.

    Args:
        roots: The roots, with symbolic links on the way to them resolved.
        memory: Which folder each root had.
    """
    kept = []
    for root in roots:
        seen = memory.roots.get(root.name)
        if seen and root.symlink_path and not seen.link and seen.path == root.symlink_path:
            kept.append(replace(root, path=seen.path, symlink_path=""))
        else:
            kept.append(root)
    return kept


def check_root(
    root: Root, memory: SourceMemory, known_paths: Callable[[], Collection[str]], *, accept: bool
) -> str:
    """Accept or refuse the folder that is at a root's path now; an accepted one is remembered.

    Args:
        root: The root.
        memory: The folder that was accepted last.
        known_paths: Returns the paths of the root's indexed files; asked only where it matters.
        accept: Whether a person accepted whatever folder is there.

    Returns:
        Why it is refused, with the remedy; "" if it is accepted, or if nothing is there.
    """
    try:
        status = os.lstat(root.path)
    except OSError:
        return ""
    if stat.S_ISLNK(status.st_mode):
        target = os.path.realpath(root.path)
        remove = quote_command("anchord remove", root.name)
        add = quote_command("anchord add", target, "FOLDER")
        return (
            f"its folder was replaced by a symbolic link to {quote_name(target)}, which is not "
            f"followed; put the folder back, or {remove} and {add}"
        )
    if not stat.S_ISDIR(status.st_mode):
        return ""
    now = RootIdentity(
        path=root.path,
        link=root.symlink_path,
        device=status.st_dev,
        inode=status.st_ino,
    )
    seen = memory.roots.get(root.name)
    if now == seen:
        return ""
    # Another path under this name is what the user configured.
    is_other = (
        seen is not None
        and seen.path == root.path
        and (now.device, now.inode) != (seen.device, seen.inode)
    )
    if is_other and not accept:
        paths = known_paths()
        present, looked_for = _count_present(root.path, paths)
        if 2 * present < looked_for:
            command = quote_command("anchord confirm-delete", root.name)
            return (
                f"another folder is in its place: {present} of {looked_for} known files are in it; "
                f"put the folder back, or accept this one with {command}"
            )
    memory.roots[root.name] = now
    memory.save()
    return ""


def _count_present(folder: str, paths: Collection[str]) -> tuple[int, int]:
    """Return how many of some paths exist below a folder, and how many were looked for."""
    step = max(1, len(paths) // _MAX_SAMPLE)
    sample = sorted(paths)[::step]
    files = [f"{folder}/{path}" for path in sample]
    found = sum(map(os.path.lexists, files))
    return found, len(sample)
