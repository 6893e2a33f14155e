"""How many tokens a text costs a language model at most, and texts cut to a number of tokens."""

from __future__ import annotations

import json
import math
import re

_TOKEN = re.compile(r"[A-Za-z]{1,4}|[^A-Za-z\s]|\n")
_LONG_RUN = re.compile(r"(?<![A-Za-z0-9+/])(?=[A-Za-z+/]*[0-9])[A-Za-z0-9+/]{24,}")
"""Letters with digits among them, as in base64: three characters are two tokens, or nearly."""
_EXTRA_TOKENS = (
    # Latin letters beyond ASCII, Greek, Armenian, Hebrew, Arabic and others of two bytes.
    (re.compile("[\u00a1-\u03ff\u0530-\u07ff]"), 1.2),
    # Georgian, the scripts of India, Thai and others of three bytes; signs.
    (re.compile("[\u0800-\u1fff\u2070-\u2fff\ua000-\uabff\uf900-\uffff]"), 2.2),
    (re.compile("[\u2000-\u206f]"), 1.0),
    # Chinese, Japanese and Korean.
    (re.compile("[\u3000-\u9fff\uac00-\ud7ff]"), 0.5),
    (re.compile("[\U00010000-\U0010ffff]"), 3.0),
)
"""Characters -> the tokens that each may be beyond one, measured with a tokenizer that splits what
it does not know into bytes."""
_CUTTABLE = re.compile(r"[A-Za-z]{1,40}|[0-9]|\s+|.", re.DOTALL)
"""What a cut keeps whole: words, but not a run of letters that is as long as a line."""
_ELLIPSIS = " …"
_JOINERS = "\u200c\u200d"
"""They join two letters, and must not be left at the end."""


def token_upper_bound(text: str) -> int:
    """Estimate the tokens of a text from above, for the tokenizer of any model.

    Runs of letters count one token per 4 letters begun, other characters one, and white space one
    per line end. Scripts that tokenizers know less of count more (`_EXTRA_TOKENS`), at most one
    token a byte.
    """
    return math.ceil(_weigh(text))


def _weigh(text: str) -> float:
    count = float(len(_TOKEN.findall(text)))
    count += sum(len(run) // 3 for run in _LONG_RUN.findall(text))
    if not text.isascii():
        count += sum(extra * len(found.findall(text)) for found, extra in _EXTRA_TOKENS)
    return count


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
    wanted = budget
    beginning = _cut(text, wanted)
    # Its words together can count more than one by one.
    while beginning and (excess := field_tokens(beginning) - budget) > 0:
        wanted -= excess
        beginning = _cut(text, wanted)
    return beginning


def _cut(text: str, budget: int) -> str:
    count = _weigh(_ELLIPSIS)
    end = 0
    for match in _CUTTABLE.finditer(text):
        count += _weigh(_encode(match[0]))
        if count > budget:
            break
        end = match.end()
    beginning = text[:end].rstrip().rstrip(_JOINERS)
    return f"{beginning}{_ELLIPSIS}" if beginning else ""


def _encode(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
