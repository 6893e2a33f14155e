"""A home of an older version is upgraded; one of a newer version is refused in one line."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import lance
import pytest
from cli.conftest import Printed, call_here
from preloaded import PreloadedDaemon

from anchord.errors import StoreDamagedError
from anchord.store.catalog import database as catalogue
from anchord.store.catalog import schema as catalogue_schema
from anchord.store.catalog.catalog import SqliteCatalog

HOMES = sorted((Path(__file__).parent / "homes").glob("*.tar.xz"))


class Base:
    """An unpacked home with its indexed folders."""

    def __init__(self, folder: Path, archive: Path) -> None:
        """Unpack it, and set its folders in the configuration."""
        self.folder = folder
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        self.data = folder / "home" / "data"
        self.config = folder / "home" / "config.toml"
        self.config.write_text(
            self.config.read_text("utf-8").replace("@BASE@", str(folder)), "utf-8"
        )
        asked = json.loads((self.data / "asked.json").read_text("utf-8"))
        names = [os.path.basename(base64.b64decode(path)) for path in asked["forgotten"]]
        asked["forgotten"] = [
            base64.b64encode(os.fsencode(folder / "docs") + b"/" + name).decode() for name in names
        ]
        (self.data / "asked.json").write_text(json.dumps(asked), "utf-8")

        self.environment = os.environ | {"ANCHORD_HOME": str(folder / "home")}

    def run(self, *arguments: str) -> Printed:
        """Run a command in this process; each start costs over a second of a processor."""
        return call_here(arguments, self.environment, self.folder)

    def daemon(self) -> Printed:
        """Run the daemon to its end in a process of its own."""
        log = self.folder / "run.log"
        code = PreloadedDaemon([], self.environment, log).wait(120)
        return Printed(code, "", log.read_text("utf-8"))

    def on_disk(self) -> dict[str, bytes]:
        """Return every file of the state but the lock and what SQLite keeps while it is open."""
        files = [file for file in self.data.rglob("*") if file.is_file()]
        kept = [
            file
            for file in files
            if file.name != "anchord.lock" and not file.name.endswith(("-shm", "-wal"))
        ]
        return {str(file): file.read_bytes() for file in kept}


def test_there_is_a_home_to_test() -> None:
    assert HOMES


@pytest.fixture(params=HOMES, ids=lambda archive: archive.name.removesuffix(".tar.xz"))
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Base:
    return Base(tmp_path, request.param)


def test_004_17_a_home_of_every_version_serves_and_is_brought_forward_without_embedding(
    base: Base,
) -> None:
    before = base.run("search", "gulls", "--mode", "text", "--json")
    assert before.code == 0, before.err
    assert "a.md" in {group[0]["path"] for group in json.loads(before.out)["groups"]}
    summed = base.run("index", "--json").json
    assert summed["embedded"] == 0, summed  # Whatever changed in between, the texts are the same.
    assert base.run("verify").code == 0
    paths = {json.loads(line)["path"] for line in base.run("dump").out.splitlines()}
    assert {"a.md", "code.py", "deep/er/b.txt", "edited.md"} <= paths
    assert len([path for path in paths if path.startswith("/claude-code/")]) == 2
    assert "gone.md" not in paths  # A forgotten file stays forgotten although it exists.


@pytest.mark.parametrize(
    "command",
    [
        ("verify",), ("search", "gulls", "--mode", "text"), ("search", "gulls", "--detached", "--mode", "text"),
        ("dump",), ("roots",), ("privacy", "report"), ("doctor",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_commands_that_read_understand_a_home_before_it_is_updated_and_leave_it_as_it_is(
    base: Base, command: tuple[str, ...]
) -> None:
    before = base.on_disk()
    ran = base.run(*command)
    assert ran.out.strip(), ran.err
    assert "error in anchord" not in ran.err + ran.out
    if command == ("verify",):
        assert ran.code == 0, ran.out
    assert base.on_disk() == before


def test_what_was_undone_after_the_update_embeds_nothing(base: Base) -> None:
    """The vectors of rows that left were kept by the version before."""
    (base.folder / "docs" / "edited.md").write_text(
        "# Old words\n\nNobody reads them any more.\n", "utf-8"
    )
    assert json.loads(base.run("index", "--json").out)["embedded"] == 0


def of_sqlite(name: str) -> Callable[[Base], None]:
    def later(base: Base) -> None:
        with closing(sqlite3.connect(base.data / name)) as db:
            db.execute("PRAGMA user_version=999")

    return later


def of_table(base: Base) -> None:
    dataset = lance.dataset(str(base.data / "lance" / "chunks.lance"))
    dataset.update_schema_metadata({"anchord.schema": "999"})


def of_asked(base: Base) -> None:
    file = base.data / "asked.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "version": 999}), "utf-8")


def of_config(base: Base) -> None:
    base.config.write_text("version = 999\n" + base.config.read_text("utf-8"), "utf-8")


@pytest.mark.parametrize(
    "newer",
    [of_sqlite("state.sqlite"), of_sqlite("conversations.sqlite"), of_table, of_asked, of_config],
    ids=["catalogue", "archive", "table", "asked", "config"],
)
@pytest.mark.parametrize(
    "command", [("index",), ("run",), ("verify",), ("search", "gulls")], ids=" ".join
)
def test_what_a_newer_version_made_is_refused_in_one_line_and_left_alone(
    tmp_path: Path, newer: Callable[[Base], None], command: tuple[str, ...]
) -> None:
    base = Base(tmp_path, HOMES[-1])
    newer(base)
    before = base.on_disk()
    outcome = base.daemon() if command == ("run",) else base.run(*command)
    assert outcome.code in (1, 2), outcome.out
    refusals = [line for line in outcome.err.splitlines() if line.startswith("anchord: ")]
    assert len(refusals) == 1
    assert "newer anchord" in refusals[0]
    assert refusals[0].endswith("update anchord")
    assert base.on_disk() == before


def test_an_older_catalogue_is_taken_step_by_step_and_one_without_a_step_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The procedure of the first schema change."""
    file = tmp_path / "state.sqlite"
    SqliteCatalog(file).close()
    now = catalogue_schema.SCHEMA_VERSION
    monkeypatch.setattr(catalogue, "SCHEMA_VERSION", now + 2)
    monkeypatch.setattr(
        catalogue,
        "MIGRATIONS",
        {now: "CREATE TABLE first(a);", now + 1: "ALTER TABLE first ADD COLUMN b;"},
    )
    copy = tmp_path / "copy.sqlite"
    shutil.copy(file, copy)
    with closing(SqliteCatalog(file)) as brought:
        brought.migrate_schema()
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (now + 2,)
        assert [column[1] for column in db.execute("PRAGMA table_info(first)")] == ["a", "b"]
    monkeypatch.setattr(catalogue, "MIGRATIONS", {now: "CREATE TABLE first(a);"})
    with pytest.raises(StoreDamagedError, match="too old"):
        SqliteCatalog(copy)
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (now,)  # All of it or nothing.
