"""Source code -> its definitions, by tree-sitter where the grammar of its language is installed. The only user of tree_sitter.

The grammars are the single wheels of the extra `[code]`, which work offline. Without one, or where one has changed its node
names, there are no definitions, and `code` cuts by indentation and blank lines alone. A syntax error hides definitions at the
most: lines are never taken from the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING

from anchord.chunkers.braces import balance

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

_MAX_NAME = 80
_MAX_DEFINITIONS = 20_000
_MAX_IN_ERROR = 5_000
_STEPS, _BYTES_A_STEP = 2_000, 8
"""A step is a hundred operations of the parser. Code takes one for sixty bytes or more."""
_SLICE = 65_536


@dataclass(frozen=True, slots=True)
class Definition:
    """Lines [first, last) of a definition with the comments and decorators on top of it; 0-based.

    `head` is the line of its name; `depth` counts the definitions around it.
    """

    first: int
    last: int
    head: int
    name: str
    depth: int


Define = Callable[[str, str], list[Definition]]
"""A text and its language -> the definitions in it, as `definitions` gives them."""


class ParserEndedError(Exception):
    """What parses in a process of its own ended over a text; the message says how."""


@dataclass(frozen=True, slots=True)
class _Grammar:
    """A wheel, the function in it that gives the language, the node types that define something, and further patterns."""

    wheel: str
    types: str
    function: str = "language"
    patterns: str = ""


_JS_TYPES = """function_declaration generator_function_declaration class_declaration method_definition"""
_JS_PATTERNS = """
(lexical_declaration (variable_declarator name: (_) @name value: [(arrow_function) (function_expression)])) @definition
(expression_statement (call_expression function: (identifier) @called arguments: (arguments . (string) @name))
  (#any-of? @called "describe" "it" "test")) @definition
"""
_TS_TYPES = (
    f"{_JS_TYPES} abstract_class_declaration interface_declaration type_alias_declaration enum_declaration internal_module"
)
_C_TYPES = "function_definition struct_specifier enum_specifier union_specifier type_definition"

_GRAMMARS: dict[str, _Grammar] = {
    "python": _Grammar("tree_sitter_python", "function_definition class_definition"),
    "rust": _Grammar(
        "tree_sitter_rust", "function_item struct_item enum_item union_item trait_item impl_item mod_item macro_definition"
    ),
    "typescript": _Grammar("tree_sitter_typescript", _TS_TYPES, "language_typescript", _JS_PATTERNS),
    "tsx": _Grammar("tree_sitter_typescript", _TS_TYPES, "language_tsx", _JS_PATTERNS),
    "javascript": _Grammar("tree_sitter_javascript", _JS_TYPES, patterns=_JS_PATTERNS),
    "go": _Grammar("tree_sitter_go", "function_declaration method_declaration type_spec"),
    "java": _Grammar(
        "tree_sitter_java",
        "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
        "method_declaration constructor_declaration",
    ),
    "c": _Grammar("tree_sitter_c", _C_TYPES),
    "cpp": _Grammar("tree_sitter_cpp", f"{_C_TYPES} class_specifier namespace_definition"),
    "csharp": _Grammar(
        "tree_sitter_c_sharp",
        "class_declaration interface_declaration struct_declaration record_declaration enum_declaration method_declaration "
        "constructor_declaration property_declaration namespace_declaration",
    ),
    "ruby": _Grammar("tree_sitter_ruby", "method singleton_method class module"),
    "php": _Grammar(
        "tree_sitter_php",
        "function_definition method_declaration class_declaration interface_declaration trait_declaration enum_declaration "
        "namespace_definition",
        "language_php",
    ),
    "bash": _Grammar("tree_sitter_bash", "function_definition"),
}
_WRAPPERS = frozenset({"decorated_definition", "export_statement", "template_declaration", "type_declaration"})
_WITHOUT_BRACES = frozenset({"python", "ruby", "bash"})
_ON_TOP = ("comment", "attribute", "decorator", "annotation")


def grammar_versions() -> str:
    """Return which grammars are installed, as one text: where that changes, chunks of code do."""
    wheels = sorted({grammar.wheel for grammar in _GRAMMARS.values() if find_spec(grammar.wheel)})
    return " ".join(f"{wheel} {metadata.version(wheel.replace('_', '-'))}" for wheel in wheels)


def has_grammar(language: str) -> bool:
    """Whether a grammar of a language is installed; it is not loaded."""
    grammar = _GRAMMARS.get(language)
    return grammar is not None and find_spec("tree_sitter") is not None and find_spec(grammar.wheel) is not None


def definitions(text: str, language: str) -> list[Definition]:
    """Return the definitions of a text in order; none for a language without a grammar."""
    tools = _tools(language)
    if tools is None:
        return []
    parser, query = tools
    root = _parsed(parser, text.encode())
    if root is None:
        return []
    if root.has_error and language not in _WITHOUT_BRACES:
        mended = _parsed(parser, "\n".join(balance(text.split("\n"))).encode())
        root = mended if mended and _rows_in_error(mended) <= _rows_in_error(root) else root
    if any(part.is_error and part.child_count > _MAX_IN_ERROR for part in (root, *root.children)):
        return []  # A query takes time by the square of an error's size: 100 KB of brackets take five seconds.
    found: dict[int, Definition] = {}
    for node, name in _matches(query, root):
        first = _first_line(node)
        last = node.end_point.row + (node.end_point.column > 0)
        if first not in found and len(found) < _MAX_DEFINITIONS:
            found[first] = Definition(first, max(last, first + 1), node.start_point.row, name, 0)
    return _nested(sorted(found.values(), key=lambda definition: (definition.first, -definition.last)))


def _parsed(parser: Parser, data: bytes) -> Node | None:
    """Parse within a budget of steps; None where that is not enough.

    What is no code of its language can take the square of its length and more to be mended: 6 KB of Ruby took half a minute.
    Steps are counted and not seconds, so that a file is cut the same on every machine.
    """
    left = _STEPS + len(data) // _BYTES_A_STEP

    def is_too_much(_at: int, _has_error: bool) -> bool:  # noqa: FBT001 - as it is called
        nonlocal left
        left -= 1
        return left < 0

    try:  # With the bytes themselves the library asks nobody.
        return parser.parse(lambda at, _: data[at : at + _SLICE], progress_callback=is_too_much).root_node
    except ValueError:
        parser.reset()
        return None


def _rows_in_error(root: Node) -> int:
    """Return how many rows of a tree a parser could not make sense of, as far as that is soon known."""
    rows, seen, waiting = 0, 0, [root]
    while waiting and seen < _MAX_IN_ERROR:
        node = waiting.pop()
        seen += 1
        if node.is_error or node.is_missing:
            rows += node.end_point.row - node.start_point.row + 1
        elif node.has_error:
            waiting += node.children
    return rows


def _nested(found: list[Definition]) -> list[Definition]:
    """Fill in how many definitions stand around each."""
    around: list[Definition] = []
    nested = []
    for one in found:
        while around and around[-1].last <= one.first:
            around.pop()
        nested.append(Definition(one.first, one.last, one.head, one.name, len(around)))
        around.append(one)
    return nested


def _matches(query: Query, root: Node) -> Iterator[tuple[Node, str]]:
    from tree_sitter import QueryCursor  # noqa: PLC0415 - it comes with the extra `[code]`

    for _, captures in QueryCursor(query).matches(root):
        for node in captures["definition"]:
            named = captures.get("name", [None])[0] or _name_node(node)
            text = named.text if named else None
            yield node, (text or b"").decode("utf-8", "replace").strip("'\"`").split("\n")[0][:_MAX_NAME]


def _name_node(node: Node) -> Node | None:
    """Return the node of a definition's name: its field `name`, an `impl`'s type, or the end of a C declarator."""
    named = node.child_by_field_name("name") or node.child_by_field_name("type" if node.type == "impl_item" else "declarator")
    while named and (inner := named.child_by_field_name("declarator")):
        named = inner
    return named


def _first_line(node: Node) -> int:
    """Return the first line of a definition with what belongs on top of it: decorators, attributes, comments."""
    while node.parent and node.parent.type in _WRAPPERS:
        node = node.parent
    first = node.start_point.row
    while (above := node.prev_sibling) and any(word in above.type for word in _ON_TOP):
        last = above.end_point.row - (above.end_point.column == 0)
        if last < first - 1 or above.start_point.row >= first:
            break
        node, first = above, above.start_point.row
    return first


@cache
def _tools(language: str) -> tuple[Parser, Query] | None:
    if not has_grammar(language):
        return None
    from tree_sitter import Language, Parser, Query, QueryError  # noqa: PLC0415 - likewise

    grammar = _GRAMMARS[language]
    loaded = Language(getattr(import_module(grammar.wheel), grammar.function)())
    types = " ".join(f"({name})" for name in grammar.types.split())
    try:
        return Parser(loaded), Query(loaded, f"[{types}] @definition\n{grammar.patterns}")
    except QueryError:
        return None
