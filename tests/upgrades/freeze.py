"""Freeze a home of this version, for tests of later versions.

    python tests/upgrades/freeze.py            writes tests/upgrades/homes/VERSION.tar.xz

Run it once per released version, and never again: the home of a version does not change. The
archive holds `home/` (an ANCHORD_HOME with a forgotten path and vectors of rows that left), `docs/` and `talks/`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from anchord._version import __version__

_HOMES = Path(__file__).parent / "homes"
_CONFIG = """\
[[root]]
path = "{base}/docs"

[[root]]
path = "{base}/talks"
kind = "conversations"

[embedding]
provider = "hash"
"""
_DOCS = {
    "a.md": "# Gulls\n\nSeagulls sleep on chimneys.\n\n## Food\n\nThey take what they find.\n",
    "code.py": 'def fly(height: int) -> str:\n    """Say where."""\n    return f"at {height}"\n',
    "deep/er/b.txt": "A plain text of two lines.\nThe second one.\n",
    "gone.md": "# Albatross\n\nIt will be forgotten.\n",
    "edited.md": "# Old words\n\nNobody reads them any more.\n",
}
_QUESTION = (
    '{{"type":"user","uuid":"q{n}","parentUuid":null,"sessionId":"s1","cwd":"/home/me/app","timestamp":"2026-01-02T10:0{n}:00.000Z",'
    '"message":{{"role":"user","content":"{asked}"}}}}\n'
    '{{"type":"assistant","uuid":"a{n}","parentUuid":"q{n}","sessionId":"s1","cwd":"/home/me/app",'
    '"timestamp":"2026-01-02T10:0{n}:30.000Z","message":{{"role":"assistant","model":"opus",'
    '"content":[{{"type":"text","text":"{answer}"}}]}}}}\n'
)
_TALK = _QUESTION.format(
    n=0, asked="Where do gulls sleep?", answer="On chimneys, most of them."
) + _QUESTION.format(n=1, asked="And the puffins?", answer="In burrows near the sea.")


def main() -> None:
    """Write the archive; refuse to write one again."""
    archive = _HOMES / f"{__version__}.tar.xz"
    if archive.exists():
        sys.exit(f"{archive} is there: what a version made is never made again")
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        for name, text in _DOCS.items():
            (base / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
            (base / "docs" / name).write_text(text, "utf-8")
        (base / "talks").mkdir()
        (base / "talks" / "s1.jsonl").write_text(_TALK, "utf-8")
        (base / "home").mkdir(mode=0o700)
        (base / "home" / "config.toml").write_text(_CONFIG.format(base=base), "utf-8")
        _anchord(base, "index")
        # Before the edit: `forget` also empties the vector cache.
        _anchord(base, "forget", "--yes", str(base / "docs" / "gone.md"))
        (base / "docs" / "edited.md").write_text("# New words\n\nEverybody reads these.\n", "utf-8")
        _anchord(base, "index")
        _anchord(base, "verify")
        config = base / "home" / "config.toml"
        config.write_text(_CONFIG.replace("{base}", "@BASE@"), "utf-8")
        _HOMES.mkdir(exist_ok=True)
        with tarfile.open(archive, "w:xz") as packed:
            for name in ("home", "docs", "talks"):
                packed.add(base / name, name)
    print(f"{archive}: {archive.stat().st_size:,} bytes")  # noqa: T201 - a program


def _anchord(base: Path, *arguments: str) -> None:
    environment = os.environ | {"ANCHORD_HOME": str(base / "home")}
    subprocess.run(
        [sys.executable, "-m", "anchord", *arguments],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
