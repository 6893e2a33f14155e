"""Makes the picture of the README: runs the real commands on the notes beside this file and draws what they print.

    python tests/recording/record.py

The daemon, the model and the index are those of a user; only the folder is a temporary one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
WIDTH = 104
SESSION = [
    ("anchord start ~/notes", ""),
    ("anchord index", ""),
    ('anchord search "my plants fell ill in summer" -k 1', ""),
    ('anchord search "restore one photo from last month" -k 1', ""),
    ("sed -i 's/waits four hours/waits two hours/' ~/notes/ops/backups.md", ""),
    ("anchord diff ~/notes/ops/backups.md", ""),
    ("anchord sync", ""),
    ("anchord status", ""),
    ("anchord verify", ""),
    ("anchord stop", "quietly"),
]


def main() -> None:
    """Run the session and write `session.svg`."""
    with tempfile.TemporaryDirectory(prefix="anchord-") as folder, Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True, color_system="truecolor")
        home = Path(folder)
        shutil.copytree(HERE / "notes", home / "notes")
        environment = os.environ | {
            "HOME": folder, "ANCHORD_HOME": str(home / ".anchord"), "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm",
        }  # fmt: skip
        for line in ("git init -q", "git add .", "git -c user.name=me -c user.email=me@here commit -q -m notes"):
            subprocess.run(line.split(), cwd=home / "notes", env=environment, check=True)
        for command, how in SESSION:
            ran = subprocess.run(command, shell=True, cwd=home, env=environment, capture_output=True, text=True, check=True)  # noqa: S602 - a session of ours
            if not how:
                console.print(Text(f"$ {command}", style="bold green"))
                console.print(Text.from_ansi(ran.stdout.rstrip().replace(folder, "~")))
                console.print()
        (HERE / "session.svg").write_text(console.export_svg(title="anchord"), "utf-8")


if __name__ == "__main__":
    main()
