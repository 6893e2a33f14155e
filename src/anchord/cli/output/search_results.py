"""Search results as lines of text, with rich's markup.

On a terminal the results fit the window: the best hit is at the top with most of its text, each
other file has at least its place, and lines are wrapped between words. Elsewhere no line is wrapped
and no file is left out. The lines may hold control characters of indexed texts: print them with
`print_line`, which replaces these.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from anchord.cli.output.confidence import confidence_of, weak_mark
from anchord.cli.output.detached import detached_hit_lines
from anchord.cli.output.hit_age import age_explanation, file_date
from anchord.cli.output.markup import escape_markup
from anchord.cli.output.render import source_and_time
from anchord.cli.output.wrapping import ELLIPSIS, cell_width, truncate, wrap
from anchord.core.line_matches import match_weight
from anchord.core.quoting import escape_gaps, escape_path
from anchord.ipc.messages.searching import Passage, SearchAnswer

_INDENT = "    "
_ELLIPSIS_WIDTH = 2
"""An ellipsis and a space, at the beginning or the end of a line."""
_BEST_LINES = 16
_OTHER_LINES = 4
"""Lines of text of the best hit, and of the best hit of each other file, if they fit."""
_MAX_OTHER_HITS = 3
_ID_CHARS = 8


class Window(NamedTuple):
    """The space for results. The default is no terminal."""

    columns: int | None = None
    """None: lines are not wrapped."""
    rows: int | None = None
    """None: as many as it takes."""


NO_WINDOW = Window()


def answer_lines(
    answer: SearchAnswer,
    base_folder: str,
    window: Window = NO_WINDOW,
    *,
    with_explanations: bool = False,
    is_whole: bool = False,
) -> Iterator[str]:
    """Yield all results of a search.

    Args:
        answer: The answer of `search`.
        base_folder: Files below this folder are shown relative to it; "" for none.
        window: The space for them.
        with_explanations: Whether to say how the query was weighed and each hit was found.
        is_whole: Whether to show all passages with their whole texts.
    """
    if with_explanations:
        yield _weighing_line(answer)
        yield from _reranker_lines(answer)
    if is_whole:
        yield from passage_lines(
            answer.groups, base_folder, window, with_explanations=with_explanations
        )
    else:
        yield from search_lines(
            answer.groups, base_folder, window, with_explanations=with_explanations
        )
    for hit in answer.detached:
        yield from detached_hit_lines(hit)


def search_lines(
    groups: Sequence[Sequence[Passage]],
    base_folder: str,
    window: Window = NO_WINDOW,
    *,
    with_explanations: bool = False,
) -> Iterator[str]:
    """Yield search results: for each file its best hit with an excerpt, then up to three others.

    If there are not rows enough, the excerpts of the last files are left out first, then the other
    hits, then whole files: the last line counts these.

    Args:
        groups: The hits of each file or exchange, best first; no group is empty.
        base_folder: Files below this folder are shown relative to it.
        window: The space for them.
        with_explanations: Whether to say how each hit was found.
    """
    blocks = [
        _Block(group, base_folder, window.columns, with_explanations=with_explanations)
        for group in groups
    ]
    if window.rows is not None:
        blocks = _fit(blocks, window.rows)
    previous = None
    for block in blocks:
        if previous and (previous.has_text or block.has_text):
            yield ""
        yield from block.lines()
        previous = block
    omitted = len(groups) - len(blocks)
    if omitted:
        yield f"[dim]and {omitted} more (--json lists all)[/]"


def passage_lines(
    groups: Sequence[Sequence[Passage]],
    base_folder: str,
    window: Window = NO_WINDOW,
    *,
    with_explanations: bool = False,
) -> Iterator[str]:
    """Yield all passages with their whole texts, in the order of the groups.

    Args:
        groups: As for `search_lines`.
        base_folder: Likewise.
        window: Likewise; its rows do not matter.
        with_explanations: As for `search_lines`.
    """
    hits = [hit for group in groups for hit in group]
    for number, hit in enumerate(hits):
        if number:
            yield ""
        yield from _head(hit, base_folder, window.columns)
        for line in _text_lines(hit.text, window.columns):
            yield _indented(line, hit.matched)
        if with_explanations:
            yield _explanation(hit)


def _weighing_line(answer: SearchAnswer) -> str:
    """Say what a query was taken for, and how much meaning and words counted."""
    kinds = {"question": "a question", "sentence": "a sentence"}
    kind = kinds.get(answer.query_kind, "names, keywords or a heading")
    meaning = round(100 * answer.vector_weight)
    shares = f"meaning counts {meaning} %, words {100 - meaning} %"
    return f"[dim]taken for {kind}: in documents {shares}[/]"


def _reranker_lines(answer: SearchAnswer) -> Iterator[str]:
    """Say what the reranker did, if one is configured."""
    reranker = answer.reranker
    if reranker and reranker.reason:
        yield f"[dim]not reranked: {escape_markup(reranker.reason)}[/]"
    elif reranker:
        yield f"[dim]the best {reranker.hits} hits reranked in {reranker.ms:.0f} ms[/]"


class _Block:
    """The lines of a file or exchange: its head, an excerpt of its best hit, and other hits."""

    def __init__(
        self,
        group: Sequence[Passage],
        base_folder: str,
        columns: int | None,
        *,
        with_explanations: bool,
    ) -> None:
        self._best, *others = group
        self._others = others
        self._with_explanations = with_explanations
        self._columns = columns
        self._head = list(_head(self._best, base_folder, columns))
        self._text = _text_lines(self._best.text, columns, reserve=2 * _ELLIPSIS_WIDTH)
        self._text_rows = _OTHER_LINES
        self._has_others = True

    @property
    def has_text(self) -> bool:
        """Whether more than the head is shown."""
        return self._text_rows > 0

    @property
    def head_rows(self) -> int:
        """Rows that the head takes."""
        return len(self._head)

    @property
    def other_rows(self) -> int:
        """Rows that the other hits would take."""
        return len(list(self._other_lines()))

    def limit_text(self, rows: int) -> int:
        """Show so many lines of text at most, and no other hits; return how many lines it is."""
        self._text_rows = min(rows, len(self._text))
        self._has_others = False
        return self._text_rows

    def show_others(self) -> None:
        """Show the other hits as well."""
        self._has_others = True

    def lines(self) -> Iterator[str]:
        """Yield the lines."""
        yield from self._head
        for line in _excerpt(self._text, self._best.matched, self._text_rows):
            yield _indented(line, self._best.matched)
        if self._with_explanations:
            yield _explanation(self._best)
        if self._has_others:
            yield from self._other_lines()

    def _other_lines(self) -> Iterator[str]:
        for hit in self._others[:_MAX_OTHER_HITS]:
            yield _other_hit(hit, self._columns)
            if self._with_explanations:
                yield _explanation(hit)
        omitted = len(self._others) - _MAX_OTHER_HITS
        if omitted > 0:
            unit = "exchange" if self._best.session else "file"
            yield f"  [dim]and {omitted} more places in this {unit}[/]"


def _fit(blocks: Sequence[_Block], rows: int) -> list[_Block]:
    """Return the blocks of which at least the heads fit, each limited to its share of the rows.

    The best one has some of its text in any window.
    """
    rows_left = rows - _OTHER_LINES - 1
    shown: list[_Block] = []
    for number, block in enumerate(blocks):
        rows_left -= block.head_rows
        is_last = number == len(blocks) - 1
        # The line that counts the others needs a row.
        if shown and rows_left < (0 if is_last else 1):
            break
        shown.append(block)
    rows_left = rows - sum(block.head_rows for block in shown) - (len(shown) < len(blocks))
    for number, block in enumerate(shown):
        # A block with text has a blank line after it, and the first of them none before it.
        most = _BEST_LINES if number == 0 else _OTHER_LINES
        least = _OTHER_LINES if number == 0 else 0
        text_rows = block.limit_text(max(min(most, rows_left - 1), least))
        rows_left -= text_rows + bool(text_rows)
    for block in shown:
        if block.has_text and block.other_rows <= rows_left:
            rows_left -= block.other_rows
            block.show_others()
    return shown


def _head(hit: Passage, base_folder: str, columns: int | None) -> Iterator[str]:
    """Yield a hit's place, section and score; a long section and copies get their own lines."""
    place = _place(hit, base_folder)
    score_and_id = file_date(hit) + _score_and_id(hit)
    section = escape_gaps(hit.heading or hit.section)
    beside = cell_width(f"{place}  {section}  {score_and_id}")
    fits = columns is None or beside <= columns
    if columns is not None and cell_width(f"{place}  {score_and_id}") > columns:
        place = _shorten_place(place, columns - len(score_and_id) - 2)
    shown_section = f"{_green(section)}  " if section and fits else ""
    link = _file_link(place, hit)
    yield f"[bold cyan]{link}[/]  {shown_section}[dim]{score_and_id}[/]"
    if section and columns is not None and not fits:
        yield f"{_INDENT}{_green(truncate(section, columns - len(_INDENT)))}"
    if hit.also_at:
        yield _copies_line(hit, base_folder, columns)


def _copies_line(hit: Passage, base_folder: str, columns: int | None) -> str:
    """Return where else the same text is: as many places as fit in a line, but at least one."""
    places = [
        _file_and_line(copy.file or copy.path, copy.start_line, base_folder) for copy in hit.also_at
    ]
    kept = places
    line = f"  also in: {', '.join(kept)}"
    while columns is not None and cell_width(line) > columns and len(kept) > 1:
        kept = kept[:-1]
        line = f"  also in: {', '.join(kept)} and {len(places) - len(kept)} more"
    if columns is not None:
        line = truncate(line, columns)
    return f"[dim]{escape_markup(line)}[/]"


def _shorten_place(place: str, columns: int) -> str:
    """Return the end of a path with its line: it says more than the beginning."""
    while cell_width(place) > max(columns, 2) - 1:
        place = place[1:]
    return f"{ELLIPSIS}{place}"


def _other_hit(hit: Passage, columns: int | None) -> str:
    """Return a line with a hit's line numbers, section and score."""
    span = f"{hit.start_line}-{hit.end_line}"
    score_and_id = _score_and_id(hit)
    section = escape_gaps(hit.section)
    if columns is not None:
        used = len(f"  also {span:<9}   {score_and_id}")
        section = truncate(section, max(columns - used, 2))
    return f"  [dim]also {span:<9} {escape_markup(section)}  {score_and_id}[/]"


def _score_and_id(hit: Passage) -> str:
    return f"{weak_mark(hit)}{hit.score:.2f} {hit.id[:_ID_CHARS]}"


def _explanation(hit: Passage) -> str:
    """Return a line that says how a hit was found."""
    parts = [
        confidence_of(hit),
        _found_by_meaning(hit),
        _found_by_words(hit),
        *age_explanation(hit),
    ]
    if hit.exact:
        parts.append("contains the identifier exactly")
    if hit.named:
        parts.append("the query contains its heading")
    matched = ", ".join(hit.matched)
    if matched:
        parts.append(f"matched: {matched}")
    explanation = escape_markup("; ".join(filter(None, parts)))
    # Less indented than quoted text, which could have the same words.
    return f"  [dim]{explanation}[/]"


def _found_by_meaning(hit: Passage) -> str:
    rank = hit.cosine_rank
    if not rank:
        return "not by meaning"
    return f"meaning: cosine {hit.cosine:.3f}, no. {rank}"


def _found_by_words(hit: Passage) -> str:
    rank = hit.bm25_rank
    if not rank:
        return "not by words"
    return f"words: BM25 {hit.bm25:.2f}, no. {rank}"


def _place(hit: Passage, base_folder: str) -> str:
    if hit.session:
        return source_and_time(hit)
    return _file_and_line(str(hit.file), hit.match_line or hit.start_line, base_folder)


def _file_and_line(file: str, line: int | None, base_folder: str) -> str:
    folder_prefix = base_folder.rstrip("/") + "/"
    if base_folder and file.startswith(folder_prefix):
        file = os.path.relpath(file, base_folder)
    return f"{escape_path(file)}:{line}"


def _file_link(place: str, hit: Passage) -> str:
    """Link a place to its line in its file (OSC 8, for terminals that have links)."""
    escaped_place = escape_markup(place)
    if hit.session or not hit.file:
        return escaped_place
    quoted_path = quote(str(hit.file))
    line = hit.match_line or hit.start_line
    return f"[link=file://{quoted_path}#{line}]{escaped_place}[/link]"


def _green(text: str) -> str:
    return f"[green]{escape_markup(text)}[/]"


def _indented(line: str, matched: Sequence[str]) -> str:
    return f"{_INDENT}{_highlight(line, matched)}" if line else ""


def _highlight(line: str, words: Sequence[str]) -> str:
    """Highlight whole words of a line, in any case; of two that begin at one place the longer."""
    if not words:
        return escape_markup(line)
    pieces: list[str] = []
    end = 0
    for match in re.finditer(_any_word(words), line, re.IGNORECASE):
        before = line[end : match.start()]
        word = escape_markup(match[0])
        pieces.append(escape_markup(before))
        pieces.append(f"[bold yellow]{word}[/]")
        end = match.end()
    pieces.append(escape_markup(line[end:]))
    return "".join(pieces)


def _any_word(words: Sequence[str]) -> str:
    """Return a pattern that matches any of these words as a whole, longer words first."""
    alternatives: list[str] = []
    for word in sorted(words, key=len, reverse=True):
        literal = re.escape(word)
        alternatives.append(rf"(?<!\w){literal}(?!\w)")
    return "|".join(alternatives)


def _excerpt(lines: Sequence[str], matched: Sequence[str], count: int) -> list[str]:
    """Return the lines around the one that matches best; ellipses mark what is left out."""
    start = _best_start(lines, matched, count)
    excerpt = list(lines[start : start + count])
    if excerpt and start > 0:
        excerpt[0] = f"{ELLIPSIS} {excerpt[0].lstrip()}"
    if excerpt and start + count < len(lines):
        excerpt[-1] = f"{excerpt[-1]} {ELLIPSIS}"
    return excerpt


def _best_start(lines: Sequence[str], matched: Sequence[str], count: int) -> int:
    """Return where the lines with the most matched words start.

    Of equal places it is the first that has a line before the best one, for its context.
    """
    words = [word.lower() for word in matched]
    weights = [match_weight(line.lower(), words) for line in lines]
    best = max(range(len(lines)), key=weights.__getitem__)
    starts = range(max(0, len(lines) - count) + 1)
    return max(
        starts,
        key=lambda start: (sum(weights[start : start + count]), -abs(best - 1 - start)),
    )


def _text_lines(text: str, columns: int | None, reserve: int = 0) -> list[str]:
    """Return a text's lines without blank ones, wrapped to the columns that are left of them.

    Args:
        text: The text.
        columns: Of the terminal; None does not wrap.
        reserve: Columns to leave free.
    """
    nonblank = [line for line in text.split("\n") if line.strip()]
    lines = textwrap.dedent("\n".join(nonblank)).split("\n")
    if columns is None:
        return lines
    width = max(columns - len(_INDENT) - reserve, 2)
    return [piece for line in lines for piece in wrap(line, width)]
