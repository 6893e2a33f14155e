"""Where the sections of a text format begin: reStructuredText, AsciiDoc, Org, HTML, and the keys of YAML, TOML, INI and JSON.

By lines and regular expressions, on purpose: what a reader takes for a heading is one here, and what no parser would accept
is cut all the same.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_DEEPEST = 6
_MAX_TITLE = 200


@dataclass(frozen=True, slots=True)
class Mark:
    """A heading of lines [first, last), 0-based."""

    first: int
    last: int
    level: int
    title: str


def marks(lines: Sequence[str], form: str) -> list[Mark]:
    """Return the headings of a text in order; none for a format without."""
    find = _FINDERS.get(form)
    return list(find(lines)) if find else []


def blocks(lines: Sequence[str], form: str) -> list[tuple[int, int]]:
    """Return the lines [first, last) of blocks that a cut would break: listings of AsciiDoc, blocks of Org."""
    find = _BLOCKS.get(form)
    return list(find(lines)) if find else []


_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")


def _rst(lines: Sequence[str]) -> Iterator[Mark]:
    """A title has a line of one repeated sign under it, and may have the same above; levels are in order of appearance."""
    styles: list[tuple[str, bool]] = []
    for number in range(1, len(lines)):
        title, under = lines[number - 1], lines[number]
        adorned = _ADORNMENT.match(under)
        if not adorned or not title.strip() or _ADORNMENT.match(title) or len(under.rstrip()) < len(title.rstrip()):
            continue
        over = number > 1 and lines[number - 2].rstrip() == under.rstrip()
        if title[:1].isspace() and not over:
            continue
        style = (adorned[1], over)
        if style not in styles:
            styles.append(style)
        first = number - 2 if over else number - 1
        yield Mark(first, number + 1, min(styles.index(style) + 1, _DEEPEST), title.strip()[:_MAX_TITLE])


_ADOC_DELIMITER = re.compile(r"(-{4,}|\.{4,}|/{4,}|\+{4,}|\*{4,}|_{4,}|={4,}|```\S*)\s*$")


def _adoc_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    return _delimited(lines, _ADOC_DELIMITER, lambda opening: opening[:3])


def _org_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    opened = None
    for number, line in enumerate(lines):
        word = line.strip().lower()
        if opened is None and word.startswith("#+begin"):
            opened = number
        elif opened is not None and word.startswith("#+end"):
            yield opened, number + 1
            opened = None


def _delimited(lines: Sequence[str], delimiter: re.Pattern[str], kind: Callable[[str], str]) -> Iterator[tuple[int, int]]:
    opened, wanted = -1, ""
    for number, line in enumerate(lines):
        if not delimiter.match(line):
            continue
        if opened < 0:
            opened, wanted = number, kind(line)
        elif kind(line) == wanted:
            yield opened, number + 1
            opened = -1


def _outside(lines: Sequence[str], found: Iterator[tuple[int, int]]) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that are in no block."""
    inside = {number for first, last in found for number in range(first, last)}
    return ((number, line) for number, line in enumerate(lines) if number not in inside)


def _simple(numbered: Iterator[tuple[int, str]], pattern: re.Pattern[str]) -> Iterator[Mark]:
    """The first group is as long as the level is deep, the second is the title."""
    for number, line in numbered:
        match = pattern.match(line)
        if match:
            yield Mark(number, number + 1, min(len(match[1]), _DEEPEST), match[2].strip()[:_MAX_TITLE])


def _adoc(lines: Sequence[str]) -> Iterator[Mark]:
    return _simple(_outside(lines, _adoc_blocks(lines)), re.compile(r"(={1,6})\s+(\S.*)"))


def _org(lines: Sequence[str]) -> Iterator[Mark]:
    return _simple(_outside(lines, _org_blocks(lines)), re.compile(r"(\*+)\s+(\S.*)"))


_HTML_HEADING = re.compile(r"<h([1-6])\b[^<>]{0,500}>(.{0,500}?)</h\1\s*>", re.IGNORECASE | re.DOTALL)
_HIDING = re.compile(r"<(?:!--|(script|style|textarea|template)\b)", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")


def _without_hidden(text: str) -> str:
    """Return a text with its comments and scripts as blanks, up to the first that is not closed."""
    parts, at, small = [], 0, text.lower()
    while match := _HIDING.search(text, at):
        end = small.find(f"</{match[1].lower()}" if match[1] else "-->", match.end())
        if end < 0:
            break
        parts += [text[at : match.start()], "\n" * text.count("\n", match.start(), end)]
        at = end
    return "".join([*parts, text[at:]])


def _html(lines: Sequence[str]) -> Iterator[Mark]:
    """Headings, over several lines too; not in comments, scripts and the like."""
    text = _without_hidden("\n".join(lines))
    number, reached = 0, 0
    for match in _HTML_HEADING.finditer(text):
        number += text.count("\n", reached, match.start())
        reached = match.start()
        title = " ".join(html.unescape(_TAG.sub(" ", match[2])).split())
        yield Mark(number, number + match[0].count("\n") + 1, int(match[1]), title[:_MAX_TITLE])


_YAML_KEY = re.compile(r"""( {0,4})(?:- )?([A-Za-z0-9_."'/$-][^:#{}\[\]]*):(?:\s|$)""")
_TABLE = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:[#;].*)?$")
_JSON_KEY = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*:')
_JSON_SIGN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')


def _yaml(lines: Sequence[str]) -> Iterator[Mark]:
    for number, line in enumerate(lines):
        match = _YAML_KEY.match(line)
        if match:
            yield Mark(number, number + 1, 2 if match[1] else 1, match[2].strip("\"' ")[:_MAX_TITLE])


def _tables(lines: Sequence[str]) -> Iterator[Mark]:
    for number, line in enumerate(lines):
        match = _TABLE.match(line)
        if match:
            yield Mark(number, number + 1, 1, match[1][:_MAX_TITLE])  # Its dotted name is its whole path.


def _json(lines: Sequence[str]) -> Iterator[Mark]:
    depth = 0
    for number, line in enumerate(lines):
        match = _JSON_KEY.match(line)
        if match and 1 <= depth <= 2:
            yield Mark(number, number + 1, depth, match[1][:_MAX_TITLE])
        signs = [sign for sign in _JSON_SIGN.findall(line) if len(sign) == 1]
        depth += sum(1 if sign in "{[" else -1 for sign in signs)


_FINDERS: dict[str, Callable[[Sequence[str]], Iterator[Mark]]] = {
    "rst": _rst, "adoc": _adoc, "org": _org, "html": _html, "yaml": _yaml, "toml": _tables, "ini": _tables, "json": _json,
}  # fmt: skip
_BLOCKS: dict[str, Callable[[Sequence[str]], Iterator[tuple[int, int]]]] = {"adoc": _adoc_blocks, "org": _org_blocks}
