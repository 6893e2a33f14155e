"""The definitions of code, found by a process of its own: no text that breaks a grammar breaks what indexes it."""

from __future__ import annotations

import os
import threading
import time

import msgspec

from anchord.adapters.child import Child, ChildError
from anchord.chunkers.symbols import Definition, ParserEndedError, has_grammar
from anchord.core.identity import digest

_TRIES = 2
_ANSWER_S = 50.0
"""For one try; both are less than what a step of the writer may take. The process's own limit is of CPU, and comes first."""
_IDLE_S = 60.0
_NEEDED = ("HOME", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""By these Python finds its modules. The rest of the environment can hold keys, and parsing needs none."""


class Grammars:
    """Asks the process, which is started when there is code to cut and ended after a while without. Any thread may ask."""

    def __init__(self, program: str = "anchord.adapters.grammar_worker") -> None:
        """Start nothing yet."""
        self._program = program
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._last_used = 0.0
        self._left_alone: dict[str, str] = {}
        """Digest of a text that ended the process twice -> how it did."""

    def __call__(self, text: str, language: str) -> list[Definition]:
        """Return what `symbols.definitions` does.

        Raises:
            ParserEndedError: the process ended over this text, now or before; nothing is known of its definitions.
        """
        if not has_grammar(language):
            return []
        key = digest(text.encode())
        with self._lock:
            how = self._left_alone.get(key, "")
            for _ in range(0 if how else _TRIES):
                child = self._started()
                try:
                    return self._ask(child, text, language)
                except ChildError as error:
                    how = str(error)
                    self._end()
            self._left_alone[key] = how
            raise ParserEndedError(how)

    def rest(self) -> None:
        """End the process when it has had nothing to do for a while; called now and then."""
        if self._child and time.monotonic() - self._last_used > _IDLE_S:
            self.close()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _started(self) -> Child:
        if self._child is None or not self._child.alive:
            self._end()
            try:
                self._child = Child(self._program, (), {name: os.environ[name] for name in _NEEDED if name in os.environ})
            except ChildError as error:  # Which is not the text's fault, so nothing is held against it.
                raise ParserEndedError(str(error)) from error
        return self._child

    def _ask(self, child: Child, text: str, language: str) -> list[Definition]:
        answer = child.answer(_ANSWER_S, {"text": text, "language": language})
        self._last_used = time.monotonic()
        return msgspec.convert(answer["definitions"], list[Definition])

    def _end(self) -> None:
        child, self._child = self._child, None
        if child:
            child.end()
