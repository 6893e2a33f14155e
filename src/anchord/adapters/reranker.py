"""A CrossEncoder of the user's, in a process of its own that is started by the first search and ends after a while without."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from anchord.adapters.child import Child, ChildError
from anchord.adapters.models import local_folder
from anchord.errors import EmbedderError

_LOAD_S = 120.0
_ANSWER_S = 30.0


class CrossEncoderReranker:
    """Scores texts for a query. Any thread may ask; one is answered at a time."""

    def __init__(self, name: str, idle_s: float) -> None:
        """Take a folder, or the id of a model in the hub's cache; nothing is downloaded.

        Raises:
            ConfigError: there is no such model on this machine.
        """
        self._folder = local_folder(name)
        self._name = name
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._timer: threading.Timer | None = None

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number a text; more is better.

        Raises:
            EmbedderError: the model cannot be used now.
        """
        with self._lock:
            if self._timer:
                self._timer.cancel()
            try:
                answer = self._started().answer(_ANSWER_S, {"query": query, "texts": list(texts)})
            except ChildError as error:
                self._end()
                raise EmbedderError(f"the reranker {self._name} {error}", "see [search] reranker") from error
            self._timer = threading.Timer(self._idle_s, self.close)
            self._timer.daemon = True
            self._timer.start()
            found = answer.get("scores")
            if not isinstance(found, list) or len(found) != len(texts):
                raise EmbedderError(f"the reranker {self._name} failed ({answer.get('error')})", "see [search] reranker")
            return [float(score) for score in found]

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            self._end()

    def _started(self) -> Child:
        if self._child is None or not self._child.alive:
            self._end()
            self._child = Child("anchord.adapters.rerank_worker", (str(self._folder),))
            said = self._child.answer(_LOAD_S)
            if "error" in said:
                self._end()
                raise EmbedderError(f"the reranker {self._name} cannot be loaded: {said['error']}", "see [search] reranker")
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child:
            child.end()
