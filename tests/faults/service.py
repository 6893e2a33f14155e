"""The daemon's parts in this process: real writer, watcher, table and catalog over a temporary home; no socket."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sample_messages import json_of

from anchord.config.file import load_config
from anchord.config.paths import find_paths
from anchord.daemon.handlers import RpcHandlers
from anchord.daemon.shared_reader import open_daemon_reader
from anchord.daemon.status import StatusReporter
from anchord.daemon.writer.loop import WriterLoop
from anchord.index.integrity.repair import verify_index
from anchord.index.integrity.verify import VerifyResult
from anchord.index.opening import open_writer
from anchord.index.session import IndexWriter
from anchord.store.catalog.catalog import SqliteCatalog

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
    writer: IndexWriter = field(init=False)
    pipeline: WriterLoop = field(init=False)
    restarts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the folders."""
        self.base = Path(os.path.realpath(self.base))
        self.home, self.folder = self.base / "home", self.base / "docs"
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.folder.mkdir(exist_ok=True)
        self.places = find_paths({"ANCHORD_HOME": str(self.home)})
        self.places.create_folders()
        self.running = False

    def start(self) -> Service:
        """Open the index and start the writer's loop."""
        self.places.config_file.write_text(self.settings, "utf-8")
        config = load_config(self.places.config_file)
        self.writer = open_writer(
            self.places, config, [] if "[[root]]" in self.settings else [str(self.folder)]
        )
        self.pipeline = WriterLoop(self.writer, config, self.restarts.append)
        self.methods = RpcHandlers(
            self.writer, open_daemon_reader(self.writer), self.pipeline, lambda: None
        )
        self.pipeline.run_promotion, self.pipeline.maintenance.on_index_merge = (
            self.methods.switch_generation,
            self.methods.reopen_reader,
        )
        self.running = True
        self.pipeline.start()
        return self

    def stop(self) -> None:
        """Stop cleanly."""
        if self.running:
            self.running = False
            self.pipeline.stop()
            self.methods.close()
            self.writer.close()

    def ask(self, method: str, **params: object) -> Any:  # noqa: ANN401 - any JSON value
        """Call a method as the socket does."""
        (handler,) = (each for each in self.methods.handlers() if each.method.name == method)
        return json_of(handler.answer(handler.method.params(**params)))

    def sync(self) -> dict[str, Any]:
        """Wait until everything written is searchable."""
        assert self.pipeline.wait_for_sync(PATIENCE_S), self.pipeline.blocked_reason
        answer: dict[str, Any] = self.ask("sync")
        return answer

    def rescan(self, name: str = "docs") -> None:
        """Walk a root."""
        self.ask("rescan", name=name)

    def status(self) -> dict[str, Any]:
        """Return the status."""
        with SqliteCatalog(self.places.catalog_file, read_only=True) as catalogue:
            report: dict[str, Any] = json_of(
                StatusReporter(self.pipeline, self.writer).build_report(catalogue)
            )
            return report

    def reasons(self) -> str:
        """Return why it is degraded."""
        return "\n".join(self.methods.status.state_and_reasons()[1])

    def verify(self) -> VerifyResult:
        """Compare with a clean rebuild, every vector included, in the writer's thread."""
        return self.pipeline.submit(lambda: verify_index(self.writer, None)).result(PATIENCE_S)

    def is_right(self) -> bool:
        """Sync, and say whether the index is what a clean rebuild gives."""
        self.sync()
        found = self.verify()
        assert found.differences == (), found.differences[:5]
        return True

    def paths(self) -> set[str]:
        """Return the paths that have rows."""
        return {
            row.path
            for row in self.pipeline.submit(lambda: list(self.writer.store.all_rows())).result(
                PATIENCE_S
            )
        }

    def embedded(self) -> int:
        """Count the texts that were embedded since the start."""
        return self.pipeline.stats.totals.embedded

    def write(self, path: str, text: str) -> Path:
        """Write a file of the root."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def notes(self, count: int, folder: str = "") -> None:
        """Write this many small files."""
        for n in range(count):
            self.write(f"{folder}{n:03}.md", f"# Note {folder}{n}\n\nWords of note {folder}{n}.\n")


def until(condition: Callable[[], object]) -> None:
    """Wait until another thread has done something; fail after a minute."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
