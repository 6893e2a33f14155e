"""Queries: an input's first line is what a person typed, the rest a text that is searched."""

from __future__ import annotations

import re

from tools.fuzz.inputs import headed
from tools.fuzz.laws import hold

from anchord.core.query_syntax import (
    ParsedQuery,
    find_match_spans,
    matched_words,
    parse_query,
    phrase_regex,
)

_WORD = re.compile(r"\w+")


def wording(data: bytes) -> None:
    """Parse a query: nothing is lost, every pattern of it works, and highlighted text is in the text."""
    query, body = headed(data)
    text = body.decode("utf-8", "replace")
    asked = parse_query(query)
    _is_all_there(query, asked)
    _is_read_again(asked)
    _finds(asked)
    _marks(asked, text)
    _marks(asked, query)


def _is_all_there(query: str, asked: ParsedQuery) -> None:
    kept = " ".join((asked.text, *asked.excluded_phrases))
    lost = [word for word in _WORD.findall(query) if word not in kept]
    hold(not lost, "no word of a query is lost", lost, asked)
    hold(
        set(asked.identifiers) <= {word.strip("()[]{}<>,;:.!?'`*") for word in asked.text.split()},
        "names are words",
        asked,
    )
    forms = (*asked.required_phrases, *asked.excluded_phrases, *asked.required_prefixes)
    hold(
        all(form.strip() and '"' not in form for form in forms), "no form is empty or quoted", forms
    )


def _is_read_again(asked: ParsedQuery) -> None:
    """A parsed query that is written out parses to the same."""
    plain = [f'"{phrase}"' for phrase in asked.required_phrases] + [
        f'-"{phrase}"' for phrase in asked.excluded_phrases
    ]
    again = parse_query(" ".join([*plain, *(f"{prefix}*" for prefix in asked.required_prefixes)]))
    said = (again.required_phrases, again.excluded_phrases, again.required_prefixes)
    meant = (
        asked.required_phrases,
        tuple(" ".join(each.split()) for each in asked.excluded_phrases),
        asked.required_prefixes,
    )
    hold(said == meant, "a query that is written plainly means the same", said, meant)


def _finds(asked: ParsedQuery) -> None:
    for phrase in (*asked.required_phrases, *asked.excluded_phrases):
        hold(
            re.search(phrase_regex(phrase), f"({phrase})"),
            "a phrase is found where it stands",
            phrase,
        )
    for prefix in asked.required_prefixes:
        hold(
            re.search(phrase_regex(prefix, is_prefix=True), f" {prefix}tail"),
            "a beginning is found where it stands",
            prefix,
        )


def _marks(asked: ParsedQuery, text: str) -> None:
    found = find_match_spans(asked, text)
    flat = [place for span in found for place in span]
    hold(flat == sorted(set(flat)), "marks are in order and apart", found)
    hold(
        all(0 <= start < end <= len(text) for start, end in found), "marks stand in the text", found
    )
    shown = matched_words(asked, text)
    hold(all(word in text for word in shown), "what is shown as matched stands in the text", shown)
