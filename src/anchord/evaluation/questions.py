"""Documents -> questions with a known answer, made by what their authors wrote: links and headings.

A sentence that links to a section of another document asks for that section: the author meant it to answer. A heading asks for
its own section. The sentence's own chunk never counts as a result: it holds the words of the question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from anchord.chunkers.markdown import headings
from anchord.chunkers.sentences import sentences

LINK, HEADING, GIVEN = "link", "heading", "given"
_LEAST_WORDS = 4
_LEAST_HEADING_WORDS = 2
_INLINE = re.compile(r"\[(?P<text>[^\]\n]*)\]\((?P<to>[^)\s]*)(?:\s+\"[^\"]*\")?\)")
_WIKI = re.compile(r"\[\[(?P<page>[^\]|#\n]*)#(?P<section>[^\]|\n]*)(?:\|(?P<text>[^\]\n]*))?\]\]")
_OTHER_WIKI = re.compile(r"\[\[([^\]|\n]*\|)?([^\]|\n]*)\]\]")
_OWN_ANCHOR = re.compile(r"\s*(?:\{/\*([\w-]+)\*/\}|\{#([\w-]+)\}|<a\s[^>]*(?:id|name)=[\"']([\w-]+)[\"'][^>]*>(?:</a>)?)\s*")
_MARKS = re.compile(r"[*_`]+|^\s*(?:[-*+>]|\d+[.)])\s+|<[^>]*>", re.MULTILINE)
_ENDING = re.compile(r"(?:/index|/README)?\.(?:md|markdown|mdx|html)$|/$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and all below it; lines are 1-based and inclusive."""

    path: str
    title: str
    anchors: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Question:
    """A text, the section that answers it, and the lines that it was taken from (none for a given one)."""

    text: str
    kind: str
    target: Section
    source: tuple[str, int, int] | None = None


def questions_of(documents: Mapping[str, str]) -> list[Question]:
    """Return the questions that documents (path -> text) ask of each other, each text once."""
    sections = {path: list(sections_of(path, text)) for path, text in documents.items()}
    pages = _pages(documents)
    found = [question for path, text in documents.items() for question in _linked(path, text, sections, pages)]
    once: dict[tuple[str, Section], Question] = {}
    for question in found:  # Of a list whose every line links to the same section, the first one asks.
        once.setdefault((question.source[0] if question.source else "", question.target), question)
    asked = list(once.values())
    titles = Counter(plain(section.title).lower() for each in sections.values() for section in each)
    for each in sections.values():
        for section in each:
            title = plain(section.title)
            if len(title.split()) >= _LEAST_HEADING_WORDS and titles[title.lower()] == 1:
                asked.append(Question(title, HEADING, section, (section.path, section.first, section.first)))
    return list({question.text: question for question in reversed(asked)}.values())[::-1]


def sections_of(path: str, text: str) -> Iterator[Section]:
    """Yield the sections of a markdown document."""
    found, lines = headings(text), text.count("\n") + 1
    for number, heading in enumerate(found):
        after = (other.line for other in found[number + 1 :] if other.level <= heading.level)
        own = [name for names in _OWN_ANCHOR.findall(heading.title) for name in names if name]
        title = _OWN_ANCHOR.sub(" ", heading.title).strip()
        yield Section(path, title, (*own, slug(title), _squeezed(title)), heading.line + 1, next(after, lines))


def slug(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", plain(title).lower()).strip().replace(" ", "-")


def plain(markdown: str) -> str:
    """Return the words of a line of markdown, links as they are shown."""
    text = _WIKI.sub(lambda m: m["text"] or m["section"], markdown)
    text = _OTHER_WIKI.sub(lambda m: m[2], _INLINE.sub(lambda m: m["text"], text))
    return " ".join(_MARKS.sub("", text).split())


def _linked(
    path: str, text: str, sections: Mapping[str, Sequence[Section]], pages: Mapping[str, list[str]]
) -> Iterator[Question]:
    for match in (*_INLINE.finditer(text), *_WIKI.finditer(text)):
        wiki = "page" in match.groupdict()
        to, _, anchor = (match["page"], "", match["section"]) if wiki else match["to"].partition("#")
        if not to or not anchor or "://" in to:
            continue
        target = _resolved(path, unquote(to), unquote(anchor), sections, pages)
        if target is None or target.path == path:
            continue
        first, last = _around(text, match.start(), match.end())
        sentence = plain(text[first:last])
        if len(sentence.split()) >= _LEAST_WORDS:
            lines = text.count("\n", 0, first) + 1, text.count("\n", 0, last) + 1
            yield Question(sentence, LINK, target, (path, *lines))


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the sentence that holds a link, within its paragraph."""
    first = text.rfind("\n\n", 0, start) + 1
    last = text.find("\n\n", end)
    spans = sentences(text, max(first, 0), last if last >= 0 else len(text))
    holding = [span for span in spans if span[0] <= start < span[1] or start <= span[0] < end]
    return (holding[0][0], holding[-1][1]) if holding else (start, end)


def _pages(documents: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the documents by the ends of their paths, without endings: a site's links start at its own root."""
    pages: dict[str, list[str]] = {}
    for path in documents:
        parts = _ENDING.sub("", path).lower().split("/")
        for at in range(len(parts)):
            pages.setdefault("/".join(parts[at:]), []).append(path)
    return pages


def _resolved(
    path: str, to: str, anchor: str, sections: Mapping[str, Sequence[Section]], pages: Mapping[str, list[str]]
) -> Section | None:
    page = _ENDING.sub("", to).lower()
    while page.startswith(("../", "./")):
        page = page.partition("/")[2]
    found = pages.get(page.strip("/"), [])
    near = sorted(found, key=lambda other: (-_shared(path, other), other))
    wanted = {anchor.lower(), slug(anchor), _squeezed(anchor.rpartition("#")[2])}
    for other in near[:1]:
        for section in sections[other]:
            if wanted & {name.lower() for name in section.anchors}:
                return section
    return None


def _shared(path: str, other: str) -> int:
    """Count the folders that two paths begin with together: of pages of one name the nearest is meant."""
    count = 0
    for a, b in zip(path.split("/")[:-1], other.split("/")[:-1], strict=False):
        if a != b:
            break
        count += 1
    return count


def _squeezed(title: str) -> str:
    return re.sub(r"\W+", "", plain(title).lower())
