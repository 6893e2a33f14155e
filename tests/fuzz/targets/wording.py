"""Queries: an input's first line is what a person typed, the rest a text that is searched."""

from __future__ import annotations

import re

from fuzz.inputs import headed
from fuzz.laws import hold

from anchord.core.wording import Wording, matched_words, parse_query, phrase_pattern, spans

_WORD = re.compile(r"\w+")


def wording(data: bytes) -> None:
    """Take a query apart: nothing is lost, every pattern of it works, and what is marked in a text stands there."""
    query, body = headed(data)
    text = body.decode("utf-8", "replace")
    asked = parse_query(query)
    _is_all_there(query, asked)
    _is_read_again(asked)
    _finds(asked)
    _marks(asked, text)
    _marks(asked, query)


def _is_all_there(query: str, asked: Wording) -> None:
    kept = " ".join((asked.text, *asked.without))
    lost = [word for word in _WORD.findall(query) if word not in kept]
    hold(not lost, "no word of a query is lost", lost, asked)
    hold(set(asked.identifiers) <= {word.strip("()[]{}<>,;:.!?'`*") for word in asked.text.split()}, "names are words", asked)
    forms = (*asked.phrases, *asked.without, *asked.prefixes)
    hold(all(form.strip() and '"' not in form for form in forms), "no form is empty or quoted", forms)


def _is_read_again(asked: Wording) -> None:
    """What was understood, written plainly, is understood so again."""
    plain = [f'"{phrase}"' for phrase in asked.phrases] + [f'-"{phrase}"' for phrase in asked.without]
    again = parse_query(" ".join([*plain, *(f"{prefix}*" for prefix in asked.prefixes)]))
    said = (again.phrases, again.without, again.prefixes)
    meant = (asked.phrases, tuple(" ".join(each.split()) for each in asked.without), asked.prefixes)
    hold(said == meant, "a query that is written plainly means the same", said, meant)


def _finds(asked: Wording) -> None:
    for phrase in (*asked.phrases, *asked.without):
        hold(re.search(phrase_pattern(phrase), f"({phrase})"), "a phrase is found where it stands", phrase)
    for prefix in asked.prefixes:
        hold(re.search(phrase_pattern(prefix, begins=True), f" {prefix}tail"), "a beginning is found where it stands", prefix)


def _marks(asked: Wording, text: str) -> None:
    found = spans(asked, text)
    flat = [place for span in found for place in span]
    hold(flat == sorted(set(flat)), "marks are in order and apart", found)
    hold(all(0 <= start < end <= len(text) for start, end in found), "marks stand in the text", found)
    shown = matched_words(asked, text)
    hold(all(word in text for word in shown), "what is shown as matched stands in the text", shown)
