"""What the retrievers of other libraries are given: passages, and where they are from."""

from __future__ import annotations

from typing import Any

from anchord.ipc.callers import BlockingMethods
from anchord.ipc.messages.searching import Passage


def find_passages(index: BlockingMethods, query: str, options: dict[str, Any]) -> list[Passage]:
    """Search, and return all passages of all files, the best first.

    Args:
        index: An `anchord.Client`, or what `anchord.open()` returned.
        query: As for `anchord search`.
        options: Other parameters of `search`.
    """
    groups = index.search(query, **options).groups
    passages = [passage for group in groups for passage in group]
    return sorted(passages, key=lambda passage: passage.score, reverse=True)


def metadata_of(passage: Passage) -> dict[str, Any]:
    """Return where a passage is from: `source` is the file's path within its root."""
    return {
        "source": passage.path,
        "root": passage.root,
        "kind": passage.kind,
        "section": passage.section,
        "start_line": passage.start_line,
        "end_line": passage.end_line,
        "score": passage.score,
    }
