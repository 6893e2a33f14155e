"""Lines with markup such as `[bold red]text[/]`, printed without rich, which takes long to load.

The tags are those of rich. A line with any other tag, or with a tab, is printed by rich: it knows
the width of each character.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Iterator

from anchord.cli.output.console import print_text, stdout_console

_TAG = r"(\\*)\[([a-z#/@][^[]*?)]"
_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
"""Word of a tag -> a terminal's code. Those below 30 add up; of the others the innermost counts."""
_LINK = "link="


def escape_markup(text: str) -> str:
    """Escape a text that is put into one with markup, before a tag or the end."""
    escaped = re.sub(_TAG, r"\1\1\\[\2]", text) if "[" in text else text
    # An odd number of backslashes at the end would disable a tag that follows.
    beginning = escaped.rstrip("\\")
    return beginning + "\\" * 2 * (len(escaped) - len(beginning))


def print_markup(line: str) -> None:
    """Print a line with markup on standard output; in colour if that is a terminal."""
    try:
        text = _render(line, with_codes=_has_colors())
    except KeyError:
        stdout_console().print(line)
    else:
        print_text(text)


def is_terminal() -> bool:
    """Return whether standard output is a terminal, or the user's environment says so."""
    compatible = os.environ.get("TTY_COMPATIBLE")
    if compatible in {"0", "1"}:
        return compatible == "1"
    forced = os.environ.get("FORCE_COLOR")
    return sys.stdout.isatty() if forced is None else forced != ""


def _has_colors() -> bool:
    is_dumb = os.environ.get("TERM", "").lower() in {"dumb", "unknown"}
    return is_terminal() and not is_dumb and not os.environ.get("NO_COLOR")


def _render(line: str, *, with_codes: bool) -> str:
    """Return a line with the codes of a terminal in place of its markup, or without both.

    Raises:
        KeyError: It has something that only rich can print.
    """
    if "\t" in line:
        raise KeyError("\t")
    open_tags: list[str] = []
    pieces: list[str] = []
    for text, tag in _split(line):
        pieces.append(_with_codes(text, open_tags) if with_codes else text)
        if tag.startswith("/"):
            if tag not in {"/", "/link"} or not open_tags:
                raise KeyError(tag)
            open_tags.pop()
        elif tag:
            open_tags.append(tag)
            _codes_of(open_tags)
    return "".join(pieces)


def _split(line: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a line, each with the tag that follows it, or ""."""
    text, end = "", 0
    for match in re.finditer(_TAG, line):
        backslashes, tag = match.groups()
        text += line[end : match.start()] + "\\" * (len(backslashes) // 2)
        end = match.end()
        if len(backslashes) % 2:
            text += f"[{tag}]"
        else:
            yield text, tag
            text = ""
    yield text + line[end:], ""


def _with_codes(text: str, tags: list[str]) -> str:
    if not text or not tags:
        return text
    codes = _codes_of(tags)
    shown = f"\x1b[{codes}m{text}\x1b[0m" if codes else text
    for tag in tags:
        if tag.startswith(_LINK):
            url = tag.removeprefix(_LINK)
            shown = f"\x1b]8;id={zlib.crc32(url.encode())};{url}\x1b\\{shown}\x1b]8;;\x1b\\"
    return shown


def _codes_of(tags: list[str]) -> str:
    """Return the codes of the open tags; raises a KeyError for an unknown one."""
    words = [word for tag in tags if not tag.startswith(_LINK) for word in tag.split()]
    codes = sorted({_CODES[word] for word in words if len(_CODES[word]) == 1})
    colors = [_CODES[word] for word in words if len(_CODES[word]) > 1]
    return ";".join([*codes, *colors[-1:]])
