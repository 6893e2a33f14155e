"""The types of the Python interface, as a program that uses it sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

USES = Path(__file__).with_name("api.py")


def test_mypy_knows_every_answer_and_refuses_what_is_misspelt(tmp_path: Path) -> None:
    """So does pyright: see `docs/testing.md`."""
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nstrict = true\n")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", tmp_path, USES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout.splitlines()[-1].startswith("Success"), checked.stdout
