"""Source code is cut at definitions, with their comments; an edit changes only its own definition."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from textwrap import dedent, indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.chunking.chunker import split_into_chunks
from anchord.chunking.engine.layout import CountTokens
from anchord.chunking.formats import code_symbols as symbols
from anchord.chunking.formats.code_symbols import find_definitions, grammar_versions
from anchord.chunking.plan import Plan
from anchord.core.ids import hash_content
from anchord.core.types import Chunk, Document

Cutter = Callable[[str, str], list[Chunk]]


@pytest.fixture(scope="module")
def code(count: CountTokens) -> Cutter:
    """Cut source code of a language."""

    def cut_code(text: str, language: str = "python") -> list[Chunk]:
        return split_into_chunks(
            Document(text=text, kind="code", language=language), Plan(), count, "file"
        )

    return cut_code


def function(name: str, lines: int = 8) -> str:
    body = "\n".join(f"    {name}_{n} = compute({n}, {name!r})" for n in range(lines))
    return f"def {name}():\n    '''Make {name}.'''\n{body}\n    return {name}_0\n"


LANGUAGES: dict[str, tuple[str, list[tuple[str, int]]]] = {
    "python": (
        "class A:\n    def m(self):\n        pass\n\n\nasync def f():\n    pass\n",
        [("A", 0), ("m", 1), ("f", 0)],
    ),
    "rust": (
        "pub struct S { x: u8 }\n\nimpl S {\n    pub fn m(&self) {}\n}\n\nmod inner {\n    fn f() {}\n}\n",
        [("S", 0), ("S", 0), ("m", 1), ("inner", 0), ("f", 1)],
    ),
    "typescript": (
        (
            "export interface I { a: string }\nexport class A {\n  m(): void {}\n}\n"
            "export const f = (a: number) => {\n  return a\n}\n"
        ),
        [("I", 0), ("A", 0), ("m", 1), ("f", 0)],
    ),
    "tsx": (
        "export function View() {\n  return <p>a</p>\n}\ntype T = string\n",
        [("View", 0), ("T", 0)],
    ),
    "javascript": (
        "function f() {\n  return 1\n}\n\ndescribe('a thing', () => {\n  it('works', () => {\n    f()\n  })\n})\n",
        [("f", 0), ("a thing", 0), ("works", 1)],
    ),
    "go": (
        "package p\n\ntype T struct {\n\ta int\n}\n\nfunc (t T) M() {\n}\n\nfunc F() {\n}\n",
        [("T", 0), ("M", 0), ("F", 0)],
    ),
    "java": (
        "class A {\n  A() {\n  }\n\n  void m() {\n  }\n\n  enum E {\n    X\n  }\n}\n",
        [("A", 0), ("A", 1), ("m", 1), ("E", 1)],
    ),
    "c": (
        "struct S {\n  int x;\n};\n\nstatic int *f(int a) {\n  return 0;\n}\n",
        [("S", 0), ("f", 0)],
    ),
    "cpp": (
        "namespace n {\nclass A {\n  void m() {\n  }\n};\n}\n\ntemplate <class T>\nT f(T a) {\n  return a;\n}\n",
        [("n", 0), ("A", 1), ("m", 2), ("f", 0)],
    ),
    "csharp": (
        "namespace N {\n  class A {\n    int P { get; set; }\n    void M() {\n    }\n  }\n}\n",
        [("N", 0), ("A", 1), ("P", 2), ("M", 2)],
    ),
    "ruby": (
        "module M\n  class A\n    def m\n    end\n  end\nend\n",
        [("M", 0), ("A", 1), ("m", 2)],
    ),
    "php": (
        "<?php\nclass A {\n  function m() {\n  }\n}\n\nfunction f() {\n}\n",
        [("A", 0), ("m", 1), ("f", 0)],
    ),
    "bash": ("f() {\n  echo a\n}\n\nfunction g {\n  echo b\n}\n", [("f", 0), ("g", 0)]),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_definitions_are_found_with_their_names_and_depths(language: str) -> None:
    text, wanted = LANGUAGES[language]
    assert [(one.name, one.depth) for one in find_definitions(text, language)] == wanted


def test_the_table_of_languages_is_whole() -> None:
    assert set(LANGUAGES) == set(symbols._GRAMMARS)


def test_every_grammar_that_is_installed_is_named_with_its_version() -> None:
    words = grammar_versions().split()
    assert set(words[::2]) == {grammar.wheel for grammar in symbols._GRAMMARS.values()}
    assert all(version[0].isdigit() for version in words[1::2])


@pytest.mark.parametrize(
    ("language", "text", "first"),
    [
        ("python", "x = 1\n\n# about f\n# and more\n@deco\n@other(1)\ndef f():\n    pass\n", 2),
        ("python", "x = 1\n# about x\n\n@deco\ndef f():\n    pass\n", 3),
        ("rust", "use a;\n\n/// about f\n#[inline]\nfn f() {}\n", 2),
        ("typescript", "let x\n\n/** about A */\n@Component()\nexport class A {}\n", 2),
        ("java", "class B {\n  int x;\n\n  // about m\n  @Override\n  void m() {\n  }\n}\n", 3),
        ("c", "int x;\n\n/* about f\n   and more */\nint f(void) {\n  return 0;\n}\n", 2),
    ],
)
def test_comments_and_decorators_stay_with_their_definition(
    language: str, text: str, first: int
) -> None:
    assert find_definitions(text, language)[-1].first == first


def test_each_function_of_a_file_is_a_chunk_with_its_path(code: Cutter) -> None:
    methods = "\n".join(
        f"    {line}" if line else "" for name in "pqr" for line in function(name).split("\n")
    )
    chunks = code(
        f"import os\n\n{function('f')}\n\n{function('g')}\n\nclass A:\n{methods}\n", "python"
    )
    assert {("g",), ("A",), ("A", "q"), ("A", "r")} <= {piece.header_path for piece in chunks}


def test_a_line_that_follows_a_definition_is_not_under_it(code: Cutter) -> None:
    chunks = code(
        f"{function('f', 30)}\n\n" + "\n\n".join(f"run_{n}(f, {n})" for n in range(60)) + "\n",
        "python",
    )
    assert chunks[0].header_path == ("f",)
    assert chunks[-1].header_path == ()


def test_a_part_of_a_long_function_is_embedded_with_its_name(code: Cutter) -> None:
    chunks = code(function("collect_everything", 20), "python")
    assert len(chunks) == 2
    assert chunks[1].embed_text.startswith("collect_everything\n")


def test_a_definition_that_fits_is_whole(code: Cutter) -> None:
    names = [f"f{n}" for n in range(40)]
    chunks = code("\n\n".join(function(name, 6) for name in names), "python")
    for name in names:
        assert (
            sum(
                f"def {name}()" in piece.content or f"return {name}_0" in piece.content
                for piece in chunks
            )
            == 1
        )


@pytest.mark.parametrize("position", [0, 10, 39])
def test_an_edit_of_one_function_makes_one_new_id_and_one_new_vector(
    code: Cutter, position: int
) -> None:
    functions = [function(f"f{n}") for n in range(40)]
    before = code("\n\n".join(functions), "python")
    functions[position] = functions[position].replace("compute(3", "compute(33")
    after = code("\n\n".join(functions), "python")
    assert len({piece.chunk_id for piece in after} - {piece.chunk_id for piece in before}) == 1
    assert len({piece.embed_text for piece in after} - {piece.embed_text for piece in before}) == 1


def test_a_line_at_the_top_leaves_the_ids_below_alone(code: Cutter) -> None:
    text = "\n\n".join(function(f"f{n}") for n in range(40))
    before, after = (
        code(f"import os\n\n\n{text}", "python"),
        code(f"import os\nimport sys\n\n\n{text}", "python"),
    )
    assert len({piece.chunk_id for piece in after} - {piece.chunk_id for piece in before}) <= 1


def test_swapped_functions_keep_ids_and_vectors(code: Cutter) -> None:
    functions = [function(f"f{n}") for n in range(20)]
    swapped = [*functions[:5], functions[12], *functions[6:12], functions[5], *functions[13:]]
    before, after = code("\n\n".join(functions), "python"), code("\n\n".join(swapped), "python")
    assert {piece.chunk_id for piece in before} == {piece.chunk_id for piece in after}


def lines_of(chunks: list[Chunk]) -> set[int]:
    return {line for piece in chunks for line in range(piece.start_line, piece.end_line + 1)}


BROKEN = [
    "def f(:\n",
    "class {\n",
    "'''",
    "}}}",
    "\tif (",
    "fn x(",
    "<?php",
    "#!/bin/sh",
    "@",
    "\x0c",
    "return\n",
    "\n\n",
    "a b c\n",
]


@given(
    parts=st.lists(
        st.sampled_from([*BROKEN, *(text for text, _ in LANGUAGES.values())]), max_size=12
    ),
    language=st.sampled_from([*LANGUAGES, "", "cobol"]),
)
def test_a_syntax_error_never_loses_a_line(code: Cutter, parts: list[str], language: str) -> None:
    text = "".join(parts)
    covered = lines_of(code(text, language))
    assert all(number in covered for number, line in enumerate(text.split("\n"), 1) if line.strip())


def test_003_27_without_a_grammar_blank_lines_and_indentation_do(
    code: Cutter, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n\n".join(function(f"f{n}") for n in range(20))
    with_grammar = code(text, "python")
    monkeypatch.setattr(symbols, "find_spec", lambda _: None)
    symbols._load_parser_and_query.cache_clear()
    grammar_versions.cache_clear()
    try:
        without = code(text, "python")
        assert find_definitions(text, "python") == []
        assert grammar_versions() == ""
    finally:
        monkeypatch.undo()
        symbols._load_parser_and_query.cache_clear()
        grammar_versions.cache_clear()
    assert importlib.util.find_spec("tree_sitter") is not None
    assert [piece.content for piece in without] == [piece.content for piece in with_grammar]
    assert {piece.header_path for piece in without} == {()}


def test_a_grammar_with_other_node_names_gives_no_definitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        symbols._GRAMMARS,
        "python",
        symbols._Grammar("tree_sitter_python", "function_of_another_version"),
    )
    symbols._load_parser_and_query.cache_clear()
    try:
        assert find_definitions("def f():\n    pass\n", "python") == []
    finally:
        monkeypatch.undo()
        symbols._load_parser_and_query.cache_clear()


def test_a_block_moved_to_another_depth_keeps_its_vectors(code: Cutter) -> None:
    blocks = [
        "\n".join([f"def {name}():", *(f"    {name}_{n} = {n}" for n in range(25))])
        for name in "fgh"
    ]
    flat = "\n\n\n".join(blocks)
    deep = "if moved:\n" + indent(flat, "    ")
    known = {piece.embed_text for piece in code(flat, "python")}
    moved = code(deep, "python")
    assert len(moved) == len(known) == 3
    assert [piece.embed_text in known for piece in moved] == [False, True, True]


def test_what_is_embedded_of_code_has_no_margin_and_its_content_and_hash_have_it(
    code: Cutter,
) -> None:
    text = "class A:\n" + "\n\n".join(
        f"    def f{n}(self):\n" + f"        return {n} + {n}\n" * 25 for n in range(4)
    )
    inner = [piece for piece in code(text, "python") if piece.content.startswith("    def")]
    assert inner
    for piece in inner:
        assert piece.embed_text.endswith(dedent(piece.content))
        assert hash_content(piece.content.encode()) == piece.content_hash
