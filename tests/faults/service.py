"""The daemon's inside in this process: the real writer, watcher, table and catalogue over a temporary home; no socket."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.config_file import load_config
from anchord.daemon import reader_beside
from anchord.ipc.protocol import NameParams
from anchord.methods import Methods
from anchord.pipeline import Pipeline
from anchord.places import find_places
from anchord.status import Status
from anchord.verification import Verification
from anchord.verifying import verify_index
from anchord.workspace import Writer, open_writer

PATIENCE_S = 60.0
SETTINGS = """
[embedding]
provider = "hash"
[watch]
settle_ms = 20
max_wait_ms = 200
poll_s = 0.2
"""


@dataclass
class Service:
    """A home, a root `docs` in it, and a running pipeline between `start` and `stop`."""

    base: Path
    settings: str = SETTINGS
    writer: Writer = field(init=False)
    pipeline: Pipeline = field(init=False)
    restarts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the folders."""
        self.base = Path(os.path.realpath(self.base))
        self.home, self.folder = self.base / "home", self.base / "docs"
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.folder.mkdir(exist_ok=True)
        self.places = find_places({"ANCHORD_HOME": str(self.home)})
        self.places.make()
        self.running = False

    def start(self) -> Service:
        """Open the index and start the writer's loop."""
        self.places.config.write_text(self.settings, "utf-8")
        config = load_config(self.places.config)
        self.writer = open_writer(self.places, config, [] if "[[root]]" in self.settings else [str(self.folder)])
        self.pipeline = Pipeline(self.writer, config, self.restarts.append)
        self.methods = Methods(self.writer, reader_beside(self.writer), self.pipeline, lambda: None)
        self.pipeline.replacing, self.pipeline.upkeep.merged = self.methods.replace, self.methods.follow
        self.running = True
        self.pipeline.start()
        return self

    def stop(self) -> None:
        """End in good order."""
        if self.running:
            self.running = False
            self.pipeline.stop()
            self.methods.close()
            self.writer.close()

    def ask(self, method: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
        """Call a method as the socket does."""
        kind, call = self.methods.table()[method]
        return call(kind(**params))

    def sync(self) -> dict[str, Any]:
        """Wait until everything written is searchable."""
        assert self.pipeline.sync(PATIENCE_S), self.pipeline.trouble
        told: dict[str, Any] = self.ask("sync")
        return told

    def rescan(self, name: str = "docs") -> None:
        """Walk a root."""
        kind = NameParams(name=name)
        self.methods.table()["rescan"][1](kind)

    def status(self) -> dict[str, Any]:
        """Return the status."""
        with SqliteCatalogue(self.places.catalogue, read_only=True) as catalogue:
            return Status(self.pipeline, self.writer).report(catalogue)

    def reasons(self) -> str:
        """Return why it is degraded."""
        return "\n".join(self.methods.status.state()[1])

    def verify(self) -> Verification:
        """Compare with a clean rebuild, every vector included, in the writer's thread."""
        return self.pipeline.call(lambda: verify_index(self.writer, None)).result(PATIENCE_S)

    def is_right(self) -> bool:
        """Sync, and say whether the index is what a clean rebuild gives."""
        self.sync()
        found = self.verify()
        assert found.differences == (), found.differences[:5]
        return True

    def paths(self) -> set[str]:
        """Return the paths that have rows."""
        return {row.path for row in self.pipeline.call(lambda: list(self.writer.store.all_rows())).result(PATIENCE_S)}

    def embedded(self) -> int:
        """Count the texts that were embedded since the start."""
        return self.pipeline.counters.work.embedded

    def write(self, path: str, text: str) -> Path:
        """Write a file of the root."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def notes(self, count: int, folder: str = "") -> None:
        """Write so many small files."""
        for n in range(count):
            self.write(f"{folder}{n:03}.md", f"# Note {folder}{n}\n\nWords of note {folder}{n}.\n")


def until(condition: Callable[[], object]) -> None:
    """Wait for something that another thread does; give up after a minute."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
