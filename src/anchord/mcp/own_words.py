"""anchord's own sentences without the names in them, for answers to agents.

The sentence `no root "q"; there are: "a", "b"` has names from outside, which can say anything. An
agent gets `no root [1]; there are: [2], [3]`, and the names in a field of their own. In a command
it gets `NAME`. `core.quoting` puts names into sentences so that they are found again.
"""

from __future__ import annotations

import json
import re
import shlex

_QUOTED = re.compile(r'`(?P<command>[^`]*)`|"(?:[^"\\]|\\.)*"')
_COMMAND_GROUPS = frozenset({"config", "conversations", "privacy", "service"})
"""Their first argument is a command of anchord."""
_PLACEHOLDERS = frozenset({"FOLDER", "FILE", "ID", "NAME", "PATH"})


class OwnWords:
    """Takes names out of the sentences of one answer, and numbers them from 1."""

    def __init__(self) -> None:
        """Begin without names."""
        self.names: list[str] = []

    def without_names(self, sentence: str) -> str:
        """Return a sentence with `[1]`, `[2]`, ... in the place of names, and NAME in commands.

        Args:
            sentence: A message or a hint, its names quoted by `quote_name` or `quote_command`.
        """
        return _QUOTED.sub(self._replace, sentence)

    def _replace(self, match: re.Match[str]) -> str:
        if match["command"] is not None:
            return f"`{_own_command(match['command'])}`"
        try:
            name = str(json.loads(match[0]))
        except ValueError:  # Not of `quote_name`: a message of a library.
            name = match[0]
        if name not in self.names:
            self.names.append(name)
        return f"[{self.names.index(name) + 1}]"


def _own_command(command: str) -> str:
    """Return a command with its options, and `NAME` for an argument."""
    try:
        words = shlex.split(command)
    except ValueError:  # Not of `quote_command`: a message of a library.
        return "NAME"
    own_count = 1
    if words[:1] == ["anchord"]:
        own_count = 3 if set(words[1:2]) & _COMMAND_GROUPS else 2
    kept = words[:own_count]
    for word in words[own_count:]:
        if word not in _PLACEHOLDERS and (word == "--" or not word.startswith("-")):
            return " ".join([*kept, "NAME"])
        kept.append(word)
    return " ".join(kept)
