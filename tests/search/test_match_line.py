"""The line of a match: where an editor opens a passage."""

from __future__ import annotations

from dataclasses import replace

from search.test_packing import piece

from anchord.search.packing import Layout, pack
from anchord.search.passages import Passage, match_line


def passage(text: str, lines: int) -> Passage:
    made = piece(0, 0.5, text=text)
    made = replace(made, location=made.location._replace(start_line=11, end_line=10 + lines))
    assert made.hit
    made = replace(made, hit=replace(made.hit, location=made.location))
    (only,) = pack([made], Layout())
    return only


def test_it_is_the_line_with_most_letters_of_matched_words() -> None:
    found = passage("# Cats\n\nThe kitten of a cat\nA kitten sleeps\nThe end", 5)
    assert match_line(found, ["Kitten", "sleeps", "of"]) == 14
    assert match_line(found, ["kitten"]) == 13


def test_without_a_matched_word_it_is_where_the_best_chunk_begins() -> None:
    pieces = [piece(3, 0.2), piece(4, 0.9), piece(5, 0.1)]
    (found,) = pack(pieces, Layout())
    assert found.start_line == 7
    assert match_line(found, []) == match_line(found, ["elsewhere"]) == 9


def test_of_a_converted_text_whose_lines_are_not_those_of_the_file_it_is_the_beginning() -> None:
    assert match_line(passage("one\ntwo\nkitten", 40), ["kitten"]) == 11
