"""A user's home with settings of other programs, and the command in this process."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cli.conftest import Printed, call_here

_PROGRAM = """#!/bin/sh
echo "$@" >> {log}
{script}
"""


class User:
    """A home folder, a project, and programs on PATH that are scripts."""

    def __init__(self, base: Path) -> None:
        """Make the folders."""
        self.home = base / "me"
        self.project = base / "project"
        self.bin = base / "bin"
        for folder in (self.home, self.project, self.bin):
            folder.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "PATH": str(self.bin),
            "XDG_RUNTIME_DIR": str(base),
        }
        self.called = base / "called"

    def __call__(self, *arguments: str, **environment: str) -> Printed:
        """Run a command of anchord."""
        return call_here(arguments, self.environment | environment, self.project)

    def hook(self, event: bytes, **environment: str) -> Printed:
        """Run the hook of recall."""
        words = ("recall", "hook")
        return call_here(words, self.environment | environment, self.project, event)

    def program(self, name: str, script: str = "exit 1") -> None:
        """Put a program on PATH; it logs how it was called."""
        file = self.bin / name
        file.write_text(_PROGRAM.format(log=self.called, script=script))
        file.chmod(0o755)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the home, its line ends as they are."""
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Return all files of the home and the project, with their modes; not anchord's own."""
        return {
            str(file): (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))
            for folder in (self.home, self.project)
            for file in folder.rglob("*")
            if file.is_file() and "/anchord/" not in str(file)
        }


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)
