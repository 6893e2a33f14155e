"""Code with a missing brace is cut nearly as before: indentation restores the blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord import chunk_text
from anchord.chunking.formats.brace_repair import repair_braces

FUNCTION = {
    "a.js": "  m{n}(a) {{\n    let x{n} = a + {n};\n    if (x{n} > 2) {{\n      return {n};\n    }}\n    return x{n};\n  }}\n",
    "a.ts": "  m{n}(a: number): number {{\n    const x{n} = a + {n};\n    return x{n} * {n};\n  }}\n",
    "A.java": "  public int m{n}(int a) {{\n    int x{n} = a + {n};\n    return x{n} * {n};\n  }}\n",
    "a.go": "func F{n}(a int) int {{\n\tx := a + {n}\n\tif x > {n} {{\n\t\treturn {n}\n\t}}\n\treturn x * {n}\n}}\n",
    "a.rs": "    pub fn m{n}(&self, a: i64) -> i64 {{\n        let x = a + {n};\n        x * {n}\n    }}\n",
    "a.c": "int f{n}(int a)\n{{\n    int x = a + {n};\n    return x * {n};\n}}\n",
}
AROUND = {
    "a.js": "class A {",
    "a.ts": "export class A {",
    "A.java": "class A {",
    "a.rs": "impl A {",
}


def program(name: str) -> list[str]:
    body = "\n".join(FUNCTION[name].format(n=n) for n in range(60))
    return (f"{AROUND[name]}\n{body}}}\n" if name in AROUND else body).split("\n")


@pytest.mark.parametrize("name", FUNCTION)
def test_a_closing_brace_that_is_missing_embeds_five_texts_at_most(name: str) -> None:
    lines = program(name)
    known = {chunk["embed_text"] for chunk in chunk_text("\n".join(lines), path=name)}
    closing = [number for number, line in enumerate(lines) if line.strip() == "}"]
    for number in closing[3:-1:7]:
        edited = "\n".join([*lines[:number], *lines[number + 1 :]])
        assert len({chunk["embed_text"] for chunk in chunk_text(edited, path=name)} - known) <= 5


@pytest.mark.parametrize("name", FUNCTION)
def test_a_block_that_is_opened_and_not_yet_closed_changes_five_ids_at_most(name: str) -> None:
    lines = program(name)
    before = {chunk["id"] for chunk in chunk_text("\n".join(lines), path=name)}
    half = chunk_text("\n".join([*lines[:-30], "  if (x) {", *lines[-30:]]), path=name)
    assert len({chunk["id"] for chunk in half} - before) <= 5


BALANCED = {
    "a missing one": ("f {\n  g {\n    x\nh {\n}", "f {\n  g {\n    x } }\nh {\n}"),
    "one too many": ("f {\n  }\n}", "f {\n   \n}"),
    "the last": ("f {\n  x", "f {\n  x }"),
    "on a line of its own": ("f\n{\n  x\n}\ng", "f\n{\n  x\n}\ng"),
    "else": ("if {\n  x\n} else {\n  y\n}", "if {\n  x\n} else {\n  y\n}"),
    "a comment behind it": ("f { // why\n  x\ng", "f { // why\n  x }\ng"),
    "blank lines": ("f {\n\n  x\n\n}\n", "f {\n\n  x\n\n}\n"),
}


@pytest.mark.parametrize(("text", "mended"), BALANCED.values(), ids=BALANCED)
def test_braces_agree_with_the_indentation(text: str, mended: str) -> None:
    assert "\n".join(repair_braces(text.split("\n"))) == mended


@given(
    st.lists(
        st.sampled_from(["f {", "  g {", "    x", "  }", "}", "", "} else {", "{", "\t}"]),
        max_size=30,
    )
)
def test_no_line_comes_or_goes_and_all_that_opens_closes(lines: list[str]) -> None:
    mended = repair_braces(lines)
    assert len(mended) == len(lines)
    text = "".join(mended)
    assert text.count("{") == text.count("}")
