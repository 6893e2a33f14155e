"""Twice the text costs about twice the time, whatever the text repeats."""

from __future__ import annotations

import time

import pytest
from sources.secrets.examples import filled

from anchord.sources.secrets import commands, prose
from anchord.sources.secrets.redactor import find_secrets
from anchord.sources.secrets.rule_pack import load_rule_pack

_CHARS = 200_000
_MOST_TIMES = 3.5
"""Quadratic time would be 4 times."""
_WORDS = (
    *(word for word, _ in commands._WORDS),
    *(f"{tool} x{option} " for option, tool in ((" -p", "mysql"), (" -a", "redis-cli"), (" -k", "openssl"))),
    *prose._NAMES, *prose._SEED_NAMES, *prose._CODE_NAMES,
    "password", "password: ", "password is ", "the password for a b c ", "password | ", 'type="password" ',
    "url,username,password\n", "password,", "echo a | sudo ", "seed phrase: word ", "recovery codes: ab12-cd34 ", "`a` as ",
    "://a:b", "cookie: ", "bearer ", "basic ", "machine a login b password ", ":443:a:b:", "-----BEGIN PRIVATE KEY-----",
    "kind: Secret\ndata:\n  a: b\n", "%41", "\\u0041", "&amp;", "a" * 40 + " ", "aA0" * 20 + ".",
)  # fmt: skip


def _seconds(text: str) -> float:
    best = float("inf")
    for _ in range(2):
        began = time.process_time()
        find_secrets(text)
        best = min(best, time.process_time() - began)
    return best


def _assert_linear(part: str) -> None:
    text = part * (_CHARS // len(part))
    assert _seconds(text) <= max(_MOST_TIMES * _seconds(text[: len(text) // 2]), 0.2), part


@pytest.mark.slow
@pytest.mark.parametrize("word", _WORDS)
def test_words_around_secrets_cost_linear_time(word: str) -> None:
    _assert_linear(word)


@pytest.mark.slow
@pytest.mark.parametrize("rule", load_rule_pack().rules, ids=lambda rule: rule.id)
def test_a_rule_costs_linear_time(rule: object) -> None:
    example = filled(rule.example)  # type: ignore[attr-defined]
    _assert_linear(example[: max(4, len(example) // 3)])
    _assert_linear(example[:-1] + "!")
