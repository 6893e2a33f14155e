"""The parameters of the tools: what an agent is told of each, in as few tokens as possible."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from anchord.ipc.messages.searching import MAX_FILTER_CHARS, MAX_QUERY_CHARS

MAX_TOKENS = 20_000
OPTIONS = {
    "root": "",
    "path": "folder or glob",
    "kind": "markdown, text, code, exchange",
    "section": "A > B",
    "language": "",
    "chunk_type": "",
    "room": "",
    "since": "7d, 2026-01-31",
    "until": "",
    "session": "",
    "project": "",
    "agent": "",
    "file": "",
    "branch": "",
    "tool": "",
    "recent": "30d: older count less",
    "detached": "true: not indexed ones too",
    "mode": "hybrid, vector, text",
    "expand": "characters of context",
}
"""The options of `search`, with what an agent must know of their values."""


def _listed_options() -> str:
    described = (f"{name} ({about})" if about else name for name, about in OPTIONS.items())
    return f"Filters: {', '.join(described)}"


Query = Annotated[
    str,
    Field(max_length=MAX_QUERY_CHARS, description='Words or a question; "exact", -without, pre*'),
]
ResultCount = Annotated[int, Field(ge=1, le=20)]
Options = Annotated[dict[str, Any], Field(description=_listed_options())]
Text = Annotated[str, Field(max_length=MAX_FILTER_CHARS)]
"""A name, an id, a path or a date."""
Glob = Annotated[str, Field(max_length=MAX_FILTER_CHARS, description="Folder or glob")]
Folder = Annotated[str, Field(description="Your folder")]
TokenBudget = Annotated[int, Field(ge=200, le=MAX_TOKENS)]
NeighborCount = Annotated[int, Field(ge=0, le=50, description="Chunks around")]
SyncTimeout = Annotated[float, Field(ge=0, le=600)]
ListCount = Annotated[int, Field(ge=1, le=100)]
Offset = Annotated[int, Field(ge=0, le=1_000_000)]
