"""A model server of the test's own that can be held up: a daemon's writer is deep in a batch for as long as a test likes."""

from __future__ import annotations

import threading

from embedding.test_openai_api import SIZE, Ask, Host, Way, answer

_LONGEST_S = 100.0


class Held:
    """Answers as a good server does, but nothing while it is held."""

    def __init__(self) -> None:
        """Begin to listen."""
        self.host = Host()
        self.host.way = self._answer
        self.way: Way = answer
        """How it answers when it is not held."""
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
        """Answer, also what was asked meanwhile."""
        self._free.set()

    def is_asked(self) -> bool:
        """Whether somebody waits for an answer."""
        return self.host.within > 0

    def texts(self) -> list[str]:
        """Return all texts that were asked for, in order."""
        return [text for asked in self.host.texts() for text in asked]

    def stop(self) -> None:
        """Go away."""
        self.release()
        self.host.stop()

    def _answer(self, ask: Ask) -> None:
        self._free.wait(_LONGEST_S)
        self.way(ask)
