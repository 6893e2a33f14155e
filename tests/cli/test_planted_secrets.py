"""No planted secret is in any byte of the home, of a backup or of the log, whatever is done with the index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import Shell, until
from cli.planted import Planted, holding, plant_files, plant_talks

KINDS = 40
"""At least so many kinds are planted."""


@pytest.fixture
def secrets(shell: Shell) -> Planted:
    """Plant secrets in a project folder and a folder of transcripts."""
    made = Planted()
    plant_files(shell, made)
    plant_talks(shell.base / "talks", made)
    assert len(set(made.kinds)) >= KINDS
    return made


def configure(shell: Shell, redact: str = "all") -> None:
    shell.configure(
        "[[root]]", 'name = "notes"', f'path = "{shell.notes}"',
        "[[root]]", 'name = "talks"', f'path = "{shell.base / "talks"}"', 'kind = "conversations"',
        "[privacy]", f'redact = "{redact}"',
    )  # fmt: skip


def damage(file: Path) -> None:
    data = bytearray(file.read_bytes())
    half = len(data) // 2
    data[half : half + 200] = bytes(200)
    file.write_bytes(data)


def test_no_planted_value_is_stored_printed_or_logged(shell: Shell, secrets: Planted) -> None:
    configure(shell)
    printed = [shell("index")]
    for word in ("flamingo", "heron", "stork", "crane", "Walrus", "Otter", "Badger"):
        assert word in shell("dump").out, word
    printed += [shell("search", "flamingo heron", "--json"), shell("status"), shell("errors")]
    printed += [shell("privacy", "report"), shell("backup", str(shell.base / "backup"))]
    assert holding(shell.home, secrets) == []
    assert holding(shell.base / "backup", secrets) == []
    with shell.daemon():
        for value in secrets.values[:5]:
            shell("search", value)
        shell.write(f"later-{secrets.token()}.md", f"# Later {secrets.token()}\n\nA tapir.\n")
        printed.append(shell("sync"))
        assert "tapir" in shell("dump").out
        assert holding(shell.home, secrets) == []
    assert secrets.found_in((shell.base / "run.log").read_bytes()) == []
    damage(shell.home / "data" / "conversations.sqlite")
    damage(
        max((shell.home / "data" / "lance").rglob("*.lance"), key=lambda file: file.stat().st_size)
    )
    printed += [shell("index"), shell("verify", "--repair")]
    assert holding(shell.home, secrets) == []
    printed += [shell("forget", "--yes", str(file)) for file in sorted(shell.notes.iterdir())]
    printed += [
        shell("forget", "--yes", str(file)) for file in sorted((shell.base / "talks").iterdir())
    ]
    assert "flamingo" not in shell("dump").out
    assert holding(shell.home, secrets) == []
    assert secrets.found_in("".join(each.out for each in printed).encode()) == []


def keep_transcripts(_: Shell) -> None:
    """Leave everything as it is."""


def delete_transcripts(shell: Shell) -> None:
    """Delete two transcripts: their exchanges stay in the archive."""
    for pattern in ("claude-*.jsonl", "pi/*.jsonl"):
        for file in (shell.base / "talks").glob(pattern):
            file.unlink()
    assert shell("index").code == 0


def remove_root(shell: Shell) -> None:
    """Take the conversations out of the index: they stay in the archive, detached."""
    assert shell("remove", "talks").code == 0


@pytest.mark.parametrize(
    "change",
    [
        keep_transcripts,
        pytest.param(remove_root, marks=pytest.mark.slow),
        pytest.param(delete_transcripts, marks=pytest.mark.slow),
    ],
)
def test_an_index_from_before_the_rules_is_cleaned(
    shell: Shell, secrets: Planted, change: Callable[[Shell], None]
) -> None:
    configure(shell, "off")
    shell("index")
    change(shell)
    before = {each.rpartition(": ")[2] for each in holding(shell.home, secrets)}
    assert len(before) >= KINDS
    configure(shell)
    assert shell("index").code in {0, 1}
    assert holding(shell.home, secrets) == []
    assert "flamingo" in shell("dump").out
    assert shell("verify", "--vectors", "all").code == 0
    assert "0 texts embedded now" in shell("index").out


def test_a_daemon_cleans_an_index_from_before_the_rules(shell: Shell, secrets: Planted) -> None:
    configure(shell, "off")
    shell("index")
    delete_transcripts(shell)
    configure(shell)
    with shell.daemon():
        until(lambda: not secrets.found_in(shell("dump").out.encode()))
        until(lambda: not shell("status", "--json").json["pending"])
        assert shell("verify", "--vectors", "all").code == 0
    assert secrets.found_in((shell.base / "run.log").read_bytes()) == []
    shell("index")
    assert "flamingo" in shell("dump").out
    assert holding(shell.home, secrets) == []
