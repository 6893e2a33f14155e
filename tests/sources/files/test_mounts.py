"""Mounts, from the mount table of Linux."""

from __future__ import annotations

import sys

import pytest

from anchord.sources.files.mounts import Mount, _mount, list_mounts, mounts_below, remote_fs_type

LINE = r"36 35 98:0 /mnt1 /mnt/my\040disk rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
TABLE = (
    Mount(1, "/", "ext4"),
    Mount(2, "/home", "btrfs"),
    Mount(3, "/home/ada/share", "nfs4"),
    Mount(4, "/home/ada", "ext4"),
)


def test_a_line_gives_number_folder_and_type() -> None:
    assert _mount(LINE) == Mount(36, "/mnt/my disk", "ext3")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ada/share/docs", "nfs4"),
        ("/home/ada/share", "nfs4"),
        ("/home/ada/shared", ""),
        ("/home/ada", ""),
        ("/srv", ""),
    ],
)
def test_the_innermost_mount_says_whether_others_can_change_a_path_unseen(
    path: str, kind: str
) -> None:
    assert remote_fs_type(path, TABLE) == kind


def test_what_is_mounted_at_or_below_a_folder_is_inside_it() -> None:
    assert [mount.mount_id for mount in mounts_below("/home/ada", TABLE)] == [3, 4]
    assert mounts_below("/home/ada/sha", TABLE) == ()


@pytest.mark.skipif(sys.platform != "linux", reason="the table is Linux's")
def test_something_is_mounted_at_the_top() -> None:
    assert any(mount.mount_point == "/" for mount in list_mounts())
