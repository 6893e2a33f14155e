"""Backups of a running daemon: while it writes, killed midway, during `forget` and `stop`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from live.conftest import Home, until

from anchord.config.file import load_config
from anchord.config.paths import find_paths
from anchord.errors import AnchordError
from anchord.index.opening import open_reader
from anchord.index.session import IndexReader


@pytest.fixture
def other_home(home: Home, tmp_path: Path) -> Iterator[Home]:
    """Return a second, still empty home over the same folder."""
    (tmp_path / "other").mkdir()
    other = Home(tmp_path / "other", "hash")
    (other.path / "config.toml").unlink()
    other.folder = home.folder
    yield other
    if other.process is not None and other.process.poll() is None:
        other.kill()


def restored(other: Home, source: str) -> IndexReader:
    done = other.command("restore", source)
    assert done.code == 0, done.err
    paths = find_paths({"ANCHORD_HOME": str(other.path)})
    return open_reader(paths, load_config(paths.config_file))


def test_a_backup_while_files_change_has_table_and_catalog_of_one_moment(
    home: Home, other_home: Home, tmp_path: Path
) -> None:
    for number in range(60):
        home.write(f"n{number}.md", f"# Note {number}\n\n" + f"word{number} " * 50)
    home.run()
    home.call("sync")
    ended = threading.Event()

    def edit() -> None:
        turn = 0
        while not ended.is_set():
            turn += 1
            home.write(f"n{turn % 60}.md", f"# Note {turn}\n\n" + f"turn{turn} " * 50)
            home.write(f"m{turn}.md", f"# More {turn}\n\nnew\n")
            ended.wait(0.05)

    editor = threading.Thread(target=edit)
    editor.start()
    try:
        commits = home.status()["commits_total"]
        for _ in range(3):
            made = home.call("backup", target=str(tmp_path / "backups"))
            until(lambda: home.status()["commits_total"] > commits)
    finally:
        ended.set()
        editor.join()
    home.call("sync")
    assert home.command("backup", "--check", str(tmp_path / "backups")).code == 0
    reader = restored(other_home, made["snapshot"])
    with_chunks = sum(chunks for _, chunks in reader.catalog.counts_by_root().values())
    assert reader.store.count_rows() == with_chunks
    backed_up = {row.text for row in reader.store.all_rows()}
    reader.close()
    home.terminate()
    done = other_home.command("index", "--json").json
    # Texts in the backup are not embedded again, whatever was written meanwhile.
    assert done["embedded"] == len({row["text"] for row in home.dump()} - backed_up)
    assert other_home.command("verify", "--vectors", "all").code == 0
    assert other_home.dump() == home.dump()


def test_a_daemon_killed_in_the_middle_leaves_the_former_backup_and_no_links(
    home: Home, other_home: Home, tmp_path: Path
) -> None:
    target = tmp_path / "backups"
    home.write("a.md", "# A\n\nfirst\n")
    home.run()
    home.call("sync")
    first = home.call("backup", target=str(target))
    before = home.dump()
    home.write("a.md", "# A\n\nsecond\n")
    home.call("sync")
    make_backups_slow(home)
    failures: list[AnchordError] = []
    caller = threading.Thread(target=_expect_failure, args=(home, target, failures))
    caller.start()
    until(lambda: list(target.glob("*.partial")))
    assert (home.path / "data" / "lance" / "backup.lance").is_dir()
    home.kill()
    caller.join()
    assert failures
    assert [str(each) for each in target.glob("*Z")] == [first["snapshot"]]
    assert list(target.glob("*.partial"))
    assert "interrupted" in home.command("backup", "--check", str(target)).out
    restored(other_home, str(target)).close()
    assert other_home.dump() == before
    home.run()
    assert not (home.path / "data" / "lance" / "backup.lance").exists()
    home.call("sync")
    shutil.rmtree(home.path / "data" / "damaged")
    home.call("backup", target=str(target))
    assert not list(target.glob("*.partial"))
    assert home.command("backup", "--check", str(target)).code == 0


def test_stop_ends_a_backup_and_forget_waits_for_its_end(home: Home, tmp_path: Path) -> None:
    target = tmp_path / "backups"
    home.write("a.md", "# A\n\nfirst\n")
    home.run()
    home.call("sync")
    make_backups_slow(home)
    failures: list[AnchordError] = []
    caller = threading.Thread(target=_expect_failure, args=(home, target, failures))
    caller.start()
    until(lambda: list(target.glob("*.partial")))
    with pytest.raises(AnchordError, match="backup"):
        home.call("forget", path=str(home.folder / "a.md"))
    with pytest.raises(AnchordError, match="backup"):
        home.call("backup", target=str(tmp_path / "second"))
    assert home.terminate() == 0
    caller.join()
    until(lambda: not list(target.glob("*.partial")))
    assert list(target.glob("*Z")) == []
    assert failures
    assert not (home.path / "data" / "lance" / "backup.lance").exists()


def make_backups_slow(home: Home) -> None:
    """Set a file aside whose copy takes a second."""
    folder = home.path / "data" / "damaged" / "20260101T000000-1"
    folder.mkdir(parents=True)
    with (folder / "catalog.sqlite").open("wb") as file:
        file.truncate(400 << 20)


def _expect_failure(home: Home, target: Path, failures: list[AnchordError]) -> None:
    try:
        home.call("backup", target=str(target))
    except AnchordError as error:
        failures.append(error)


SANDBOXES = {
    "read-only": "mount --bind {0} {0} && mount -o remount,bind,ro {0}",
    "a folder of its own": "mount -t tmpfs tmpfs {0}",
}
"""The view of a sandboxed service of the backup's disk: see `systemd/50-sandbox.conf`."""


def run_sandboxed(home: Home, disk: Path, kind: str) -> None:
    """Start a daemon that sees a folder as a sandboxed service does, and wait until it answers."""
    inside = f"{SANDBOXES[kind].format(disk)} && exec {sys.executable} -m anchord run {home.folder}"
    probe = ["unshare", "--mount", "sh", "-c", SANDBOXES[kind].format(disk)]
    if shutil.which("unshare") is None or subprocess.run(probe, check=False).returncode:
        pytest.skip("namespaces of mounts are not permitted here")
    with (home.path / "run.log").open("ab") as log:
        home.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", inside],
            env=home.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    until(home.answers)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a folder of its own", "read-only"])
def test_a_sandboxed_service_is_backed_up_where_only_the_command_may_write(
    home: Home, other_home: Home, tmp_path: Path, kind: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    home.write("a.md", "# A\n\nfirst\n")
    run_sandboxed(home, disk, kind)
    home.call("sync")
    first = home.command("backup", str(disk / "backups"), "--json").json
    assert first["snapshot"].startswith(str(disk / "backups"))
    # What the daemon names a snapshot in a folder of its own can be another snapshot's name here.
    copies = []
    for seconds in range(60):
        later = datetime.now(UTC) + timedelta(seconds=seconds)
        name = disk / "backups" / f"{later:%Y-%m-%dT%H%M%SZ}"
        if not name.exists():
            copies.append(shutil.copytree(first["snapshot"], name))
    home.write("b.md", "# B\n\nsecond\n")
    home.call("sync")
    second = home.command("backup", str(disk / "backups"), "--json").json
    assert second["copied_bytes"] < second["bytes"]  # Files are shared with the first.
    assert not (home.path / "data" / "tmp" / "outgoing").exists()
    for copied in copies:
        shutil.rmtree(copied)
    assert home.command("backup", "--check", str(disk / "backups")).code == 0
    assert json.loads((Path(second["snapshot"]) / "manifest.json").read_text())["home"] == str(
        home.path / "data"
    )
    restored(other_home, str(disk / "backups")).close()
    assert other_home.dump() == home.dump()
    added = tmp_path / "added"
    added.mkdir()
    assert home.command("add", str(added)).code == 0
    for indexed in (home.folder, added):
        refused = home.command("backup", str(indexed / "backups"))
        assert refused.code == 2
        assert "is in the indexed folder" in refused.err


def test_forget_leaves_no_copy_for_a_backup(home: Home) -> None:
    home.write("a.md", "# A\n\nfirst\n")
    home.run()
    home.call("sync")
    home.call("backup", target="/nowhere", staged=True)
    staging = home.path / "data" / "tmp" / "outgoing"
    assert list(staging.iterdir())
    home.call("forget", path=str(home.folder / "a.md"))
    assert not staging.exists()
