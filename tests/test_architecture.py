"""The architecture as tables: which package may import which, where each outside library lives, and what stays pure.

`docs/ARCHITECTURE.md` explains the tables. A change that breaks one is either wrong, or a new decision to write down here.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from pathlib import Path

import pytest

import anchord

SOURCE = Path(anchord.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py"))
MAP = SOURCE.parents[1] / "docs" / "ARCHITECTURE.md"

PACKAGES: dict[str, str] = {
    "errors": "",
    "_version": "",
    "core": "errors",
    "config": "core errors",
    "ipc": "config core errors",
    # The four pillars: none of them knows another.
    "sources": "config ipc core errors",
    "chunking": "config ipc core errors",
    "embedding": "ipc core errors",
    "store": "ipc core errors _version",
    "index": "sources chunking embedding store config core errors",
    "search": "index sources chunking store ipc config core errors",
    "daemon": "search index sources embedding store ipc config core errors _version anchord",
    "mcp": "daemon ipc config core errors _version",
    "agents": "mcp daemon ipc config core errors",
    "api": "daemon sources chunking embedding store ipc config core errors",
    "anchord": "api daemon ipc _version",
    "cli": "agents mcp api daemon search index store chunking embedding sources ipc config core errors _version",
    "__main__": "cli",
}
"""A package, and what it may import besides itself. `anchord` is `anchord/__init__.py`."""

FORBIDDEN_INSIDE: dict[str, str] = {
    "chunking.engine": "chunking.formats chunking.strategies chunking.chunker chunking.plan",
    "chunking.formats": "chunking.strategies chunking.chunker",
    "chunking.strategies": "chunking.formats chunking.chunker",
    "sources.documents": "sources.files sources.watch sources.conversations sources.source_tree",
    "sources.files": "sources.watch sources.conversations.archive sources.conversations.ingest sources.source_tree",
    "sources.secrets": "sources.files sources.watch sources.conversations sources.documents sources.source_tree",
    "sources.watch": "sources.conversations sources.documents sources.source_tree",
    "sources.conversations.formats": "sources.conversations.archive sources.conversations.ingest sources.files sources.watch",
    "sources.conversations.archive": "sources.conversations.formats sources.conversations.ingest sources.files sources.watch",
    "sources.conversations.kept": "sources.conversations.archive sources.conversations.formats sources.conversations.ingest sources.watch",
    "embedding.workers": "embedding.local embedding.openai_api embedding.reranker",
    "store.catalog": "store.table",
    "store.table": "store.catalog store.vector_cache",
    "index.integrity": "index.generation",
    "search.ranking": "search.answers search.search_answer search.evaluation",
    "search.passages": "search.packing search.groups search.ranking search.answers search.search_answer search.evaluation",
    "search.packing": "search.copies search.groups search.ranking search.answers search.search_answer search.evaluation",
    "search.groups": "search.ranking search.sessions search.answers search.search_answer search.evaluation",
    "search.request": "search.answers search.search_answer search.evaluation",
    "search.answers": "search.search_answer search.evaluation",
    "search.search_answer": "search.evaluation",
    "daemon.writer": "daemon.handlers daemon.main daemon.status daemon.access daemon.doctor daemon.service.install",
    "daemon.host": "daemon.writer daemon.handlers daemon.main daemon.status daemon.access daemon.doctor daemon.service",
    "daemon.handlers": "daemon.main daemon.access daemon.doctor",
    "daemon.engine": "daemon.main daemon.doctor daemon.service.install",
    "daemon.shared_reader": "daemon.engine daemon.handlers daemon.main daemon.status daemon.writer",
    "daemon.access": "daemon.main daemon.handlers daemon.writer daemon.status",
    "agents.recall": "agents.connecting agents.connections agents.steps agents.clients agents.entries agents.settings_files",
    "cli.output": "cli.commands",
}
"""A part of a package, and the sibling modules that it must not import."""

STARTED_ONLY = (
    "chunking.formats.parser_worker",
    "embedding.workers.export_model",
    "embedding.workers.onnx_worker",
    "embedding.workers.rerank_worker",
    "embedding.workers.torch_worker",
    "sources.conversations.reader_worker",
)
"""Programs of child processes: they are started, and imported only by one another."""

PURE = tuple(
    """
    errors core config.effective config.key_errors config.models config.schema config.strategies config.toml_positions chunking
    sources.documents sources.conversations.events sources.conversations.exchanges sources.conversations.formats
    sources.secrets sources.conversations.archive.merge sources.conversations.kept.pieces
    sources.conversations.kept.versions sources.files.ignore_rules
    sources.files.ignore_patterns sources.files.built_in_rules sources.files.wildmatch
    index.rows index.reconcile index.mass_deletions index.commit index.file_planner index.file_plans index.row_comparison index.indexer index.recipe index.topics index.model_choice index.models index.provisional_vectors
    index.row_id_lookahead index.moved_files index.worktree_plans
    core.dates search.ranking search.fusion search.query_kind search.confidence search.cosine_scale search.quoted_terms
    search.backends search.several_models search.reranking search.judging search.known_queries search.passages search.packing search.copies search.groups search.dates daemon.service.unit_files
    embedding.batching embedding.poison_text agents.changed_lines agents.clients agents.entries agents.json_edit agents.json_text agents.toml_edit
    agents.recall.prompts agents.recall.selection
    """.split()  # noqa: SIM905 - likewise
)
"""These touch no disk, clock, thread, process or log."""

IMPURE_EXCEPTIONS = (
    "chunking.formats.parser_process",
    "chunking.formats.parser_worker",
    "core.sqlite_connection",
    "core.regular_files",
)
"""Below a pure package, and not pure: the process in which grammars run; the SQLite connection that `store` and
`sources` share, which may not import each other."""

IMPURE_LIBRARIES = frozenset(
    """
    os io sys time random secrets shutil tempfile glob signal socket subprocess threading multiprocessing queue asyncio
    concurrent sqlite3 select selectors logging structlog watchdog lancedb lance pyarrow sentence_transformers torch
    onnxruntime httpx2 psutil rich typer tomlkit platformdirs tokenizers
    """.split()  # noqa: SIM905 - a list of forty words would not be easier to read
)

HOMES: dict[str, str] = {
    "ahocorasick_rs": "sources.secrets.words",
    "xxhash": "core.ids",
    "Stemmer": "core.word_forms",
    "pathspec": "sources.files.built_in_rules",
    "markdown_it": "chunking.formats.markdown_outline chunking.formats.rendered_text cli.output.contained_markdown",
    "sentencex": "chunking.strategies.sentences",
    "zstandard": "sources.conversations.containers sources.conversations.kept",
    "tree_sitter": "chunking.formats.code_symbols",
    "tokenizers": "embedding.tokenizer embedding.workers.onnx_worker",
    "watchdog": "sources.watch.watcher sources.watch.inotify",
    "sqlite3": (
        "core.sqlite_connection store.catalog store.vector_cache store.backup.databases "
        "store.backup.pin sources.conversations.archive sources.conversations.foreign_database"
    ),
    "lancedb": "store.table",
    "lance": "store.table.maintenance store.table.compaction store.table.damage",
    "pyarrow": "store.table.arrow_vectors store.table.schema store.table.export",
    "torch": "embedding.workers.torch_worker embedding.workers.export_model",
    "sentence_transformers": "embedding.workers.torch_worker embedding.workers.rerank_worker",
    "onnxruntime": "embedding.workers.onnx_worker embedding.workers.export_model",
    "numpy": "embedding.workers.onnx_worker",
    "httpx2": "embedding.openai_client",
    "tenacity": "embedding.openai_api",
    "huggingface_hub": "embedding.model_files",
    "tomlkit": "config.file_editor",
    "platformdirs": "config.paths",
    "psutil": "daemon.host daemon.status daemon.writer.maintenance ipc.worker_process embedding.workers.worker_main",
    "mcp": "mcp.server mcp.tools mcp.http_server",
    "uvicorn": "mcp.http_server",
    "typer": "cli",
    "rich": "cli",
    "msgspec": "config ipc embedding chunking.formats.parser_process sources.conversations.reader_process "
    "sources.conversations.reader_worker store search.evaluation.run agents.recall cli",
    "structlog": "ipc.server index.backup index.metrics index.generation daemon cli.output.log",
}
"""An outside library, and the only modules or packages that may import it."""

BROAD_EXCEPTS = {
    "daemon.writer.jobs": 2,  # the loop goes on; errors of jobs go to the caller
    "index.rows": 1,  # a file that breaks the parser
    "embedding.workers.worker_main": 1,  # whatever a model raises
    "embedding.workers.rerank_worker": 2,  # likewise, at its loading and after
    "embedding.workers.export_model": 1,  # whatever its export raises
    "embedding.model_files": 1,  # whatever a tokenizer's file raises
    "embedding.openai_api": 1,  # in a thread, raised in the waiting thread
    "sources.conversations.reader_worker": 1,  # whatever a reader raises becomes an answer
    "ipc.server": 2,  # one bad call
    "mcp.server": 1,  # whatever the SDK raises becomes an answer
}
"""The only places that catch `Exception`, and how often."""

MOST_CODE_LINES = 300
MOST_TOP_LEVEL_ENTRIES = 19
PUBLIC_NAMES = ("api.chunks", "daemon.engine", "ipc.async_client", "ipc.client", "_version")


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


NAMES = frozenset(name_of(path) for path in MODULES)


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Return the full names of what a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            ours = node.module.split(".")[0] == "anchord"
            found.update(
                f"{node.module}.{alias.name}" if ours else node.module for alias in node.names
            )
    return frozenset(found)


def our_module(imported: str) -> str:
    """Turn `anchord.core.types.Chunk` into `core.types`: the longest part that is a module."""
    parts = imported.split(".")[1:]
    while parts and ".".join(parts) not in NAMES:
        parts.pop()
    return ".".join(parts)


@functools.cache
def edges() -> dict[str, frozenset[str]]:
    """Return for each module the modules of ours that it imports."""
    return {
        name_of(path): frozenset(
            our_module(name) for name in imports(path) if name.split(".")[0] == "anchord"
        )
        - {name_of(path)}
        for path in MODULES
    }


def below(module: str, prefixes: str | tuple[str, ...]) -> bool:
    listed = prefixes.split() if isinstance(prefixes, str) else prefixes
    return any(module == prefix or module.startswith(prefix + ".") for prefix in listed)


def package_of(module: str) -> str:
    return module.split(".", maxsplit=1)[0] or "anchord"


def test_a_package_imports_only_what_the_table_allows() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, targets in edges().items()
        for imported in targets
        if package_of(imported) not in {package_of(module), *PACKAGES[package_of(module)].split()}
    ]
    assert wrong == []


def test_the_table_allows_nothing_that_is_not_used_but_errors() -> None:
    used = {
        package: {
            package_of(t) for m, ts in edges().items() if package_of(m) == package for t in ts
        }
        for package in PACKAGES
    }
    spare = {
        package: set(allowed.split()) - used[package] - {"errors"}
        for package, allowed in PACKAGES.items()
    }
    assert {package: names for package, names in spare.items() if names} == {}


@pytest.mark.parametrize("room", FORBIDDEN_INSIDE)
def test_a_room_does_not_import_the_rooms_above_it(room: str) -> None:
    members = {module: targets for module, targets in edges().items() if below(module, room)}
    assert members, f"{room} is gone: take it out of the table"
    assert [
        name
        for name in FORBIDDEN_INSIDE[room].split()
        if not any(below(module, name) for module in NAMES)
    ] == []
    wrong = [
        f"{module} imports {t}"
        for module, targets in members.items()
        for t in targets
        if below(t, FORBIDDEN_INSIDE[room])
    ]
    assert wrong == []


def test_programs_of_child_processes_are_imported_by_no_other() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, targets in edges().items()
        for imported in targets & set(STARTED_ONLY)
        if module not in STARTED_ONLY
    ]
    assert wrong == []


def test_there_are_no_import_cycles() -> None:
    graph, done = dict(edges()), set[str]()
    graph.pop("")  # the package itself names its public parts, on first use
    while ready := {
        module
        for module, targets in graph.items()
        if module not in done and targets <= done | {module, ""}
    }:
        done |= ready
    assert set(graph) - done == set()


@pytest.mark.parametrize("library", HOMES)
def test_an_outside_library_has_one_home(library: str) -> None:
    users = {
        name_of(path)
        for path in MODULES
        if library in {name.split(".")[0] for name in imports(path)}
    }
    assert users, f"nothing uses {library}: take it out of the dependencies and of this table"
    assert [user for user in users if not below(user, HOMES[library])] == []


def test_the_pure_modules_touch_nothing_outside() -> None:
    wrong = {
        f"{name_of(path)} imports {name}"
        for path in MODULES
        if below(name_of(path), PURE) and name_of(path) not in IMPURE_EXCEPTIONS
        for name in imports(path)
        if name.split(".")[0] in IMPURE_LIBRARIES
    }
    assert wrong == set()


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert {
        our_module(name) for name in imports(SOURCE / "__init__.py") if name.startswith("anchord.")
    } == set(PUBLIC_NAMES)


def test_a_module_is_small_and_says_what_it_is_for() -> None:
    without_docstring = [path for path in MODULES if not ast.get_docstring(tree_of(path))]
    assert without_docstring == [], "a module begins with what it is for"
    assert [path for path in MODULES if code_lines(path) > MOST_CODE_LINES] == []


def code_lines(path: Path) -> int:
    """Count the code lines, without blanks, comments and docstrings."""
    quiet = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type not in quiet:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree_of(path)):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node):
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def test_the_map_names_every_package_and_every_room_and_nothing_else() -> None:
    rows = [
        line.split("|") for line in MAP.read_text("utf-8").splitlines() if line.startswith("| ")
    ]
    named = {name.rstrip("/") for row in rows for name in re.findall(r"`([\w/.]+)`", row[1])}
    folders = {
        path.parent.relative_to(SOURCE).as_posix() for path in MODULES if path.name == "__init__.py"
    } - {"."}
    files = {f"{name}.py" for name in ("errors",)}
    assert named == folders | files


def test_the_top_level_is_short() -> None:
    entries = [path.name for path in SOURCE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MOST_TOP_LEVEL_ENTRIES


def test_only_the_daemons_loop_and_named_places_catch_everything() -> None:
    found = {
        name_of(path): count
        for path in MODULES
        if (count := path.read_text("utf-8").count("except Exception as"))
    }
    assert found == BROAD_EXCEPTS
