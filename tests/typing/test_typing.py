"""The types of the Python interface, as a program that uses it sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

USES = Path(__file__).with_name("api.py")

SETTINGS = """
[mypy]
strict = true

# No type of the interface comes from these, and mypy takes 12 s to read them.
[mypy-lancedb.*,lance.*,lance_namespace.*,pyarrow.*,numpy.*,torch.*,transformers.*,pydantic.*,rich.*,typer.*,mcp.*]
follow_imports = skip
"""


def test_mypy_knows_every_answer_and_refuses_what_is_misspelt(tmp_path: Path) -> None:
    """So does pyright: see `docs/testing.md`."""
    settings = tmp_path / "mypy.ini"
    settings.write_text(SETTINGS)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", tmp_path, USES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout.splitlines()[-1].startswith("Success"), checked.stdout
