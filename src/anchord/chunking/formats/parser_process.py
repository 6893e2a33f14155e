"""Find the definitions of code in a child process, so that no text can crash the indexer."""

from __future__ import annotations

import time

import msgspec

from anchord.chunking.formats.code_symbols import Definition, ParserProcessError, has_grammar
from anchord.core.ids import hash_content
from anchord.ipc.worker_process import OnDemandWorker, WorkerProcess, WorkerProcessError

_TRIES = 2
_ANSWER_TIMEOUT_S = 50.0
"""For one try; two are shorter than the writer's longest step.

The process's own limit, of CPU time, ends it earlier.
"""


class ParserProcess(OnDemandWorker):
    """A `DefinitionFinder` that parses in a child process. Safe to call from any thread."""

    def __init__(self, worker_module: str = "anchord.chunking.formats.parser_worker") -> None:
        """Start nothing yet.

        Args:
            worker_module: The module that the child process runs.
        """
        super().__init__(worker_module)
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
                try:
                    child = self._running_child()
                except WorkerProcessError as error:
                    # This is not the text's fault, so the text is not quarantined.
                    raise ParserProcessError(str(error)) from error
                try:
                    return self._request(child, text, language)
                except WorkerProcessError as error:
                    reason = str(error)
                    self._end()
            self._quarantine[digest] = reason
            raise ParserProcessError(reason)

    def _request(self, child: WorkerProcess, text: str, language: str) -> list[Definition]:
        request = {"text": text, "language": language}
        answer = child.call_or_kill(_ANSWER_TIMEOUT_S, request)
        self._last_used = time.monotonic()
        return msgspec.convert(answer["definitions"], list[Definition])
