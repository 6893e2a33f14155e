"""Which text of a batch makes a model fail: found by trying, so that the others go on.

A model fails for reasons of its own (no memory, a server that is away) or because of a text. A batch that failed is tried once
more as it is, then text by text; a text that failed alone twice is let go of if a harmless text works at that moment. If that
fails as well, nothing is wrong with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Made = TypeVar("Made")

HARMLESS = "a harmless text"


def isolate(
    texts: Sequence[str], embed: Callable[[Sequence[str]], Sequence[Made]], failure: type[Exception]
) -> Iterator[tuple[int, Made | None]]:
    """Yield (number of a text, what was made of it), None for a text that nothing can be made of.

    Raises:
        failure: whatever is tried fails.
    """
    if len(texts) > 1:
        for _ in range(2):
            try:
                made = embed(texts)
            except failure:
                continue
            yield from enumerate(made)
            return
    for number, text in enumerate(texts):
        yield number, _alone(text, embed, failure)


def _alone(text: str, embed: Callable[[Sequence[str]], Sequence[Made]], failure: type[Exception]) -> Made | None:
    for _ in range(2):
        try:
            return embed([text])[0]
        except failure:
            continue
    embed([HARMLESS])
    return None
