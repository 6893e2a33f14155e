"""The build of the next generation, step by step, in the writer thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from anchord.core.types import FileOutcome
from anchord.index.generation import (
    BuildRequest,
    GenerationBuild,
    delete_next_generation,
    find_interrupted_build,
    find_required_build,
)
from anchord.index.session import IndexWriter

_WAIT_FOR_ROOT_S = 15.0
"""How long a build waits before it looks at an unavailable root again."""


class GenerationBuilds:
    """At most one generation that is being built. All methods run in the writer thread."""

    def __init__(self, writer: IndexWriter) -> None:
        """Start without a build."""
        self.current: GenerationBuild | None = None
        """The generation that is being built, None when none is."""
        self.next_step_at = 0.0
        """When the build goes on, by the monotonic clock; later than now while it waits."""
        self.is_suspended = False
        """Whether a build was deleted, and is about to start again."""
        self._writer = writer

    @property
    def is_building(self) -> bool:
        """Whether a generation is being built, or is about to begin anew. Any thread may ask."""
        return self.current is not None or self.is_suspended

    @property
    def is_from_scratch(self) -> bool:
        """Whether a generation is being built that needs nothing of the present one."""
        return self.current is not None and self.current.request.is_from_scratch

    @property
    def files_due(self) -> int:
        """How many files the build still has to index; 0 when there is none."""
        return self.current.files_due if self.current else 0

    def is_due(self, now: float) -> bool:
        """Whether a build goes on now."""
        return self.current is not None and now >= self.next_step_at

    def resume_or_delete(self) -> None:
        """Go on with a build that is needed or was interrupted; else delete what one left."""
        build_request = find_required_build(self._writer) or find_interrupted_build(self._writer)
        if build_request:
            self.current = GenerationBuild(self._writer, build_request)
        else:
            delete_next_generation(self._writer)

    def start(self, build_request: BuildRequest) -> None:
        """Begin a build; one that is under way is deleted first."""
        self._abandon()
        self.current = GenerationBuild(self._writer, build_request)
        self.next_step_at = 0.0

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Delete the generation that is being built; start it again at the end of the block."""
        self.is_suspended = self.current is not None
        try:
            build_request = self._abandon()
            try:
                yield
            finally:
                if build_request:
                    self.start(build_request)
        finally:
            self.is_suspended = False

    def _abandon(self) -> BuildRequest | None:
        building, self.current = self.current, None
        if building is None:
            return None
        building.delete()
        return building.request

    def index_next_files(
        self, unavailable_roots: Sequence[str], should_stop: Callable[[], bool]
    ) -> Sequence[FileOutcome] | None:
        """Index the next files into the generation that is being built.

        While a root is unavailable or has held deletions, its rows cannot be made again from
        files. The build then waits, so that no row is lost when it is promoted.

        Args:
            unavailable_roots: Names of the roots that the daemon cannot see as a whole now.
            should_stop: Asked before each file.

        Returns:
            What was done; None when the build waits for a root instead, or when there is none.
        """
        building = self.current
        if building is None:
            return None
        building.unavailable_roots = tuple(unavailable_roots)
        outcomes = None
        if not unavailable_roots:
            outcomes = building.index_next_files(should_stop)
        if building.unavailable_roots:  # Given, or found by the walk of the build itself.
            self.next_step_at = time.monotonic() + _WAIT_FOR_ROOT_S
        return outcomes

    def close(self) -> None:
        """Close the files of the build; it goes on at the next start."""
        if self.current:
            self.current.close()
