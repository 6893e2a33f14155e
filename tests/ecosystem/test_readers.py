"""Other programs read the index: LanceDB; and LangChain, LlamaIndex, DuckDB and Polars where installed.

.venv/bin/pip install '.[ecosystem]' && .venv/bin/pytest tests/ecosystem
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Literal

import lancedb
import pytest

import anchord
from anchord.api.lancedb import open_table
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import StoreError

QUERY = "simmer the onions"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the home of an index that `anchord index` made."""
    base = tmp_path_factory.mktemp("ecosystem")
    (base / "docs").mkdir()
    (base / "docs" / "soup.md").write_text("# Soup\n\nSimmer the onions slowly.\n", "utf-8")
    (base / "docs" / "banks.md").write_text(
        "# Banks\n\n## Rates\n\nThe bank raised its rates.\n", "utf-8"
    )
    (base / "home").mkdir(mode=0o700)
    (base / "home" / "config.toml").write_text('[embedding]\nprovider = "hash"\n', "utf-8")
    command = [sys.executable, "-m", "anchord", "index", str(base / "docs")]
    subprocess.run(
        command,
        check=True,
        env=os.environ | {"ANCHORD_HOME": str(base / "home")},
        capture_output=True,
    )
    return base / "home"


@pytest.fixture(scope="module")
def uri(home: Path) -> str:
    """Give the LanceDB uri of that index."""
    return str(home / "data" / "lance")


def vector() -> list[float]:
    """Embed the query as the index does."""
    return array("f", HashEmbedder().embed([QUERY])[0]).tolist()


class Embeddings:
    """What LangChain asks for vectors."""

    def embed_query(self, _: str) -> list[float]:
        """Return the query's vector."""
        return vector()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return as many."""
        return [vector() for _ in texts]


def test_lancedb_searches_the_table_by_a_text_as_it_is(uri: str) -> None:
    (row, *_) = lancedb.connect(uri).open_table("chunks").search("onions").limit(5).to_list()
    assert (row["path"], row["header_path"]) == ("soup.md", "Soup")
    assert "Simmer the onions" in row["text"]


def test_lancedb_searches_the_table_by_a_vector(uri: str) -> None:
    (row, *_) = lancedb.connect(uri).open_table("chunks").search(vector()).limit(1).to_list()
    assert row["path"] == "soup.md"


@pytest.mark.filterwarnings("ignore")  # It calls deprecated functions of other packages.
def test_langchain_reads_the_table(uri: str) -> None:
    stores = pytest.importorskip(
        "langchain_community.vectorstores", reason="the extra `ecosystem` is not installed"
    )
    store = stores.LanceDB(
        connection=lancedb.connect(uri), embedding=Embeddings(), table_name="chunks"
    )
    (document,) = store.similarity_search(QUERY, k=1)
    assert "Simmer the onions" in document.page_content
    assert document.metadata == {"source": "soup.md", "header_path": "Soup"}


@pytest.mark.filterwarnings("ignore")  # Likewise.
def test_llama_index_reads_the_table(uri: str) -> None:
    module = pytest.importorskip(
        "llama_index.vector_stores.lancedb", reason="the extra `ecosystem` is not installed"
    )
    types = pytest.importorskip(
        "llama_index.core.vector_stores.types", reason="the extra `ecosystem` is not installed"
    )
    store = module.LanceDBVectorStore(uri=uri, table_name="chunks")
    found = store.query(types.VectorStoreQuery(query_embedding=vector(), similarity_top_k=1))
    assert "Simmer the onions" in found.nodes[0].text
    assert found.nodes[0].metadata["source"] == "soup.md"


@pytest.mark.parametrize("query_type", ["vector", "hybrid", "fts", "auto"])
def test_lancedb_searches_by_a_question_with_the_model_of_the_index(
    home: Path, query_type: Literal["vector", "hybrid", "fts", "auto"]
) -> None:
    with open_table(home) as table:
        (row, *_) = table.search(QUERY, query_type=query_type).limit(2).to_list()
        assert (row["path"], row["header_path"]) == ("soup.md", "Soup")
        by_vector = table.search(vector()).limit(2).to_list()
        assert table.search(QUERY, query_type="vector").limit(2).to_list() == by_vector


def test_a_table_that_is_missing_is_refused_in_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(StoreError, match="no index yet"), open_table(tmp_path):
        pass


@pytest.mark.filterwarnings("ignore")  # Likewise.
def test_langchain_retrieves_what_anchord_finds(home: Path) -> None:
    module = pytest.importorskip(
        "anchord.api.langchain", reason="the extra `ecosystem` is not installed"
    )
    with anchord.open(home) as index:
        retriever = module.AnchordRetriever(index=index, options={"k": 2, "mode": "text"})
        (document,) = retriever.invoke("onions")
        (hit,) = index.search("onions", k=2, mode="text").groups[0]
    assert "Simmer the onions" in document.page_content
    assert (document.id, document.metadata["source"]) == (hit.id, "soup.md")
    assert (document.metadata["section"], document.metadata["start_line"]) == ("Soup", 1)


@pytest.mark.filterwarnings("ignore")  # Likewise.
def test_llama_index_retrieves_what_anchord_finds(home: Path) -> None:
    module = pytest.importorskip(
        "anchord.api.llama_index", reason="the extra `ecosystem` is not installed"
    )
    with anchord.open(home) as index:
        nodes = module.AnchordRetriever(index, k=2).retrieve(QUERY)
    assert nodes[0].node.metadata["source"] == "soup.md"
    assert "Simmer the onions" in nodes[0].node.text
    assert nodes[0].score >= nodes[-1].score


@pytest.fixture
def exported(home: Path, tmp_path: Path) -> str:
    """Give the Parquet file that `anchord export` wrote."""
    file = tmp_path / "chunks.parquet"
    subprocess.run(
        [sys.executable, "-m", "anchord", "export", str(file)],
        check=True,
        env=os.environ | {"ANCHORD_HOME": str(home)},
        capture_output=True,
    )
    return str(file)


def test_duckdb_reads_the_export_and_the_table(exported: str, uri: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra `ecosystem` is not installed")
    query = "SELECT path, count(*), max(token_count) > 0 FROM {} GROUP BY path ORDER BY path"
    expected = [("banks.md", 1, True), ("soup.md", 1, True)]
    assert duckdb.sql(query.format(f"'{exported}'")).fetchall() == expected
    chunks = lancedb.connect(uri).open_table("chunks").to_arrow()
    assert len(chunks) == 2
    assert duckdb.sql(query.format("chunks")).fetchall() == expected


def test_the_queries_of_the_documentation_run(exported: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra `ecosystem` is not installed")
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text("utf-8")
    queries = re.findall(r'duckdb -c "(.+)"', page)
    found = [
        duckdb.sql(each.replace("chunks.parquet", exported).replace("backup", "simmer")).fetchall()
        for each in queries
    ]
    assert [len(rows) for rows in found] == [1, 1]
    assert found[1] == [("soup.md", "Soup")]


def test_polars_reads_the_export_and_the_table(exported: str, uri: str) -> None:
    polars = pytest.importorskip("polars", reason="the extra `ecosystem` is not installed")
    chunks = lancedb.connect(uri).open_table("chunks")
    for frame in (polars.read_parquet(exported), polars.from_arrow(chunks.to_arrow())):
        counts = frame.group_by("path").len().sort("path")
        assert counts.rows() == [("banks.md", 1), ("soup.md", 1)]
