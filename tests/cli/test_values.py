"""What the shell offers for a value: the values that the commands accept, and the roots there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from anchord.chunking.chunk_metadata import CHUNK_TYPES
from anchord.cli import values
from anchord.config.schema import DOCUMENT_KINDS, RootConfig
from anchord.search.ranking import SEARCH_MODES


def test_the_values_that_are_offered_are_those_that_the_commands_accept() -> None:
    assert values.MODES == SEARCH_MODES
    assert set(values.CHUNK_TYPES) == set(CHUNK_TYPES)
    assert get_args(get_type_hints(RootConfig)["kind"]) == values.ROOT_KINDS
    assert values.complete_kind("") == list(DOCUMENT_KINDS)
    assert values.complete_kind("mark") == ["markdown"]
    assert values.complete_mode("x") == []


def test_names_of_roots_are_offered_and_none_if_the_configuration_is_wrong(home: Path) -> None:
    assert values.complete_root("") == ["notes", "news", "work"]
    assert values.complete_root("n") == ["notes", "news"]
    (home / "config.toml").write_text("[[root]")
    assert values.complete_root("") == []


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("anchord search --mode ", ["hybrid", "vector", "text"]),
        ("anchord search words --root n", ["notes", "news"]),
        ("anchord remove w", ["work"]),
        ("anchord rescan wo", ["work"]),
        ("anchord start --kind c", ["conversations"]),
        ("anchord chunk --strategy head", ["headers"]),
    ],
)
def test_the_shell_is_offered_them(home: Path, words: str, offered: list[str]) -> None:
    last = len(words.split()) - (not words.endswith(" "))
    done = subprocess.run(
        [sys.executable, "-c", "from anchord.cli import main; main()"],
        env=os.environ
        | {"_ANCHORD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(last)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert home.exists()
    assert done.stdout.split() == offered, done.stderr
