"""What an answer says of the files that it does not cover, whatever a folder is called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hostile import HOSTILE, unsafe_in

from anchord.core.quoting import quote_name
from anchord.mcp.own_words import OwnWords
from anchord.search.coverage import Coverage


@pytest.mark.parametrize("name", HOSTILE[::5])
def test_a_name_says_nothing_in_anchords_sentences(name: str) -> None:
    reason = (
        f"root {quote_name(name)}: the folder does not exist; its indexed files stay searchable"
    )
    coverage = Coverage(is_complete=False, reason=reason, waiting=2, found=3, held={name: 4})
    words = OwnWords()
    sentences = ". ".join(coverage.sentences())
    assert unsafe_in(sentences) == []
    assert words.without_names(sentences) == (
        "root [1]: the folder does not exist; its indexed files stay searchable (1 of 3 files are up "
        "to date); results may be missing. 4 files of [1] were deleted or excluded all at once and "
        "are still found until `anchord confirm-delete NAME`"
    )


def test_while_indexing_is_paused_no_file_is_called_up_to_date() -> None:
    paused = Coverage(is_complete=False, state="paused", found=8)
    (sentence,) = paused.sentences()
    assert "changes since then are not indexed; results may be missing" in sentence
    assert "up to date" not in sentence
    (sentence,) = replace(paused, waiting=2).sentences()
    assert "6 of 8 files are up to date" in sentence
