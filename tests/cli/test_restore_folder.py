"""`session --restore` of a transcript that is a folder: one session means every file of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli.conftest import BuiltOnce, Shell

pytestmark = pytest.mark.usefixtures("pylance_here")

AT = {"created": 1_700_000_000_000}
SESSIONS = ("ses_one", "ses_two")


def files_of(session: str) -> dict[str, object]:
    """Return the files of a session; its part has the name that every part has."""
    return {
        f"session/prj/{session}.json": {"id": session, "title": "Bread", "time": AT},
        f"message/{session}/msg_{session}.json": {
            "id": f"msg_{session}",
            "sessionID": session,
            "role": "user",
            "time": AT,
        },
        f"part/msg_{session}/prt.json": {"type": "text", "text": f"Bake for {session}"},
    }


def index(shell: Shell) -> None:
    for session in SESSIONS:
        for path, content in files_of(session).items():
            file = shell.notes / "storage" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content))
    shell.configure("[[root]]", f'path = "{shell.notes}"', 'kind = "conversations"')
    assert shell("index").code == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltOnce:
    return BuiltOnce(tmp_path_factory, index)


@pytest.fixture
def shell(built: BuiltOnce) -> Shell:
    return built.fresh()


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_files_keep_their_paths_below_the_folder_that_they_are_written_to(shell: Shell) -> None:
    whole = contents(shell.notes / "storage")
    assert len(whole) == 6
    elsewhere = shell.base / "elsewhere"
    elsewhere.mkdir()
    assert shell("session", "ses_one", "--restore", "--to", str(elsewhere)).code == 0
    assert contents(elsewhere) == whole


def test_a_file_that_another_has_replaced_is_skipped_and_the_others_restored(shell: Shell) -> None:
    storage = shell.notes / "storage"
    whole = contents(storage)
    shutil.rmtree(storage)
    other = storage / "session" / "prj" / "ses_two.json"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"mine")
    said = shell("session", "ses_one", "--restore")
    assert said.code == 1
    assert f'Skipped "{other}"' in said.err
    assert said.out.count("Restored ") == len(whole) - 1
    assert contents(storage) == {**whole, "session/prj/ses_two.json": b"mine"}


def test_nothing_is_written_where_every_file_is_another(shell: Shell) -> None:
    storage = shell.notes / "storage"
    for path in contents(storage):
        (storage / path).write_bytes(b"mine")
    shell("session", "ses_one", "--restore").is_refused(2, "is shorter than what", "--to ")
