"""Documents -> chunks. A format gives atoms and strengths, one engine cuts them; adding a format is one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anchord.chunkers.code import lay_out_code
from anchord.chunkers.cut import cut
from anchord.chunkers.emit import emit
from anchord.chunkers.layout import Count, Layout, Limits, Sizing
from anchord.chunkers.lines import lay_out_text
from anchord.chunkers.markdown import lay_out_markdown
from anchord.model import Chunk, Document

VERSION = "3"
"""Part of the recipe: raise it with any change that gives other chunks for the same text."""

_LAYOUTS: dict[str, Callable[[Document, Sizing], Layout]] = {
    "markdown": lambda document, sizing: lay_out_markdown(document.text, sizing),
    "text": lambda document, sizing: lay_out_text(document.text, document.language, sizing),
    "code": lambda document, sizing: lay_out_code(document.text, document.language, sizing),
}

_SHARES = {"code": 0.95}
"""Edits of code touch a line here and a line there: a little smaller chunks embed fewer characters and hardly more texts."""
_SHRINK = 0.8
_SMALLEST_BODY = 16


def chunk(document: Document, limits: Limits, count: Count, key: str = "") -> list[Chunk]:
    """Cut a document into chunks, in order; none of their embedded texts is over `limits.window` tokens.

    `key` names the file in the chunk ids. The same arguments always give the same chunks.
    """
    limits = replace(limits, body=max(1, int(limits.body * _SHARES.get(document.kind, 1))))
    sizing = Sizing(limits, count)
    layout = _LAYOUTS[document.kind](document, sizing)
    chunks = emit(layout, cut(layout, limits), sizing, key, document.kind)
    if limits.body > _SMALLEST_BODY and any(piece.tokens > limits.window for piece in chunks):
        # Weights add up over white space; where a tokeniser does not keep to that, smaller pieces do.
        return chunk(document, replace(limits, body=int(limits.body * _SHRINK)), count, key)
    return chunks
