"""Group H of FAULTS.md on the daemon's parts: excluded content, later exclusions, hostile names."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from faults.service import SETTINGS, Service, until
from scenarios.conftest import Index

from anchord.core.types import Absent, FileContent, RootedPath, Vector
from anchord.daemon.writer.maintenance import COMPACTIONS_PER_INDEX_MERGE
from anchord.errors import UsageError
from anchord.sources.files import folder_walk
from anchord.store.table import maintenance as lance_upkeep
from anchord.store.table.table import LanceStore

SECRET = "The rendezvous is at the swordfish."  # noqa: S105 - a word to look for
DENIED = (
    ".env", ".env.local", "prod.env", "deep/er/.env", "id_rsa", "id_ed25519.pub", "server.pem", "tls.key", "vault.kdbx",
    "credentials.json", "credentials.md", "aws/credentials", ".aws/config", ".ssh/notes.md", ".netrc", ".npmrc", "bash_history",
    "main.tfstate", "x.tfvars", "gcloud/a.json", "logins.json", "secret.asc",
)  # fmt: skip
"""Paths of keys and credentials."""


def rows(service: Service) -> list[Any]:
    return service.pipeline.submit(lambda: list(service.writer.store.all_rows())).result()


def holds(folder: Path, data: bytes) -> list[str]:
    """Return the files below a folder that contain these bytes."""
    found = (Path(above) / name for above, _, names in os.walk(folder) for name in names)
    return [
        str(file)
        for file in found
        if file.is_file() and not file.is_socket() and data in file.read_bytes()
    ]


def grep(service: Service, word: str) -> list[str]:
    """Return the files of the index that contain a word, in any version of any store, unless compressed."""
    done = subprocess.run(
        ["grep", "-rlaiF", word, str(service.home)], capture_output=True, text=True, check=False
    )
    return done.stdout.split()


def vectors_of(service: Service, path: str) -> Sequence[Vector]:
    def ask() -> Sequence[Vector]:
        store: LanceStore = service.writer.store
        return list(
            store.vectors_by_key_of_rows(
                [row.id for row in store.all_rows() if row.path == path]
            ).values()
        )

    return service.pipeline.submit(ask).result()


# H1: keys and ignored files


def with_root(service: Service, *lines: str) -> Service:
    """Configure the folder as a root with some more lines."""
    service.settings = "\n".join([SETTINGS, "[[root]]", f'path = "{service.folder}"', *lines, ""])
    return service


@pytest.mark.parametrize(
    "include", ["*", "**", "**/*", ".*", ".env*", "id_*", "*.pem", ".ssh/", "aws/"]
)
def test_h1_no_pattern_lets_keys_and_credentials_into_the_table(
    service: Service, include: str
) -> None:
    for path in DENIED:
        service.write(path, f"# Key\n\n{SECRET}\n")
    service.write("note.md", "# Note\n\nNothing to hide.\n")
    with_root(service, f'include = ["{include}"]').start().sync()
    assert service.paths() == {"note.md"}
    for path in DENIED:
        service.write(path, f"# Key\n\n{SECRET} It was saved again.\n")
    assert service.is_right()
    assert service.paths() == {"note.md"}
    assert grep(service, "swordfish") == []


def test_h1_a_file_of_the_deny_list_is_let_in_by_its_very_name_and_its_neighbours_are_not(
    service: Service,
) -> None:
    for path in DENIED:
        service.write(path, f"# Key\n\n{SECRET}\n")
    with_root(service, 'include = ["credentials.md", "deep/er/.env"]').start().sync()
    assert service.paths() == {"credentials.md", "deep/er/.env"}


@pytest.mark.parametrize("name", ["Credentials.json", "SERVER.PEM", "ID_RSA", "Prod.Env"])
def test_h1_a_key_in_other_case_is_a_key(service: Service, name: str) -> None:
    service.write(name, f"# Key\n\n{SECRET}\n")
    with_root(service, 'include = ["*"]').start().sync()
    assert service.paths() == set()


def test_h1_a_note_that_is_renamed_to_a_key_leaves_the_index(service: Service) -> None:
    service.write("note.md", f"# Note\n\n{SECRET}\n")
    service.start().sync()
    assert service.paths() == {"note.md"}
    os.rename(service.folder / "note.md", service.folder / "credentials.md")
    until(lambda: service.paths() == set())
    assert service.ask("search", query="swordfish", mode="text")["groups"] == []
    assert service.is_right()


def test_h1_what_is_newly_ignored_leaves_at_once_with_its_vectors_and_comes_back(
    service: Service,
) -> None:
    service.write("private/deep/diary.md", f"# Diary\n\n{SECRET}\n")
    service.write("private/deep/kept.md", "# Kept\n\nThis one stays.\n")
    service.start().sync()
    (vector,) = vectors_of(service, "private/deep/diary.md")
    service.write("private/.gitignore", "deep/*\n!deep/kept.md\n")
    until(lambda: service.paths() == {"private/deep/kept.md"})
    assert service.ask("search", query="swordfish", mode="text")["groups"] == []
    assert service.is_right()
    with sqlite3.connect(service.places.vector_cache_file) as cache:
        assert (vector,) not in cache.execute("SELECT vector FROM vectors").fetchall()
    cache.close()
    (service.folder / "private" / ".gitignore").unlink()
    until(lambda: len(service.paths()) == 2)
    assert service.embedded() == 3
    assert service.is_right()


def test_h1_forget_takes_the_words_of_what_was_ignored_before_out_of_every_file_of_the_index(
    service: Service,
) -> None:
    file = service.write("diary.md", f"# Diary\n\n{SECRET}\n")
    service.write("other.md", "# Other\n\nThis one stays.\n")
    service.start().sync()
    service.write(".gitignore", "diary.md\n")
    until(lambda: service.paths() == {"other.md"})
    assert grep(service, "swordfish"), (
        "an old version of the table holds it still, as the README says"
    )
    service.ask("forget", path=str(file))
    assert grep(service, "swordfish") == []
    assert service.is_right()


@pytest.mark.parametrize("way", ["ignored", "deleted"])
def test_h1_forget_drops_the_vectors_of_what_left_before(service: Service, way: str) -> None:
    file = service.write("diary.md", f"# Diary\n\n{SECRET}\n")
    service.write("other.md", "# Other\n\nThis one stays.\n")
    service.start().sync()
    (vector,) = vectors_of(service, "diary.md")
    if way == "ignored":
        service.write(".gitignore", "diary.md\n")
    else:
        file.unlink()
    until(lambda: service.paths() == {"other.md"})
    service.ask("forget", path=str(file))
    service.stop()
    assert holds(service.home, vector) == []


def test_h1_upkeep_rewrites_what_held_deleted_words(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.write("diary.md", f"# Diary\n\n{SECRET}\n")
    service.notes(30)
    service.start().sync()
    (service.folder / "diary.md").unlink()
    service.sync()
    assert grep(service, "swordfish")
    monkeypatch.setattr(lance_upkeep, "_MIN_VERSION_AGE", lance_upkeep._MIN_VERSION_AGE * 0)
    for _ in range(COMPACTIONS_PER_INDEX_MERGE):
        service.write("000.md", f"# Note\n\nRewritten {_}.\n")
        service.sync()
        service.pipeline.submit(service.pipeline.maintenance.compact).result()
    assert grep(service, "swordfish") == []


# H6, E6, E7: not a file of the root


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder outside the root with a file that must not be readable through the root."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "a.md").write_text(f"# Outside\n\n{SECRET}\n")
    (folder / "only outside.md").write_text(f"# Outside\n\n{SECRET}\n")
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Give an empty index without a service."""
    made = Index(tmp_path)
    yield made
    made.close()


def swap(path: Path, target: Path) -> None:
    """Replace a path by a symbolic link, as fast as possible."""
    link = path.with_name(f".{path.name}.link")
    link.symlink_to(target)
    if path.is_dir():
        path.rename(path.with_name(f".{path.name}.was"))
    link.replace(path)


def swaps_before(monkeypatch: pytest.MonkeyPatch, path: Path, target: Path) -> list[str]:
    """Replace a file or folder by a link right before it is opened; return a list that grows when it is done."""
    real: Callable[..., int] = os.open
    done: list[str] = []

    def late(name: Any, flags: int, *args: Any, **named: Any) -> int:  # noqa: ANN401 - any call
        if name == path.name and named.get("dir_fd") is not None and not done:
            done.append(name)
            swap(path, target)
        return real(name, flags, *args, **named)

    monkeypatch.setattr(os, "open", late)
    return done


def test_h6_a_file_that_becomes_a_link_between_the_look_and_the_open_is_not_read(
    index: Index, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.write("a.md", "# Mine\n\nMy own words.\n")
    index.write("b.md", "# Other\n\nOther words.\n")
    due = index.indexer.reconcile("tree").paths_due
    done = swaps_before(monkeypatch, index.folder / "a.md", outside / "a.md")
    outcomes = {outcome.origin.path: outcome for outcome in index.indexer.index(due)}
    assert done == ["a.md"]
    assert outcomes["a.md"].action == "retry"
    index.sync()
    assert {row.path for row in index.store.all_rows()} == {"b.md"}
    assert not index.verify().differences


def test_h6_a_folder_that_becomes_a_link_on_the_way_to_a_file_leads_nowhere(
    index: Index, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.write("sub/a.md", "# Mine\n\nMy own words.\n")
    done = swaps_before(monkeypatch, index.folder / "sub", outside)
    assert isinstance(index.files.read(RootedPath("tree", "sub/a.md")), Absent)
    assert done == ["sub"]
    monkeypatch.undo()
    index.sync()
    assert list(index.store.all_rows()) == []


def test_h6_a_folder_that_becomes_a_link_right_before_it_is_listed_lets_nothing_in(
    index: Index, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.write("sub/a.md", "# Mine\n\nMy own words.\n")
    index.write("b.md", "# Other\n\nOther words.\n")
    real = folder_walk.list_entries
    done: list[str] = []

    def listed(path: str) -> Any:  # noqa: ANN401 - as it is
        if path.endswith("/sub") and not done:
            done.append(path)
            swap(index.folder / "sub", outside)
        return real(path)

    monkeypatch.setattr(folder_walk, "list_entries", listed)
    index.sync()
    assert done
    assert {row.path for row in index.store.all_rows()} == {"b.md"}
    assert [failure.origin.path for failure in index.catalogue.list_failures()] == []
    index.sync()
    assert not index.verify().differences


def test_h6_a_file_that_is_a_link_now_and_then_is_never_read_through_it(
    service: Service, outside: Path
) -> None:
    file = service.write("a.md", "# Mine\n\nMy own words.\n")
    service.start().sync()
    ending = threading.Event()

    def swap_on() -> None:
        link, mine, n = file.with_name(".link"), file.with_name(".mine"), 0
        while not ending.is_set():
            n += 1
            link.symlink_to(outside / "a.md")
            link.replace(file)
            mine.write_text(f"# Mine\n\nMy own words, number {n}.\n")
            mine.replace(file)

    swapping = threading.Thread(target=swap_on)
    swapping.start()
    try:
        for _ in range(40):
            read = service.writer.files.read(RootedPath("docs", "a.md"))
            assert not isinstance(read, FileContent) or b"swordfish" not in read.data
            service.pipeline.submit(lambda: service.pipeline.work_queue.reconcile("docs")).result()
            assert not [row for row in rows(service) if "swordfish" in row.text]
    finally:
        ending.set()
        swapping.join()
    assert service.is_right()
    assert "My own words" in rows(service)[0].text
    assert grep(service, "swordfish") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_e7_a_device_with_the_name_of_a_note_is_named_and_blocks_no_one(service: Service) -> None:
    service.write("note.md", "# Note\n\nWords.\n")
    try:
        os.mknod(service.folder / "zero.md", 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    service.start().sync()
    assert service.paths() == {"note.md"}
    (failed,) = service.status()["failed"]
    assert failed["reason"] == "a device: not indexed"
    assert service.is_right()


# H8: names that are special elsewhere

HOSTILE = (
    "' OR 1=1 --.md",
    "'; DROP TABLE chunks; --.md",
    '" OR "1"="1.md',
    "it''s.md",
    "back\\slash.md",
    "back\\'quote.md",
    "semi;colon.md",
    "new\nline.md",
    "\u2018curly\u2019 \u201cquotes\u201d.md",
    "\uff07wide\uff07.md",
    "100%_like.md",
    "$(touch owned) `id` ${HOME}.md",
    "-rf.md",
    "--root.md",
    "(a|b)+.md",
    "\x1b[31mred.md",
)


@pytest.fixture
def named(service: Service) -> Service:
    """Give a service over files with hostile names, each with a word that all have and a section of that name."""
    for number, name in enumerate(HOSTILE):
        title = " ".join(name.removesuffix(".md").split())
        service.write(name, f"# Top\n\n## {title}\n\nAn axolotl, number {number}.\n")
    service.write("plain.md", "# Top\n\n## Plain\n\nAn axolotl in plain words.\n")
    service.start().sync()
    return service


def found(service: Service, **params: Any) -> list[str]:  # noqa: ANN401 - any parameter
    """Return the paths that a search for the word that all have gives, by words and by meaning alike."""
    answers = [
        service.ask("search", query="axolotl", mode=mode, k=100, **params)
        for mode in ("text", "vector")
    ]
    results = [sorted(group[0]["path"] for group in answer["groups"]) for answer in answers]
    assert results[0] == results[1]
    return results[0]


def test_h8_every_hostile_name_is_found_by_its_own_filter_and_no_other_file_is(
    named: Service,
) -> None:
    assert found(named) == sorted([*HOSTILE, "plain.md"])
    for name in HOSTILE:
        assert found(named, path=name) == [name]
        assert found(named, path=f"/{name}") == [name]


def test_h8_text_of_sql_in_any_filter_is_only_text(named: Service) -> None:
    for text in (
        *HOSTILE,
        "' OR '1'='1",
        "x' OR path LIKE '%",
        "') OR (1=1",
        "'",
        "''",
        "\\",
        "\\'",
        "%",
        "\0",
    ):
        with pytest.raises(UsageError, match="no kind"):
            found(named, kind=text)
        assert found(named, room=text) == []
        assert found(named, session=text) == []
        assert found(named, section=f"{text} > nowhere") == []
        assert "plain.md" not in found(named, path=text, section="Plain nowhere")
    assert found(named, kind="markdown", path="plain.md") == ["plain.md"]


def test_h8_a_section_of_a_hostile_title_is_found_by_it_alone(named: Service) -> None:
    for name in HOSTILE:
        title = " ".join(name.removesuffix(".md").split())
        if ">" not in title and "\x1b" not in title:
            assert found(named, section=title) == [name], title


def test_h8_hostile_names_are_explained_forgotten_and_deleted_alone(named: Service) -> None:
    names = list(HOSTILE)
    while names:
        gone = names.pop()
        results = named.ask("explain", path=str(named.folder / gone))
        assert results["indexed"], results
        if len(names) % 2:
            assert named.ask("forget", path=str(named.folder / gone))["files"] == 1
        else:
            (named.folder / gone).unlink()
            named.sync()
        assert named.paths() == {*names, "plain.md"}
    assert named.is_right()


def test_h8_a_room_is_a_folder_whatever_it_is_called(service: Service) -> None:
    for name in HOSTILE:
        service.write(f"{name.removesuffix('.md')}/a.md", "# A\n\nAn axolotl.\n")
    service.start().sync()
    rooms = {row.path: row.room for row in rows(service)}
    assert len(rooms) == len(HOSTILE)
    for path, room in rooms.items():
        assert path in found(service, room=room)
        assert {rooms[other] for other in found(service, room=room)} == {room}


def test_h8_a_root_of_a_hostile_name_is_searched_and_removed_alone(service: Service) -> None:
    names = [
        name.removesuffix(".md") for name in HOSTILE if "\n" not in name and "\x1b" not in name
    ]
    lines = []
    for number, name in enumerate(names):
        folder = service.base / f"root{number}"
        folder.mkdir()
        (folder / "a.md").write_text(f"# A\n\nAn axolotl of root {number}.\n")
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[[root]]\npath = "{folder}"\nname = "{quoted}"\n')
    shutil.rmtree(service.folder)
    service.settings = SETTINGS + "".join(lines)
    service.start().sync()
    for name in names:
        groups = service.ask("search", query="axolotl", mode="text", root=name)["groups"]
        assert [group[0]["root"] for group in groups] == [name]
    while len(names) > 1:
        assert service.ask("roots.remove", name=names.pop())["removed_chunks"] == 1
        assert {row.root for row in rows(service)} == set(names)
    assert service.verify().differences == ()
