"""Finds all words that the rules begin at, in one pass over a text.

To look for each of some 400 words by itself took most of the time of looking for secrets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from ahocorasick_rs import AhoCorasick, Implementation


class WordPlaces:
    """Where the words of a `WordSearch` stand in a text."""

    def __init__(self, words: frozenset[str], places_by_word: dict[str, list[int]]) -> None:
        """Keep the places.

        Args:
            words: All words that were looked for.
            places_by_word: Word -> where it begins, in order; words that are absent may lack.
        """
        self._words = words
        self._places_by_word = places_by_word

    def of(self, word: str) -> Sequence[int]:
        """Return where a word begins, in order.

        Raises:
            KeyError: The word was not looked for.
        """
        if word not in self._words:
            raise KeyError(word)
        return self._places_by_word.get(word, ())

    def each(self, words: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield which of some words begins where, word by word in their order.

        Raises:
            KeyError: A word was not looked for.
        """
        for word in words:
            for place in self.of(word):
                yield word, place

    def of_any(self, words: Collection[str]) -> Sequence[int]:
        """Return where any of some words begins, in order, each place once."""
        found = (places for word, places in self._places_by_word.items() if word in words)
        return sorted(set(chain.from_iterable(found)))

    def __bool__(self) -> bool:
        """Whether any word was found."""
        return bool(self._places_by_word)


class WordSearch:
    """An automaton that finds many words at once. Its time is that of reading the text."""

    def __init__(self, words: Iterable[str]) -> None:
        """Build the automaton.

        Args:
            words: In lower case.
        """
        self._words = tuple(dict.fromkeys(words))
        self._all = frozenset(self._words)
        self._automaton = AhoCorasick(self._words, implementation=Implementation.DFA)

    def find(self, lower_text: str) -> WordPlaces:
        """Return where the words stand, also inside each other.

        Args:
            lower_text: A text in lower case; also a file's name with surrogates.
        """
        if not lower_text.isascii():
            # The automaton takes no surrogates. Each becomes one `?`, so the places stay.
            lower_text = lower_text.encode("utf-8", "replace").decode()
        places: dict[str, list[int]] = {}
        matches = self._automaton.find_matches_as_indexes(lower_text, overlapping=True)
        for index, start, _ in matches:
            places.setdefault(self._words[index], []).append(start)
        return WordPlaces(self._all, places)
