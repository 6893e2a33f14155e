"""The query in what a person typed to another program."""

from __future__ import annotations

import re

from anchord.sources.secrets.redactor import redact

MAX_PROMPT_QUERY_CHARS = 1_000
"""A model reads 256 tokens of a query; the rest of a long prompt is mostly a pasted text."""
_MARK = re.compile(r"\[REDACTED:[a-z0-9-]{0,40}\]?")
_OPERATORS = re.compile(r'["*]|(?<!\S)-')
"""What has a meaning in a query and none in a prompt: quotes, asterisks, minus signs."""


def query_of_prompt(prompt: str) -> str:
    """Return the query for a prompt: without its secrets and operators, in one line.

    Args:
        prompt: Its beginning, longer than the query, so that a secret at the query's end is whole.
    """
    clean = _MARK.sub(" ", redact(prompt).text)
    return " ".join(_OPERATORS.sub(" ", clean[:MAX_PROMPT_QUERY_CHARS]).split())
