"""Regular expressions that are compiled when they are first used.

anchord has some hundred patterns of secrets and of transcripts. To compile them takes a tenth of a
second, and a daemon that starts with nothing changed needs none of them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """Stands for a compiled pattern: has the same methods and attributes."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of a pattern
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(re.compile(self.pattern, self._flags), name)
        self.__dict__[name] = value  # The next time it is found without this method.
        return value


def lazy_re(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern as `re.compile` does, but compile it, and raise its errors, on first use."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(pattern, flags))
