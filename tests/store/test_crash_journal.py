"""Contents that crash the process: skipped after two crashes, and tried again when they change."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cli.conftest import call_here
from preloaded import PreloadedDaemon
from store.poisoned import prepare_poison

from anchord.store import crash_journal as poison
from anchord.store.crash_journal import CrashJournal


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    assert not list(tmp_path.glob("*.tmp"))


def dies_in(folder: Path, content: str) -> bool:
    """Crash a process while it parses a content, if it starts."""
    guard = CrashJournal(folder)
    begun = guard.begin_parse_unless_quarantined(content)
    os.close(guard._note)  # As after a crash: no entry was removed.
    return begun


def test_a_content_that_ended_the_process_twice_is_refused_and_no_other_one(folder: Path) -> None:
    assert dies_in(folder, "bad")
    assert dies_in(folder, "bad")
    assert not dies_in(folder, "bad")
    with closing(CrashJournal(folder)) as guard:
        assert guard.begin_parse_unless_quarantined("good")
        guard.end_parse()
        assert not guard.begin_parse_unless_quarantined("bad")
    with closing(CrashJournal(folder, read_only=True)) as reader:
        assert not reader.begin_parse_unless_quarantined("bad")  # `verify` skips it too.


def test_one_end_is_forgiven_once_it_was_parsed(folder: Path) -> None:
    """A power loss does not count against the file."""
    for _ in range(5):
        assert dies_in(folder, "unlucky")
        with closing(CrashJournal(folder)) as guard:
            assert guard.begin_parse_unless_quarantined("unlucky")
            guard.end_parse()


def test_an_end_between_two_contents_counts_for_none(folder: Path) -> None:
    for _ in range(5):
        guard = CrashJournal(folder)
        assert guard.begin_parse_unless_quarantined("a")
        guard.end_parse()
        os.close(guard._note)
    assert not (folder / "poison.json").exists()


def test_another_version_tries_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dies_in(folder, "bad")
    dies_in(folder, "bad")
    monkeypatch.setattr(poison, "__version__", "99")
    with closing(CrashJournal(folder)) as guard:
        assert guard.begin_parse_unless_quarantined("bad")
        guard.end_parse()


@pytest.mark.parametrize("spoiled", [b"", b"\xff\xfe", b"[]", b'{"counts": 3}'])
def test_a_spoiled_list_starts_again(folder: Path, spoiled: bytes) -> None:
    (folder / "poison.json").write_bytes(spoiled)
    with closing(CrashJournal(folder)) as guard:
        assert guard.begin_parse_unless_quarantined("x")
        guard.end_parse()


def test_a_reader_beside_the_writer_notes_nothing(folder: Path) -> None:
    with closing(CrashJournal(folder, read_only=True)) as reader:
        assert reader.begin_parse_unless_quarantined("x")
        reader.end_parse()
    assert list(folder.iterdir()) == []


def test_a_file_that_kills_the_process_is_named_after_two_times_and_the_rest_is_indexed(
    tmp_path: Path,
) -> None:
    home, notes = tmp_path / "h", tmp_path / "notes"
    home.mkdir(mode=0o700)
    notes.mkdir()
    (home / "config.toml").write_text(
        f'[[root]]\npath = "{notes}"\n[embedding]\nprovider = "hash"\n'
    )
    for name, text in (
        ("a.md", "# A\n"),
        ("m.md", "# M\n\nThis one is poison.\n"),
        ("z.md", "# Z\n"),
    ):
        (notes / name).write_text(text)

    def run(command: str) -> int:
        environment = os.environ | {"ANCHORD_HOME": str(home)}
        log = tmp_path / "log"
        return PreloadedDaemon([], environment, log, prepare_poison, command).wait(120)

    def here(*arguments: str) -> str:
        return call_here(arguments, os.environ | {"ANCHORD_HOME": str(home)}, tmp_path).out

    assert [run("index") for _ in range(3)] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    explained = here("explain", str(notes / "m.md"))
    assert "parsing it crashed anchord twice" in explained
    assert run("verify") == 0  # The clean rebuild skips it too.
    found = here("dump")
    assert '"a.md"' in found
    assert '"z.md"' in found
    assert "poison" not in found
    (notes / "m.md").write_text("# M\n\nThis one is harmless.\n")
    assert run("index") == 0
    assert "harmless" in here("dump")
