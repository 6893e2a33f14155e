"""Sizes in words."""

from __future__ import annotations

_UNITS = (("GB", 1e9), ("MB", 1e6), ("KB", 1e3))


def format_bytes(count: int) -> str:
    """Return a size with a unit that leaves no zero: `1.8 MB`, `12 KB`, `450 bytes`."""
    for unit, size in _UNITS:
        if count >= size:
            number = count / size
            return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"
    return "1 byte" if count == 1 else f"{count} bytes"
