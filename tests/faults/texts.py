"""Documents of several sections, and small edits of them. Randomness is an argument."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

_WORDS = """
    river stone light paper garden window letter morning silver bridge winter summer kitchen music travel anchor boundary
    chunk digest edit fence generation hash index journal kernel ledger manifest node orphan parser quorum record shard
    token update vector watcher yield zone carefully slowly often never always because although when while the a of in on
    """.split()  # noqa: SIM905 - a list of sixty words would not be easier to read
_POOL = 24


def sentence(rng: Random) -> str:
    """Return some words with a full stop."""
    words = [rng.choice(_WORDS) for _ in range(rng.randint(4, 14))]
    return " ".join(words).capitalize() + "."


def paragraph(rng: Random) -> str:
    """Return a paragraph; one in four comes from a small pool, so other files contain it too."""
    source = Random(f"pool {rng.randrange(_POOL)}") if rng.random() < 0.25 else rng  # noqa: S311 - a test's dice
    return " ".join(sentence(source) for _ in range(source.randint(2, 12)))


def heading(rng: Random, level: int) -> str:
    """Return a heading of one to three words."""
    return (
        "#" * level
        + " "
        + " ".join(rng.choice(_WORDS).capitalize() for _ in range(rng.randint(1, 3)))
    )


def section(rng: Random) -> str:
    """Return a heading with paragraphs, sometimes a list, a fence or a table."""
    parts = [
        heading(rng, rng.choice((2, 2, 2, 3, 4))),
        *(paragraph(rng) for _ in range(rng.randint(1, 3))),
    ]
    if rng.random() < 0.15:
        parts.append("\n".join(f"- {sentence(rng)}" for _ in range(rng.randint(2, 6))))
    if rng.random() < 0.1:
        parts.append(
            "```py\n"
            + "\n".join(f"{rng.choice(_WORDS)}_{n} = {rng.randrange(99)}" for n in range(8))
            + "\n```"
        )
    if rng.random() < 0.05:
        parts.append(
            "| a | b |\n|---|---|\n" + "\n".join(f"| {sentence(rng)} | {n} |" for n in range(4))
        )
    return "\n\n".join(parts)


def markdown(rng: Random) -> str:
    """Return a document of a few sections."""
    return (
        "\n\n".join(
            [heading(rng, 1), paragraph(rng), *(section(rng) for _ in range(rng.randint(0, 4)))]
        )
        + "\n"
    )


def code(rng: Random) -> str:
    """Return a module of a few functions."""
    names = rng.sample(_WORDS, rng.randint(1, 5))
    bodies = [
        f"def {name}():\n    # {sentence(rng)}\n    return {sentence(rng)!r}\n" for name in names
    ]
    return "\n\n".join(bodies)


def notebook(rng: Random) -> str:
    """Return a notebook of a few cells."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": [section(rng)]}
        for _ in range(rng.randint(1, 3))
    ]
    return (
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
        + "\n"
    )


def text_for(path: str, rng: Random) -> str:
    """Return a new text that fits a file's ending."""
    if path.endswith(".py"):
        return code(rng)
    return notebook(rng) if path.endswith(".ipynb") else markdown(rng)


# Edits


def change_word(text: str, rng: Random) -> str:
    """Write another word in the place of one."""
    words = text.split(" ")
    words[rng.randrange(len(words))] = f"{rng.choice(_WORDS)}{rng.randrange(1000)}"
    return " ".join(words)


def change_case(text: str, rng: Random) -> str:
    """Change a line to capitals."""
    return _with_line(text, rng, str.upper)


def add_blanks(text: str, rng: Random) -> str:
    """Add trailing blanks or an empty line: an invisible edit."""
    blank = rng.choice(("  ", "\t", "\n", "\n\n\n"))
    return _with_line(text, rng, lambda line: line + blank)


def add_first_line(text: str, rng: Random) -> str:
    """Insert a line at the top."""
    return sentence(rng) + "\n" * rng.randint(1, 3) + text


def add_paragraph(text: str, rng: Random) -> str:
    """Insert a paragraph somewhere."""
    return _with_blocks(
        text, lambda blocks: blocks.insert(rng.randint(0, len(blocks)), paragraph(rng))
    )


def repeat_paragraph(text: str, rng: Random) -> str:
    """Repeat a paragraph of the text."""
    return _with_blocks(
        text, lambda blocks: blocks.insert(rng.randint(0, len(blocks)), rng.choice(blocks))
    )


def drop_paragraph(text: str, rng: Random) -> str:
    """Delete a paragraph or a heading."""
    return _with_blocks(text, lambda blocks: blocks.pop(rng.randrange(len(blocks))))


def add_section(text: str, rng: Random) -> str:
    """Insert a section somewhere."""
    return _with_sections(
        text, lambda sections: sections.insert(rng.randint(0, len(sections)), section(rng) + "\n")
    )


def swap_sections(text: str, rng: Random) -> str:
    """Swap two sections."""

    def swap(sections: list[str]) -> None:
        one, two = rng.randrange(len(sections)), rng.randrange(len(sections))
        sections[one], sections[two] = sections[two], sections[one]

    return _with_sections(text, swap)


def rename_heading(text: str, rng: Random) -> str:
    """Give a heading other words, or another level."""
    lines = text.split("\n")
    headings = [n for n, line in enumerate(lines) if line.startswith("#")]
    if not headings:
        return change_word(text, rng)
    at = rng.choice(headings)
    level = len(lines[at]) - len(lines[at].lstrip("#"))
    lines[at] = heading(rng, max(1, min(6, level + rng.choice((0, 0, 0, -1, 1)))))
    return "\n".join(lines)


def dos_lines(text: str, rng: Random) -> str:  # noqa: ARG001 - an edit like the others
    """Switch between LF and CRLF line ends."""
    return text.replace("\r\n", "\n") if "\r\n" in text else text.replace("\n", "\r\n")


Edit = Callable[[str, Random], str]
EDITS: dict[str, Edit] = {
    "change a word": change_word,
    "insert a paragraph": add_paragraph,
    "repeat a paragraph": repeat_paragraph,
    "drop a paragraph": drop_paragraph,
    "insert a section": add_section,
    "swap sections": swap_sections,
    "rename a heading": rename_heading,
    "a line at the top": add_first_line,
    "blanks": add_blanks,
    "capitals": change_case,
    "line ends": dos_lines,
}


def edited(text: str, rng: Random) -> tuple[str, str]:
    """Return a text with a random edit, and the edit's name."""
    name = rng.choice(list(EDITS))
    return EDITS[name](text, rng), name


def _with_line(text: str, rng: Random, change: Callable[[str], str]) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    lines[at] = change(lines[at])
    return "\n".join(lines)


def _with_blocks(text: str, change: Callable[[list[str]], object]) -> str:
    blocks = text.split("\n\n")
    change(blocks)
    return "\n\n".join(blocks)


def _with_sections(text: str, change: Callable[[list[str]], object]) -> str:
    sections = ("\n" + text).split("\n#")
    change(sections)
    return "\n#".join(sections).removeprefix("\n")
