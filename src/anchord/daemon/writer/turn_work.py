"""The two kinds of work of a turn: index files, and make the vectors that they still lack."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog

from anchord.core.types import RootedPath
from anchord.daemon.writer.backoff import Backoff
from anchord.daemon.writer.maintenance import Maintenance
from anchord.daemon.writer.outcomes import OutcomeHandler
from anchord.errors import EmbedderError
from anchord.index.session import IndexWriter

log = structlog.get_logger()


class TurnWork:
    """Does the work of turns. For the writer thread."""

    def __init__(
        self,
        writer: IndexWriter,
        outcomes: OutcomeHandler,
        maintenance: Maintenance,
        backoff: Backoff,
    ) -> None:
        """Work on an index.

        Args:
            writer: The index.
            outcomes: Takes what was done with each file.
            maintenance: Asked after each turn whether the table must be compacted.
            backoff: Reset after each turn that succeeded.
        """
        self.root_name = ""
        """Name of the root whose files are being worked on, "" when none are."""
        self.model_backoff = Backoff(writer.paths)
        """The pause after the model failed: files are indexed meanwhile, and found by words."""
        self.has_failed_fill = False
        """Whether a model failed when vectors were made, and no build has had a turn since."""
        self._writer = writer
        self._outcomes = outcomes
        self._maintenance = maintenance
        self._backoff = backoff

    def index(self, files: Sequence[RootedPath], should_stop: Callable[[], bool]) -> None:
        """Index files until all are done or `should_stop`; the rest stays queued.

        Raises:
            EmbedderError, StoreError: As `Indexer.index`.
        """
        outcomes = self._outcomes
        missing_files = outcomes.queue.missing_files
        commits_before = self._writer.indexer.commit_count
        self.root_name = files[0].root
        try:
            should_stop = self._noting_waiters(should_stop)
            for outcome in self._writer.indexer.index(files, should_stop, missing_files):
                outcomes.handle(outcome)
        finally:
            self._end_turn(commits_before)
        self._backoff.reset()
        self._maintenance.compact_if_due()

    def fill_vectors(self, should_stop: Callable[[], bool], *, saved_only: bool = False) -> None:
        """Make the vectors that the next files lack, until `should_stop`.

        Args:
            should_stop: Called between two batches of the model.
            saved_only: Leave out the files that nobody has just saved.

        Raises:
            EmbedderError, StoreError: As `VectorFill.fill`. After an EmbedderError the files that
                lack its model go behind those that may have another one.
        """
        vectors, fill = self._outcomes.queue.vectors, self._writer.indexer.vector_fill
        files = vectors.next_files(saved_only=saved_only)
        if not files:
            return
        commits_before = self._writer.indexer.commit_count
        self.root_name = files[0].root
        try:
            should_stop = self._noting_waiters(should_stop)
            for outcome in fill.fill(files, should_stop):
                if outcome.embedded:
                    vectors.note_made(outcome.origin)
                self._outcomes.handle_vectors(outcome)
        except EmbedderError:
            if len(self._writer.profile.embedders) > 1:
                vectors.set_back(fill.failed_files)
            raise
        finally:
            self._end_turn(commits_before)
        self._backoff.reset()
        self._maintenance.compact_if_due()

    def end_pauses(self, *, words_only: bool) -> None:
        """Try now what failed, because a call waits for it. Any thread may call this.

        Args:
            words_only: The call does not wait for vectors.
        """
        self._backoff.end_pause()
        if not words_only:
            self.model_backoff.end_pause()

    @property
    def model_problem(self) -> str:
        """Why the model makes no vectors and is tried again, "" when it makes them."""
        return self.model_backoff.reason

    def may_use_model(self, now: float) -> bool:
        """Return whether the model may be asked: it has not just failed, nor is it being prepared.

        The writer does other work until it is prepared.
        """
        embedders = self._writer.profile.embedders
        is_being_prepared = any(embedder.state == "preparing" for embedder in embedders)
        return now >= self.model_backoff.resume_at and not is_being_prepared

    def forget_model_problem(self, *, is_building: bool) -> None:
        """Forget that the model failed if nothing needs it any more."""
        if not is_building and not self._outcomes.queue.vectors:
            self.model_backoff.reset()

    def try_with_model(self, work: Callable[[], None]) -> None:
        """Do work that needs the model. If the model fails, such work pauses, and only such."""
        self.has_failed_fill = False
        try:
            work()
        except EmbedderError as error:
            self.model_backoff.record_error(error)
            log.warning(
                "model.failed",
                reason=error.message,
                retry_s=self.model_backoff.pause_s,
            )
            if self.model_backoff.is_lasting:
                self._outcomes.barrier.interrupt_calls_without_timeout(for_vectors=True)
            self.model_backoff.start_pause()
        else:
            self.model_backoff.reset()

    def try_to_fill_vectors(self, should_stop: Callable[[], bool], *, saved_only: bool) -> None:
        """Do `fill_vectors`; if the model fails, this pauses, and files are indexed meanwhile."""
        self.try_with_model(lambda: self.fill_vectors(should_stop, saved_only=saved_only))
        self.has_failed_fill = self.model_backoff.failing_since is not None

    def find_missing_vectors(self) -> None:
        """Queue every file of whose chunks some lack their vectors, unless they are known.

        Raises:
            StoreError: The table or the catalog cannot be read.
        """
        vectors = self._outcomes.queue.vectors
        if not vectors.is_known:
            vectors.add_found(self._writer.indexer.vector_fill.find_due())

    def finish_all(self, should_stop: Callable[[], bool]) -> None:
        """Index all files that wait, and make all vectors, until `should_stop`.

        Raises:
            EmbedderError, StoreError: As `index` and `fill_vectors`.
        """
        queue = self._outcomes.queue
        self.find_missing_vectors()
        while not should_stop():
            if turn := queue.next_turn():
                self.index(turn.files, should_stop)
            elif queue.vectors.has_next():
                self.fill_vectors(should_stop)
            else:
                return

    def _noting_waiters(self, should_stop: Callable[[], bool]) -> Callable[[], bool]:
        """Return `should_stop` that also tells the models whether a call of `sync` waits."""
        embedders, barrier = self._writer.profile.embedders, self._outcomes.barrier

        def note() -> None:
            if barrier.has_waiters:
                for embedder in embedders:
                    embedder.note_waiter()

        def check() -> bool:
            note()
            return should_stop()

        note()  # The first batch begins before the first check.
        return check

    def _end_turn(self, commits_before: int) -> None:
        self.root_name = ""
        self._outcomes.barrier.release_finished_calls()
        if self._writer.indexer.commit_count > commits_before:
            self._outcomes.stats.last_commit_at = time.monotonic()
