"""`doctor` finds each problem, and prints one line with the remedy."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pytest
from cli.conftest import BuiltOnce, Shell
from conversations.conftest import claude

from anchord.config.paths import find_paths
from anchord.daemon import doctor as doctoring
from anchord.daemon import machine_checks
from anchord.daemon.doctor import Finding, Health, run_checks
from anchord.daemon.host import limits
from anchord.daemon.host.limits import InotifyLimits, measure_clock_skew_s
from anchord.store import disk_usage
from anchord.store.backup.last_backup import save_last_backup
from anchord.store.disk_usage import folder_bytes, free_bytes


def findings(shell: Shell) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    environment = {"ANCHORD_HOME": str(shell.home), "HOME": str(shell.home)}
    for each in run_checks(find_paths(environment), environment):
        found.setdefault(each.name, []).append(each)
        assert (each.health is Health.GOOD) or each.remedy, (
            each
        )  # Each problem comes with a remedy.
    return found


def the(found: dict[str, list[Finding]], name: str) -> Finding:
    (finding,) = found[name]
    return finding


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index_a_note)


@pytest.fixture
def indexed(built: BuiltOnce) -> Shell:
    return built.fresh()


def index_a_note(shell: Shell) -> None:
    shell.configure("[[root]]", f'path = "{shell.notes}"')
    shell.write("a.md", "# One\n\nwords\n")
    assert shell("index").code == 0


def test_in_a_sound_home_nothing_is_bad_and_every_thing_is_looked_at(indexed: Shell) -> None:
    found = findings(indexed)
    looked_at = {
        "places",
        "configuration",
        "daemon",
        "service",
        "roots",
        "open files",
        "confinement",
        "disk",
        "index",
        "model",
        "clock",
    }
    assert looked_at <= set(found)
    assert not [each for of_name in found.values() for each in of_name if each.health is Health.BAD]
    assert the(found, "index").observation == "1 row"
    assert the(found, "daemon") == Finding(
        "daemon",
        Health.DOUBTFUL,
        "not running: changes are not indexed",
        "`anchord start` starts it",
    )
    assert indexed("doctor").code == 0
    listed = indexed("doctor", "--json").json
    assert {each["name"] for each in listed} == set(found)


def test_in_an_empty_home_it_says_how_to_begin(shell: Shell) -> None:
    found = findings(shell)
    assert the(found, "roots").remedy == "`anchord add FOLDER` adds one"
    assert "`anchord index` builds it" in the(found, "index").observation


def test_a_configuration_that_is_wrong_is_named_with_its_line(shell: Shell) -> None:
    shell.configure("[wach]", "mode = 1")
    finding = the(findings(shell), "configuration")
    assert finding.health is Health.BAD
    assert "config.toml:" in finding.observation
    assert finding.remedy == "did you mean `watch`?"
    assert shell("doctor").code == 1


@pytest.mark.skipif(os.geteuid() == 0 and not hasattr(os, "chown"), reason="no owners here")
def test_a_folder_that_others_can_write_to_is_named(shell: Shell) -> None:
    (shell.home / "data").mkdir(exist_ok=True)
    (shell.home / "data").chmod(0o777)
    finding = the(findings(shell), "configuration")
    assert finding.health is Health.BAD
    assert finding.remedy == f"run `chmod 700 {shell.home / 'data'}`"


def test_a_root_that_is_away_is_named(indexed: Shell) -> None:
    shutil.rmtree(indexed.notes)
    finding = the(findings(indexed), "roots")
    assert finding.health is Health.BAD
    assert "is missing" in finding.observation
    assert "anchord remove" in finding.remedy


def test_a_limit_of_watches_that_is_near_comes_with_the_exact_command(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        limits,
        "inotify_limits",
        lambda: InotifyLimits(max_watches=8_192, max_instances=1_024, watches_used=8_000),
    )
    finding = the(findings(indexed), "watches")
    assert finding.health is Health.DOUBTFUL
    assert "8,000 of 8,192 are used" in finding.observation
    assert "`sudo sysctl fs.inotify.max_user_watches=524288`" in finding.remedy
    assert "/etc/sysctl.d/" in finding.remedy
    monkeypatch.setattr(
        limits,
        "inotify_limits",
        lambda: InotifyLimits(max_watches=600_000, max_instances=1_024, watches_used=590_000),
    )
    assert "max_user_watches=2097152`" in the(findings(indexed), "watches").remedy


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is nothing to install")
def test_a_layer_of_confinement_that_the_system_lacks_is_named(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_checks, "missing_layers", lambda: ("Landlock",))
    finding = the(findings(indexed), "confinement")
    assert finding.health is Health.DOUBTFUL
    assert "without Landlock" in finding.observation


def test_too_few_instances_and_open_files_are_named(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        limits,
        "inotify_limits",
        lambda: InotifyLimits(max_watches=600_000, max_instances=8, watches_used=0),
    )
    monkeypatch.setattr(limits, "open_file_limit", lambda: 256)
    found = findings(indexed)
    assert [each.health for each in found["watches"]] == [Health.GOOD, Health.DOUBTFUL]
    assert the(found, "open files").remedy == "`ulimit -n 4096`"


@pytest.mark.parametrize(
    ("free", "health"), [(10**12, Health.GOOD), (5 * 10**8, Health.DOUBTFUL), (10**8, Health.BAD)]
)
def test_a_full_disk_is_reported_before_it_is_full(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch, free: int, health: Health
) -> None:
    monkeypatch.setattr(disk_usage, "free_bytes", lambda _: free)
    assert the(findings(indexed), "disk").health is health


def test_a_damaged_catalogue_is_found(indexed: Shell) -> None:
    file = indexed.home / "data" / "state.sqlite"
    whole = bytearray(file.read_bytes())
    whole[5_000:9_000] = b"\xff" * 4_000
    file.write_bytes(whole)
    finding = next(each for each in findings(indexed)["index"] if each.health is Health.BAD)
    assert finding.remedy


def test_rows_that_are_not_there_are_reported(indexed: Shell) -> None:
    with closing(sqlite3.connect(indexed.home / "data" / "state.sqlite")) as db:
        db.execute(
            "INSERT INTO chunks SELECT file, generation, 99, 'x', vector_key, row_hash, start_line, end_line FROM chunks"
        )
        db.commit()
    finding = the(findings(indexed), "index")
    assert (finding.health, finding.observation) == (Health.DOUBTFUL, "1 row, but 2 are expected")
    assert "verify --repair" in finding.remedy


def test_a_state_of_a_newer_version_is_reported(indexed: Shell) -> None:
    with closing(sqlite3.connect(indexed.home / "data" / "state.sqlite")) as db:
        db.execute("PRAGMA user_version=999")
    found = [each for of_name in findings(indexed).values() for each in of_name]
    assert any(each.health is Health.BAD and each.remedy == "update anchord" for each in found)


def test_a_model_that_is_not_there_is_reported_with_what_to_do(indexed: Shell) -> None:
    (indexed.home / "config.toml").write_text('[embedding]\nmodel = "nobody/nothing"\n')
    finding = the(findings(indexed), "model")
    assert finding.health is Health.BAD


def test_searches_go_on_without_a_reranker_that_is_not_there(indexed: Shell) -> None:
    indexed.configure("[search]", 'reranker = "nowhere"', "[[root]]", f'path = "{indexed.notes}"')
    finding = the(findings(indexed), "reranker")
    assert finding.health is Health.BAD
    assert "nowhere" in finding.observation
    printed = indexed("search", "some words and others", "--explain").out
    assert "a.md" in printed
    assert "not reranked: the reranker cannot be used" in " ".join(printed.split())
    answer = json.loads(indexed("search", "some words and others", "--json").out)
    assert (answer["reranker"]["hits"], answer["reranker"]["ms"] > 0) == (0, True)


def test_a_server_that_does_not_answer_is_reported(indexed: Shell) -> None:
    (indexed.home / "config.toml").write_text(
        '[embedding]\nprovider = "openai"\nurl = "http://127.0.0.1:9/v1"\nmodel = "m"\ndimension = 8\n'
    )
    assert the(findings(indexed), "model").health is Health.BAD


@pytest.mark.parametrize(
    ("gap", "health"), [(0.5, Health.GOOD), (90.0, Health.DOUBTFUL), (-90.0, Health.DOUBTFUL)]
)
def test_a_disk_with_another_clock_is_reported(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch, gap: float, health: Health
) -> None:
    monkeypatch.setattr(limits, "measure_clock_skew_s", lambda _: gap)
    assert the(findings(indexed), "clock").health is health


def test_a_clock_that_stands_in_the_past_is_reported(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.0)
    finding = the(findings(indexed), "clock")
    assert finding.health is Health.BAD
    assert "1970-01-01" in finding.observation


def test_a_daemon_is_asked_how_it_is(indexed: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with indexed.daemon():
        assert the(findings(indexed), "daemon").health is Health.GOOD
        monkeypatch.setattr(doctoring, "__version__", "99.0")
        assert (
            the(findings(indexed), "daemon").remedy
            == "`anchord restart` starts the installed version"
        )
        monkeypatch.undo()
        indexed.write("bad.md", b"caf\xe9\n")
        indexed("sync")
        assert the(findings(indexed), "files").remedy == "`anchord errors` lists them"


def test_a_check_that_fails_itself_is_a_finding(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Path) -> int:
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr(disk_usage, "free_bytes", fails)
    finding = the(findings(indexed), "disk")
    assert finding.health is Health.BAD
    assert finding.observation == "there is no permission to use /somewhere (EACCES)"


# What the system reports


def test_a_check_that_a_full_disk_stops_says_that_it_is_full(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> float:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("anchord.daemon.host.limits.measure_clock_skew_s", fail)
    output = indexed("doctor").out
    assert "data is full (ENOSPC)" in output
    assert "free some space" in output
    assert "check that it exists" not in output


def test_free_room_is_that_of_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "yet") > 0


def test_files_that_are_shared_count_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    once = folder_bytes(tmp_path)
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert folder_bytes(tmp_path) == once >= 100_000


def test_the_disk_here_keeps_this_machines_time(tmp_path: Path) -> None:
    assert abs(measure_clock_skew_s(tmp_path)) < 2


@pytest.mark.skipif(sys.platform != "linux", reason="not Linux: there is no inotify")
def test_the_watches_of_this_user_are_counted() -> None:
    allowed = limits.inotify_limits()
    assert allowed
    assert allowed.max_watches > 0
    assert allowed.watches_used >= 0


def test_conversations_that_exist_only_here_want_a_backup_a_week_old_at_most(
    shell: Shell,
) -> None:
    talks = shell.base / "talks"
    talks.mkdir()
    (talks / "s1.jsonl").write_bytes(claude(("How?", "So.")))
    shell.configure("[[root]]", f'path = "{talks}"', 'kind = "conversations"')
    assert shell("index").code == 0
    assert "backup" not in findings(shell)  # The transcript is still there: nothing can be lost.
    (talks / "s1.jsonl").unlink()
    assert shell("index").code == 0
    finding = the(findings(shell), "backup")
    assert (finding.health, "1 exchange of" in finding.observation) == (Health.DOUBTFUL, True)
    target = shell.base / "backups"
    assert shell("backup", str(target)).code == 0
    finding = the(findings(shell), "backup")
    assert (finding.health, str(target) in finding.observation) == (Health.GOOD, True)
    week_ago = datetime.now(UTC) - timedelta(days=8)
    save_last_backup(shell.home / "data", target, week_ago)
    finding = the(findings(shell), "backup")
    assert (finding.health, "8 days" in finding.observation) == (Health.DOUBTFUL, True)


def table_of(shell: Shell) -> Path:
    return shell.home / "data" / "lance" / "chunks.lance"


def files_of(shell: Shell, folder: str) -> list[Path]:
    """Return files that the newest version of the table needs; for `_versions` all manifests."""
    table = table_of(shell)
    if folder == "_versions":
        return list((table / folder).glob("*.manifest"))
    dataset = lance.dataset(str(table))
    if folder == "data":
        return [table / "data" / dataset.get_fragments()[0].data_files()[0].path]
    part = dataset.describe_indices()[0].segments[0]
    return sorted((table / folder / str(part.uuid)).iterdir())[:1]


@pytest.mark.parametrize(
    ("folder", "said"),
    [("data", "is missing"), ("_indices", "is missing"), ("_versions", "cannot be opened")],
)
def test_a_lost_file_of_the_table_is_named_and_the_remedy_works(
    indexed: Shell, folder: str, said: str
) -> None:
    for file in files_of(indexed, folder):
        file.write_bytes(b"") if folder == "_versions" else file.unlink()
    (finding,) = [each for each in _of_table(indexed) if each.health is Health.BAD]
    assert said in finding.observation or "memory error" in finding.observation
    assert str(table_of(indexed).parent) in finding.observation
    assert "`anchord index`" in finding.remedy
    assert indexed("index").code == 0
    assert not [each for each in _of_table(indexed) if each.health is Health.BAD]
    assert indexed("verify").code == 0


def _of_table(shell: Shell) -> list[Finding]:
    found = findings(shell)
    return [*found.get("index", []), *found.get("store", [])]


@pytest.mark.parametrize(("kept", "said"), [(0, "has 0 of"), (100, "has 100 of")])
def test_a_cut_data_file_is_named_with_its_sizes(indexed: Shell, kept: int, said: str) -> None:
    os.truncate(files_of(indexed, "data")[0], kept)
    (finding,) = [each for each in findings(indexed)["index"] if each.health is Health.BAD]
    assert "is cut" in finding.observation
    assert said in finding.observation


def test_a_data_file_that_cannot_be_read_now_is_not_called_damaged(
    indexed: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (refused,) = files_of(indexed, "data")
    real = Path.open

    def fail(path: Path, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as open
        if path == refused:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", fail)
    (finding,) = [each for each in findings(indexed)["index"] if each.health is Health.BAD]
    assert "cannot be read now" in finding.observation
    assert f"data/{refused.name} cannot be read: permission denied" in finding.observation
    assert "check its owner and permissions" in finding.remedy
