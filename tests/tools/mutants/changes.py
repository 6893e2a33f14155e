"""Every small change of a module that a test should notice: comparisons, conditions, constants, calls, results."""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_COMPARISONS: Mapping[type[ast.cmpop], Sequence[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change of one module."""

    module: str
    operator: str
    line: int
    """1-based; where the replaced text starts."""
    lines: tuple[int, int]
    """First and last line of the statement that holds it."""
    span: tuple[int, int]
    """Start and end of the replaced text, in bytes."""
    replacement: str
    users: tuple[int, ...] | None = None
    """Lines that use what runs when the module is imported; None for what runs in a function."""

    @property
    def name(self) -> str:
        """Return what `--resume` knows it by."""
        return f"{self.module}:{self.line}:{self.span}:{self.replacement}"

    def apply(self, source: str) -> str:
        """Return the module's source with this change."""
        data = source.encode()
        return (data[: self.span[0]] + self.replacement.encode() + data[self.span[1] :]).decode()

    def diff(self, source: str) -> str:
        """Return the change as a unified diff without context."""
        name = f"src/anchord/{self.module}.py"
        lines = difflib.unified_diff(
            source.splitlines(), self.apply(source).splitlines(), name, name, n=0, lineterm=""
        )
        return "\n".join(lines)


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Return every mutant of a module, in the order of its text."""
    offsets = [0]
    for text in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(text))
    found = []
    tree = ast.parse(source)
    conditions = {each.test for each in ast.walk(tree) if isinstance(each, ast.If | ast.While)}
    for statement, node in _nodes(tree, None):
        changes = _negations(node) if node in conditions else ()
        for operator, replacement in [*changes, *_changes(node)]:
            start = offsets[node.lineno - 1] + node.col_offset
            end = offsets[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            mutant = Mutant(
                module=module,
                operator=operator,
                line=node.lineno,
                lines=_lines_of(statement),
                span=(start, end),
                replacement=replacement,
                users=_users_of(statement, tree),
            )
            found.append(mutant)
    return sorted(found, key=lambda each: (each.span, each.operator, each.replacement))


def _lines_of(statement: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement, without the block below it."""
    body = getattr(statement, "body", None)
    if body:
        return statement.lineno, max(statement.lineno, body[0].lineno - 1)
    return statement.lineno, statement.end_lineno or statement.lineno


def _users_of(statement: ast.stmt, tree: ast.Module) -> tuple[int, ...] | None:
    """Return the lines that use a constant, a field or a default; None for what runs in a function."""
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    if any(each.body[0].lineno <= statement.lineno <= (each.end_lineno or 0) for each in functions):
        return None
    if isinstance(statement, ast.FunctionDef):
        return tuple(range(statement.body[0].lineno, (statement.end_lineno or 0) + 1))
    names = {ast.unparse(each) for each in getattr(statement, "targets", [])}
    if isinstance(statement, ast.AnnAssign):
        names = {ast.unparse(statement.target)}
    used = (ast.Name, ast.Attribute)
    return tuple(
        sorted(
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, used) and names & {getattr(node, "id", getattr(node, "attr", ""))}
        )
    )


def _nodes(node: ast.AST, statement: ast.stmt | None) -> Iterator[tuple[ast.stmt, Any]]:
    """Yield what may be mutated, each with its statement: no types, texts, decorators or logs."""
    if isinstance(node, ast.stmt):
        statement = node
    if _is_left_alone(node):
        return
    if statement and isinstance(node, ast.stmt | ast.expr):
        yield statement, node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "bases", "exc", "keywords"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _nodes(child, statement)
    for keyword in getattr(node, "keywords", []) if isinstance(node, ast.Call) else []:
        yield from _nodes(keyword.value, statement)


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.AnnAssign):
        return not (isinstance(node, ast.AnnAssign) and node.value)
    if isinstance(node, ast.Expr):
        is_log = ast.unparse(node).startswith(("log.", "super()"))
        return is_log or isinstance(node.value, ast.Constant)
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return any(ast.unparse(each) in {"__all__", "log"} for each in targets)


def _negations(condition: ast.expr) -> Iterator[tuple[str, str]]:
    if not isinstance(condition, ast.Compare | ast.Constant | ast.UnaryOp):
        yield "negated condition", f"(not ({ast.unparse(condition)}))"


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the operator's name and the new text for each change of one node."""
    if isinstance(node, ast.stmt):
        yield from _statement_changes(node)
    elif isinstance(node, ast.Constant):
        yield from _constant_changes(node.value)
    else:
        yield from _expression_changes(node)


def _statement_changes(node: ast.stmt) -> Iterator[tuple[str, str]]:
    match node:
        case ast.AugAssign(op=ast.Add() | ast.Sub()):
            yield "arithmetic", _with(node, op=_ARITHMETIC[type(node.op)]())[1:-1]
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "returned None", "return None"
            if isinstance(value, ast.Compare | ast.BoolOp):
                yield "negated result", f"return not ({ast.unparse(value)})"
        case ast.Raise():
            yield "removed raise", "pass"
        case ast.Expr(value=ast.Call()):
            yield "removed call", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "removed assignment", "pass"
        case ast.Break():
            yield "break/continue", "continue"
        case ast.Continue():
            yield "break/continue", "break"


def _constant_changes(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, bool):
        yield "constant", str(not value)
    elif isinstance(value, int | float):
        yield "constant", str(value + 1)
        if value:
            yield "constant", f"({value - 1})"


def _expression_changes(node: ast.expr) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(ops=[operation]):
            for other in _COMPARISONS[type(operation)]:
                yield "comparison", _with(node, ops=[other()])
        case ast.BoolOp():
            yield "and/or", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
            yield "dropped condition", _with(node, values=node.values[:-1])
        case ast.UnaryOp(op=ast.Not()):
            yield "removed not", f"({ast.unparse(node.operand)})"
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not _has_text(node):
            yield "arithmetic", _with(node, op=_ARITHMETIC[type(node.op)]())
        case ast.IfExp():
            yield "negated condition", _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Call():
            for index, keyword in enumerate(node.keywords):
                rest = node.keywords[:index] + node.keywords[index + 1 :]
                if keyword.arg:
                    yield "dropped argument", _with(node, keywords=rest)


def _with(node: ast.AST, **fields: object) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return f"({ast.unparse(changed)})"


def _has_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    texts = [each.value for each in sides if isinstance(each, ast.Constant)]
    others = any(isinstance(each, ast.JoinedStr | ast.List | ast.Tuple) for each in sides)
    return others or any(isinstance(text, str | bytes) for text in texts)
