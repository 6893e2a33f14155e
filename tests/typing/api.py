"""What programs write with anchord; mypy and pyright read it. It is not run.

A line that must be an error carries the comment that silences exactly that error: where the error is
gone, the unused comment is one.
"""

from __future__ import annotations

from typing import assert_type

import anchord
from anchord.ipc.messages.roots import RootAnswer
from anchord.ipc.messages.searching import Passage, SearchAnswer, ShowAnswer
from anchord.ipc.messages.status import Progress, StatusAnswer
from anchord.ipc.messages.upkeep import IndexAnswer, SyncAnswer, VerifyAnswer


def with_the_daemon() -> None:
    with anchord.Client() as client:
        assert_type(client.sync(timeout=5), SyncAnswer)
        assert_type(client.status(), StatusAnswer)
        assert_type(client.roots(), tuple[RootAnswer, ...])
        assert_type(client.show("1f59", context=2), ShowAnswer)
        found = client.search("how do I restore a backup", k=3, kind="markdown")
        assert_type(found, SearchAnswer)
        assert_type(found.groups[0][0], Passage)
        assert_type(found.groups[0][0].start_line, int | None)
        for progress in client.progress():
            assert_type(progress, Progress)

        client.serach("words")  # type: ignore[attr-defined]
        client.search("words", limit=3)  # type: ignore[call-arg]
        client.search(3)  # type: ignore[arg-type]
        client.search("words", 3)  # type: ignore[call-arg]
        client.show("1f59", context="2")  # type: ignore[arg-type]
        client.status().stat  # type: ignore[attr-defined]  # noqa: B018
        found.groups[0][0].line  # type: ignore[attr-defined]  # noqa: B018


async def with_the_daemon_beside_other_tasks() -> None:
    async with anchord.AsyncClient() as client:
        assert_type(await client.search("words"), SearchAnswer)
        assert_type(await client.verify(vectors=None), VerifyAnswer)
        client.serach("words")  # type: ignore[attr-defined]


def without_a_daemon() -> None:
    with anchord.open("/home/me/.anchord") as index:
        assert_type(index, anchord.Engine)
        assert_type(index.index(["/home/me/notes"]), IndexAnswer)
        assert_type(index.search("words"), SearchAnswer)
        index.indx()  # type: ignore[attr-defined]
