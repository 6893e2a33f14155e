"""Invented documents of the benchmarks, the same in every run."""

from __future__ import annotations

import random
from pathlib import Path

_WORDS = (
    (Path(__file__).parent.parent / "recording" / "notes" / "ops" / "backups.md")
    .read_text("utf-8")
    .split()
)
_LINE_WORDS = 12


def line(choose: random.Random) -> str:
    """Return a line of prose."""
    return " ".join(choose.choices(_WORDS, k=_LINE_WORDS))


def note(number: int) -> str:
    """Return a unique document of one chunk."""
    choose = random.Random(number)  # noqa: S311 - the same words each time
    lines = "\n".join(line(choose) for _ in range(choose.randint(2, 6)))
    return f"# Note {number}\n\nThis is matter {number}.\n{lines}\n"


def article(number: int, sections: int) -> str:
    """Return a unique document of about one chunk per section."""
    choose = random.Random(number)  # noqa: S311 - likewise
    parts = [f"# Article {number}\n"]
    for section in range(sections):
        lines = "\n".join(line(choose) for _ in range(choose.randint(6, 11)))
        parts.append(f"## Section {section} of {number}\n\n{lines}\n")
    return "\n".join(parts)


def write_notes(folder: Path, numbers: range, per_folder: int = 100) -> None:
    """Write notes into nested folders of a fixed size."""
    for number in numbers:
        of = number // per_folder
        path = folder / f"part-{of // 20:03}" / f"shelf-{of % 20:02}" / f"note-{number:06}.md"
        if number == numbers.start or not number % per_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note(number), "utf-8")
