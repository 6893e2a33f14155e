"""Which folders are roots: those of the configuration, those remembered from a command, and those given now."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anchord.adapters import config_file
from anchord.config import Config, RootConfig
from anchord.errors import ConfigError, UsageError
from anchord.model import Root, printable

_REFUSED = ("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/proc", "/root", "/run", "/sys", "/usr", "/var", "/Users")


def gather_roots(
    config: Config, remembered: Sequence[Root], paths: Sequence[str], own: Sequence[str] = (), kind: str = "project"
) -> list[Root]:
    """Return the effective roots; a path that a root covers already adds none. `own` are anchord's own folders.

    `kind` is that of the paths.

    Raises:
        UsageError: a given path is no folder, is too wide, or overlaps a root. ConfigError: likewise in the configuration.
    """
    roots: list[Root] = []
    for entry in config.root:
        if not os.path.isabs(os.path.expanduser(entry.path)):
            raise ConfigError(f"root.path `{entry.path}` is relative", "give the folder's absolute path, or one from ~")
        name, folder = entry.name or _free_name(entry.path, roots), real(entry.path)
        given = os.path.abspath(os.path.expanduser(entry.path))
        given = "" if given == folder else given
        root = Root(
            name,
            folder,
            entry.kind,
            entry.include,
            entry.exclude,
            strategy=entry.strategy,
            on_delete=entry.on_delete,
            given=given,
        )
        if any(root.name == other.name for other in roots):
            raise ConfigError(f"two roots are named `{root.name}`", "give one of them another `name`")
        _refuse_own(root.path, own, ConfigError)
        _add(roots, root, ConfigError)
    for root in remembered:
        if not any(covers(other.path, root.path) or covers(root.path, other.path) for other in roots):
            name = root.name if all(root.name != other.name for other in roots) else _free_name(root.path, roots)
            roots.append(Root(name, root.path, root.kind, configured=False))
    for path in paths:
        folder = existing_folder(path, own)
        if not any(covers(root.path, folder) for root in roots):
            _add(roots, Root(_free_name(folder, roots), folder, kind, configured=False), UsageError)
    return roots


def add_to_config(file: Path, remembered: Sequence[Root], wanted: RootConfig, own: Sequence[str] = ()) -> Root:
    """Write a new root into the configuration's file; one that was remembered becomes a configured one.

    Raises:
        UsageError: the folder cannot be a root, is one already, or the name is taken.
    """
    folder = existing_folder(wanted.path, own)
    configured = gather_roots(config_file.load_config(file), (), (), own)
    for root in configured:
        if covers(root.path, folder):
            raise UsageError(f"{folder} is in the root `{root.name}` already", "`anchord roots` lists the roots")
        _refuse_overlap(folder, root, UsageError)
    known = next((root.name for root in remembered if root.path == folder), "")
    chosen = wanted.name or known or _free_name(folder, [*configured, *remembered])
    if any(root.name == chosen for root in configured):
        raise UsageError(f"there is a root `{chosen}` already", "give another --name")
    config_file.add_root(file, folder, wanted.kind, chosen)
    return Root(chosen, folder, wanted.kind)


def remove_from_config(file: Path, name: str) -> bool:
    """Take a root out of the configuration's file; False when it is not in there."""
    for index, root in enumerate(gather_roots(config_file.load_config(file), (), ())):
        if root.name == name:
            config_file.remove_root(file, index)
            return True
    return False


def existing_folder(path: str, own: Sequence[str] = ()) -> str:
    """Return the real path of a folder that may be a root. `own` are anchord's own folders.

    Raises:
        UsageError: it is not there, no folder, not readable, too wide, or anchord's own.
    """
    if not path:
        raise UsageError("the path is empty", "give a folder; `.` is the one you stand in")
    folder = real(path)
    if not os.path.isdir(folder):
        what = "is no folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(f"{path} {what}", "give a folder that is there")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UsageError(f"{path} cannot be read", "see its permissions (on a Mac: Privacy & Security, Full Disk Access)")
    _refuse_wide(folder, UsageError)
    _refuse_own(folder, own, UsageError)
    return folder


def real(path: str) -> str:
    """Return an absolute path without links or `~`: a watch on a link would see next to nothing."""
    return os.path.realpath(os.path.expanduser(path))


def covers(above: str, path: str) -> bool:
    """Whether a folder is, or holds, another."""
    return path == above or path.startswith(above.rstrip("/") + "/")


def list_roots(roots: Sequence[Root], counts: Mapping[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """Return roots as JSON values; `counts` are (files, chunks) by root."""
    return [
        {
            "name": root.name,
            "path": printable(root.path),
            "kind": root.kind,
            "from": "configuration" if root.configured else "command line",
            "files": counts.get(root.name, (0, 0))[0],
            "chunks": counts.get(root.name, (0, 0))[1],
        }
        for root in roots
    ]


def root_of(roots: Sequence[Root], path: str) -> tuple[Root, str] | None:
    """Return the root that holds an absolute path, and the path in it ("" for the root itself)."""
    for root in roots:
        if covers(root.path, path):
            return root, path[len(root.path) :].lstrip("/")
    return None


def _add(roots: list[Root], root: Root, error: type[UsageError]) -> None:
    _refuse_wide(root.path, error)
    for other in roots:
        _refuse_overlap(root.path, other, error)
    roots.append(root)


def _refuse_overlap(folder: str, other: Root, error: type[UsageError]) -> None:
    if covers(folder, other.path) or covers(other.path, folder):
        raise error(f"{folder} and the root `{other.name}` ({other.path}) overlap", "keep the outer one and drop the other")


def _refuse_wide(folder: str, error: type[UsageError]) -> None:
    if folder in _REFUSED or covers(folder, real("~")):
        raise error(f"{folder} is too wide for a root", "name a project folder inside it")


def _refuse_own(folder: str, own: Sequence[str], error: type[UsageError]) -> None:
    """Indexing what anchord writes while it indexes would never end."""
    if any(covers(mine, folder) for mine in own):
        raise error(f"{folder} is where anchord keeps its own files", "name a folder of yours")


def _free_name(path: str, roots: Sequence[Root]) -> str:
    taken = {root.name for root in roots}
    base = printable(Path(real(path)).name) or "root"
    names = [base, *(f"{base}-{n}" for n in range(2, len(roots) + 3))]
    return next(name for name in names if name not in taken)
