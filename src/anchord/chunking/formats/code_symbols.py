"""Find the definitions in source code with tree-sitter, if its language's grammar is installed.

This is the only user of tree_sitter. The grammars are the single wheels of the extra `[code]`,
which work offline. Without a grammar, or with one that has renamed its nodes, there are no
definitions, and `code` cuts by indentation and blank lines alone. A syntax error hides definitions
at most: the text of a chunk never comes from the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from anchord.chunking.formats.brace_repair import repair_braces

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

_MAX_NAME_CHARS = 80
_MAX_DEFINITIONS = 20_000
_MAX_ERROR_NODES = 5_000
_STEPS, _BYTES_A_STEP = 2_000, 8
"""Budget of a parse: 2,000 steps and one for every 8 bytes.

A step is a hundred operations of the parser. Code takes one for 60 bytes or more.
"""
_READ_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Lines [first, last) of a definition with the comments and decorators on top, 0-based."""

    first: int
    last: int
    head: int
    """The line of its name."""
    name: str
    depth: int
    """Number of definitions around it."""


DefinitionFinder = Callable[[str, str], list[Definition]]
"""Return the definitions of a text (first argument) in a language (second), in order."""


class ParserProcessError(Exception):
    """The parser process ended over a text or cannot be started; the message says how."""


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A grammar, and what is a definition in its language."""

    wheel: str
    types: str
    """Node types of definitions, separated by spaces."""
    function: str = "language"
    """Function of the wheel that returns the language."""
    patterns: str = ""
    """Further query patterns."""


_JS_TYPES = (
    "function_declaration generator_function_declaration class_declaration method_definition"
)
_JS_PATTERNS = """
(lexical_declaration
  (variable_declarator name: (_) @name value: [(arrow_function) (function_expression)])) @definition
(expression_statement
  (call_expression function: (identifier) @called arguments: (arguments . (string) @name))
  (#any-of? @called "describe" "it" "test")) @definition
"""
_TS_TYPES = (
    f"{_JS_TYPES} abstract_class_declaration interface_declaration type_alias_declaration "
    "enum_declaration internal_module"
)
_C_TYPES = "function_definition struct_specifier enum_specifier union_specifier type_definition"

_GRAMMARS: dict[str, _Grammar] = {
    "python": _Grammar("tree_sitter_python", "function_definition class_definition"),
    "rust": _Grammar(
        "tree_sitter_rust",
        "function_item struct_item enum_item union_item trait_item impl_item mod_item "
        "macro_definition",
    ),
    "typescript": _Grammar(
        "tree_sitter_typescript", _TS_TYPES, "language_typescript", _JS_PATTERNS
    ),
    "tsx": _Grammar("tree_sitter_typescript", _TS_TYPES, "language_tsx", _JS_PATTERNS),
    "javascript": _Grammar("tree_sitter_javascript", _JS_TYPES, patterns=_JS_PATTERNS),
    "go": _Grammar("tree_sitter_go", "function_declaration method_declaration type_spec"),
    "java": _Grammar(
        "tree_sitter_java",
        "class_declaration interface_declaration enum_declaration record_declaration "
        "annotation_type_declaration method_declaration constructor_declaration",
    ),
    "c": _Grammar("tree_sitter_c", _C_TYPES),
    "cpp": _Grammar("tree_sitter_cpp", f"{_C_TYPES} class_specifier namespace_definition"),
    "csharp": _Grammar(
        "tree_sitter_c_sharp",
        "class_declaration interface_declaration struct_declaration record_declaration "
        "enum_declaration method_declaration constructor_declaration property_declaration "
        "namespace_declaration",
    ),
    "ruby": _Grammar("tree_sitter_ruby", "method singleton_method class module"),
    "php": _Grammar(
        "tree_sitter_php",
        "function_definition method_declaration class_declaration interface_declaration "
        "trait_declaration enum_declaration namespace_definition",
        "language_php",
    ),
    "bash": _Grammar("tree_sitter_bash", "function_definition"),
}
_WRAPPER_TYPES = frozenset(
    {"decorated_definition", "export_statement", "template_declaration", "type_declaration"}
)
"""Nodes around a definition that begin with it or before it."""
_LANGUAGES_WITHOUT_BRACES = frozenset({"python", "ruby", "bash"})
_TOP_TYPES = ("comment", "attribute", "decorator", "annotation")
"""Parts of the types of nodes that belong to the definition below them."""


@cache
def grammar_versions() -> str:
    """Return the installed grammars and their versions, sorted, as one text.

    Part of the recipe: with other grammars, code has other chunks. Cached: reading the metadata of
    the packages takes 15 ms.
    """
    wheels = sorted({grammar.wheel for grammar in _GRAMMARS.values() if find_spec(grammar.wheel)})
    versions = [metadata.version(wheel.replace("_", "-")) for wheel in wheels]
    named = zip(wheels, versions, strict=True)
    return " ".join(f"{wheel} {version}" for wheel, version in named)


def has_grammar(language: str) -> bool:
    """Return whether the grammar of a language is installed, without loading it."""
    grammar = _GRAMMARS.get(language)
    if grammar is None:
        return False
    return find_spec("tree_sitter") is not None and find_spec(grammar.wheel) is not None


def find_definitions(text: str, language: str) -> list[Definition]:
    """Return the definitions of a text in order.

    Args:
        text: Source code. It is parsed in this process: use `ParserProcess` for untrusted text.
        language: "python", "rust", "typescript", "tsx", "javascript", "go", "java", "c", "cpp",
            "csharp", "ruby", "php" or "bash".

    Returns:
        At most 20,000 definitions. None for a language without an installed grammar, and for text
        that is not code of the language (over the parser's budget, or mostly errors).
    """
    parser_and_query = _load_parser_and_query(language)
    if parser_and_query is None:
        return []
    parser, query = parser_and_query
    root = _parse_repaired(
        parser,
        text,
        has_braces=language not in _LANGUAGES_WITHOUT_BRACES,
    )
    if root is None or _has_large_error(root):
        return []
    by_first_line: dict[int, Definition] = {}
    for node, name in _matches(query, root):
        first = _first_line(node)
        if first in by_first_line or len(by_first_line) >= _MAX_DEFINITIONS:
            continue
        ends_inside_line = node.end_point.column > 0
        last = node.end_point.row + ends_inside_line
        by_first_line[first] = Definition(
            first=first,
            last=max(last, first + 1),
            head=node.start_point.row,
            name=name,
            depth=0,
        )
    outermost_first = sorted(by_first_line.values(), key=lambda found: (found.first, -found.last))
    return _with_depths(outermost_first)


def _parse_repaired(parser: Parser, text: str, *, has_braces: bool) -> Node | None:
    """Parse a text; with its braces repaired where that leaves at most as many errors."""
    root = _parse(parser, text.encode())
    if root is None or not root.has_error or not has_braces:
        return root
    repaired_text = "\n".join(repair_braces(text.split("\n")))
    repaired = _parse(parser, repaired_text.encode())
    if repaired is not None and _count_error_rows(repaired) <= _count_error_rows(root):
        return repaired
    return root


def _has_large_error(root: Node) -> bool:
    """Whether a query would be slow: its time grows with the square of an error's children.

    100 KB of brackets take five seconds.
    """
    nodes = (root, *root.children)
    return any(node.is_error and node.child_count > _MAX_ERROR_NODES for node in nodes)


def _parse(parser: Parser, data: bytes) -> Node | None:
    """Parse within a budget of steps; None where the budget is not enough.

    Text that is not code of its language can take time by the square of its length or more: 6 KB of
    Ruby took half a minute. The budget counts steps and not seconds, so that a file has the same
    chunks on every machine.
    """
    steps_left = _STEPS + len(data) // _BYTES_A_STEP

    def is_over_budget(_offset: int, _has_error: bool) -> bool:  # noqa: FBT001 - as it is called
        nonlocal steps_left
        steps_left -= 1
        return steps_left < 0

    def read(offset: int, _point: object) -> bytes:
        return data[offset : offset + _READ_BYTES]

    try:
        # Given the bytes at once, the library would never call `is_over_budget`.
        return parser.parse(read, progress_callback=is_over_budget).root_node
    except ValueError:
        parser.reset()
        return None


def _count_error_rows(root: Node) -> int:
    """Return how many rows the parser could not make sense of, among the first 5,000 nodes."""
    rows, visited, pending = 0, 0, [root]
    while pending and visited < _MAX_ERROR_NODES:
        node = pending.pop()
        visited += 1
        if node.is_error or node.is_missing:
            rows += node.end_point.row - node.start_point.row + 1
        elif node.has_error:
            pending += node.children
    return rows


def _with_depths(definitions: list[Definition]) -> list[Definition]:
    """Set how many definitions are around each; they are sorted, outer ones first."""
    around: list[Definition] = []
    with_depths: list[Definition] = []
    for definition in definitions:
        while around and around[-1].last <= definition.first:
            around.pop()
        with_depths.append(replace(definition, depth=len(around)))
        around.append(definition)
    return with_depths


def _matches(query: Query, root: Node) -> Iterator[tuple[Node, str]]:
    """Yield the nodes of definitions with their names; a name is "" where there is none."""
    from tree_sitter import QueryCursor  # noqa: PLC0415 - it comes with the extra `[code]`

    for _, captures in QueryCursor(query).matches(root):
        for node in captures["definition"]:
            captured_names = captures.get("name")
            name_node = captured_names[0] if captured_names else _name_node(node)
            yield node, _node_name(name_node)


def _node_name(name_node: Node | None) -> str:
    """Return the first line of a name without quotation marks, at most 80 characters."""
    if name_node is None or name_node.text is None:
        return ""
    name = name_node.text.decode("utf-8", "replace").strip("'\"`")
    return name.split("\n")[0][:_MAX_NAME_CHARS]


def _name_node(node: Node) -> Node | None:
    """Return the node of a definition's name.

    It is the field `name`, or the type of an `impl`, or the innermost declarator in C.
    """
    fallback_field = "type" if node.type == "impl_item" else "declarator"
    named = node.child_by_field_name("name") or node.child_by_field_name(fallback_field)
    while named and (inner := named.child_by_field_name("declarator")):
        named = inner
    return named


def _first_line(node: Node) -> int:
    """Return the first line of a definition with its decorators, attributes and comments."""
    while node.parent and node.parent.type in _WRAPPER_TYPES:
        node = node.parent
    first = node.start_point.row
    while (above := node.prev_sibling) and any(part in above.type for part in _TOP_TYPES):
        ends_at_line_start = above.end_point.column == 0
        last = above.end_point.row - ends_at_line_start
        # A blank line between parts them; a comment behind code on the same line is not on top.
        if last < first - 1 or above.start_point.row >= first:
            break
        node, first = above, above.start_point.row
    return first


@cache
def _load_parser_and_query(language: str) -> tuple[Parser, Query] | None:
    """Load a grammar; None where it is not installed, or lacks a node type that the query names."""
    if not has_grammar(language):
        return None
    from tree_sitter import Language, Parser, Query, QueryError  # noqa: PLC0415 - likewise

    grammar = _GRAMMARS[language]
    language_of_wheel = getattr(import_module(grammar.wheel), grammar.function)
    loaded = Language(language_of_wheel())
    types = " ".join(f"({name})" for name in grammar.types.split())
    try:
        return Parser(loaded), Query(loaded, f"[{types}] @definition\n{grammar.patterns}")
    except QueryError:
        return None
