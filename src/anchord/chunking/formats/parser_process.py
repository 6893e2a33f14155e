"""Find the definitions of code in a child process, so that no text can crash the indexer."""

from __future__ import annotations

import threading
import time

import msgspec

from anchord.chunking.formats.code_symbols import Definition, ParserProcessError, has_grammar
from anchord.core.ids import hash_content
from anchord.ipc.confinement import environment_without_keys
from anchord.ipc.worker_process import WorkerProcess, WorkerProcessError

_TRIES = 2
_ANSWER_TIMEOUT_S = 50.0
"""For one try; two are shorter than the writer's longest step.

The process's own limit, of CPU time, ends it earlier.
"""
_IDLE_S = 60.0


class ParserProcess:
    """A `DefinitionFinder` that parses in a child process. Safe to call from any thread.

    The process is started at the first text and ended by `stop_if_idle` or `close`.
    """

    def __init__(self, worker_module: str = "anchord.chunking.formats.parser_worker") -> None:
        """Start nothing yet.

        Args:
            worker_module: The module that the child process runs.
        """
        self._worker_module = worker_module
        self._lock = threading.Lock()
        self._child: WorkerProcess | None = None
        self._last_used = 0.0
        self._quarantine: dict[str, str] = {}
        """Digest of a text that ended the process twice -> how it ended. Kept in memory only."""

    def __call__(self, text: str, language: str) -> list[Definition]:
        """Return the definitions of a text, as `find_definitions` does.

        Blocks while another thread's text is parsed, and for at most 50 s for each of two tries.

        Raises:
            ParserProcessError: The process ended twice over this text, now or before, or it cannot
                be started.
        """
        if not has_grammar(language):
            return []
        digest = hash_content(text.encode())
        with self._lock:
            if digest in self._quarantine:
                raise ParserProcessError(self._quarantine[digest])
            reason = ""
            for _ in range(_TRIES):
                child = self._running_child()
                try:
                    return self._request(child, text, language)
                except WorkerProcessError as error:
                    reason = str(error)
                    self._end()
            self._quarantine[digest] = reason
            raise ParserProcessError(reason)

    def stop_if_idle(self) -> None:
        """End the process if it was not used for 60 s. Call it from time to time."""
        if self._child and time.monotonic() - self._last_used > _IDLE_S:
            self.close()

    def close(self) -> None:
        """End the process; the next call starts a new one."""
        with self._lock:
            self._end()

    def _running_child(self) -> WorkerProcess:
        if self._child is not None and self._child.is_alive:
            return self._child
        self._end()
        try:
            self._child = WorkerProcess(self._worker_module, (), environment_without_keys())
        except WorkerProcessError as error:
            # This is not the text's fault, so the text is not quarantined.
            raise ParserProcessError(str(error)) from error
        return self._child

    def _request(self, child: WorkerProcess, text: str, language: str) -> list[Definition]:
        request = {"text": text, "language": language}
        answer = child.call_or_kill(_ANSWER_TIMEOUT_S, request)
        self._last_used = time.monotonic()
        return msgspec.convert(answer["definitions"], list[Definition])

    def _end(self) -> None:
        child, self._child = self._child, None
        if child:
            child.shut_down()
