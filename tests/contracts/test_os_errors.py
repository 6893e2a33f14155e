"""Operating system errors at each step of the table: none counts as damage, and nothing is lost."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import lance
import pytest
from contracts.test_store import EAST, row
from faults.test_roots import mounted
from live.weak import needs_weakness, weak_command

from anchord.core.os_errors import OS_REASONS, from_os_error
from anchord.core.ports import no_heartbeat
from anchord.errors import StoreError, StoreUnavailableError
from anchord.store.table import connection, event_loop, row_writer, table
from anchord.store.table.compaction import CompactionRequest, compact_table
from anchord.store.table.damage import repair_table
from anchord.store.table.lance_errors import first_line, os_error_number, panics_as_errors
from anchord.store.table.table import LanceStore

NAMES = (
    "ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EMFILE", "ENFILE", "EIO", "ENOMEM", "ESTALE",
)  # fmt: skip
TEXTS = (
    "lance error: LanceError(IO): {words} (os error {number}), /root/lance/src/commit.rs:1663:50",
    'External error: LanceError(IO): Os {{ code: {number}, kind: Other, message: "{words}" }}',
)
"""The text of Lance for an operating system error."""


def lance_error(name: str, text: str = TEXTS[0]) -> RuntimeError:
    number = getattr(errno, name)
    return RuntimeError(text.format(number=number, words=os.strerror(number)))


def opened(folder: Path) -> LanceStore:
    return LanceStore(str(folder / "lance"), 4, "model")


@pytest.fixture(scope="module", autouse=True)
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the table that every test copies: building its indices takes half a second."""
    folder = tmp_path_factory.getbasetemp() / "template"
    store = opened(folder)
    rows = [row(str(number)) for number in range(3)]
    store.upsert(rows, {rows[0].vector_key: EAST})
    return folder


def filled(folder: Path) -> LanceStore:
    """Open a copy of the table of three rows."""
    shutil.copytree(folder.parent / "template", folder, dirs_exist_ok=True)
    return opened(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_named(error: StoreError, folder: Path) -> bool:
    """Whether an error is one line with a place, and says what to do."""
    return str(folder) in error.message and bool(error.hint) and "\n" not in str(error)


@pytest.mark.parametrize("name", sorted(OS_REASONS))
@pytest.mark.parametrize("text", TEXTS)
def test_every_listed_number_is_found_in_what_lance_says(name: str, text: str) -> None:
    assert os_error_number(lance_error(name, text)) == getattr(errno, name)


@pytest.mark.parametrize("text", ["Not found: data/1.lance", "failed to fill whole buffer", ""])
def test_what_is_no_error_of_the_system_has_no_number(text: str) -> None:
    assert os_error_number(RuntimeError(text)) is None


@pytest.mark.parametrize("name", ["ENOENT", "EISDIR", "ENOTDIR"])
def test_a_missing_file_is_not_taken_for_one_that_is_unavailable(name: str) -> None:
    assert from_os_error(OSError(getattr(errno, name), "gone")) is None


def test_a_message_does_not_say_where_in_the_rust_code_it_was_made() -> None:
    assert first_line(lance_error("EIO")).endswith("(os error 5)")


class Failing:
    """Replaces `run_sync`: every call of LanceDB fails."""

    def __init__(self, error: Exception) -> None:
        """Store the error that each call raises."""
        self.error = error

    def __call__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Raise it."""
        coroutine.close()
        raise self.error


STEPS: dict[str, Callable[[LanceStore], object]] = {
    "read": lambda store: store.all_ids(),
    "scan": lambda store: list(store.scan(["id"])),
    "count": lambda store: store.stats(),
    "append": lambda store: store.upsert(
        [row("new")], {row("new").vector_key: EAST}, absent_ids={"new"}
    ),
    "delete": lambda store: store.delete_rows(["1"]),
    "reopen": lambda store: store.refresh(clear_cache=True),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", NAMES)
def test_an_error_of_the_system_is_waited_for_and_not_called_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, name: str
) -> None:
    store = filled(tmp_path)
    before = contents(tmp_path)
    with monkeypatch.context() as patch:
        for module in (connection, table, row_writer):
            patch.setattr(module, "run_sync", Failing(lance_error(name)))
        with pytest.raises(StoreUnavailableError, match=name) as raised:
            STEPS[step](store)
    assert is_named(raised.value, tmp_path)
    assert contents(tmp_path) == before
    STEPS[step](store)  # The same call works after the fault.


@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_cannot_be_opened_now_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    filled(tmp_path)
    monkeypatch.setattr(connection, "run_sync", Failing(lance_error(name)))
    with pytest.raises(StoreUnavailableError, match=name):
        opened(tmp_path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["dataset", "fragment"])
def test_a_repair_drops_and_moves_nothing_that_cannot_be_read_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    filled(tmp_path)
    before = contents(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(str(lance_error(name)))  # As pylance does: without a number.

    with monkeypatch.context() as patch:
        if place == "dataset":
            patch.setattr(lance, "dataset", fail)
        else:
            patch.setattr(lance.LanceFragment, "to_batches", fail)
        with pytest.raises(StoreUnavailableError, match=name):
            repair_table(
                tmp_path / "lance" / "chunks.lance", (), tmp_path / "damaged", no_heartbeat
            )
    assert contents(tmp_path) == before
    assert not (tmp_path / "damaged").exists()


def test_a_failed_step_of_compaction_says_why_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = filled(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(str(lance_error("EDQUOT")))

    monkeypatch.setattr(lance, "dataset", fail)
    request = CompactionRequest(dataset=store.dataset_uri, merge=False, kept_s=None)
    (problem,) = compact_table(request)
    assert "your disk quota for the table is used up" in problem
    assert "larger quota" in problem


class PanicException(BaseException):
    """Represents the panic of an extension module."""


def test_a_panic_of_rust_code_becomes_an_ordinary_error() -> None:
    with (
        pytest.raises(RuntimeError, match="failed internally: index out of range"),
        panics_as_errors(),
    ):
        raise PanicException("index out of range")
    with pytest.raises(KeyboardInterrupt), panics_as_errors():
        raise KeyboardInterrupt


# Real errors, where this machine can provoke them


def fill_up(store: LanceStore) -> None:
    """Write rows until no more can be written."""
    for number in range(400):
        text = os.urandom(20_000).hex()
        store.upsert(
            [row(f"big {number}", text=text)],
            {f"key of {text}": EAST},
            absent_ids={f"big {number}"},
        )


@contextmanager
def limited(kind: int, value: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


def test_a_full_disk_is_said_and_passes(tmp_path: Path) -> None:
    with mounted("-t", "tmpfs", "-o", "size=1m", "anchord", str(tmp_path)):
        store = filled(tmp_path)
        with pytest.raises(StoreUnavailableError, match=r"the disk of .* is full \(ENOSPC\)"):
            fill_up(store)
        assert "0" in store.all_ids()
        subprocess.run(["mount", "-o", "remount,size=20m", str(tmp_path)], check=True)
        store.upsert([row("later")], {row("later").vector_key: EAST})
        assert "later" in opened(tmp_path).all_ids()


def test_a_read_only_file_system_is_said_and_can_be_searched(tmp_path: Path) -> None:
    with mounted("-t", "tmpfs", "-o", "size=5m", "anchord", str(tmp_path)):
        store = filled(tmp_path)
        subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)
        with pytest.raises(StoreUnavailableError, match=r"is read-only \(EROFS\)"):
            store.upsert([row("new")], {row("new").vector_key: EAST})
        assert len(opened(tmp_path).all_ids()) == 3
        subprocess.run(["mount", "-o", "remount,rw", str(tmp_path)], check=True)
        store.upsert([row("new")], {row("new").vector_key: EAST})
        assert len(store.all_ids()) == 4


def test_a_limit_on_file_sizes_is_said_and_passes(tmp_path: Path) -> None:
    store = filled(tmp_path)
    with (
        limited(resource.RLIMIT_FSIZE, 20_000),
        pytest.raises(StoreUnavailableError, match=r"a limit on the size of files .*\(EFBIG\)"),
    ):
        fill_up(store)
    fewer = len(store.all_ids())
    store.upsert([row("later")], {row("later").vector_key: EAST})
    assert len(store.all_ids()) == fewer + 1


WITHOUT_POWERS = """
import os, resource, sys
from pathlib import Path
from contracts.test_os_errors import opened, limited
from contracts.test_store import EAST, row
from anchord.errors import StoreUnavailableError
from anchord.core.ports import no_heartbeat
from anchord.store.table.damage import repair_table

base = Path(sys.argv[1])
table = base / "lance" / "chunks.lance"

def attempt(name, call):
    try:
        call()
        print(name, "works")
    except StoreUnavailableError as error:
        print(name, "waits", error.message.rpartition(" ")[2], bool(error.hint))

def repair():
    assert repair_table(table, (), base / "damaged", no_heartbeat).is_readable

def use(name):
    attempt(name + " read", lambda: opened(base).all_ids())
    attempt(name + " repair", repair)

store = opened(base)
for folder, mode in (("data", 0), ("_versions", 0), ("data", 0o500), ("_versions", 0o500)):
    (table / folder).chmod(mode)
    name = f"{folder} {mode:o}"
    if not mode:
        use(name)
    attempt(name + " write", lambda: store.upsert(
        [row("new")], {row("new").vector_key: EAST}, absent_ids={"new"}))
    (table / folder).chmod(0o700)
for folder in ("data", "_versions"):
    for file in (table / folder).iterdir():
        file.chmod(0)
    use(folder + " files")
    for file in (table / folder).iterdir():
        file.chmod(0o600)
with limited(resource.RLIMIT_NOFILE, len(os.listdir("/proc/self/fd")) - 1):
    use("open files")
use("at last")
print(len(opened(base).all_ids()), (base / "damaged").exists())
"""


@needs_weakness
def test_missing_permissions_and_open_files_are_waited_for_and_nothing_is_repaired(
    tmp_path: Path,
) -> None:
    filled(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [*weak_command(), sys.executable, "-c", WITHOUT_POWERS, str(tmp_path)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *said, last, verdict = done.stdout.splitlines()
    assert [line for line in said if "waits" not in line] == ["at last read works"]
    assert [line for line in said if "waits" in line and not line.endswith(") True")] == []
    assert sum("(EACCES)" in line for line in said) == 12
    assert sum("(EMFILE)" in line for line in said) == 2
    assert last == "at last repair works"
    assert verdict == "3 False"


def test_a_thread_that_cannot_be_started_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> NoReturn:
        raise RuntimeError("can't start new thread")

    filled(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(event_loop, "_start_loop", fail)
        with pytest.raises(StoreUnavailableError, match="too busy"):
            opened(tmp_path)
    assert len(opened(tmp_path).all_ids()) == 3
