"""Which folders are roots: the configured ones, the remembered ones, and those passed now.

Roots never overlap, and their names are unique. "Remembered" are roots that were passed to an
earlier command as PATH (`config.cli_state`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from anchord.config.effective import chunking_of_root
from anchord.config.file import load_config, locked_for_editing
from anchord.config.schema import Config, RootConfig
from anchord.core.quoting import escape_line, escape_non_utf8, quote_name
from anchord.core.types import Root
from anchord.errors import ConfigError, UsageError

_SYSTEM_FOLDERS = "/ /bin /boot /dev /etc /home /lib /proc /root /run /sys /usr /var /Users"
_TOO_WIDE = frozenset(_SYSTEM_FOLDERS.split())


def gather_roots(
    config: Config,
    remembered_roots: Sequence[Root],
    paths: Sequence[str],
    own_folders: Sequence[str] = (),
    paths_kind: str = "project",
) -> list[Root]:
    """Return all roots: first the configured, then the remembered, then those of `paths`.

    A remembered root that overlaps an earlier one is dropped. A path inside a root adds none.

    Args:
        config: The configuration. Its folders need not exist.
        remembered_roots: Roots from the CLI state. Their folders need not exist.
        paths: Folders that the user passed, relative to the working folder or absolute.
        own_folders: Real paths of anchord's own folders (`Paths.own_folders`).
        paths_kind: Kind of the roots that `paths` add.

    Raises:
        ConfigError: A configured root is relative, too wide, one of anchord's own folders, or
            overlaps another; or two have the same name.
        UsageError: A path is not a readable folder, is too wide, one of anchord's own, or contains
            a root.
    """
    roots: list[Root] = []
    for entry in config.root:
        root = _configured_root(entry, roots)
        if any(root.name == other.name for other in roots):
            raise ConfigError(
                f"two roots are named {quote_name(root.name)}", "give one of them another `name`"
            )
        _refuse_own(root.path, own_folders, ConfigError)
        _append_checked(roots, root, ConfigError)
    for remembered in remembered_roots:
        if not any(_overlap(other.path, remembered.path) for other in roots):
            roots.append(_with_free_name(remembered, roots))
    for path in paths:
        folder = resolve_root_folder(path, own_folders)
        if not any(covers(root.path, folder) for root in roots):
            name = _free_name(folder, roots, is_new=True)
            root = Root(
                name=name,
                path=folder,
                kind=paths_kind,
                is_configured=False,
            )
            _append_checked(roots, root, UsageError)
    return roots


def add_root_to_config(
    file: Path,
    remembered_roots: Sequence[Root],
    new_root: RootConfig,
    own_folders: Sequence[str] = (),
) -> Root:
    """Add a root to the configuration file.

    Args:
        file: The configuration file; created when it is missing.
        remembered_roots: Roots from the CLI state. A folder that is one of them keeps its name.
        new_root: The root. Without a name it gets that of its folder.
        own_folders: Real paths of anchord's own folders.

    Returns:
        The root as it was written.

    Raises:
        UsageError: The folder cannot be a root, overlaps one, or the name is taken.
        ConfigError: The file cannot be read, or is wrong.
    """
    with locked_for_editing(file):
        return _add_root(file, remembered_roots, new_root, own_folders)


def _add_root(
    file: Path,
    remembered_roots: Sequence[Root],
    new_root: RootConfig,
    own_folders: Sequence[str],
) -> Root:
    folder = resolve_root_folder(new_root.path, own_folders)
    configured = gather_roots(load_config(file), (), (), own_folders)
    for root in configured:
        if covers(root.path, folder):
            raise UsageError(
                f"{quote_name(folder)} is already in the root {quote_name(root.name)}",
                "`anchord roots` lists the roots",
            )
        _refuse_overlap(folder, root, UsageError)
    remembered_name = next((root.name for root in remembered_roots if root.path == folder), "")
    default_name = remembered_name or _free_name(
        folder, [*configured, *remembered_roots], is_new=True
    )
    name = new_root.name or default_name
    if any(root.name == name for root in configured):
        raise UsageError(
            f"there is already a root {quote_name(name)}", "choose another name with --name"
        )
    from anchord.config import file_editor  # noqa: PLC0415 - loads tomlkit, which reading does not need

    file_editor.add_root(file, folder, new_root.kind, name)
    return Root(name=name, path=folder, kind=new_root.kind)


def remove_root_from_config(file: Path, name: str) -> bool:
    """Remove a root from the configuration file. Its folder and its index are not touched.

    Returns:
        False when the file has no such root.

    Raises:
        ConfigError: The file cannot be read, or is wrong.
    """
    from anchord.config import file_editor  # noqa: PLC0415 - likewise

    with locked_for_editing(file):
        for index, root in enumerate(gather_roots(load_config(file), (), ())):
            if root.name == name:
                file_editor.remove_root(file, index)
                return True
    return False


def resolve_root_folder(path: str, own_folders: Sequence[str] = ()) -> str:
    """Check that a folder can be a root, and return its real path.

    Args:
        path: A folder, relative to the working folder or absolute; `~` is expanded.
        own_folders: Real paths of anchord's own folders.

    Raises:
        UsageError: It is missing, not a folder, not readable, too wide, or one of anchord's own.
    """
    if not path:
        raise UsageError("the path is empty", "give a folder; `.` is the current one")
    folder = resolve_path(path)
    if not os.path.isdir(folder):
        reason = "is not a folder" if os.path.lexists(folder) else "does not exist"
        raise UsageError(f"{quote_name(path)} {reason}", "give an existing folder")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise UsageError(
            f"{quote_name(path)} cannot be read",
            "check its permissions (on a Mac: Privacy & Security, Full Disk Access)",
        )
    _refuse_wide(folder, UsageError)
    _refuse_own(folder, own_folders, UsageError)
    return folder


def resolve_path(path: str) -> str:
    """Return an absolute path without symbolic links or `~`.

    Roots are watched by their real path: a watch on a symbolic link reports almost nothing.
    """
    return os.path.realpath(os.path.expanduser(path))


def covers(folder: str, path: str) -> bool:
    """Whether `path` is `folder` or inside it. Both are absolute and without symbolic links."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def find_root(roots: Sequence[Root], path: str) -> tuple[Root, str] | None:
    """Return the root that contains an absolute path, and the path within it.

    Returns:
        (root, path relative to it), with "" for the root's own folder; None outside all roots.
    """
    for root in roots:
        if covers(root.path, path):
            return root, path[len(root.path) :].lstrip("/")
    return None


def _configured_root(entry: RootConfig, earlier_roots: Sequence[Root]) -> Root:
    expanded = os.path.expanduser(entry.path)
    if not os.path.isabs(expanded):
        raise ConfigError(
            f"root.path {quote_name(entry.path)} is relative",
            "give the folder's absolute path, or one from ~",
        )
    folder = resolve_path(entry.path)
    configured_path = os.path.abspath(expanded)
    return Root(
        name=entry.name or _free_name(entry.path, earlier_roots),
        path=folder,
        kind=entry.kind,
        include=entry.include,
        exclude=entry.exclude,
        chunking=chunking_of_root(entry),
        on_delete=entry.on_delete,
        keep_raw=entry.keep_raw,
        worktrees=entry.worktrees,
        symlink_path=configured_path if configured_path != folder else "",
        embedding=entry.embedding,
    )


def _with_free_name(remembered: Root, roots: Sequence[Root]) -> Root:
    is_taken = any(remembered.name == other.name for other in roots)
    return Root(
        name=_free_name(remembered.path, roots) if is_taken else remembered.name,
        path=remembered.path,
        kind=remembered.kind,
        is_configured=False,
    )


def _append_checked(roots: list[Root], root: Root, error_type: type[UsageError]) -> None:
    _refuse_wide(root.path, error_type)
    for other in roots:
        _refuse_overlap(root.path, other, error_type)
    roots.append(root)


def _overlap(one: str, other: str) -> bool:
    return covers(one, other) or covers(other, one)


def _refuse_overlap(folder: str, other: Root, error_type: type[UsageError]) -> None:
    if _overlap(folder, other.path):
        raise error_type(
            f"{quote_name(folder)} and the root {quote_name(other.name)} overlap",
            "keep the outer one and remove the other",
        )


def _refuse_wide(folder: str, error_type: type[UsageError]) -> None:
    """Refuse system folders, the home folder and everything above it."""
    if folder in _TOO_WIDE or covers(folder, resolve_path("~")):
        raise error_type(
            f"{quote_name(folder)} is too wide for a root", "choose a project folder inside it"
        )


def _refuse_own(folder: str, own_folders: Sequence[str], error_type: type[UsageError]) -> None:
    """Refuse anchord's own folders: indexing what it writes while indexing would never end."""
    if any(covers(own_folder, folder) for own_folder in own_folders):
        raise error_type(
            f"{quote_name(folder)} is where anchord keeps its own files",
            "choose a folder of your own",
        )


def _free_name(path: str, roots: Sequence[Root], *, is_new: bool = False) -> str:
    """Return the folder's name, with a number from 2 on where a root has that name already.

    Args:
        path: The folder.
        roots: The roots whose names are taken.
        is_new: The root has no rows yet, which know it by its name: a name that no command can
            show, for example with a line end or a backtick, is replaced by a plain one.
    """
    taken_names = {root.name for root in roots}
    folder_name = Path(resolve_path(path)).name
    base = escape_non_utf8(folder_name) or "root"
    if is_new:
        plain = [char if _can_be_shown(char) else "-" for char in base]
        base = "".join(plain)
    name = base
    number = 1
    while name in taken_names:
        number += 1
        name = f"{base}-{number}"
    return name


def _can_be_shown(char: str) -> bool:
    return char != "`" and escape_line(char) == char
