"""Finds the tokens of providers by their form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.finding import Finding
from anchord.sources.secrets.rule_pack import TokenRule, load_rule_pack
from anchord.sources.secrets.values import is_token_placeholder

_LOOK_BACK = 40
"""How many characters before a long run a token can begin."""
_BORDER = r"(?<![A-Za-z0-9])"
_ESCAPED_BORDER = rf"(?:{_BORDER}|(?<=\\[nrt])|(?<=%[0-9A-F]{{2}}))"
"""A token begins at a word, or after an escaped character."""
_MIN_DISTINCTIVE = 4
_WORD_PREFIX = lazy_re(r"[A-Za-z0-9.]+|(?:api|key|live|test|secret|sandbox|access_token)[-_$]?")
"""Prefixes that are also the end of a word or a name."""
_RARE_IN_WORDS = frozenset(
    (
        *("AKIA", "ASIA", "ABIA", "ACCA", "AKID", "LTAI", "AIza", "ATATT3", "ATCTT3", "ATSTT3"),
        *("ATBB", "GR1348941", "FLWSECK", "hvs.", "hvb.", "hvr.", "ya29."),
    )
)
"""Prefixes of letters and digits that are the end of no name: `keyAKIA...`. Behind a capital letter
they can still be a part of base32."""
_MAX_PREFIX = 20
_REACH = 200
"""How far around a run a token without a prefix can be."""
_LONG_MATCH = 1000
"""A longer match has no other token of its rule inside."""
_MIN_RUNS = {".": 24, ":": 35, "_": 48}
"""Anchors of one character are anywhere: the length of the run that their tokens have."""


class TokenFinder:
    """Finds tokens. The time is in proportion to the length of the text."""

    def __init__(self, rules: Sequence[TokenRule]) -> None:
        """Compile the rules' prefixes into one search.

        Args:
            rules: The rules of the pack.
        """
        self._rules_by_prefix: dict[str, list[TokenRule]] = {}
        for rule in rules:
            for prefix in rule.prefixes:
                self._rules_by_prefix.setdefault(prefix, []).append(rule)
        prefixes = _alternation(self._rules_by_prefix)
        distinctive = _alternation(filter(_is_distinctive, self._rules_by_prefix))
        rare = _alternation(self._rules_by_prefix.keys() & _RARE_IN_WORDS)
        anywhere = f"{distinctive}|(?<![A-Z])(?:{rare})"
        self._prefixes = re.compile(f"{_BORDER}(?:{prefixes})|{anywhere}")
        self._escaped_prefixes = re.compile(f"{_ESCAPED_BORDER}(?:{prefixes})|{anywhere}")
        self._without_prefix = [rule for rule in rules if not rule.prefixes]
        anchors = {re.escape(rule.anchor) for rule in self._without_prefix}
        self._anchors = re.compile("|".join(sorted(anchors)))

    def find(self, text: str, runs: Sequence[tuple[int, int]]) -> Iterator[Finding]:
        """Yield the tokens in a text, some of them twice.

        Args:
            text: The text.
            runs: Its `generated_runs`: each token is in one or begins shortly before it.
        """
        has_escapes = "\\" in text or "%" in text
        prefixes = self._escaped_prefixes if has_escapes else self._prefixes
        done = 0
        ends: dict[str, int] = {}
        for start, end in runs:
            first = max(done, start - _LOOK_BACK)
            for match in prefixes.finditer(text, first, end):
                yield from self._find_at(text, match, ends)
            if self._anchors.search(text, first, end + 1):
                yield from self._find_without_prefix(text, start, end)
            done = end - _MAX_PREFIX  # A prefix such as `dp.` can begin in this run.

    def _find_at(
        self, text: str, prefix_match: re.Match[str], ends: dict[str, int]
    ) -> Iterator[Finding]:
        """Yield the tokens that begin with a prefix; `ends` has the long matches of each rule."""
        longest, start = prefix_match[0], prefix_match.start()
        for length in range(len(longest), 0, -1):  # `sk-` is the beginning of `sk-ant-`.
            for rule in self._rules_by_prefix.get(longest[:length], ()):
                # Prefixes inside a long match would each be read to its end: quadratic time.
                is_inside = start < ends.get(rule.id, 0)
                found = None if is_inside else rule.pattern.match(text, start)
                if found:
                    if found.end() - start > _LONG_MATCH:
                        ends[rule.id] = found.end()
                    yield from _checked(rule, found)

    def _find_without_prefix(self, text: str, start: int, end: int) -> Iterator[Finding]:
        first = max(0, start - _REACH)
        window = text[first : end + _REACH]
        for rule in [rule for rule in self._without_prefix if rule.anchor in window]:
            if end - start >= _MIN_RUNS.get(rule.anchor, 0):
                for found in rule.pattern.finditer(text, first, end + _REACH):
                    yield from _checked(rule, found)


@cache
def shared_token_finder() -> TokenFinder:
    """Return the finder of the rule pack."""
    return TokenFinder(load_rule_pack().rules)


def _checked(rule: TokenRule, match: re.Match[str]) -> Iterator[Finding]:
    start, end = match.span()
    while match.string[end - 1] in ".-:/":  # Punctuation of the sentence around it.
        end -= 1
    if not is_token_placeholder(match.string[start:end]):
        yield Finding(start, end, rule.kind)


def _is_distinctive(prefix: str) -> bool:
    """Return whether a prefix begins a token also behind a letter or digit: `tokghp_...`."""
    return len(prefix) >= _MIN_DISTINCTIVE and not _WORD_PREFIX.fullmatch(prefix)


def _alternation(prefixes: Iterable[str]) -> str:
    """Return a pattern of prefixes, grouped by first character; longer ones come first."""
    by_first: dict[str, list[str]] = {}
    for prefix in sorted(prefixes, reverse=True):
        rests = by_first.setdefault(prefix[0], [])
        rests.append(re.escape(prefix[1:]))
    groups: list[str] = []
    for first, rests in by_first.items():
        rest = "|".join(rests)
        groups.append(f"{re.escape(first)}(?:{rest})")
    return "|".join(groups)
