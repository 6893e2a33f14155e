"""How many tokens a text costs a language model at most, and texts cut to a number of tokens."""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(r"[A-Za-z]{1,4}|[^A-Za-z\s]|\n")
_CUTTABLE = re.compile(r"[A-Za-z]{1,40}|[0-9]|\s+|.", re.DOTALL)
"""What a cut keeps whole: words, but not a run of letters that is as long as a line."""
_ELLIPSIS = " …"
_JOINERS = "\u200c\u200d"
"""They join two letters, and must not be left at the end."""


def token_upper_bound(text: str) -> int:
    """Estimate the tokens of a text from above, for the tokenizer of any model.

    Runs of letters count one token per 4 letters begun, every other character one, and white space
    one per line end.
    """
    return len(_TOKEN.findall(text))


def field_tokens(text: str) -> int:
    """Return an upper bound of the tokens of a text, encoded as a JSON string without quotes."""
    return token_upper_bound(_encode(text))


def cut_field(text: str, budget: int) -> str:
    """Return the beginning of a text that fits a budget as a JSON string; words stay whole.

    Args:
        text: The text, not yet encoded.
        budget: Tokens, by `field_tokens`.

    Returns:
        The text itself when it fits; otherwise a beginning with an ellipsis; "" when not even that
        fits.
    """
    if field_tokens(text) <= budget:
        return text
    count = token_upper_bound(_ELLIPSIS)
    end = 0
    for match in _CUTTABLE.finditer(text):
        count += field_tokens(match[0])
        if count > budget:
            break
        end = match.end()
    beginning = text[:end].rstrip().rstrip(_JOINERS)
    return f"{beginning}{_ELLIPSIS}" if beginning else ""


def _encode(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
