"""What is mounted where, as Linux tells it. Elsewhere nothing is known, and nothing follows from it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_TABLE = "/proc/self/mountinfo"
_REMOTE = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "vboxsf", "virtiofs", "davfs",
    "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gvfsd-fuse", "fuse.vmhgfs-fuse", "prl_fs", "drvfs",
})  # fmt: skip
"""File systems that change without the kernel here being told."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: where, of which type, and its number in the table."""

    number: int
    folder: str
    kind: str


def mounts() -> tuple[Mount, ...]:
    """Return what is mounted, in the order of mounting (proc_pid_mountinfo(5))."""
    try:
        with open(_TABLE, "rb") as table:
            lines = table.read().splitlines()
    except OSError:
        return ()
    return tuple(_mount(os.fsdecode(line)) for line in lines)


def remote_kind(path: str, table: tuple[Mount, ...]) -> str:
    """Return the type of the file system that holds a path where others can change it unseen, else ""."""
    holding = [mount for mount in table if mount.folder == "/" or f"{path}/".startswith(mount.folder + "/")]
    kind = max(holding, key=lambda mount: len(mount.folder)).kind if holding else ""
    return kind if kind in _REMOTE else ""


def inside(path: str, table: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """Return what is mounted at a folder or below it."""
    return tuple(mount for mount in table if f"{mount.folder}/".startswith(path + "/"))


def _mount(line: str) -> Mount:
    fields, _, rest = line.partition(" - ")
    number, _, _, _, folder, *_ = fields.split(" ")
    unescaped = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), folder)  # Blanks and such are written in octal.
    return Mount(int(number), unescaped, rest.split(" ", 1)[0])
