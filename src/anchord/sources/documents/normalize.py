"""Normalisation of text for the chunkers."""

from __future__ import annotations

from anchord.core.lazy_re import lazy_re

_UNSAFE_CHARS = lazy_re("[\0\ud800-\udfff]")


def normalize_text(text: str) -> str:
    """Normalise a text for the chunkers: LF line ends, and no BOM at its start.

    NUL and lone surrogates become U+FFFD, because tokenizers crash on them.
    """
    text = _UNSAFE_CHARS.sub("\ufffd", text.lstrip("\ufeff"))
    return text.replace("\r\n", "\n").replace("\r", "\n")
