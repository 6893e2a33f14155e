"""Documents -> chunks. A format gives atoms and strengths, one engine cuts them; adding a format is one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from anchord.chunkers.cut import cut
from anchord.chunkers.emit import emit
from anchord.chunkers.layout import Count, Layout, Limits, Sizing
from anchord.chunkers.lines import lay_out_code, lay_out_text
from anchord.chunkers.markdown import lay_out_markdown
from anchord.model import Chunk, Document

VERSION = "2"
"""Part of the recipe: raise it with any change that gives other chunks for the same text."""

_LAYOUTS: dict[str, Callable[[str, Sizing], Layout]] = {
    "markdown": lay_out_markdown,
    "text": lay_out_text,
    "code": lay_out_code,
}

_SHRINK = 0.8
_SMALLEST_BODY = 16


def chunk(document: Document, limits: Limits, count: Count, key: str = "") -> list[Chunk]:
    """Cut a document into chunks, in order; none of their embedded texts is over `limits.window` tokens.

    `key` names the file in the chunk ids. The same arguments always give the same chunks.
    """
    sizing = Sizing(limits, count)
    layout = _LAYOUTS[document.kind](document.text, sizing)
    chunks = emit(layout, cut(layout, limits), sizing, key, document.kind)
    if limits.body > _SMALLEST_BODY and any(piece.tokens > limits.window for piece in chunks):
        # Weights add up over white space; where a tokeniser does not keep to that, smaller pieces do.
        return chunk(document, replace(limits, body=int(limits.body * _SHRINK)), count, key)
    return chunks
