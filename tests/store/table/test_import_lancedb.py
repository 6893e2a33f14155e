"""lancedb is imported without packages that anchord does not use; they still work for other users."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_REPORT = "import json, sys; print(json.dumps({}))"


def report(program: str, expression: str) -> object:
    """Run a program in a process of its own and return what an expression gives there."""
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{program}\n{_REPORT.format(expression)}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(answer.stdout)


@pytest.mark.parametrize("module", ["anchord.daemon.main", "anchord.store.table.table"])
def test_the_client_of_remote_catalogs_is_not_loaded(module: str) -> None:
    unused = (
        "lance_namespace_urllib3_client.api",
        "lance_namespace_urllib3_client.api_client",
        "overrides",
    )
    loaded = f"[name for name in {unused} if name in sys.modules]"
    is_loaded = "sys.modules['lance_namespace']._is_loaded"
    assert report(f"import {module}", f"[{loaded}, {is_loaded}]") == [[], False]


def test_indexing_searching_and_verifying_do_not_load_it_either(tmp_path: Path) -> None:
    home, notes = tmp_path / "home", tmp_path / "notes"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[embedding]\nprovider = "hash"\n')
    notes.mkdir()
    (notes / "a.md").write_text("# Gulls\n\nThey are loud.\n")
    program = f"""
import contextlib, io, os
os.environ["ANCHORD_HOME"] = {str(home)!r}
from anchord.cli import main
codes = []
for command in (["index", {str(notes)!r}], ["index"], ["search", "gulls"], ["verify"]):
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        try:
            sys.argv = ["anchord", *command]
            main()
        except SystemExit as ended:
            codes.append(ended.code)
"""
    stand_ins = ("lance_namespace", "lancedb.embeddings", "lancedb.functions", "lancedb.namespace")
    expression = f"[codes, [sys.modules[name]._is_loaded for name in {stand_ins}]]"
    assert report(f"import sys\n{program}", expression) == [[0, 0, 0, 0], [False] * 4]


@pytest.mark.slow
def test_the_packages_load_when_they_are_used() -> None:
    program = "import anchord.store.table.table\nimport lance_namespace as used"
    tables = "used.ListTablesResponse(tables=['a']).tables"
    is_namespace = "isinstance(3, used.LanceNamespace)"
    assert report(program, f"[{tables}, {is_namespace}]") == [["a"], False]
    client = "import anchord.store.table.table\nimport lance_namespace_urllib3_client as used"
    assert report(client, "used.ApiClient().configuration.host") == "http://localhost:2333/"


def test_so_do_modules_of_lancedb_itself() -> None:
    program = (
        "import anchord.store.table.table\nimport lancedb, lancedb.embeddings, lancedb.functions"
    )
    registry = "lancedb.embeddings.get_registry().get('openai').__name__"
    fields = "len(lancedb.functions.InputBinding.model_fields) > 0"
    nearest = "callable(lancedb.connect_namespace)"
    assert report(program, f"[{registry}, {fields}, {nearest}]") == [
        "OpenAIEmbeddings",
        True,
        True,
    ]
    by_name = "import anchord.store.table.table\nfrom lancedb.embeddings import EmbeddingFunctionRegistry as used"
    assert report(by_name, "used.get_instance() is used.get_instance()") is True


def test_a_class_can_be_derived_from_one_of_lancedbs_own() -> None:
    program = (
        "import anchord.store.table.table\n"
        "from lancedb.embeddings import EmbeddingFunction, TextEmbeddingFunction\n"
        "class Own(TextEmbeddingFunction):\n"
        "    def ndims(self): return 2\n"
        "    def generate_embeddings(self, texts): return [[0.0, 1.0]]"
    )
    names = "[Own().compute_query_embeddings('x'), issubclass(Own, EmbeddingFunction)]"
    assert report(program, names) == [[[0.0, 1.0]], True]


def test_a_program_that_has_overrides_already_keeps_it() -> None:
    program = "import overrides as mine\nimport anchord.store.table.table"
    assert report(program, "sys.modules['overrides'] is mine") is True


@pytest.mark.slow
def test_a_program_that_imported_lancedb_before_is_left_as_it_is() -> None:
    program = "import lancedb\nimport anchord.store.table.table"
    assert report(program, "type(sys.modules['lance_namespace']).__name__") == "module"
