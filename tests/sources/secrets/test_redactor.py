"""Secrets are found, and what only looks like one is left: both are measured on a set of lines written for it."""

from __future__ import annotations

import json
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.sources.secrets import tokens
from anchord.sources.secrets.redactor import find_secrets, redact

_DICE = random.Random("secrets")  # noqa: S311 - made once, so that no key of anybody stands in the repository
_ALNUM, _UPPER, _HEX = (
    string.ascii_letters + string.digits,
    string.ascii_uppercase + string.digits,
    "0123456789abcdef",
)


def some(letters: str, count: int) -> str:
    return "".join(_DICE.choice(letters) for _ in range(count))


SECRETS = {
    "aws": [f"AKIA{some(_UPPER, 16)}", f"ASIA{some(_UPPER, 16)}"],
    "anthropic": [f"sk-ant-api03-{some(_ALNUM, 80)}"],
    "openai": [f"sk-proj-{some(_ALNUM, 60)}", f"sk-{some(_ALNUM, 48)}"],
    "github": [f"ghp_{some(_ALNUM, 36)}", f"github_pat_{some(_ALNUM, 60)}", f"ghs_{some(_ALNUM, 36)}"],
    "gitlab": [f"glpat-{some(_ALNUM, 20)}"],
    "google": [f"AIza{some(_ALNUM, 35)}", f"ya29.{some(_ALNUM, 60)}"],
    "huggingface": [f"hf_{some(_ALNUM, 34)}"],
    "npm": [f"npm_{some(_ALNUM, 36)}"],
    "pypi": [f"pypi-AgEIcHlwaS5vcmc{some(_ALNUM, 80)}"],
    "sendgrid": [f"SG.{some(_ALNUM, 22)}.{some(_ALNUM, 43)}"],
    "slack": [f"xoxb-{some('0123456789', 12)}-{some('0123456789', 12)}-{some(_ALNUM, 24)}",
              f"https://hooks.slack.com/services/T{some(_UPPER, 8)}/B{some(_UPPER, 8)}/{some(_ALNUM, 24)}"],
    "stripe": [f"sk_live_{some(_ALNUM, 24)}", f"rk_live_{some(_ALNUM, 24)}"],
    "telegram": [f"{some('123456789', 9)}:{some(_ALNUM, 35)}"],
    "digitalocean": [f"dop_v1_{some(_HEX, 64)}"],
    "jwt": [f"eyJ{some(_ALNUM, 30)}.eyJ{some(_ALNUM, 60)}.{some(_ALNUM, 43)}"],
    "private-key": [f"-----BEGIN {kind}PRIVATE KEY-----\n{some(_ALNUM, 64)}\n{some(_ALNUM, 9)}\n-----END {kind}PRIVATE KEY-----"
                    for kind in ("", "RSA ", "EC ", "OPENSSH ")],
}  # fmt: skip
IN_CONTEXT = {
    "password-in-url": [("postgres://app:{}@db.internal/app", some(_ALNUM, 14)),
                        ("https://me:{}@git.example.org/x.git", some(_ALNUM, 20))],
    "authorization": [("curl -H 'Authorization: Bearer {}'", some(_ALNUM, 40))],
    "assigned": [('password = "{}"', some(_ALNUM, 16)), ("API_KEY={}", some(_ALNUM, 32)),
                 ('"client_secret": "{}"', some(_ALNUM, 24))],
}  # fmt: skip
FOUND = [(kind, secret, secret) for kind, secrets in SECRETS.items() for secret in secrets] + [
    (kind, form.format(secret), secret)
    for kind, pairs in IN_CONTEXT.items()
    for form, secret in pairs
]
LEFT = [
    "The commit 3f2a9c1de0b4455fa1b2c3d4e5f60718293a4b5c broke it.",
    "id: 8c1f6a5e-2b1d-4a57-9f5e-3f6f1f0f3a11",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Set API_KEY in your environment, then read os.environ['API_KEY'].",
    'password = os.environ["DB_PASSWORD"]',
    'token = "${TOKEN}"',
    'api_key: "<your key here>"',
    "def token_count(text: str) -> int:",
    "The token bucket refills 10 tokens a second.",
    "https://example.org/path?token=none",
    "postgres://localhost:5432/app",
    "user@example.org and git@github.com:owner/repo.git",
    "secret: it was a secret garden",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "import { skipToken } from 'query'",
    "npm install --save-dev typescript",
    "sk-learn and task-oriented work",
    "AKIA is how access keys begin.",
    "-----BEGIN CERTIFICATE-----",
    "The password must have 12 characters.",
    "Bearer tokens are sent in the Authorization header.",
    "x = y ** 2  # eyJ is how a token begins",
]


@pytest.mark.parametrize(
    ("kind", "line", "secret"), FOUND, ids=[f"{kind}-{n}" for n, (kind, _, _) in enumerate(FOUND)]
)
def test_a_secret_is_taken_out_and_the_words_around_it_stay(
    kind: str, line: str, secret: str
) -> None:
    redacted = redact(f"Use this: {line} for it.")
    assert secret not in redacted.text
    assert redacted.text.startswith("Use this: ")
    assert redacted.text.endswith(" for it.")
    assert redacted.counts_by_kind[kind] >= 1, redacted


@pytest.mark.parametrize("line", LEFT)
def test_what_is_no_secret_stays(line: str) -> None:
    assert redact(line).text == line


def test_precision_and_recall_on_the_set() -> None:
    taken = sum(secret not in redact(line).text for _, line, secret in FOUND)
    wrongly = sum(redact(line).text != line for line in LEFT)
    assert taken / len(FOUND) == 1.0
    assert taken / (taken + wrongly) == 1.0


@given(
    st.lists(
        st.sampled_from([line for _, line, _ in FOUND] + LEFT + ["words", "\n", '"', "'"]),
        max_size=8,
    )
)
def test_redacting_twice_is_redacting_once(parts: list[str]) -> None:
    once = redact(" ".join(parts)).text
    assert redact(once).text == once


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(redact(text).text, str)


def test_a_secret_in_json_is_found() -> None:
    (secret,) = SECRETS["anthropic"]
    assert secret not in redact(json.dumps({"key": secret, "other": [secret]})).text


@pytest.mark.parametrize("part", ["Mid-server-", "xoxb-588349887970-"])
def test_a_prefix_that_repeats_for_ever_is_looked_at_once(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look costs the rest of the text: 20,000 characters took 1.7 s before."""
    looks: list[str] = []

    def is_placeholder(token: str) -> bool:
        looks.append(token)
        return True

    monkeypatch.setattr(tokens, "is_token_placeholder", is_placeholder)
    find_secrets(part * 1000)
    assert len(looks) <= 5
