"""What is left of a root that is not in the configuration any more."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from cli.conftest import Shell

pytestmark = pytest.mark.usefixtures("pylance_here")


def changed_roots(shell: Shell) -> list[str]:
    with closing(sqlite3.connect(shell.home / "data" / "state.sqlite")) as db:
        return [root for (root,) in db.execute("SELECT DISTINCT root FROM changes ORDER BY root")]


def test_no_name_of_a_changed_file_is_left(shell: Shell) -> None:
    shell.write("cats.md", "# Cats\n")
    shell.configure("[[root]]", f'path = "{shell.notes}"')
    assert shell("index").code == 0
    assert changed_roots(shell) == ["notes"]
    with closing(sqlite3.connect(shell.home / "data" / "state.sqlite")) as db:
        db.execute(
            "INSERT INTO changes(at_ns, root, path, kept, new, gone, is_edit) "
            "VALUES(1, 'long gone', x'61', 0, 1, 0, 1)"
        )
        db.commit()
    assert shell("index").code == 0
    assert changed_roots(shell) == ["notes"]
    assert shell("remove", "notes").code == 0
    assert changed_roots(shell) == []
