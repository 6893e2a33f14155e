"""Tells files that hold little but secrets: key material, `.netrc`, `credentials`, kube configs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anchord.core.lazy_re import lazy_re
from anchord.sources.secrets.finding import Finding

_MAX_CHARS = 100_000
_MIN_KEY_SHARE = 0.5
_MIN_SETTINGS_SHARE = 0.8
"""A file of settings has hardly any lines of another form: prose and source code do."""
_MIN_SECRET_LINES = 2
_MIN_SECRET_LINE_SHARE = 0.3
_KEY_MATERIAL = frozenset({"private-key", "age", "password-hash"})
_NETRC_LINE = lazy_re(r"\s*(?:machine|default|login|password|account|macdef)\b")
_PROSE = lazy_re(
    r"^(?:[ \t]*(?:```|~~~|<!?[A-Za-z])"
    r"|(?![ \t]*[#;/-])[^\n:=\"]{0,60}?\b[A-Za-z]{2,12} [A-Za-z]{2,12} [A-Za-z]{2,12}\b)",
    re.MULTILINE,
)
"""A sentence, a fence of Markdown or a tag: the file is one for people."""
_NETRC = lazy_re(r"^[ \t]*(?:machine\s+\S+|default)\s+login\s+\S+\s+password\s", re.MULTILINE)
_KUBECTL_CONFIG = lazy_re(r"^kind:[ \t]*[\"']?Config\b", re.MULTILINE)
_KUBECTL_USERS = lazy_re(r"^users:", re.MULTILINE)
_DOCKER_CONFIG = lazy_re(r"\s*\{\s*\"auths\"\s*:")
_COMMENT = lazy_re(r"\s*(?:#|//|;|<!--|\[|---|$)")
_SETTING = lazy_re(r"\s*(?:export\s+|set\s+|-\s+)?[\"']?[\w./-]+[\"']?\s*[:=]")


def holds_mostly_secrets(text: str, findings: Sequence[Finding]) -> bool:
    """Return whether little is left of a text without its secrets.

    Args:
        text: The text of a file.
        findings: Its secrets, in order.

    Returns:
        True if the text has a secret, has no prose, and is a `.netrc` or the configuration of
        kubectl or docker; half of it is key material; or it is a list of settings, three in ten
        with a secret.
    """
    if not findings or len(text) > _MAX_CHARS:
        return False
    lines = [line for line in text.split("\n") if not _COMMENT.match(line)]
    if _NETRC.search(text) and all(map(_NETRC_LINE.match, lines)):
        return True
    return not _PROSE.search(text) and (
        _is_tool_configuration(text)
        or _is_key_material(text, findings)
        or _is_list_of_secrets(text, lines, findings)
    )


def _is_tool_configuration(text: str) -> bool:
    """Return whether a text is the configuration of docker or kubectl."""
    is_kubectl = _KUBECTL_CONFIG.search(text) and _KUBECTL_USERS.search(text)
    return bool(_DOCKER_CONFIG.match(text) or is_kubectl)


def _is_key_material(text: str, findings: Sequence[Finding]) -> bool:
    keys = [each for each in findings if each.kind in _KEY_MATERIAL]
    key_chars = sum(each.end - each.start for each in keys)
    return key_chars >= _MIN_KEY_SHARE * len(text.strip())


def _is_list_of_secrets(text: str, lines: Sequence[str], findings: Sequence[Finding]) -> bool:
    setting_count = sum(bool(_SETTING.match(line)) for line in lines)
    if setting_count < _MIN_SETTINGS_SHARE * len(lines):
        return False
    secret_lines = {text.count("\n", 0, each.start) for each in findings}
    is_many = len(secret_lines) >= _MIN_SECRET_LINE_SHARE * len(lines)
    return is_many and len(secret_lines) >= _MIN_SECRET_LINES
