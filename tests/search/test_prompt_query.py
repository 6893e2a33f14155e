"""The query in a prompt: without operators, and without secrets."""

from __future__ import annotations

from typing import Any, cast

import pytest

from anchord.errors import UsageError
from anchord.ipc.messages.searching import SearchParams
from anchord.search import search_answer
from anchord.search.prompt_query import query_of_prompt

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT" + "5vW7yZ9bC1dF3gH5"


@pytest.mark.parametrize(
    ("prompt", "query"),
    [
        ("Where did\nI put it?", "Where did I put it?"),
        ('why does "exact" fail with -v and *.md', "why does exact fail with v and .md"),
        ("a b " * 1_000, ("a b " * 1_000)[:1_000].strip()),
        (f"why is {TOKEN} refused", "why is refused"),
        ('log in with password="hunter2hunter2xx" now', "log in with password= now"),
        ("x " * 490 + TOKEN, ("x " * 490).strip()),
    ],
)
def test_a_prompt_is_searched_without_operators_and_secrets(prompt: str, query: str) -> None:
    assert query_of_prompt(prompt) == query


def test_a_search_for_a_prompt_redacts_it_and_another_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searched = []

    def note(params: SearchParams, *_: object) -> None:
        searched.append(params.query)
        raise UsageError("noted")

    monkeypatch.setattr(search_answer, "make_search_request", note)
    reader = cast("Any", type("Reader", (), {"roots": ()}))
    for is_prompt in (True, False):
        params = SearchParams(query=f"why is {TOKEN} refused", is_prompt=is_prompt)
        with pytest.raises(UsageError, match="noted"):
            search_answer.handle_search(reader, reader, params)
    assert searched == ["why is refused", f"why is {TOKEN} refused"]
