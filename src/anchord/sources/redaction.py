"""Secrets in what was said are taken out before anything is hashed, embedded, stored or logged.

The rules of detect-secrets for the tokens of providers, and the forms that it does not know. A secret becomes
`[REDACTED:kind]`; the words around it stay. What is only random (hashes, ids, base64) stays: a provider's mark, or the name of
a key, must stand by it.
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
"""Raise it with any change of the rules below: conversations are then read again."""

_PLUGINS = {
    "artifactory": ArtifactoryDetector, "aws": AWSKeyDetector, "azure": AzureStorageKeyDetector,
    "discord": DiscordBotTokenDetector, "github": GitHubTokenDetector, "gitlab": GitLabTokenDetector,
    "mailchimp": MailchimpDetector, "openai": OpenAIDetector, "pypi": PypiTokenDetector, "sendgrid": SendGridDetector,
    "slack": SlackDetector, "square": SquareOAuthDetector, "stripe": StripeDetector, "telegram": TelegramBotTokenDetector,
}  # fmt: skip
_NAME = r"(?:api[_-]?key|access[_-]?key|secret(?:[_-]?(?:access[_-]?)?key)?|(?:auth[_-]?|access[_-]?)?token|passw(?:or)?d)"
_OWN = {
    "private-key": [r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
                    r"PuTTY-User-Key-File-\d.*?(?:Private-MAC: [0-9a-f]+|\Z)"],
    "anthropic": [r"\bsk-ant-[A-Za-z0-9_-]{20,}"],
    "openai": [r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}"],
    "github": [r"\bgithub_pat_[A-Za-z0-9_]{22,}", r"\bgh[pousr]_[A-Za-z0-9]{36,}"],
    "google": [r"\bAIza[0-9A-Za-z_-]{35}\b", r"\bya29\.[0-9A-Za-z_-]{20,}", r"\bGOCSPX-[0-9A-Za-z_-]{20,}"],
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
    "authorization": [r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+(?P<secret>[A-Za-z0-9._~+/=-]{12,})"],
    "assigned": [rf"(?i)\b[\w.-]{{0,64}}{_NAME}[\"']?\s*(?:=|:|=>)\s*[\"'](?P<secret>[^\s\"'$<{{][^\s\"'<>]{{7,}})[\"']",
                 r"\b[A-Z0-9_]*(?:API_KEY|SECRET|TOKEN|PASSWORD|PASSWD)\b\s*=\s*(?P<secret>[A-Za-z0-9_+/.~-]{16,}={0,2})"],
}  # fmt: skip
_MAYBE = re.compile(
    r"PRIVATE KEY|PuTTY|AKC|\bAP[\dA-F]|A3T|ABIA|ACCA|AKIA|ASIA|(?i:aws)|AccountKey|[MNO][\w-]{23}|"
    r"gh[pousr]_|github_pat|gl[a-z]+-|GR13|"
    r"-us\d|\bsk-|pypi-|SG\.|xox|xapp-|hooks\.slack|sq0csp|[rs]k_|whsec_|\d{8}:|AIza|ya29|GOCSPX|hf_|npm_|do[opr]_v1|dapi|AGE-|"
    r"\bSK[0-9a-f]{8}|eyJ|://[^\s/]*@|(?i:authorization|key|secret|token|passw)"
)
"""Finds whatever one of the rules could find, and more: of most texts it is all that must be asked."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without its secrets, and how many there were, by kind."""

    text: str
    kinds: Counter[str]


class Redactor:
    """Takes secrets out of texts."""

    version = f"detect-secrets {VERSION}, {_OWN_VERSION}"

    def __init__(self) -> None:
        """Compile the rules."""
        own = [(kind, re.compile(rule, re.DOTALL)) for kind, rules in _OWN.items() for rule in rules]
        theirs = [(kind, rule) for kind, plugin in _PLUGINS.items() for rule in plugin().denylist]
        self._rules: list[tuple[str, re.Pattern[str]]] = [*own, *theirs]

    def redact(self, text: str) -> Redacted:
        """Return a text with `[REDACTED:kind]` in the place of each secret. Doing so twice changes nothing more.

        What is taken out can be the border that a token right beside it lacked: so it is done until nothing more is found.
        """
        once = self._redacted(text)
        while more := (again := self._redacted(once.text)).kinds:
            once = Redacted(again.text, once.kinds + more)
        return once

    def _redacted(self, text: str) -> Redacted:
        kinds: Counter[str] = Counter()
        if not _MAYBE.search(text):
            return Redacted(text, kinds)
        spans = sorted(self._spans(text), key=lambda span: (span[0], -span[1]))
        parts, at = [], 0
        for start, end, kind in spans:
            if start >= at:
                parts += [text[at:start], f"[REDACTED:{kind}]"]
                at = end
                kinds[kind] += 1
            elif end > at:
                at = end
        return Redacted("".join([*parts, text[at:]]), kinds)

    def _spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        for kind, rule in self._rules:
            for found in rule.finditer(text):
                start, end = _secret(found)
                if start < end and not _is_redacted(text, found.start(), start):
                    yield start, end, kind


def _is_redacted(text: str, first: int, start: int) -> bool:
    """Whether what a rule found is, or is part of, the mark of what was taken out before."""
    return text.startswith("[REDACTED:", start) or "[REDACTED:" in text[first:start]


def _secret(found: re.Match[str]) -> tuple[int, int]:
    """Return where the secret itself stands: a named group, or what a rule matched, without blanks and quotes around it."""
    if "secret" in found.re.groupindex:
        return found.span("secret")
    start, end = found.span()
    while start < end and found.string[start] in " \t\n=:\"'":
        start += 1
    while end > start and found.string[end - 1] in " \t\n\"'":
        end -= 1
    return start, end
