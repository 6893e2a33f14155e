"""Text as chunkers take it."""

from __future__ import annotations

import re

_REPLACED = re.compile("[\0\ud800-\udfff]")


def clean(text: str) -> str:
    """Return a text as chunkers take it: LF line ends, no BOM, U+FFFD for NUL and for lone surrogates (tokenizers crash)."""
    text = _REPLACED.sub("\ufffd", text.lstrip("\ufeff"))
    return text.replace("\r\n", "\n").replace("\r", "\n")
