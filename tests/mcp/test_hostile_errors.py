"""Every error of the server is one JSON object, and its sentences are the same whatever a caller or a file says."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from hostile import HOSTILE, unsafe_in
from mcp import MCPError
from mcp.client.client import Client
from mcp.types import METHOD_NOT_FOUND, TextContent
from pydantic import TypeAdapter

from anchord.cli.commands.mcp import _LineFormatter
from anchord.config.paths import find_paths
from anchord.core.quoting import quote_name
from anchord.daemon import access
from anchord.errors import UsageError
from anchord.ipc import requests
from anchord.ipc.messages.searching import MAX_QUERY_CHARS, SearchParams, ShowParams
from anchord.mcp import server as mcp_server

Call = Callable[[Client], Coroutine[Any, Any, Any]]
TEXTS = [text for text in HOSTILE[::9] if not any("\ud800" <= char <= "\udfff" for char in text)]
"""Without surrogates: no JSON can bring them."""
OWN = ("notice", "error", "hint")


def calls_with(text: str) -> dict[str, Call]:
    return {
        "an unknown tool": lambda client: client.call_tool(text, {}),
        "an unknown parameter": lambda client: client.call_tool("search", {"query": "x", text: 1}),
        "a wrong type": lambda client: client.call_tool("search", {"query": "x", "k": text}),
        "a wrong choice": lambda client: client.call_tool("search", {"query": "x", "mode": text}),
        "a missing parameter": lambda client: client.call_tool("show", {}),
        "what the tool raises": lambda client: client.call_tool("search", {"query": text}),
        "an unknown prompt": lambda client: client.get_prompt(text, {}),
        "an unknown resource": lambda client: client.read_resource(f"anchord://x/{text}"),
        "a resource that is refused": lambda client: client.read_resource(
            f"anchord://file/../{text}"
        ),
        "what a resource raises": lambda client: client.read_resource("anchord://chunk/zz"),
        "a method that is not there": lambda client: client.complete(
            {"type": "ref/prompt", "name": text},
            {"name": "a", "value": text},
        ),
    }


def errors_with(server: Any, text: str) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - the SDK's type
    """Return what each call answers, read as JSON."""
    errors: dict[str, dict[str, Any]] = {}

    async def main() -> None:
        async with Client(server) as client:
            for name, call in calls_with(text).items():
                errors[name] = json.loads(await failed(client, call))

    anyio.run(main)
    return errors


async def failed(client: Client, call: Call) -> str:
    try:
        result = await call(client)
    except MCPError as error:
        raw = error.message
    else:
        assert result.is_error
        (content,) = result.content
        assert isinstance(content, TextContent)
        raw = content.text
    assert unsafe_in(raw, allowed="\n") == []
    return raw


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - likewise
    """Give a server whose index refuses every query with a name from it."""

    def refuse(_paths: object, call: requests.Call[object], **_others: object) -> None:
        params = call.params
        given = params.query if isinstance(params, SearchParams) else str(params)
        if isinstance(params, ShowParams):
            given = params.id
        raise UsageError(f"there is no root {quote_name(given)}", "give another")

    monkeypatch.setattr(access, "ask_daemon_or_index", refuse)
    return mcp_server.make_server(find_paths({"ANCHORD_HOME": str(tmp_path)}))


def test_errors_are_json_and_quote_nothing_in_their_sentences(server: Any) -> None:  # noqa: ANN401
    plain = errors_with(server, "plain")
    assert plain["an unknown tool"]["names"][0] == "plain"
    assert "there is no root [1]" in plain["what the tool raises"]["error"]
    for text in TEXTS:
        for name, error in errors_with(server, text).items():
            assert {key: error.get(key) for key in OWN} == {
                key: plain[name].get(key) for key in OWN
            }, (name, text)


def test_too_long_a_query_is_refused_with_the_limit_and_names_no_other_parameter(
    server: Any,  # noqa: ANN401 - likewise
) -> None:
    answers: list[str] = []

    async def main() -> None:
        async with Client(server) as client:
            query = "x" * (MAX_QUERY_CHARS + 1)
            answers.append(
                await failed(client, lambda _: client.call_tool("search", {"query": query}))
            )

    anyio.run(main)
    (answer,) = answers
    assert "query" in json.loads(answer)["error"]
    assert str(MAX_QUERY_CHARS) in answer
    assert not [name for name in ("room", "session", "fresh", "detached") if name in answer]


@pytest.mark.parametrize("text", TEXTS)
def test_errors_of_the_sdk_are_json_too(text: str) -> None:
    def raised_by(error: Exception) -> dict[str, Any]:
        async def call_next(_context: object) -> None:
            raise error

        async def main() -> None:
            await mcp_server._with_json_errors(SimpleNamespace(method=text), call_next)  # type: ignore[arg-type]

        with pytest.raises(MCPError) as raised:
            anyio.run(main)
        assert unsafe_in(raised.value.message, allowed="\n") == []
        read: dict[str, Any] = json.loads(raised.value.message)
        return read

    unknown = raised_by(MCPError(METHOD_NOT_FOUND, "Method not found", text))
    assert unknown["error"] == "no method [1]"
    assert raised_by(RuntimeError(text))["error"] == "internal error: RuntimeError"
    with pytest.raises(ValueError, match="valid") as wrong:
        TypeAdapter(int).validate_python(text)
    assert "not valid" in raised_by(wrong.value)["error"]


@pytest.mark.parametrize("text", TEXTS)
def test_what_the_sdk_logs_is_one_line_without_the_message_of_an_exception(text: str) -> None:
    error = ValueError(f"secret {text}")
    record = logging.LogRecord(
        "mcp", logging.ERROR, "", 1, "Tool %s raised", (text,), (ValueError, error, None)
    )
    line = _LineFormatter().format(record)
    assert unsafe_in(line) == []
    assert "secret" not in line
    assert line.endswith(": ValueError")
