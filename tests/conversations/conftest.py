"""An index over a folder of conversations: real stores, and an embedder without a model."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from fakes import plans
from scenarios.conftest import COUNT, MODEL

from anchord.core.ports import IndexerDependencies
from anchord.core.types import FileOutcome, Root, RootedPath, Row
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.index.indexer import Indexer
from anchord.index.integrity.verify import VerifyResult, expected_rows_of_roots, verify
from anchord.index.models import Models
from anchord.index.recipe import Recipe
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.conversations.ingest import ConversationIngester, IngestOptions
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles
from anchord.sources.source_tree import SourceTree
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table.table import LanceStore
from anchord.store.vector_cache import SqliteVectorCache

ROOT = "talks"


@dataclass
class Talks:
    """An index over `folder`; `sync` indexes as the daemon's sync barrier does."""

    base: Path
    on_delete: str = "keep"
    summaries: bool = False
    folder: Path = field(init=False)
    embedded: list[str] = field(default_factory=list)
    ahead_ns: int = 0
    """How far the clock runs ahead, in ns. If it does, no file counts as just written."""

    def __post_init__(self) -> None:
        """Open everything."""
        self.folder = self.base / "talks"
        self.folder.mkdir(exist_ok=True)
        self.roots = {
            ROOT: Root(
                name=ROOT, path=str(self.folder), kind="conversations", on_delete=self.on_delete
            )
        }
        self.open()

    def open(self) -> None:
        """Open the stores."""
        self.folders = FolderFiles(self.roots, (), MAX_FILE_BYTES)
        self.archive = ArchiveWriter(self.base / "conversations.sqlite")
        self.beats: list[float] = []
        """The announced seconds of each heartbeat."""
        self.files = SourceTree(self.folders, self.roots, self.archive)
        self.catalogue = SqliteCatalog(self.base / "state.sqlite")
        embedder = HashEmbedder()
        self.store = LanceStore(str(self.base / "lance"), embedder.dimension, embedder.model_id)
        self.vanished = SqliteVectorCache(self.base / "vectors.sqlite")
        wanted = IngestOptions(include_summaries=self.summaries)
        self.conversations = ConversationIngester(
            self.folders, self.archive, self.clock, self.roots, wanted
        )
        reader = {ROOT: wanted.reader_version}
        self.recipe = Recipe(
            plans=plans(MODEL.window),
            model_identity=lambda: embedder.model_id,
            chunking_tools_identity="tokenizer",
            ingest_identity_by_root=reader,
        )
        world = IndexerDependencies(
            files=self.files,
            catalog=self.catalogue,
            store=self.store,
            embedder=embedder,
            vector_cache=self.vanished,
            clock=self.clock,
            conversations=self.conversations,
            heartbeat=self.beats.append,
        )
        self.indexer = Indexer(world, COUNT, self.recipe)

    def clock(self) -> int:
        """Return the time."""
        return time.time_ns() + self.ahead_ns

    def close(self) -> None:
        """Close the stores."""
        self.archive.close()
        self.catalogue.close()
        self.vanished.close()

    def write(self, path: str, data: bytes) -> Path:
        """Write a file of the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return file

    def sync(self) -> list[FileOutcome]:
        """Walk and index; return the outcomes, without those of unchanged files."""
        found = self.indexer.reconcile(ROOT)
        outcomes = self.indexer.index(found.paths_due, confirmed_gone=set(found.gone_or_emptied))
        return [outcome for outcome in outcomes if outcome.action not in ("unchanged", "skipped")]

    def cost(self) -> tuple[int, int, int]:
        """Sync; return how many texts were embedded, rows written, rows deleted."""
        done = self.sync()
        return (
            sum(o.embedded for o in done),
            sum(o.upserted for o in done),
            sum(o.deleted for o in done),
        )

    def rows(self) -> list[Row]:
        """Return the rows, in order of their exchanges' times and parts."""
        return sorted(self.store.all_rows(), key=lambda row: (row.at, row.path, row.part_index))

    def ids(self) -> set[str]:
        """Return the ids of all rows."""
        return set(self.store.all_ids())

    def said(self) -> str:
        """Return the text of all rows."""
        return "\n".join(row.text for row in self.rows())

    def problems(self) -> dict[str, str]:
        """Return the listed problems by path."""
        return {
            failure.origin.path: failure.problem.reason
            for failure in self.catalogue.list_failures()
        }

    def verify(self) -> VerifyResult:
        """Compare with a clean rebuild, every vector included."""
        made = expected_rows_of_roots([ROOT], (self.files, self.catalogue), self.recipe, COUNT)
        return verify(made, self.catalogue, self.store, (Models(HashEmbedder()), None))

    def is_right(self) -> bool:
        """Whether the index equals a clean rebuild and another index of the same files, none of them deleted."""
        found = self.verify()
        assert found.differences == (), found.differences[:5]
        with tempfile.TemporaryDirectory() as base:
            other = Talks(Path(base), self.on_delete, self.summaries)
            other.roots[ROOT] = replace(other.roots[ROOT], path=str(self.folder))
            other.sync()
            theirs, ours = other.contents(), self.contents()
            other.close()
        assert ours == theirs, sorted(ours ^ theirs)[:3]
        return True

    def contents(self) -> set[tuple[str, ...]]:
        """Return all exchanges, with their metadata."""
        return {
            (row.id, row.path, row.header_path, row.text, row.at, row.until, row.tools, row.files)
            for row in self.rows()
        }

    def take_in(self, path: str) -> Sequence[str]:
        """Ingest a file; return the paths of the exchanges that changed."""
        return [
            origin.path
            for origin in self.conversations.ingest(RootedPath(ROOT, path)).changed_exchanges
        ]


@pytest.fixture
def talks(tmp_path: Path) -> Iterator[Talks]:
    """Give an empty index of conversations."""
    made = Talks(tmp_path)
    yield made
    made.close()


def claude(*turns: tuple[str, str], session: str = "s1", start: int = 0) -> bytes:
    """Return a Claude Code session of (question, answer) pairs; "" means no answer."""
    lines = []
    for number, (question, answer) in enumerate(turns, start):
        above = f"a{number - 1}-{session}" if number else None
        common = {"sessionId": session, "cwd": "/home/me/app", "isSidechain": False}
        at = f"2026-01-02T10:{number:02}"
        asked = {"type": "user", "uuid": f"q{number}-{session}", "parentUuid": above, "timestamp": f"{at}:00Z",
                 "message": {"role": "user", "content": question}, **common}  # fmt: skip
        lines.append(asked)
        if answer:
            blocks = [{"type": "text", "text": answer}]
            lines.append({"type": "assistant", "uuid": f"a{number}-{session}", "parentUuid": asked["uuid"],
                          "timestamp": f"{at}:30Z",
                          "message": {"id": f"m{number}-{session}", "model": "opus", "content": blocks}, **common})  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def answer(subject: str, paragraphs: int = 1) -> str:
    """Return a long answer of unique words."""
    return "\n\n".join(
        f"Paragraph {n} of {subject}: "
        + " ".join(f"{subject}{n}word{m} holds" for m in range(40))
        + "."
        for n in range(paragraphs)
    )
