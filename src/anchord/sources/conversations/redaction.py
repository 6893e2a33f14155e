"""Replaces secrets in conversations before anything is hashed, embedded, stored or logged.

The rules are those of detect-secrets for the tokens of providers, and patterns that it lacks. A
secret becomes `[REDACTED:kind]`; the words around it stay. Random text alone (hashes, ids, base64)
stays: a secret must carry a provider's prefix, or be assigned to a name such as `api_key`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from detect_secrets.__version__ import VERSION
from detect_secrets.plugins.artifactory import ArtifactoryDetector
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector

_OWN_VERSION = "2"
"""Increase it with every change to the rules below: all transcripts are then read again."""

_PLUGINS = {
    "artifactory": ArtifactoryDetector,
    "aws": AWSKeyDetector,
    "azure": AzureStorageKeyDetector,
    "discord": DiscordBotTokenDetector,
    "github": GitHubTokenDetector,
    "gitlab": GitLabTokenDetector,
    "mailchimp": MailchimpDetector,
    "openai": OpenAIDetector,
    "pypi": PypiTokenDetector,
    "sendgrid": SendGridDetector,
    "slack": SlackDetector,
    "square": SquareOAuthDetector,
    "stripe": StripeDetector,
    "telegram": TelegramBotTokenDetector,
}
"""Kind of secret -> the detect-secrets plugin that finds it."""
_ASSIGNED_NAME = (
    r"(?:api[_-]?key|access[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?"
    r"|(?:auth[_-]?|access[_-]?)?token|passw(?:or)?d)"
)
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
)
_AUTHORIZATION_HEADER = (
    r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+"
    r"(?P<secret>[A-Za-z0-9._~+/=-]{12,})"
)
_QUOTED_ASSIGNMENT = (
    rf"(?i)\b[\w.-]{{0,64}}{_ASSIGNED_NAME}[\"']?\s*(?:=|:|=>)\s*"
    r"[\"'](?P<secret>[^\s\"'$<{][^\s\"'<>]{7,})[\"']"
)
_ENVIRONMENT_ASSIGNMENT = (
    r"\b[A-Z0-9_]*(?:API_KEY|SECRET|TOKEN|PASSWORD|PASSWD)\b\s*=\s*"
    r"(?P<secret>[A-Za-z0-9_+/.~-]{16,}={0,2})"
)
_OWN_PATTERNS = {
    "private-key": [_PRIVATE_KEY, r"PuTTY-User-Key-File-\d.*?(?:Private-MAC: [0-9a-f]+|\Z)"],
    "anthropic": [r"\bsk-ant-[A-Za-z0-9_-]{20,}"],
    "openai": [r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}"],
    "github": [r"\bgithub_pat_[A-Za-z0-9_]{22,}", r"\bgh[pousr]_[A-Za-z0-9]{36,}"],
    "google": [
        r"\bAIza[0-9A-Za-z_-]{35}\b",
        r"\bya29\.[0-9A-Za-z_-]{20,}",
        r"\bGOCSPX-[0-9A-Za-z_-]{20,}",
    ],
    "huggingface": [r"\bhf_[A-Za-z0-9]{30,}"],
    "npm": [r"\bnpm_[A-Za-z0-9]{36}\b"],
    "slack": [r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}", r"\bxapp-\d-[0-9A-Za-z-]{10,}"],
    "stripe": [r"\b(?:sk|rk|whsec)_(?:live_|test_)?[0-9A-Za-z]{24,}"],
    "digitalocean": [r"\bdo[opr]_v1_[0-9a-f]{64}\b"],
    "databricks": [r"\bdapi[0-9a-f]{32}\b"],
    "age": [r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"],
    "twilio": [r"\bSK[0-9a-f]{32}\b"],
    "jwt": [r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"],
    "password-in-url": [r"://[^:/?#\s\"'<>@]+:(?P<secret>[^/?#\s\"'<>@]{3,})@"],
    "authorization": [_AUTHORIZATION_HEADER],
    "assigned": [_QUOTED_ASSIGNMENT, _ENVIRONMENT_ASSIGNMENT],
}
"""Kind of secret -> patterns. A group `secret` is what is replaced; else the whole match is."""
_PREFILTER = re.compile(
    r"PRIVATE KEY|PuTTY|AKC|\bAP[\dA-F]|A3T|ABIA|ACCA|AKIA|ASIA|(?i:aws)|AccountKey|[MNO][\w-]{23}|"
    r"gh[pousr]_|github_pat|gl[a-z]+-|GR13|"
    r"-us\d|\bsk-|pypi-|SG\.|xox|xapp-|hooks\.slack|sq0csp|[rs]k_|whsec_|\d{8}:|AIza|ya29|GOCSPX|"
    r"hf_|npm_|do[opr]_v1|dapi|AGE-|"
    r"\bSK[0-9a-f]{8}|eyJ|://[^\s/]*@|(?i:authorization|key|secret|token|passw)"
)
"""Matches every text in which one of the rules could match, and more. Most texts need no rule."""


@dataclass(frozen=True, slots=True)
class RedactedText:
    """A text without its secrets."""

    text: str
    counts_by_kind: Counter[str]
    """Kind of secret -> how many were replaced."""


class Redactor:
    """Replaces secrets in texts."""

    version = f"detect-secrets {VERSION}, {_OWN_VERSION}"
    """Names the rules: transcripts that were redacted by other rules are read again."""

    def __init__(self) -> None:
        """Compile the rules."""
        self._rules: list[tuple[str, re.Pattern[str]]] = []
        for kind, patterns in _OWN_PATTERNS.items():
            self._rules += [(kind, re.compile(pattern, re.DOTALL)) for pattern in patterns]
        for kind, plugin in _PLUGINS.items():
            self._rules += [(kind, pattern) for pattern in plugin().denylist]

    def redact(self, text: str) -> RedactedText:
        """Replace each secret in a text by `[REDACTED:kind]`.

        Redacting the result again changes nothing.
        """
        redacted = self._redact_once(text)
        # A replaced secret can be the word border that a token right beside it lacked. So repeat
        # until nothing more is found.
        while True:
            again = self._redact_once(redacted.text)
            if not again.counts_by_kind:
                return redacted
            counts = redacted.counts_by_kind + again.counts_by_kind
            redacted = RedactedText(again.text, counts)

    def _redact_once(self, text: str) -> RedactedText:
        counts: Counter[str] = Counter()
        if not _PREFILTER.search(text):
            return RedactedText(text, counts)
        # Of spans that start together the longest comes first.
        spans = sorted(self._spans(text), key=lambda span: (span[0], -span[1]))
        parts: list[str] = []
        done = 0
        for start, end, kind in spans:
            if start >= done:
                parts += [text[done:start], f"[REDACTED:{kind}]"]
                done = end
                counts[kind] += 1
            elif end > done:
                done = end  # It overlaps the span before: both are one secret.
        parts.append(text[done:])
        return RedactedText("".join(parts), counts)

    def _spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and kind of each secret that a rule finds, rule by rule."""
        for kind, rule in self._rules:
            for match in rule.finditer(text):
                start, end = _secret_span(match)
                if start < end and not _is_redacted(text, match.start(), start):
                    yield start, end, kind


def _is_redacted(text: str, match_start: int, secret_start: int) -> bool:
    """Return whether a match is, or comes right after, the mark of an earlier redaction."""
    mark = "[REDACTED:"
    return text.startswith(mark, secret_start) or mark in text[match_start:secret_start]


def _secret_span(match: re.Match[str]) -> tuple[int, int]:
    """Return where the secret is: the group `secret`, or the match without blanks and quotes."""
    if "secret" in match.re.groupindex:
        return match.span("secret")
    text = match.string
    start, end = match.span()
    while start < end and text[start] in " \t\n=:\"'":
        start += 1
    while end > start and text[end - 1] in " \t\n\"'":
        end -= 1
    return start, end
