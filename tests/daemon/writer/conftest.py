"""A writer's loop without its thread, over a small index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anchord.config.paths import find_paths
from anchord.config.schema import Config, EmbeddingConfig, WatchConfig
from anchord.core.types import RootedPath
from anchord.daemon.writer.file_queue import Urgency
from anchord.daemon.writer.loop import WriterLoop
from anchord.index.opening import open_writer
from anchord.index.session import IndexWriter


class Steps:
    """A writer's loop over a small root, and the requests that it made."""

    def __init__(self, base: Path, config: Config) -> None:
        """Index three files."""
        self.folder = base / "docs"
        self.folder.mkdir()
        for number in range(3):
            self.write(f"{number}.md", f"Words of note {number}.\n")
        (base / "home").mkdir(mode=0o700)
        paths = find_paths({"ANCHORD_HOME": str(base / "home")})
        paths.create_folders()
        self.writer: IndexWriter = open_writer(paths, config, [str(self.folder)])
        self.restarts: list[str] = []
        self.loop = WriterLoop(self.writer, config, self.restarts.append)
        self.loop.work_queue.root_watcher.start(use_events=False)
        self.loop.index_check.start()
        self.loop.walk_and_index_all()
        self.waits: list[float] = []
        condition: Any = self.loop.work_queue.wake_condition
        condition.wait = self.waits.append

    def write(self, name: str, text: str) -> RootedPath:
        """Write a file of the root."""
        (self.folder / name).write_text(text)
        return RootedPath("docs", name)

    def saved(self, file: RootedPath, at: float = 0.0) -> None:
        """Queue a file as one that was just saved."""
        queue = self.loop.work_queue
        queue.hinted_at[file] = at
        queue.files.add(file, Urgency.SAVED, at)

    def queued(self, name: str) -> RootedPath:
        """Write a file, and queue it as a walk does."""
        file = self.write(name, f"Words of {name}.\n")
        self.loop.work_queue.enqueue([file])
        return file

    def paths(self) -> set[str]:
        """Return the paths that have rows."""
        return {row.path for row in self.writer.store.all_rows()}

    def work(self) -> None:
        """Run one step of work while nothing else is due."""
        self.loop._do_most_urgent_work(0.0)

    def walk_and_work(self) -> None:
        """Run two steps: the first walks a folder that is not watched yet."""
        for _ in range(2):
            self.loop._step()


CONFIG = Config(embedding=EmbeddingConfig(provider="hash"), watch=WatchConfig(reconcile_s=86_400))


@pytest.fixture
def steps(tmp_path: Path) -> Iterator[Steps]:
    made = Steps(tmp_path, CONFIG)
    yield made
    made.loop.stop()
    made.writer.close()
