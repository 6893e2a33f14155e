"""Questions with a known answer, made of what the documents' authors wrote: links and headings.

A sentence that links to a section of another document asks for that section, because its author
meant the section to answer. A heading asks for its own section. The document with the link is left
out of the results: it holds the question's words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from urllib.parse import unquote

from anchord.chunking.formats.markdown import find_headings
from anchord.chunking.formats.rendered_text import (
    Link,
    ProseBlock,
    iter_prose_blocks,
    strip_markdown,
)
from anchord.chunking.strategies.sentences import find_sentence_spans
from anchord.search.evaluation.links import LinkResolver

LINK = "link"
HEADING = "heading"
GIVEN = "given"
"""The kinds of questions: from a link, from a heading, from a file of the user's."""
_MIN_SENTENCE_WORDS = 4
_MIN_HEADING_WORDS = 2
_EXPLICIT_ANCHOR = re.compile(
    r"\s*(?:\{/\*([\w-]+)\*/\}|\{#([\w-]+)\}|<a\s[^>]*(?:id|name)=[\"']([\w-]+)[\"'][^>]*>(?:</a>)?)\s*"
)
"""An anchor that an author wrote into a heading: `{#name}`, `{/*name*/}` or `<a id="name">`."""
_SLUG_CATEGORIES = ("L", "M", "Nd", "Nl", "Pc")
"""Unicode categories of the characters that stay in an anchor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and everything below it; lines are 1-based and inclusive."""

    path: str
    title: str
    anchors: tuple[str, ...]
    """What a link's `#...` can name it by."""
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class EvaluationQuestion:
    """A question and the section that answers it."""

    text: str
    kind: str
    """`LINK`, `HEADING` or `GIVEN`."""
    answer_section: Section
    source_lines: tuple[str, int, int] | None = None
    """Path, first and last line that it was taken from; None for a question of the user's."""
    other_answers: tuple[Section, ...] = ()
    """Sections that answer it as well."""


def generate_questions(documents: Mapping[str, str]) -> list[EvaluationQuestion]:
    """Return the questions that documents ask by their links and headings, each text once.

    Args:
        documents: Markdown texts by paths relative to one folder.

    Returns:
        The questions from links first. Of several links of a document to one section only the
        first becomes a question. A heading becomes one if it has two words or more and no other
        heading has the same text.
    """
    sections: dict[str, list[Section]] = {}
    for path, text in documents.items():
        sections[path] = list(sections_of(path, text))
    questions = _link_questions(documents, sections)
    questions += _heading_questions(sections)
    # Of several questions with one text the first counts, at the place of the last.
    questions.reverse()
    first_by_text = {question.text: question for question in questions}
    first_questions = list(first_by_text.values())
    first_questions.reverse()
    return first_questions


def _link_questions(
    documents: Mapping[str, str], sections: Mapping[str, Sequence[Section]]
) -> list[EvaluationQuestion]:
    resolver = LinkResolver(documents)
    first_by_section: dict[tuple[str, Section], EvaluationQuestion] = {}
    for path, text in documents.items():
        for passage, link in _iter_links(text):
            target = _linked_section(path, link, sections, resolver)
            if target is None:
                continue
            question = _sentence_question(path, passage, link, target)
            if question is not None:
                first_by_section.setdefault((path, target), question)
    return list(first_by_section.values())


def _iter_links(text: str) -> Iterator[tuple[ProseBlock, Link]]:
    """Yield the links of a document, each with the passage that it is in."""
    for passage in iter_prose_blocks(text):
        for link in passage.links:
            yield passage, link


def _heading_questions(
    sections_by_path: Mapping[str, Sequence[Section]],
) -> Iterator[EvaluationQuestion]:
    sections = list(chain.from_iterable(sections_by_path.values()))
    titles = [strip_markdown(section.title) for section in sections]
    lowercase_titles = [title.lower() for title in titles]
    title_counts = Counter(lowercase_titles)
    for section, title in zip(sections, titles, strict=True):
        is_long_enough = len(title.split()) >= _MIN_HEADING_WORDS
        is_unique = title_counts[title.lower()] == 1
        if is_long_enough and is_unique:
            heading_line = (section.path, section.first_line, section.first_line)
            yield EvaluationQuestion(title, HEADING, section, heading_line)


def sections_of(path: str, text: str) -> Iterator[Section]:
    """Yield the sections of a markdown document, one for each heading.

    Args:
        path: The document's path, for the sections.
        text: The document.
    """
    headings = find_headings(text)
    line_count = text.count("\n") + 1
    used_anchors: set[str] = set()
    for number, heading in enumerate(headings):
        title = _EXPLICIT_ANCHOR.sub(" ", heading.title).strip()
        anchor = _unused_anchor(slug(title), used_anchors)
        used_anchors.add(anchor)
        anchors = [*_explicit_anchors(heading.title), anchor]
        later = headings[number + 1 :]
        # Headings count lines from 0: the line of the next one is the last of this section.
        ends = (other.line for other in later if other.level <= heading.level)
        yield Section(
            path=path,
            title=title,
            anchors=tuple(filter(None, anchors)),
            first_line=heading.line + 1,
            last_line=next(ends, line_count),
        )


def _explicit_anchors(heading: str) -> list[str]:
    anchors: list[str] = []
    for names in _EXPLICIT_ANCHOR.findall(heading):
        anchors += filter(None, names)
    return anchors


def _unused_anchor(anchor: str, used_anchors: Collection[str]) -> str:
    """Return an anchor, numbered as GitHub does where an earlier heading has it: `name-1`."""
    unused = anchor
    number = 0
    while unused in used_anchors:
        number += 1
        unused = f"{anchor}-{number}"
    return unused


def slug(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    plain_title = strip_markdown(title)
    kept = filter(_is_slug_char, plain_title.lower())
    return "".join(kept).replace(" ", "-")


def _is_slug_char(char: str) -> bool:
    if char in "- ":
        return True
    category = unicodedata.category(char)
    return category.startswith(_SLUG_CATEGORIES)


def _linked_section(
    path: str, link: Link, sections: Mapping[str, Sequence[Section]], resolver: LinkResolver
) -> Section | None:
    """Return the section of another document that a link names, None for any other link."""
    page, _, anchor = link.target.partition("#")
    if not link.is_wiki:
        page = unquote(page)
        anchor = unquote(anchor)
    if not page or not anchor or "://" in page:
        return None
    other = resolver.resolve_link(path, page, is_wiki=link.is_wiki)
    if not other or other == path:
        return None
    return _find_section(sections[other], anchor, is_wiki=link.is_wiki)


def _sentence_question(
    path: str, passage: ProseBlock, link: Link, target: Section
) -> EvaluationQuestion | None:
    """Return the sentence around a link as a question, None for fewer than four words."""
    start, end = _sentence_around(passage.text, link.start)
    sentence = passage.text[start:end]
    words = sentence.split()
    if len(words) < _MIN_SENTENCE_WORDS:
        return None
    first_line = passage.line_at(end - len(sentence.lstrip()))
    last_line = passage.line_at(start + len(sentence.rstrip()) - 1)
    source_lines = (path, first_line, last_line)
    return EvaluationQuestion(" ".join(words), LINK, target, source_lines)


def _sentence_around(text: str, position: int) -> tuple[int, int]:
    """Return where the sentence at a position starts and ends, else all of the text."""
    for start, end in find_sentence_spans(text, 0, len(text)):
        if start <= position < end:
            return start, end
    return 0, len(text)


def _find_section(sections: Sequence[Section], anchor: str, *, is_wiki: bool) -> Section | None:
    """Return the section that an anchor names, None for none.

    A wiki link names a section by its title; `^...` in one names a block, which is no section.
    Other links name it by its anchor. Not every site makes anchors as GitHub does: a title that is
    the same but for punctuation also counts, if it is the only one.
    """
    if is_wiki:
        return _section_of_wiki_link(sections, anchor)
    lowercase_anchor = anchor.lower()
    for section in sections:
        if lowercase_anchor in map(str.lower, section.anchors):
            return section
    alike = _sections_titled(sections, anchor)
    return alike[0] if len(alike) == 1 else None


def _section_of_wiki_link(sections: Sequence[Section], anchor: str) -> Section | None:
    if anchor.startswith("^"):
        return None
    title = anchor.rpartition("#")[2]
    alike = _sections_titled(sections, title)
    return alike[0] if alike else None


def _sections_titled(sections: Sequence[Section], title: str) -> list[Section]:
    """Return the sections with this title, but for case, spaces and punctuation."""
    squeezed = _squeeze(title)
    if not squeezed:
        return []
    return [section for section in sections if _squeeze(section.title) == squeezed]


def _squeeze(title: str) -> str:
    plain_title = strip_markdown(title)
    return re.sub(r"\W+", "", plain_title.lower())
