"""Tells files that hold little but secrets: key material, `.netrc`, `credentials`, kube configs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anchord.sources.secrets.finding import Finding

_MAX_CHARS = 100_000
_MIN_KEY_SHARE = 0.5
_MIN_SETTINGS_SHARE = 0.8
"""A file of settings has hardly any lines of another form: prose and source code do."""
_MIN_SECRET_LINES = 2
_MIN_SECRET_LINE_SHARE = 0.3
_KEY_MATERIAL = frozenset({"private-key", "age", "password-hash"})
_NETRC = re.compile(r"^[ \t]*(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s", re.MULTILINE)
_KUBECTL_CONFIG = re.compile(r"^kind:[ \t]*[\"']?Config\b", re.MULTILINE)
_KUBECTL_USERS = re.compile(r"^users:", re.MULTILINE)
_DOCKER_CONFIG = re.compile(r"\s*\{\s*\"auths\"\s*:")
_COMMENT = re.compile(r"\s*(?:#|//|;|<!--|\[|---|$)")
_SETTING = re.compile(r"\s*(?:export\s+|set\s+|-\s+)?[\"']?[\w./-]+[\"']?\s*[:=]")


def holds_mostly_secrets(text: str, findings: Sequence[Finding]) -> bool:
    """Return whether little is left of a text without its secrets.

    Args:
        text: The text of a file.
        findings: Its secrets, in order.

    Returns:
        True if the text has a secret and is a `.netrc` or the configuration of kubectl or docker;
        if half of it is key material; or if it is a list of settings, three in ten with a secret.
    """
    if not findings or len(text) > _MAX_CHARS:
        return False
    if _NETRC.search(text) or _DOCKER_CONFIG.match(text):
        return True
    if _KUBECTL_CONFIG.search(text) and _KUBECTL_USERS.search(text):
        return True
    key_chars = sum(each.end - each.start for each in findings if each.kind in _KEY_MATERIAL)
    if key_chars >= _MIN_KEY_SHARE * len(text.strip()):
        return True
    lines = [line for line in text.split("\n") if not _COMMENT.match(line)]
    setting_count = sum(bool(_SETTING.match(line)) for line in lines)
    if setting_count < _MIN_SETTINGS_SHARE * len(lines):
        return False
    secret_lines = {text.count("\n", 0, each.start) for each in findings}
    is_many = len(secret_lines) >= _MIN_SECRET_LINE_SHARE * len(lines)
    return is_many and len(secret_lines) >= _MIN_SECRET_LINES
