"""Finds the text of a batch on which a model fails, so that the other texts are embedded.

A model fails because of a text, or for another reason, such as missing memory or an unreachable
server. A failed batch is tried once more, then text by text. A text that fails twice alone is
rejected only if a harmless text works right after it. If that fails too, the text is not the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Result = TypeVar("Result")

PROBE_TEXT = "a harmless text"
"""The text that checks whether the model works at all."""

_TRIES = 2


def embed_isolating_failures(
    texts: Sequence[str],
    embed: Callable[[Sequence[str]], Sequence[Result]],
    failure_type: type[Exception],
) -> Iterator[tuple[int, Result | None]]:
    """Yield each text's index and result, in order; None for a text on which the model fails.

    Args:
        texts: the texts of a batch.
        embed: embeds texts: one result for each, in order.
        failure_type: what `embed` raises if a text may be the cause. Other exceptions are not
        caught.

    Raises:
        failure_type: `PROBE_TEXT` fails, too: the model itself does not work.
    """
    if len(texts) > 1:
        for _ in range(_TRIES):
            try:
                results = embed(texts)
            except failure_type:
                continue
            yield from enumerate(results)
            return
    for index, text in enumerate(texts):
        yield index, _embed_alone(text, embed, failure_type)


def _embed_alone(
    text: str, embed: Callable[[Sequence[str]], Sequence[Result]], failure_type: type[Exception]
) -> Result | None:
    for _ in range(_TRIES):
        try:
            return embed([text])[0]
        except failure_type:
            continue
    embed([PROBE_TEXT])
    return None
