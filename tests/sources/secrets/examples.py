"""Fills the examples of the rule pack, so that no token stands in the repository."""

from __future__ import annotations

import random
import re
import string

_ALPHABETS = {
    "": string.ascii_letters + string.digits,
    "L": string.ascii_letters,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "a": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "d": string.digits,
    "h": "0123456789abcdef",
    "w": string.ascii_letters + string.digits + "-_",
    "c": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "b": string.ascii_letters + string.digits + "+/",
}
_RANDOM_PART = re.compile(r"\{(\d+)([A-Za-z]?)\}")


def filled(example: str, seed: str = "") -> str:
    """Return a token of an example's form: `{36}` becomes 36 random characters.

    Args:
        example: The `example` of a rule.
        seed: Another seed gives another token.
    """
    dice = random.Random(f"{example}{seed}")  # noqa: S311 - the same in every run

    def fill(match: re.Match[str]) -> str:
        alphabet = _ALPHABETS[match[2]]
        return "".join(dice.choice(alphabet) for _ in range(int(match[1])))

    return _RANDOM_PART.sub(fill, example)
