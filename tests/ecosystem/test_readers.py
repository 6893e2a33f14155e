"""Other programs read the table: LanceDB, and LangChain and LlamaIndex where installed.

.venv/bin/pip install '.[ecosystem]' && .venv/bin/pytest tests/ecosystem
"""

from __future__ import annotations

import os
import subprocess
import sys
from array import array
from pathlib import Path

import lancedb
import pytest

from anchord.embedding.hash_embedder import HashEmbedder

QUERY = "simmer the onions"


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give the uri of an index that `anchord index` made."""
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
    return str(Path(base) / "home" / "data" / "lance")


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
