"""Documents -> questions with a known answer, made by what their authors wrote: links and headings.

A sentence that links to a section of another document asks for that section: the author meant it to answer. A heading asks for
its own section. The sentence's own chunk never counts as a result: it holds the words of the question.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from urllib.parse import unquote

from anchord.chunkers.markdown import headings
from anchord.chunkers.prose import Link, Prose, plain, prose
from anchord.chunkers.sentences import sentences

LINK, HEADING, GIVEN = "link", "heading", "given"
_LEAST_WORDS = 4
_LEAST_HEADING_WORDS = 2
_OWN_ANCHOR = re.compile(r"\s*(?:\{/\*([\w-]+)\*/\}|\{#([\w-]+)\}|<a\s[^>]*(?:id|name)=[\"']([\w-]+)[\"'][^>]*>(?:</a>)?)\s*")
_ENDING = re.compile(r"\.(?:md|markdown|mdx|html)$", re.IGNORECASE)
_KEPT = ("L", "M", "Nd", "Nl", "Pc")
_INDEX = re.compile(r"(?:^|/)(?:index|readme)$", re.IGNORECASE)


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
    pages = Pages(documents)
    once: dict[tuple[str, Section], Question] = {}
    for path, text in documents.items():
        for question in _linked(path, text, sections, pages):
            once.setdefault((path, question.target), question)  # Of a list that links to one section all over, the first asks.
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
    used: set[str] = set()
    for number, heading in enumerate(found):
        after = (other.line for other in found[number + 1 :] if other.level <= heading.level)
        own = [name for names in _OWN_ANCHOR.findall(heading.title) for name in names if name]
        title = _OWN_ANCHOR.sub(" ", heading.title).strip()
        anchor = slug(title)
        numbered = next(name for name in chain([anchor], (f"{anchor}-{n}" for n in count(1))) if name not in used)
        used.add(numbered)
        yield Section(path, title, tuple(filter(None, (*own, numbered))), heading.line + 1, next(after, lines))


def slug(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    kept = (c for c in plain(title).lower() if c in "- " or unicodedata.category(c).startswith(_KEPT))
    return "".join(kept).replace(" ", "-")


def _linked(path: str, text: str, sections: Mapping[str, Sequence[Section]], pages: Pages) -> Iterator[Question]:
    for passage in prose(text):
        for link in passage.links:
            to, _, anchor = link.to.partition("#")
            to, anchor = (to, anchor) if link.is_wiki else (unquote(to), unquote(anchor))
            other = pages.followed(path, to, is_wiki=link.is_wiki) if to and anchor and "://" not in to else None
            target = _section(sections[other], anchor, is_wiki=link.is_wiki) if other and other != path else None
            if target:
                yield from _asked(path, passage, link, target)


def _asked(path: str, passage: Prose, link: Link, target: Section) -> Iterator[Question]:
    """Yield the sentence that holds a link, when it says enough."""
    spans = sentences(passage.text, 0, len(passage.text))
    first, last = next(((a, b) for a, b in spans if a <= link.start < b), (0, len(passage.text)))
    sentence = passage.text[first:last]
    if len(sentence.split()) >= _LEAST_WORDS:
        above = passage.first + passage.text.count("\n", 0, first + len(sentence) - len(sentence.lstrip()))
        lines = above, above + sentence.strip().count("\n")
        yield Question(" ".join(sentence.split()), LINK, target, (path, *lines))


def _section(sections: Sequence[Section], anchor: str, *, is_wiki: bool) -> Section | None:
    """Return the section that an anchor names; a wiki link names it by its title."""
    if is_wiki:
        wanted = _squeezed(anchor.rpartition("#")[2])
        named = (section for section in sections if wanted and _squeezed(section.title) == wanted)
        return None if anchor.startswith("^") else next(named, None)
    exact = (section for section in sections if anchor.lower() in map(str.lower, section.anchors))
    alike = [section for section in sections if _squeezed(section.title) == _squeezed(anchor)] if _squeezed(anchor) else []
    return next(exact, alike[0] if len(alike) == 1 else None)  # Not every site makes anchors as GitHub does.


def _squeezed(title: str) -> str:
    return re.sub(r"\W+", "", plain(title).lower())


class Pages:
    """Documents by what links call them."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        """Take the paths."""
        self._exact: dict[str, str] = {}
        self._ends: dict[str, list[str]] = {}
        for path in documents:
            name = _ENDING.sub("", path).lower()
            for called in (path.lower(), name, _INDEX.sub("", name)):
                self._exact.setdefault(called, path)
            parts = name.split("/")
            for at in range(len(parts)):
                end = "/".join(parts[at:])
                for called in dict.fromkeys((end, _INDEX.sub("", end) or end)):
                    self._ends.setdefault(called, []).append(path)

    def followed(self, path: str, to: str, *, is_wiki: bool) -> str | None:
        """Return the document that a link of another leads to: from where it stands, from the root, or by the end of its path.

        A site's links start at its own root, which is often a folder deeper; of several pages the nearest is meant.
        """
        above = "" if to.startswith("/") else posixpath.dirname(path)
        joined = posixpath.normpath(posixpath.join(above, to.lstrip("/"))).lower()
        joined = "" if joined == "." else joined
        if not is_wiki:
            for name in (joined, _ENDING.sub("", joined)):
                if name in self._exact:
                    return self._exact[name]
        end = _ENDING.sub("", posixpath.normpath(to.lstrip("/")).lower()).strip("/")
        while end.startswith("../"):
            end = end[3:]
        return min(self._ends.get(end, []), key=lambda other: (-_shared(path, other), other), default=None)


def _shared(path: str, other: str) -> int:
    """Count the folders that two paths begin with together."""
    count = 0
    for a, b in zip(path.split("/")[:-1], other.split("/")[:-1], strict=False):
        if a != b:
            break
        count += 1
    return count
