"""Imports point down, one outside library has one module, nothing goes in circles, and modules stay small enough to read."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import anchord

SOURCE = Path(anchord.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py"))

TIERS: tuple[tuple[str, ...], ...] = (
    ("model", "conversation", "errors"),
    ("core.identity",),
    ("sources", "settings", "toml_lines"),
    ("config",),
    ("chunkers",),
    ("core",),
    ("description", "service"),
    ("ports", "rows"),
    ("adapters",),
    ("reconcile", "committing"),
    ("indexer", "search", "verification"),
    ("places", "roots", "pulse"),
    ("means",),
    ("recovery",),
    ("ipc", "api", "workspace", "barrier", "shared_lock", "jobs", "watching", "tally"),
    ("conversing", "discovery", "survey", "generation", "forgetting", "queries", "verifying"),
    ("upkeep",),
    ("pipeline",),
    ("oneshot", "status", "asking", "evaluation"),
    ("methods", "supervising"),
    ("daemon", "agents", "doctor"),
    ("cli",),
)
"""From the lowest: a module imports from lower tiers and from its own package. The first prefix that fits counts."""

PURE = (
    "model",
    "conversation",
    "errors",
    "core",
    "sources",
    "settings",
    "toml_lines",
    "chunkers",
    "config",
    "description",
    "service",
    "ports",
    "rows",
    "reconcile",
    "committing",
    "indexer",
    "search",
)
"""These touch no disk, clock, thread, process or log."""

IMPURE_LIBRARIES = frozenset(
    """
    os io sys time random secrets shutil tempfile glob signal socket subprocess threading multiprocessing queue asyncio
    concurrent sqlite3 select selectors logging structlog watchdog lancedb lance pyarrow sentence_transformers torch
    onnxruntime httpx2 psutil rich typer tomlkit platformdirs tokenizers
    """.split()  # noqa: SIM905 - a list of forty words would not be easier to read
)

HOMES: dict[str, tuple[str, ...]] = {
    "xxhash": ("core.identity",),
    "pathspec": ("core.rules",),
    "markdown_it": ("chunkers.markdown", "chunkers.prose"),
    "sentencex": ("chunkers.sentences",),
    "detect_secrets": ("sources.redaction",),
    "zstandard": ("adapters.carriers",),
    "tree_sitter": ("chunkers.symbols",),
    "tokenizers": ("adapters.tokenizer", "adapters.onnx_worker"),
    "watchdog": ("adapters.watch", "adapters.inotify"),
    "sqlite3": (
        "adapters.catalogue",
        "adapters.catalogue_lists",
        "adapters.vanished",
        "adapters.archive",
        "adapters.archive_writer",
        "adapters.carriers",
    ),
    "lancedb": ("adapters.lance", "adapters.lance_table", "adapters.lance_schema", "adapters.lance_upkeep"),
    "lance": ("adapters.lance_upkeep", "adapters.lance_fold"),
    "pyarrow": ("adapters.lance_schema", "adapters.lance_export"),
    "torch": ("adapters.torch_worker", "adapters.export"),
    "sentence_transformers": ("adapters.torch_worker", "adapters.rerank_worker"),
    "onnxruntime": ("adapters.onnx_worker", "adapters.export"),
    "numpy": ("adapters.onnx_worker",),
    "httpx2": ("adapters.served",),
    "tenacity": ("adapters.served",),
    "huggingface_hub": ("adapters.models",),
    "tomlkit": ("adapters.config_file",),
    "platformdirs": ("places",),
    "psutil": ("status", "upkeep", "adapters.child", "adapters.serving", "adapters.power"),
    "mcp": ("agents.server",),
    "typer": ("cli",),
    "rich": ("cli",),
    "msgspec": ("config", "ipc", "adapters", "evaluation.compared", "cli"),
    "structlog": ("ipc", "adapters.systemd", "tally", "survey", "upkeep", "generation", "pipeline", "methods", "daemon", "cli"),
}
"""Outside libraries and the only modules that may import them."""

MOST_CODE_LINES = 300
PUBLIC_NAMES = ("api", "ipc.client")


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path) -> Iterator[str]:
    """Yield the full names of the modules that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            ours = node.module == "anchord" or node.module.startswith("anchord.")
            yield from (f"{node.module}.{alias.name}" if ours else node.module for alias in node.names)


def our_module(imported: str) -> str:
    """Turn `anchord.model.Chunk` into `model`: the longest part that is a module."""
    parts = imported.split(".")[1:]
    names = {name_of(path) for path in MODULES}
    while parts and ".".join(parts) not in names:
        parts.pop()
    return ".".join(parts)


def tier(module: str) -> int:
    for number, prefixes in enumerate(TIERS):
        if any(module == prefix or module.startswith(prefix + ".") for prefix in prefixes):
            return number
    raise AssertionError(f"{module} has no place in TIERS")


def below(module: str, prefixes: tuple[str, ...]) -> bool:
    return any(module == prefix or module.startswith(prefix + ".") for prefix in prefixes)


def edges() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        ours = {our_module(name) for name in imports(path) if name.split(".")[0] == "anchord"}
        graph[name_of(path)] = ours - {"", name_of(path)}
    return graph


def test_imports_point_down() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, targets in edges().items()
        for imported in targets
        if module not in ("", "__main__") and tier(imported) >= tier(module) and imported.split(".")[0] != module.split(".")[0]
    ]
    assert wrong == []


def test_there_are_no_import_cycles() -> None:
    graph, done = edges(), set[str]()
    graph.pop("")  # the package itself names its public parts, on first use
    while ready := {module for module, targets in graph.items() if module not in done and targets <= done | {module, ""}}:
        done |= ready
    assert set(graph) - done == set()


@pytest.mark.parametrize("library", HOMES)
def test_an_outside_library_has_one_home(library: str) -> None:
    users = {name_of(path) for path in MODULES if library in {name.split(".")[0] for name in imports(path)}}
    assert users, f"nothing uses {library}: take it out of the dependencies and of this table"
    assert [user for user in users if not below(user, HOMES[library])] == []


def test_the_pure_modules_touch_nothing_outside() -> None:
    wrong = {
        f"{name_of(path)} imports {name}"
        for path in MODULES
        if below(name_of(path), PURE)
        for name in imports(path)
        if name.split(".")[0] in IMPURE_LIBRARIES
    }
    assert wrong == set()


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert {our_module(name) for name in imports(SOURCE / "__init__.py") if name.startswith("anchord.")} == set(PUBLIC_NAMES)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_small_and_says_what_it_is_for(path: Path) -> None:
    source = path.read_text("utf-8")
    assert ast.get_docstring(ast.parse(source)), "a module begins with what it is for"
    assert code_lines(source) <= MOST_CODE_LINES


def code_lines(source: str) -> int:
    """Count the lines that hold more than blanks, comments and docstrings."""
    quiet = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in quiet:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def test_the_map_names_every_module_and_nothing_else() -> None:
    lines = (SOURCE / "ARCHITECTURE.md").read_text("utf-8").splitlines()
    cells = (line.split("|")[2] for line in lines if line.startswith("|"))
    named = {name for cell in cells for name in re.findall(r"`([\w/]+)`", cell)}
    whole = {name.rstrip("/") for name in named if name.endswith("/")} - {"core", "adapters"}
    modules = {path.relative_to(SOURCE).with_suffix("").as_posix() for path in MODULES if not path.name.startswith("_")}
    stems = {each.rpartition("/")[2] for each in named if not each.endswith("/")}
    assert {each for each in modules if each.partition("/")[0] not in whole and each.rpartition("/")[2] not in stems} == set()
    assert stems - {each.rpartition("/")[2] for each in modules} == set()


def test_only_the_daemons_loop_and_named_places_catch_everything() -> None:
    allowed = {
        "pipeline": 1,  # the loop
        "jobs": 1,  # whose error goes to their caller
        "rows": 1,  # a file that breaks the parser
        "adapters.serving": 1,  # whatever a model raises
        "adapters.rerank_worker": 2,  # likewise, at its loading and after
        "adapters.export": 1,  # whatever its export raises
        "adapters.models": 1,  # whatever a tokenizer's file raises
        "adapters.served": 1,  # in a thread, carried to whoever waits
        "ipc.server": 2,  # one bad call
    }
    found = {name_of(path): count for path in MODULES if (count := path.read_text("utf-8").count("except Exception as"))}
    assert found == allowed
