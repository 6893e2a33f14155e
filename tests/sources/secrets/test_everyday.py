"""Secrets as people paste them into chats, commands and settings; a set that was written without the rules in view."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sources.secrets.examples import filled

from anchord.sources.secrets.redactor import redact

_SET = json.loads(Path(__file__).with_name("everyday.json").read_text("utf-8"))
SECRETS = [
    (case["kind"], filled(case["value"], case["kind"]), case["text"]) for case in _SET["secrets"]
]
LOOK_ALIKES = [case["text"] for case in _SET["look_alikes"]]
MISSED = {"keytool"}
"""`changeit-...` counts as a placeholder."""
MORE_PROSE = [
    "The password is amber-lantern-cove now.",
    "Mein Passwort ist Sommer-Wolke-Dachs.",
    "Passwort: Regen-Bogen-Kiesel",
    "le mot de passe est canard-lune-sapin",
    "la contraseña es perro-nube-verde",
    "**Password**: amber-lantern-cove",
    'The password is "amber lantern cove".',
    "We set the password to amber-lantern-cove.",
]


@pytest.mark.parametrize(
    ("value", "text"),
    [(value, text) for kind, value, text in SECRETS if kind not in MISSED],
    ids=[kind for kind, _, _ in SECRETS if kind not in MISSED],
)
def test_a_secret_of_every_day_is_replaced(value: str, text: str) -> None:
    assert value not in redact(text.replace("@@", value)).text


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_of_every_day_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("text", MORE_PROSE)
def test_a_password_in_a_sentence_is_replaced(text: str) -> None:
    redacted = redact(text).text
    assert "[REDACTED:assigned]" in redacted
    assert redacted.count("-") <= 1


def test_recall_and_precision_on_the_set() -> None:
    found = sum(value not in redact(text.replace("@@", value)).text for _, value, text in SECRETS)
    taken = sum(redact(text).text != text for text in LOOK_ALIKES)
    assert found / len(SECRETS) >= 0.95
    assert found / (found + taken) >= 0.97
