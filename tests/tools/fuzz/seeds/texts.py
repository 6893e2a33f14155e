"""Invented texts of every format, for the reader of documents and the chunker."""

from __future__ import annotations

import json

from tools.fuzz.seeds.written import text, value

MARKDOWN = """---
title: Bread
---

# On bread

Rye rises for two hours. Wheat rises for one, and oats do not rise at all; nobody knows why.

## What it needs

- flour, and much of it
  - of rye
  - of wheat
- water:

  ```py
  def knead(dough):
      return dough * 2
  ```

| flour | hours |
|-------|-------|
| rye   | 2     |
| wheat | 1     |

> Said the baker,
> > who had it from his mother.

Setext
======

<!-- a comment
```
-->

~~~
a fence
~~~

1. first
2. second

***

```
never closed
"""
_PYTHON = '''"""Bread."""

import time


class Oven:
    """Bakes."""

    def bake(self, bread: str) -> str:
        """Bake it."""
        if bread:
            time.sleep(3)
        return f"{bread} baked"


def knead(dough: int) -> int:
    return dough * 2
'''
_RUST = (
    "use std::fmt;\n\n/// Bread.\npub struct Bread {\n    hours: u32,\n}\n\n"
    "impl Bread {\n    fn rise(&self) -> u32 {\n        self.hours\n    }\n}\n"
)
_JAVASCRIPT = (
    "export class Oven {\n  bake(bread) {\n    if (bread) {\n      return `${bread} baked`\n    }\n  }\n}\n\n"
    "const knead = (a) => {\n  return a * 2\n"
)
_RST = "Bread\n=====\n\n.. note:: rye\n\nWheat\n-----\n\n::\n\n    code\n    more\n\n* one\n* two\n"
_ADOC = "= Bread\n\n== Rye\n\n----\ncode\n----\n\n* one\n** two\n"
_ORG = "* Bread\n** Rye\n#+BEGIN_SRC py\nx = 1\n#+END_SRC\n- one\n"
_HTML = "<html><head><title>Bread</title></head><body><h1>Bread</h1><p>Rye.</p><h2>Wheat</h2><pre>x\ny</pre></body></html>\n"
_YAML = "bread:\n  rye: 2\n  wheat:\n    - 1\n    - 2\noats: null\n"
_INI = "[bread]\nrye = 2\n\n[oats]\nrise = no\n"
_CSV = "flour,hours\n" + "rye,2\nwheat,1\n" * 30
_PROSE = "Rye rises for two hours. Wheat, they say, rises for one! Do oats rise? No. " * 5
_SAID = (
    "How long does rye rise?\nAnd wheat?\n\nTwo hours.\n\n```\nx = 1\n```\n\n"
    "I decided to use wheat instead of rye because it is faster.\n"
)
_TALK = "> How long does rye rise?\n\nTwo hours.\n\n---\n\n> And wheat?\n> Really?\n\nOne hour.\n\n> Oats?\n\nNo.\n"
_CJK = "\u9eba\u5305\u53d1\u9175\u4e24\u4e2a\u5c0f\u65f6\u3002" * 30
_ONE_WORD = "x" * 1_000
NOTEBOOK = {
    "nbformat": 4, "metadata": {"kernelspec": {"name": "python3"}}, "cells": [
        {"cell_type": "markdown", "source": ["# Bread\n", "\n", "```\n", "never closed"]},
        {"cell_type": "code", "source": "def knead(a):\n    return a * 2\n", "outputs": [{"text": "4"}]},
        {"cell_type": "raw", "source": []}],
}  # fmt: skip
_OLD_NOTEBOOK = {
    "nbformat": 3, "worksheets": [{"cells": [
        {"cell_type": "heading", "level": 2, "source": ["Bread"]},
        {"cell_type": "code", "language": "python", "input": ["x = 1\n", "x"], "outputs": []}]}],
}  # fmt: skip

DOCUMENTS = (
    text("notes/bread.md", MARKDOWN),
    text("src/oven.py", _PYTHON),
    text("README", _PROSE),
    value("bread.ipynb", NOTEBOOK),
    f"bread.ipynb\n{json.dumps(NOTEBOOK, indent=1)}".encode(),
    f"old.ipynb\n{json.dumps(_OLD_NOTEBOOK, indent=1)}".encode(),
    b'broken.ipynb\n{"cells": [',
    b"utf16.txt\n\xff\xfe" + "Rye rises.\r\nSlowly.".encode("utf-16-le"),
    b"utf32.txt\n\xff\xfe\0\0" + "Rye.".encode("utf-32-le"),
    b"bom.md\n\xef\xbb\xbf# Bread\r\n\r\nRye.\r",
    b"latin.txt\nBr\xf6tchen, und noch eins.\n",
    b"nul.txt\nRye\0rises, and so does wheat, after a while.\n",
    b"picture.md\n\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
)
_FORMS = {
    "rst": _RST, "adoc": _ADOC, "org": _ORG, "html": _HTML, "yaml": _YAML, "toml": _INI, "ini": _INI,
    "json": json.dumps(NOTEBOOK, indent=2), "csv": _CSV, "tsv": _CSV.replace(",", "\t"), "-": _PROSE,
}  # fmt: skip
CHUNKED = (
    *(text(f"markdown - {strategy} - - - 0", MARKDOWN + _PROSE) for strategy in (
        "anchored", "window", "exchange", "headers", "paragraph", "semantic", "sentences", "two_stage", "recursive")),
    *(text(f"text {form} anchored - - - 0", said) for form, said in _FORMS.items()),
    text("code python anchored - - - 0", _PYTHON),
    text("code rust semantic - - - 0", _RUST),
    text("code javascript two_stage - - - 0", _JAVASCRIPT),
    text("exchange - anchored 64 - - 2", _SAID),
    text("exchange - exchange 64 - - 2", _SAID + MARKDOWN),
    text("attachment - anchored 80 400 100 1", MARKDOWN),
    text("summary - sentences 64 - - 0", _SAID),
    text("markdown - exchange 64 - - 0", _TALK),
    text("markdown - anchored 64 200 50 0", MARKDOWN),
    text("text - exchange 64 - - 0", "\n".join(f"line {n} of a poem" for n in range(40))),
    text("text - recursive 64 90 - 0", _PROSE),
    text("markdown - window 64 64 10 0", _CJK),
    text("text - semantic - - - 0", _CJK),
    text("markdown - anchored - - - 0", _ONE_WORD),
    text("text - window - - - 0", _ONE_WORD),
)  # fmt: skip
REPEATED = tuple(
    text(head, said) for head, said in (
        ("markdown - anchored - - - 0", "- item same text here\n"), ("markdown - anchored - - - 0", "> " * 8 + "x\n"),
        ("markdown - semantic - - - 0", "Rye rises. Slowly!\n\n"), ("markdown - two_stage - - - 0", "```\nx\n```\n\ny\n"),
        ("code python anchored - - - 0", "def f(x):\n    return x\n\n"), ("text rst anchored - - - 0", _RST),
        ("text html anchored - - - 0", "<h1>a</h1>\n<pre>\nx\n"), ("markdown - recursive - - - 0", "x"),
    )
)  # fmt: skip
