"""One record of a chunk: the same names, types and values wherever a chunk is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from cli.conftest import Shell
from conversations.conftest import answer, claude
from mcp.types import CallToolResult
from pyarrow import parquet

import anchord
from anchord import chunk_text
from anchord.config.paths import find_paths
from anchord.ipc.client import Client
from anchord.ipc.messages.chunks import ChunkAnswer
from anchord.ipc.messages.searching import Passage
from anchord.mcp.server import make_server

Record = dict[str, Any]
NAMES = list(ChunkAnswer.__struct_fields__)
OF_A_HIT = {
    "heading",
    "score",
    "confidence",
    "confidence_parts",
    "cosine",
    "cosine_rank",
    "bm25",
    "bm25_rank",
    "exact",
    "named",
    "matched",
    "ids",
    "match_line",
    "also_at",
    "date",
    "recency",
}
CUT_ONLY = {
    "embed_text", "anchor_line", "start_char", "end_char", "exceeds_limit", "is_contextually_enriched",
}  # fmt: skip
"""Known only while a file is chunked."""
OF_AN_INDEX = {"vector_key", "file", "room"}
"""Not known without an index."""
OF_A_CONVERSATION = {
    "source", "session", "exchange_id", "turn", "part_index", "total_parts", "at", "until", "project", "model",
}  # fmt: skip
MAY_BE_NULL = {"language", "parent_section", "prev_id", "next_id", "branch"}
"""Null where there is nothing to say, at every door."""
OF_MCP = {"also_at"}
GUIDE = "\n\n".join(
    [
        "# Guide\n\nThe zebra guide begins with a few words about zebras.",
        "## Install\n\n" + "Install the zebra package with care and read on. " * 30,
        "### Linux\n\n```sh\napt install zebra\n```\n\n" + "The zebra runs on Linux. " * 30,
        "## Options\n\n| zebra | stripe |\n|---|---|\n| one | black |\n\n"
        + "Each zebra option has a value. " * 30,
    ]
)
TALK = claude(("What is a zebra?", "A striped horse."), ("And a quagga?", answer("zebra", 9)))


@pytest.fixture(scope="module", params=["index", "daemon"])
def shell(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shell]:
    """Return an index of one document and one conversation, without and with a daemon."""
    made = Shell(tmp_path_factory.mktemp("c"))
    made.write("guide.md", GUIDE)
    talks = made.base / "talks"
    talks.mkdir()
    (talks / "s.jsonl").write_bytes(TALK)
    roots = (
        f'[[root]]\npath = "{made.notes}"',
        f'[[root]]\npath = "{talks}"\nkind = "conversations"',
    )
    made.configure(*roots)
    assert made("index").code == 0
    if request.param == "index":
        yield made
        return
    with made.daemon():
        assert made("sync").code == 0
        yield made


def lines(text: str) -> list[Record]:
    return [json.loads(line) for line in text.splitlines()]


def chunked(shell: Shell) -> list[Record]:
    files = (shell.notes / "guide.md", shell.base / "talks" / "s.jsonl")
    return [chunk for file in files for chunk in shell("chunk", str(file), "--json").json]


def searched(shell: Shell) -> list[Record]:
    found = shell("search", "zebra", "--mode", "text", "--show-chunks", "-k", "99", "--json").json
    return [hit for group in found["groups"] for hit in group]


def shown(shell: Shell) -> list[Record]:
    firsts = {row["path"]: row["id"] for row in reversed(dumped(shell))}
    return [
        chunk
        for chunk_id in firsts.values()
        for chunk in shell("show", chunk_id, "--whole", "--json").json["chunks"]
    ]


def dumped(shell: Shell) -> list[Record]:
    return lines(shell("dump").out)


def exported(shell: Shell) -> list[Record]:
    return lines(shell("export", "-", "--no-vectors").out)


def exported_as_parquet(shell: Shell) -> list[Record]:
    file = shell.base / "all.parquet"
    assert shell("export", str(file), "--no-vectors").code == 0
    rows: list[Record] = parquet.read_table(file).to_pylist()
    return rows


def asked(shell: Shell) -> list[Record]:
    """Return the chunks as the socket has them, or the methods of the same name without a daemon."""
    if (shell.home / "run" / "anchord.sock").exists():
        with Client(shell.home / "run" / "anchord.sock") as client:
            return cast("list[Record]", client.call("dump"))
    with anchord.open(shell.home) as index:
        return [chunk.as_json() for chunk in index.dump()]


DOORS = [chunked, searched, shown, dumped, exported, exported_as_parquet, asked]
every_door = pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
Door = Callable[[Shell], list[Record]]


@every_door
def test_002_15_19_every_door_gives_the_same_names_and_types(shell: Shell, door: Door) -> None:
    records = door(shell)
    extra = OF_A_HIT if door is searched else set()
    for record in records:
        assert set(record) == {*NAMES, *extra}
        msgspec.convert(record, Passage if extra else ChunkAnswer, strict=True)
    assert {record["kind"] for record in records} == {"markdown", "exchange"}


@every_door
def test_003_13_19_25_two_doors_give_the_same_values_or_null(shell: Shell, door: Door) -> None:
    by_id = {record["id"]: record for record in dumped(shell)}
    records = door(shell)
    assert {record["id"] for record in records} == by_id.keys()
    for record in records:
        stored = by_id[record["id"]]
        assert [
            (name, record[name], stored[name])
            for name in NAMES
            if None not in {_hashable(record[name]), _hashable(stored[name])}
            and record[name] != stored[name]
        ] == []


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


@every_door
def test_what_a_door_does_not_know_is_null(shell: Shell, door: Door) -> None:
    unknown = OF_AN_INDEX if door is chunked else CUT_ONLY
    if door is searched:
        unknown = unknown | {"vector_key"}
    for record in door(shell):
        nulls = {name for name, value in record.items() if value is None and name in NAMES}
        of_files = set() if record["kind"] == "exchange" else OF_A_CONVERSATION
        assert nulls - MAY_BE_NULL == unknown | of_files


def test_chunk_text_gives_the_same_names_and_types() -> None:
    for record in chunk_text(GUIDE, path="guide.md"):
        assert list(record) == NAMES
        msgspec.convert(record, ChunkAnswer, strict=True)
        nulls = {name for name, value in record.items() if value is None}
        assert nulls - MAY_BE_NULL == OF_AN_INDEX | OF_A_CONVERSATION


@pytest.mark.parametrize("tool", ["search", "show"])
def test_what_an_agent_gets_has_the_same_names_and_values(shell: Shell, tool: str) -> None:
    """Texts, ids and dates are shortened, scores are rounded, and what has no value is left out.

    Without `--show-chunks` a result can be several chunks, and have other lines.
    """
    by_id = {record["id"][:12]: record for record in [*dumped(shell), *searched(shell)]}
    firsts = {record["path"]: record["id"] for record in dumped(shell)}
    for chunk_id in firsts.values():
        arguments = {"query": "zebra", "mode": "text"} if tool == "search" else {"id": chunk_id}
        found = asyncio.run(_call(shell.home, tool, arguments))
        for entry in found["results" if tool == "search" else "chunks"]:
            record = by_id[entry["id"]]
            assert entry.keys() - OF_MCP <= record.keys()
            assert all(type(entry[name]) is type(record[name]) for name in entry.keys() - OF_MCP)
            exact = (
                entry.keys()
                - OF_MCP
                - {"id", "text", "score", "confidence", "date", "start_line", "end_line"}
            )
            if record.get("heading"):
                exact -= {"section"}
                assert entry["section"] in {record["heading"], record["section"]}
            assert {name: entry[name] for name in exact} == {name: record[name] for name in exact}


async def _call(home: Path, tool: str, arguments: Record) -> Record:
    server = make_server(find_paths({"ANCHORD_HOME": str(home)}))
    result = cast("CallToolResult", await server.call_tool(tool, arguments))
    structured: Record = result.structured_content
    return structured


def test_003_16_23_a_stored_chunk_knows_its_neighbours_code_and_tables(shell: Shell) -> None:
    rows = [row for row in dumped(shell) if row["path"] == "guide.md"]
    ids = [row["id"] for row in rows]
    assert len(ids) > 3
    assert [row["prev_id"] for row in rows] == [None, *ids[:-1]]
    assert [row["next_id"] for row in rows] == [*ids[1:], None]
    assert [row["chunk_index"] for row in rows] == list(range(len(ids)))
    assert {row["sibling_count"] for row in rows} == {len(ids)}
    assert [row["contains_code"] for row in rows] == ["```" in row["text"] for row in rows]
    assert [row["contains_table"] for row in rows] == ["|---" in row["text"] for row in rows]
    (linux, *_) = (row for row in rows if row["parent_section"] == "Linux")
    assert (linux["header_path"], linux["section"], linux["level"], linux["depth"]) == (
        ["Guide", "Install", "Linux"], "Guide > Install > Linux", 3, 2,
    )  # fmt: skip


def test_004_13_every_door_counts_the_turns_of_a_conversation(shell: Shell) -> None:
    for door in DOORS:
        said = [record for record in door(shell) if record["kind"] == "exchange"]
        turns = {record["turn"] for record in said if "quagga" not in record["section"]}
        assert turns == {1}, door
        assert {record["turn"] for record in said} == {1, 2}, door
