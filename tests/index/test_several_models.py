"""Several models in one index: by root, by language, and what a change of the configuration costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lancedb
import pytest

import anchord
from anchord.api.lancedb import open_table
from anchord.core.ids import make_model_tag, model_tag_of
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.errors import EmbedderError

MAIN, FURTHER = "hash-384/1", "hash-64/1"
TAG = make_model_tag(FURTHER)
GERMAN = """# Suppe

Die Zwiebeln werden langsam in der Butter gekocht, und das ist nicht schwer.
"""
ENGLISH = """# Bread

You should knead the dough and then wait until it has risen to twice the size.
"""
ONE = '[embedding]\nprovider = "hash"\n'
BY_LANGUAGE = (
    f'{ONE}[embedding.further.german]\nprovider = "hash"\ndimension = 64\n'
    '[embedding.by_language]\nde = "german"\n'
)
BY_ROOT = f'{ONE}[embedding.further.other]\nprovider = "hash"\ndimension = 64\n'
Embedded = Counter[tuple[str, str]]


class Home:
    """A home with two roots: an English and a German file in each."""

    def __init__(self, folder: Path) -> None:
        """Create the folders."""
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.roots = {name: folder / name for name in ("eins", "zwei")}
        for name, root in self.roots.items():
            root.mkdir()
            (root / "suppe.md").write_text(GERMAN + name)
            (root / "bread.md").write_text(ENGLISH + name)

    def configure(self, text: str, **keys_of_root: str) -> None:
        """Write the configuration; `eins='embedding = "other"'` sets a key of that root."""
        tables = (
            f'[[root]]\npath = "{root}"\n{keys_of_root.get(name, "")}\n'
            for name, root in self.roots.items()
        )
        (self.home / "config.toml").write_text(text + "".join(tables))

    def index(self) -> None:
        """Bring the index up to date, and compare it with a rebuild."""
        with anchord.open(self.home) as index:
            index.index()
            answer = index.verify(vectors=None)
            assert answer.ok, answer
            assert not answer.without_vector

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as any program reads them."""
        table: Any = lancedb.connect(self.home / "data" / "lance").open_table("chunks")
        return list(table.to_arrow().to_pylist())

    def sorted_rows(self) -> list[dict[str, Any]]:
        """Return the rows in the order of their ids."""
        return sorted(self.rows(), key=lambda row: str(row["id"]))

    def tags(self) -> dict[str, set[str]]:
        """Return ROOT/PATH -> the tags of the models of its rows, and check where vectors are."""
        tags: dict[str, set[str]] = {}
        for row in self.rows():
            tag = model_tag_of(row["vector_key"])
            tags.setdefault(f"{row['root']}/{row['path']}", set()).add(tag)
            columns = {name for name, value in row.items() if _is_vector(name) and value}
            assert columns == {f"vector_{tag}" if tag else "vector"}
        return tags

    def columns(self) -> set[str]:
        """Return the columns of vectors."""
        return set(filter(_is_vector, self.rows()[0]))


def _is_vector(name: str) -> bool:
    return name.startswith("vector") and name != "vector_key"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Give a home without a configuration."""
    return Home(tmp_path)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Embedded:
    """Count how often each model embedded each text for the index; queries do not count."""
    texts: Embedded = Counter()
    real = HashEmbedder.embed_batches

    def embed(embedder: HashEmbedder, given: Sequence[str]) -> Any:  # noqa: ANN401 - as in the original
        texts.update((embedder.model_id, text) for text in given)
        return real(embedder, given)

    monkeypatch.setattr(HashEmbedder, "embed_batches", embed)
    return texts


def test_a_document_has_the_model_of_its_root_or_of_its_language(
    home: Home, embedded: Embedded
) -> None:
    home.configure(BY_LANGUAGE, eins='embedding = "german"')
    home.index()
    assert home.tags() == {
        "eins/suppe.md": {TAG},
        "eins/bread.md": {TAG},
        "zwei/suppe.md": {TAG},
        "zwei/bread.md": {""},
    }
    assert set(embedded.values()) == {1}


def test_an_index_of_one_model_stays_as_it_is_and_is_again_when_the_others_go(
    home: Home, embedded: Embedded
) -> None:
    home.configure(ONE)
    home.index()
    before = home.sorted_rows()
    assert home.columns() == {"vector"}
    assert not any(home.tags()["eins/suppe.md"])
    home.configure(BY_ROOT)
    home.index()
    assert home.sorted_rows() == before, "it is described, and no document has it"
    home.configure(BY_LANGUAGE)
    home.index()
    assert home.columns() == {"vector", f"vector_{TAG}"}
    assert home.tags()["zwei/suppe.md"] == {TAG}
    home.configure(ONE)
    home.index()
    assert home.sorted_rows() == before
    assert home.columns() == {"vector"}
    assert set(embedded.values()) == {1}, "no text is embedded twice by one model"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "root", "later", "later_root"),
    [
        (BY_ROOT, "eins", BY_ROOT, "zwei"),
        (BY_LANGUAGE, "", BY_LANGUAGE.replace("64", "32"), ""),
        (ONE, "", BY_LANGUAGE, "eins"),
    ],
    ids=["other root", "another model", "added"],
)
def test_an_index_is_what_a_new_one_would_be_after_a_change_of_its_models(
    tmp_path: Path, text: str, root: str, later: str, later_root: str
) -> None:
    def settings(text: str, root: str) -> dict[str, str]:
        name = "other" if text == BY_ROOT else "german"
        return {root: f'embedding = "{name}"'} if root else {}

    homes = []
    for number, steps in enumerate([[(text, root), (later, later_root)], [(later, later_root)]]):
        (tmp_path / str(number)).mkdir()
        homes.append(Home(tmp_path / str(number)))
        for step in steps:
            homes[-1].configure(step[0], **settings(*step))
            homes[-1].index()
    changed, new = homes
    assert changed.sorted_rows() == new.sorted_rows()
    assert changed.columns() == new.columns()


def test_a_model_that_changes_its_part_embeds_nothing_again(home: Home, embedded: Embedded) -> None:
    home.configure(BY_LANGUAGE)
    home.index()
    embedded.clear()
    swapped = (
        '[embedding]\nprovider = "hash"\ndimension = 64\n'
        '[embedding.further.english]\nprovider = "hash"\n'
        '[embedding.by_language]\nen = "english"\n'
    )
    home.configure(swapped)
    home.index()
    assert home.tags()["eins/suppe.md"] == {""}
    assert home.tags()["eins/bread.md"] == {make_model_tag(MAIN)}
    assert not embedded


@pytest.mark.slow
def test_a_file_that_changes_its_language_changes_its_model(home: Home, embedded: Embedded) -> None:
    home.configure(BY_LANGUAGE)
    home.index()
    file = home.roots["eins"] / "bread.md"
    file.write_text(GERMAN + "brot")
    home.index()
    assert home.tags()["eins/bread.md"] == {TAG}
    embedded.clear()
    file.write_text(ENGLISH + "eins")
    home.index()
    assert home.tags()["eins/bread.md"] == {""}
    assert not embedded, "the vector cache has them"


def test_a_search_by_meaning_finds_the_documents_of_every_model(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.configure(BY_LANGUAGE)
    home.index()
    with open_table(home.home) as table:
        (row,) = table.search("knead dough").limit(1).to_list()
        assert row["path"] == "bread.md"
        search = table.search("zwiebeln butter gekocht", vector_column_name=f"vector_{TAG}")
        assert {row["path"] for row in search.limit(9).to_list()} == {"suppe.md"}
        (row, *_) = table.search("zwiebeln", query_type="fts").limit(1).to_list()
        assert row["path"] == "suppe.md"
    real = HashEmbedder.embed

    def embed(embedder: HashEmbedder, texts: Sequence[str], **keys: Any) -> Any:  # noqa: ANN401 - as in the original
        if embedder.model_id == FURTHER:
            raise EmbedderError("it sleeps")
        return real(embedder, texts, **keys)

    with anchord.open(home.home) as index:
        for words, path in (("zwiebeln butter gekocht", "suppe.md"), ("knead dough", "bread.md")):
            answer = index.search(words, mode="vector")
            assert answer.groups[0][0].path == path
            assert "words alone" not in answer.note
        status = index.status()
        assert [model.provider for model in status.embedder.further] == ["hash"]
        monkeypatch.setattr(HashEmbedder, "embed", embed)
        answer = index.search("knead dough", mode="vector")
        assert answer.groups[0][0].path == "bread.md"
        assert "are not searched by meaning: it sleeps" in answer.note
