"""Splits texts that are longer than a model's window, and joins the vectors of their pieces."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from anchord.core.types import Vector

_SEARCHED_CHARS = 200
"""How far before the middle of a text white space is searched, to cut there."""

CountTokens = Callable[[Sequence[str]], Sequence[int]]
"""Texts -> the number of tokens of each."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A text, or a part of one that is longer than the window."""

    text_number: int
    """The index of its text."""
    text: str
    token_count: int


def split_texts(
    texts: Sequence[str], count_tokens: CountTokens, window: int
) -> Iterator[TextPiece]:
    """Yield the pieces of texts, in order; a text that fits the window is one piece.

    Args:
        texts: the texts.
        count_tokens: counts the tokens of texts.
        window: the most tokens of a piece. A single character can have more; it stays a piece.
    """
    for number, (text, token_count) in enumerate(zip(texts, count_tokens(texts), strict=True)):
        if token_count <= window:
            yield TextPiece(number, text, token_count)
            continue
        for part in _halve(text, count_tokens, window):
            yield TextPiece(number, part, count_tokens([part])[0])


def _halve(text: str, count_tokens: CountTokens, window: int) -> list[str]:
    """Cut a text in halves until each part fits the window."""
    if count_tokens([text])[0] <= window:
        return [text]
    cut = _find_cut(text)
    if not cut:
        return [text]
    first = _halve(text[:cut], count_tokens, window)
    return first + _halve(text[cut:], count_tokens, window)


def _find_cut(text: str) -> int:
    """Return where to cut a text: after white space before its middle, else in its middle."""
    middle = len(text) // 2
    for position in range(middle, max(middle - _SEARCHED_CHARS, 1), -1):
        if text[position - 1].isspace():
            return position
    return middle


class VectorAssembler:
    """Collects the vectors of pieces until all those of a text are there."""

    def __init__(self, pieces: Sequence[TextPiece]) -> None:
        """Expect one vector for each piece."""
        self._missing = Counter(piece.text_number for piece in pieces)
        self._split = {number for number, count in self._missing.items() if count > 1}
        self._parts: dict[int, list[tuple[Vector | None, int]]] = {}

    def add(self, piece: TextPiece, vector: Vector | None) -> bool:
        """Add a piece's vector, None for a piece that the model rejects.

        Returns:
            Whether its text is complete; then `take` returns the text's vector.
        """
        parts = self._parts.setdefault(piece.text_number, [])
        parts.append((vector, piece.token_count))
        self._missing[piece.text_number] -= 1
        return self._missing[piece.text_number] == 0

    def is_split(self, text_number: int) -> bool:
        """Return whether a text has several pieces."""
        return text_number in self._split

    def take(self, text_number: int) -> Vector | None:
        """Remove and return a complete text's vector, None if the model rejects all its pieces.

        Raises:
            KeyError: the text has no vectors, or was taken before.
        """
        return join_vectors(self._parts.pop(text_number))


def join_vectors(parts: Sequence[tuple[Vector | None, int]]) -> Vector | None:
    """Return the mean of vectors, weighted by their numbers of tokens and L2-normalised.

    Args:
        parts: (float32 vector, number of tokens) of at least one piece; None for a rejected piece,
            which does not count.

    Returns:
        The vector, that of a single piece unchanged; None if all pieces are rejected.
    """
    if len(parts) == 1:
        return parts[0][0]
    accepted = [(vector, weight) for vector, weight in parts if vector is not None]
    if not accepted:
        return None
    total = [0.0] * (len(accepted[0][0]) // 4)
    for vector, weight in accepted:
        for index, number in enumerate(array("f", vector)):
            total[index] += number * weight
    length = math.sqrt(sum(number * number for number in total)) or 1.0
    return array("f", (number / length for number in total)).tobytes()
