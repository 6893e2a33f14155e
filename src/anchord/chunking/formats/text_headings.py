"""Find where the sections of a text format begin.

The formats are reStructuredText, AsciiDoc, Org and HTML; and YAML, TOML, INI and JSON by their
keys. Headings are found by lines and regular expressions, not by parsers: what a reader takes for a
heading is one, and a file that no parser would accept still has sections.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_MAX_LEVEL = 6
_MAX_TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class TextHeading:
    """A heading in lines [first_line, end_line), 0-based; level 1 is the outermost, 6 the last."""

    first_line: int
    end_line: int
    level: int
    title: str


def find_text_headings(lines: Sequence[str], text_format: str) -> list[TextHeading]:
    """Return the headings of a text in order.

    Args:
        lines: The text, split at line feeds.
        text_format: "rst", "adoc", "org", "html", "yaml", "toml", "ini" or "json". Other formats
            have no headings.
    """
    find = _HEADING_FINDERS.get(text_format)
    return list(find(lines)) if find else []


def find_delimited_blocks(lines: Sequence[str], text_format: str) -> list[tuple[int, int]]:
    """Return the 0-based lines [first, end) of blocks that a cut would break.

    Args:
        lines: The text, split at line feeds.
        text_format: "adoc" (delimited listings) or "org" (`#+begin` to `#+end`). Other formats have
            no such blocks.
    """
    find = _BLOCK_FINDERS.get(text_format)
    return list(find(lines)) if find else []


_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")


def _rst_headings(lines: Sequence[str]) -> Iterator[TextHeading]:
    """Yield titles with a line of one repeated sign below, and perhaps the same line above.

    Levels are given in the order in which the styles (sign, line above or not) appear.
    """
    styles: list[tuple[str, bool]] = []
    line_above: str | None = None
    for title_line, (title, underline) in enumerate(pairwise(lines)):
        overline, line_above = line_above, title
        adornment = _ADORNMENT.match(underline)
        if adornment is None or not _can_be_rst_title(title, underline):
            continue
        has_overline = overline is not None and overline.rstrip() == underline.rstrip()
        if title[:1].isspace() and not has_overline:
            continue
        style = (adornment[1], has_overline)
        if style not in styles:
            styles.append(style)
        level = styles.index(style) + 1
        first_line = title_line - 1 if has_overline else title_line
        end_line = title_line + 2
        short_title = title.strip()[:_MAX_TITLE_CHARS]
        yield TextHeading(
            first_line,
            end_line,
            min(level, _MAX_LEVEL),
            short_title,
        )


def _can_be_rst_title(title: str, underline: str) -> bool:
    """Whether a line is text, and no longer than the line below it."""
    if not title.strip() or _ADORNMENT.match(title):
        return False
    return len(underline.rstrip()) >= len(title.rstrip())


_ADOC_DELIMITER = re.compile(r"(-{4,}|\.{4,}|/{4,}|\+{4,}|\*{4,}|_{4,}|={4,}|```\S*)\s*$")


def _adoc_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the blocks between two delimiters that start with the same three signs."""
    first_line, opening_signs = -1, ""
    for number, line in enumerate(lines):
        if not _ADOC_DELIMITER.match(line):
            continue
        signs = line[:3]
        if first_line < 0:
            first_line, opening_signs = number, signs
        elif signs == opening_signs:
            yield first_line, number + 1
            first_line = -1


def _org_blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    first_line: int | None = None
    for number, line in enumerate(lines):
        text = line.strip().lower()
        if first_line is None:
            if text.startswith("#+begin"):
                first_line = number
        elif text.startswith("#+end"):
            yield first_line, number + 1
            first_line = None


def _lines_outside(
    lines: Sequence[str], blocks: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, str]]:
    """Yield the lines that are in no block, with their numbers."""
    inside = {number for first, end in blocks for number in range(first, end)}
    for number, line in enumerate(lines):
        if number not in inside:
            yield number, line


_ADOC_HEADING = re.compile(r"(={1,6})\s+(\S.*)")
_ORG_HEADING = re.compile(r"(\*+)\s+(\S.*)")


def _adoc_headings(lines: Sequence[str]) -> Iterator[TextHeading]:
    return _marked_headings(_lines_outside(lines, _adoc_blocks(lines)), _ADOC_HEADING)


def _org_headings(lines: Sequence[str]) -> Iterator[TextHeading]:
    return _marked_headings(_lines_outside(lines, _org_blocks(lines)), _ORG_HEADING)


def _marked_headings(
    numbered_lines: Iterable[tuple[int, str]], heading: re.Pattern[str]
) -> Iterator[TextHeading]:
    """Yield lines that match `heading`: group 1 has a sign for each level, group 2 is the title."""
    for number, line in numbered_lines:
        match = heading.match(line)
        if match:
            level = min(len(match[1]), _MAX_LEVEL)
            title = match[2].strip()[:_MAX_TITLE_CHARS]
            yield TextHeading(number, number + 1, level, title)


_HTML_HEADING = re.compile(
    r"<h([1-6])\b[^<>]{0,500}>(.{0,500}?)</h\1\s*>", re.IGNORECASE | re.DOTALL
)
_HTML_HIDDEN = re.compile(r"<(?:!--|(script|style|textarea|template)\b)", re.IGNORECASE)
_HTML_TAG = re.compile(r"<[^>]*>")


def _html_headings(lines: Sequence[str]) -> Iterator[TextHeading]:
    """Yield headings, over several lines too, but not from comments, scripts and the like."""
    text = _without_hidden_html("\n".join(lines))
    first_line, counted_to = 0, 0
    for match in _HTML_HEADING.finditer(text):
        first_line += text.count("\n", counted_to, match.start())
        counted_to = match.start()
        end_line = first_line + match[0].count("\n") + 1
        shown = html.unescape(_HTML_TAG.sub(" ", match[2]))
        title = " ".join(shown.split())[:_MAX_TITLE_CHARS]
        yield TextHeading(first_line, end_line, int(match[1]), title)


def _without_hidden_html(text: str) -> str:
    """Return a text with line feeds for its comments and scripts, up to the first unclosed one."""
    parts: list[str] = []
    position = 0
    lowered = text.lower()
    while match := _HTML_HIDDEN.search(text, position):
        element = match[1]
        closing = f"</{element.lower()}" if element else "-->"
        end = lowered.find(closing, match.end())
        if end < 0:
            break
        line_feeds = text.count("\n", match.start(), end)
        parts += [text[position : match.start()], "\n" * line_feeds]
        position = end
    parts.append(text[position:])
    return "".join(parts)


_YAML_KEY = re.compile(r"""( {0,4})(?:- )?([A-Za-z0-9_."'/$-][^:#{}\[\]]*):(?:\s|$)""")
_TABLE_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:[#;].*)?$")
_JSON_KEY = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*:')
_JSON_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_MAX_JSON_DEPTH = 2


def _yaml_keys(lines: Sequence[str]) -> Iterator[TextHeading]:
    """Yield keys with at most 4 spaces before them: level 1 without, level 2 with spaces."""
    for number, line in enumerate(lines):
        match = _YAML_KEY.match(line)
        if match:
            level = 2 if match[1] else 1
            title = match[2].strip("\"' ")[:_MAX_TITLE_CHARS]
            yield TextHeading(number, number + 1, level, title)


def _table_headers(lines: Sequence[str]) -> Iterator[TextHeading]:
    """Yield the tables of TOML and the sections of INI; a dotted name is a whole path already."""
    for number, line in enumerate(lines):
        match = _TABLE_HEADER.match(line)
        if match:
            yield TextHeading(
                number,
                number + 1,
                1,
                match[1][:_MAX_TITLE_CHARS],
            )


def _json_keys(lines: Sequence[str]) -> Iterator[TextHeading]:
    """Yield keys that begin a line inside one or two brackets."""
    depth = 0
    for number, line in enumerate(lines):
        match = _JSON_KEY.match(line)
        if match and 1 <= depth <= _MAX_JSON_DEPTH:
            yield TextHeading(
                number,
                number + 1,
                depth,
                match[1][:_MAX_TITLE_CHARS],
            )
        for token in _JSON_STRING_OR_BRACKET.findall(line):
            # A string is at least two quotes long, so brackets inside strings do not count.
            if token in {"{", "["}:
                depth += 1
            elif token in {"}", "]"}:
                depth -= 1


_HEADING_FINDERS: dict[str, Callable[[Sequence[str]], Iterator[TextHeading]]] = {
    "rst": _rst_headings,
    "adoc": _adoc_headings,
    "org": _org_headings,
    "html": _html_headings,
    "yaml": _yaml_keys,
    "toml": _table_headers,
    "ini": _table_headers,
    "json": _json_keys,
}
_BLOCK_FINDERS: dict[str, Callable[[Sequence[str]], Iterator[tuple[int, int]]]] = {
    "adoc": _adoc_blocks,
    "org": _org_blocks,
}
