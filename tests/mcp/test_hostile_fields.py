"""Hostile text changes only its own field: 241 strings in every field that comes from a file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import HOSTILE, unsafe_in
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from quoted_answers import answers_quoting, without_fields

from anchord.config.paths import find_paths
from anchord.mcp import schema
from anchord.mcp.render import NOTICE, render_answer
from anchord.mcp.server import make_server

SCHEMAS: dict[str, type[BaseModel]] = {
    "search": schema.SearchAnswer,
    "nothing": schema.SearchAnswer,
    "show": schema.ShowAnswer,
    "files": schema.FilesAnswer,
    "changes": schema.ChangesAnswer,
    "sessions": schema.SessionsAnswer,
    "session": schema.SessionAnswer,
    "status": schema.StatusAnswer,
    "roots": schema.RootsAnswer,
    "explain": schema.ExplainAnswer,
}
ANSWERS = answers_quoting("plain")
PLAIN = {name: render_answer(answer) for name, answer in ANSWERS.items()}


def own_words(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the sentences of an answer: they are the same whatever a name says."""
    return {name: answer.get(name) for name in ("note", "degraded", "error", "hint")}


def strings_in(value: object) -> Iterator[tuple[str, str]]:
    """Yield every string of an answer with the name of its field."""
    members = value.items() if isinstance(value, dict) else []
    for name, member in members:
        for each in member if isinstance(member, list) else [member]:
            if isinstance(each, str):
                yield name, each
            yield from strings_in(each)


def assert_only_fields_differ(text: str) -> None:
    """Compare every answer with that of a plain text: layout, characters and structured form."""
    for name, answer in answers_quoting(text).items():
        rendered = render_answer(answer)
        assert without_fields(rendered) == without_fields(PLAIN[name])
        assert unsafe_in(rendered, allowed="\n") == []
        assert json.loads(rendered) == answer
        for field, value in set(strings_in(answer)):
            assert unsafe_in(value, allowed="\n\t" if field == "text" else "") == []
        assert rendered.startswith('{"notice":' + json.dumps(NOTICE) + ",\n")
        assert own_words(answer) == own_words(ANSWERS[name])


def test_there_are_two_hundred_hostile_strings() -> None:
    assert len(set(HOSTILE)) >= 200


@pytest.mark.parametrize("text", HOSTILE, ids=map(str, range(len(HOSTILE))))
def test_a_hostile_string_changes_only_fields(text: str) -> None:
    assert_only_fields_differ(text)


@given(st.text(min_size=1))
def test_any_string_changes_only_fields(text: str) -> None:
    assert_only_fields_differ(f"x{text}")


def test_an_answer_is_what_the_schema_of_its_tool_says() -> None:
    for text in ("plain", *HOSTILE[::30]):
        for name, answer in answers_quoting(text).items():
            if name != "error":
                read = SCHEMAS[name].model_validate(answer, strict=True)
                assert read.model_dump(exclude_unset=True) == answer


def test_every_tool_publishes_its_schema(tmp_path: Path) -> None:
    server = make_server(find_paths({"ANCHORD_HOME": str(tmp_path)}))
    tools = asyncio.run(server.list_tools())
    assert {tool.name: (tool.output_schema or {}).get("title") for tool in tools} == {
        "search": "SearchAnswer",
        "show": "ShowAnswer",
        "files": "FilesAnswer",
        "changes": "ChangesAnswer",
        "sessions": "SessionsAnswer",
        "session": "SessionAnswer",
        "explain": "ExplainAnswer",
        "roots": "RootsAnswer",
        "status": "StatusAnswer",
        "sync": "SyncAnswer",
    }
