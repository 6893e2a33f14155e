"""A model server that tests can block, so that a daemon's writer stays in a batch as long as needed."""

from __future__ import annotations

import threading

from embedding.test_openai_api import SIZE, Ask, Host, Way, answer

_LONGEST_S = 100.0


class Held:
    """Answers correctly, and not at all while it is blocked."""

    def __init__(self) -> None:
        """Begin to listen."""
        self.host = Host()
        self.host.way = self._answer
        self.way: Way = answer
        """How it answers when it is not blocked."""
        self._free = threading.Event()
        self._free.set()

    @property
    def settings(self) -> str:
        """Return the configuration of a daemon that uses it."""
        return f'[embedding]\nprovider = "openai"\nurl = "{self.host.url}"\nmodel = "held"\ndimension = {SIZE}\n'

    def hold(self) -> None:
        """Answer nothing from now on."""
        self._free.clear()

    def release(self) -> None:
        """Answer again, and also the pending requests."""
        self._free.set()

    def is_asked(self) -> bool:
        """Whether a request is pending."""
        return self.host.within > 0

    def texts(self) -> list[str]:
        """Return all requested texts, in order."""
        return [text for asked in self.host.texts() for text in asked]

    def stop(self) -> None:
        """Stop the server."""
        self.release()
        self.host.stop()

    def _answer(self, ask: Ask) -> None:
        self._free.wait(_LONGEST_S)
        self.way(ask)
