"""Makes the pictures of the README: runs the real commands on the notes next to this file and draws the output.

    python tests/tools/recording/record.py

session.svg   a start, searches, an edit, its diff, and the proof
search.svg    a search with explanations
watch.svg     the live status, a moment after that edit
conversations.svg   deleted and kept sessions, one of them as a chat, and which of them edited a file

The daemon, the model and the index are those of a user; only the folder is a temporary one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
from recorded_sessions import GONE, write_sessions
from rich.console import Console
from rich.text import Text

from anchord.cli.output.dashboard import build_dashboard
from anchord.ipc.messages.status import StatusAnswer

HERE = Path(__file__).parent
WIDTH = 104
START = "anchord start ~/notes"
SESSION = [
    "anchord index",
    'anchord search "my plants fell ill in summer" -k 1',
    'anchord search "restore one photo from last month" -k 1',
    "sed -i 's/waits four hours/waits two hours/' ~/notes/ops/backups.md",
    "anchord diff ~/notes/ops/backups.md",
    "anchord sync",
    "anchord status",
    "anchord verify",
]
SEARCH = [
    'anchord search "which photos can be restored" -k 2 --explain',
    "anchord search '\"restic mount\" -router' -k 1",
]
CONVERSATIONS = [
    "anchord sessions",
    f"anchord session {GONE[:8]}",
    "anchord blame ~/notes/ops/backups.md",
]
END = "anchord stop"


def main() -> None:
    """Draw everything."""
    with tempfile.TemporaryDirectory(prefix="anchord-") as folder:
        home = Path(folder)
        shutil.copytree(HERE / "notes", home / "notes")
        environment = os.environ | {
            "HOME": folder, "ANCHORD_HOME": str(home / ".anchord"), "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm",
        }  # fmt: skip
        for line in (
            "git init -q",
            "git add .",
            "git -c user.name=me -c user.email=me@here commit -q -m notes",
        ):
            subprocess.run(line.split(), cwd=home / "notes", env=environment, check=True)
        try:
            _record("session", [START, *SESSION], home, environment)
            _draw_status(home, environment)
            _record("search", SEARCH, home, environment)
            deleted = write_sessions(home)
            _run("anchord add ~/.claude/projects --kind conversations", home, environment)
            _run("anchord sync", home, environment)
            deleted.unlink()
            _run("anchord sync", home, environment)
            _record("conversations", CONVERSATIONS, home, environment)
        finally:
            _run(END, home, environment)


def _record(name: str, commands: list[str], home: Path, environment: Mapping[str, str]) -> None:
    """Run commands and draw what a terminal shows of them."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        for command in commands:
            console.print(Text(f"$ {command}", style="bold green"))
            console.print(
                Text.from_ansi(_run(command, home, environment).rstrip().replace(str(home), "~"))
            )
            console.print()
        (HERE / f"{name}.svg").write_text(console.export_svg(title="anchord"), "utf-8")


def _draw_status(home: Path, environment: Mapping[str, str]) -> None:
    """Draw one moment of `anchord status --watch`."""
    status = _run("anchord status --json", home, environment).replace(str(home), "~")
    report = msgspec.json.decode(status, type=StatusAnswer)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        console.print(build_dashboard(report))
        (HERE / "watch.svg").write_text(console.export_svg(title="anchord status --watch"), "utf-8")


def _run(command: str, home: Path, environment: Mapping[str, str]) -> str:
    ran = subprocess.run(  # noqa: S602 - a session of ours
        command, shell=True, cwd=home, env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


if __name__ == "__main__":
    main()
