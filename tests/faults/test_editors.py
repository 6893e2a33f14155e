"""Groups A, B and E of FAULTS.md with the real watcher: however a file is saved, search finds its content."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.service import Service, until

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="a call of Linux")
FIRST = "# A\n\nThe first words, of aardvarks.\n"
SECOND = "# A\n\nThe second words, of buffalos.\n"


def text_of(service: Service, path: str) -> str:
    rows = service.pipeline.submit(lambda: list(service.writer.store.all_rows())).result()
    return "\n".join(row.text for row in rows if row.path == path)


def in_place(file: Path) -> None:
    file.write_text(SECOND)


def temp_and_rename(file: Path) -> None:
    fresh = file.with_name(".a.md.tmp")
    fresh.write_text(SECOND)
    fresh.replace(file)


def temp_from_elsewhere(file: Path) -> None:
    fresh = file.parent.with_name("elsewhere.tmp")
    fresh.write_text(SECOND)
    fresh.replace(file)


def vim(file: Path) -> None:
    backup = file.with_name(file.name + "~")
    file.rename(backup)
    file.write_text(SECOND)
    backup.unlink()


def jetbrains(file: Path) -> None:
    fresh, old = file.with_name("a.md___jb_tmp___"), file.with_name("a.md___jb_old___")
    fresh.write_text(SECOND)
    file.rename(old)
    fresh.rename(file)
    old.unlink()


def unnamed_and_linked(file: Path) -> None:
    descriptor = os.open(file.parent, os.O_TMPFILE | os.O_WRONLY, 0o644)
    os.write(descriptor, SECOND.encode())
    file.unlink()
    at_fdcwd, follow = -100, 0x400
    libc = ctypes.CDLL(None, use_errno=True)
    link = f"/proc/self/fd/{descriptor}".encode()
    assert libc.linkat(at_fdcwd, link, at_fdcwd, os.fsencode(file), follow) == 0, ctypes.get_errno()
    os.close(descriptor)


def truncated_and_written_slowly(file: Path) -> None:
    with file.open("w") as writing:
        for letter in SECOND:
            writing.write(letter)
            writing.flush()
            time.sleep(0.002)


def same_size_and_old_times(file: Path) -> None:
    before = file.stat()
    file.write_text(
        FIRST.replace("aardvarks", "bbrdvarks").replace("first", "seco2d")[: len(FIRST)]
    )
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size


def exchanged(file: Path) -> None:
    other = file.with_name("other.txt")
    other.write_text(SECOND)
    at_fdcwd, exchange = -100, 2
    libc = ctypes.CDLL(None, use_errno=True)
    assert (
        libc.renameat2(at_fdcwd, os.fsencode(file), at_fdcwd, os.fsencode(other), exchange) == 0
    ), ctypes.get_errno()


Save = Callable[[Path], None]
SAVES: dict[str, Save] = {
    "A1 in place": in_place,
    "A2 temporary file and rename": temp_and_rename,
    "A3 temporary file from another folder": temp_from_elsewhere,
    "A4 vim": vim,
    "A5 JetBrains": jetbrains,
    "A7 truncated and written slowly": truncated_and_written_slowly,
}


@pytest.mark.parametrize("name", SAVES)
def test_a1_to_a7_a_save_is_found_however_it_is_made(service: Service, name: str) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    SAVES[name](file)
    until(lambda: text_of(service, "a.md") == SECOND.rstrip("\n"))
    assert service.is_right()
    assert service.paths() == {"a.md"}


@LINUX
@pytest.mark.parametrize(
    "save", [unnamed_and_linked, exchanged], ids=["A6 unnamed and linked", "A16 exchanged"]
)
def test_a6_a16_saves_by_calls_of_linux(service: Service, save: Save) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    save(file)
    until(lambda: text_of(service, "a.md") == SECOND.rstrip("\n"))
    assert service.is_right()


def test_a4_a_file_that_is_saved_as_vim_does_is_never_missing_from_a_search(
    service: Service,
) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    for n in range(20):
        vim(file)
        file.write_text(f"# A\n\nThe words of save {n}.\n")
        assert "a.md" in service.paths()
    assert service.is_right()


def test_a7_a_file_that_is_emptied_and_written_a_moment_later_is_never_missing_from_a_search(
    service: Service,
) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    with file.open("w") as writing:
        deadline = time.monotonic() + 0.5  # Many times the debounce time.
        while time.monotonic() < deadline:
            assert service.paths() == {"a.md"}
        writing.write(SECOND)
    until(lambda: text_of(service, "a.md") == SECOND.rstrip("\n"))
    assert service.is_right()


def test_a7_a_file_that_stays_empty_leaves_by_itself(service: Service) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    file.write_text("")
    until(lambda: not service.paths())
    assert service.is_right()


def test_a7_a_file_that_is_emptied_and_asked_for_leaves_at_once(service: Service) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    file.write_text("")
    assert service.is_right()
    assert not service.paths()


def test_a8_a_change_of_the_same_size_with_restored_times_is_found(service: Service) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    same_size_and_old_times(file)
    until(lambda: "bbrdvarks" in text_of(service, "a.md"))
    assert service.is_right()


def test_a12_a_log_that_is_appended_to_all_the_time_is_indexed_meanwhile(service: Service) -> None:
    file = service.write("log.md", "# Log\n")
    service.start().sync()
    ending = threading.Event()

    def append() -> None:
        n = 0
        while not ending.is_set():
            n += 1
            with file.open("a") as log:
                log.write(f"\nEntry {n}.\n")
            time.sleep(0.002)

    writer = threading.Thread(target=append)
    writer.start()
    try:
        commits = service.writer.indexer.commit_count
        until(lambda: service.writer.indexer.commit_count >= commits + 3)
        assert "Entry 1." in text_of(service, "log.md")
    finally:
        ending.set()
        writer.join()
    assert service.is_right()


def test_a14_what_was_written_through_a_map_is_found_by_the_next_walk(service: Service) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        at = mapped.find(b"aardvarks")
        mapped[at : at + 9] = b"zardvarks"
        mapped.flush()
        service.sync()
        assert "zardvarks" in text_of(service, "a.md")
    assert service.is_right()


def test_a15_what_was_written_through_a_hard_link_elsewhere_is_found_by_the_next_walk(
    service: Service,
) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    elsewhere = service.base / "elsewhere.md"
    os.link(file, elsewhere)
    elsewhere.write_text(SECOND)
    service.sync()
    assert text_of(service, "a.md") == SECOND.rstrip("\n")
    assert service.is_right()


def test_a17_a_rename_of_case_alone_is_a_move(service: Service) -> None:
    service.write("readme.md", FIRST)
    service.start().sync()
    os.rename(service.folder / "readme.md", service.folder / "README.md")
    until(lambda: service.paths() == {"README.md"})
    assert service.is_right()
    assert service.embedded() == 1


def test_a18_a_file_a_folder_and_a_file_of_one_name(service: Service) -> None:
    file = service.write("a.md", FIRST)
    service.start().sync()
    file.unlink()
    service.write("a.md/inside.md", SECOND)
    until(lambda: service.paths() == {"a.md/inside.md"})
    shutil.rmtree(file)
    file.write_text(FIRST)
    until(lambda: service.paths() == {"a.md"})
    assert service.is_right()


def test_b1_b2_files_in_folders_that_are_made_that_moment_are_all_found(service: Service) -> None:
    service.start().sync()
    for n in range(100):
        service.write(f"d{n}/e/f/note.md", f"# Note {n}\n\nWords of {n}.\n")
    until(lambda: len(service.paths()) == 100)
    assert service.is_right()


def test_b9_a_tree_that_is_deleted_while_it_is_walked_leaves_nothing(service: Service) -> None:
    service.notes(20, "keep/")
    service.notes(15, "go/a/")
    service.start()
    shutil.rmtree(service.folder / "go")
    assert service.is_right()
    assert {path.split("/")[0] for path in service.paths()} == {"keep"}


def test_b11_a_worktree_that_comes_and_goes_leaves_no_watch(service: Service) -> None:
    service.notes(2)
    service.start().sync()
    for _ in range(3):
        service.notes(3, "worktree/deep/")
        until(lambda: service.status()["roots"][0]["watches"] == 3)
        shutil.rmtree(service.folder / "worktree")
        until(lambda: service.status()["roots"][0]["watches"] == 1)
    assert service.is_right()


def test_b13_two_hundred_rewrites_in_a_row_are_few_commits(service: Service) -> None:
    service.notes(10)
    service.start().sync()
    before = service.writer.indexer.commit_count
    for round_ in range(200):
        service.write(f"{round_ % 10:03}.md", f"# Note\n\nRewritten in round {round_}.\n")
    service.sync()
    assert service.writer.indexer.commit_count - before < 100
    assert service.is_right()


@pytest.mark.parametrize(
    "names",
    [
        ["caf\u00e9.md", "cafe\u0301.md"],
        ["bad \udcff byte.md", "bad \\xff byte.md"],
        ["new\nline.md", "tab\tname.md", " blank .md"],
        ["\u202egnirts.md", "a" * 252 + ".md", "\U0001f388.md"],
    ],
    ids=["E1 twins of unicode", "E3 no UTF-8", "E4 controls", "E4 long and odd"],
)
def test_e1_to_e4_files_of_any_name_are_followed(service: Service, names: list[str]) -> None:
    service.start().sync()
    for number, name in enumerate(names):
        (service.folder / name).write_text(f"# {number}\n\nWords of the file number {number}.\n")
    until(lambda: service.pipeline.submit(service.writer.store.count_rows).result() == len(names))
    assert service.is_right()
    (service.folder / names[0]).unlink()
    until(
        lambda: service.pipeline.submit(service.writer.store.count_rows).result() == len(names) - 1
    )
    assert service.is_right()


def test_e4_a_path_longer_than_the_system_takes_at_once_is_indexed(service: Service) -> None:
    service.start().sync()
    here = os.open(service.folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=here)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    descriptor = os.open("deep.md", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.write(descriptor, b"# Deep\n\nWords.\n")
    os.close(descriptor)
    os.close(here)
    service.sync()
    assert service.status()["state"] in ("idle", "indexing")
    assert service.verify().differences == ()


def test_e8_files_of_the_future_and_of_1970_are_followed(service: Service) -> None:
    for name, when in (("future.md", 4_000_000_000), ("past.md", 0)):
        os.utime(service.write(name, FIRST), (when, when))
    service.start().sync()
    for name, when in (("future.md", 4_000_000_000), ("past.md", 0)):
        os.utime(service.write(name, SECOND), (when, when))
    until(
        lambda: all(
            text_of(service, name) == SECOND.rstrip("\n") for name in ("future.md", "past.md")
        )
    )
    assert service.is_right()


def test_e10_an_inode_that_is_used_again_is_another_file(service: Service) -> None:
    service.notes(5)
    service.start().sync()
    for n in range(5):
        (service.folder / f"{n:03}.md").unlink()
        service.write(f"new{n}.md", f"# New {n}\n\nOther words {n}.\n")
    service.sync()
    assert service.paths() == {f"new{n}.md" for n in range(5)}
    assert service.is_right()
