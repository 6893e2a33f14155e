"""The mounted file systems, from Linux's mount table. On other systems the table is empty."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_TABLE = "/proc/self/mountinfo"
_REMOTE_TYPES = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "vboxsf",
        "virtiofs",
        "davfs",
        "fuse.sshfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.gvfsd-fuse",
        "fuse.vmhgfs-fuse",
        "prl_fs",
        "drvfs",
    }
)
"""File systems that other machines can change without an event for this kernel."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system."""

    mount_id: int
    """Its number in the mount table. Another mount at the same place has another."""
    mount_point: str
    """Absolute path."""
    fs_type: str
    """Such as `ext4` or `nfs4`."""


def list_mounts() -> tuple[Mount, ...]:
    """Read the mount table, in the order of mounting (proc_pid_mountinfo(5)).

    Returns:
        The mounts; nothing if there is no such table.
    """
    try:
        with open(_TABLE, "rb") as table:
            lines = table.read().splitlines()
    except OSError:
        return ()
    return tuple(_mount(os.fsdecode(line)) for line in lines)


def remote_fs_type(path: str, mounts: tuple[Mount, ...]) -> str:
    """Return the file system type of a path if other machines can change it without an event.

    Args:
        path: Absolute path.
        mounts: The mount table.

    Returns:
        The type, such as `nfs4`; "" for a local file system.
    """
    holding = [mount for mount in mounts if _contains(mount.mount_point, path)]
    if not holding:
        return ""
    innermost = max(holding, key=lambda mount: len(mount.mount_point))
    return innermost.fs_type if innermost.fs_type in _REMOTE_TYPES else ""


def mounts_below(folder: str, mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """Return the mounts at a folder (absolute path) and below it."""
    return tuple(mount for mount in mounts if f"{mount.mount_point}/".startswith(folder + "/"))


def _contains(mount_point: str, path: str) -> bool:
    return mount_point == "/" or f"{path}/".startswith(mount_point + "/")


def _mount(line: str) -> Mount:
    fields, _, rest = line.partition(" - ")
    mount_id, _, _, _, mount_point, *_ = fields.split(" ")
    # Blanks, tabs, line feeds and backslashes are written in octal: \040.
    unescaped = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), mount_point)
    return Mount(int(mount_id), unescaped, rest.split(" ", 1)[0])
