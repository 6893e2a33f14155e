"""Which roots must be walked although no event says so: for their ignore rules, or their folder."""

from __future__ import annotations

import time

from anchord.sources.files.rules_reader import RulesReader
from anchord.sources.watch.root_watcher import RootWatcher

_REFUSED_CHECK_S = 10.0


class RootChecks:
    """Roots whose rules settle soon, or changed outside the root. For the writer thread.

    All times are of the monotonic clock.
    """

    def __init__(self, rules: RulesReader) -> None:
        """Start with none.

        Args:
            rules: The rules of all roots, as the last walks read them.
        """
        self._rules = rules
        self._due: dict[str, float] = {}
        """Root -> when its ignore rules settle and it is walked again."""
        self._settled: set[str] = set()
        self._next_refused_check = 0.0

    @property
    def unsettled_roots(self) -> list[str]:
        """Roots with an ignore file that may be in the middle of a save: a walk will follow."""
        return list(self._due)

    @property
    def due_times(self) -> list[float]:
        """When roots must be walked because their rules have settled."""
        return list(self._due.values())

    def roots_due(self, now: float) -> list[str]:
        """Return the roots whose rules have settled by now."""
        return [name for name, due_at in self._due.items() if now >= due_at]

    def note_walk(self, root_name: str) -> None:
        """Note whether the rules that a walk of a root, or of a part of it, read are settled."""
        wait_s = self._rules.settle_in_s(root_name)
        self.drop(root_name)
        if wait_s is not None:
            self._due[root_name] = time.monotonic() + wait_s

    def expect_new_rules(self, root_name: str) -> None:
        """Make a root due: its ignore rules may have changed."""
        self._due[root_name] = time.monotonic()

    def drop(self, root_name: str) -> None:
        """Expect no walk of a root any more."""
        if self._due.pop(root_name, None) is not None:
            self._settled.add(root_name)

    def pop_settled(self) -> list[str]:
        """Return the roots that were in `unsettled_roots` since the last call and are not now."""
        settled = [name for name in self._settled if name not in self._due]
        self._settled.clear()
        return settled

    def find_changed(self, watcher: RootWatcher, now: float) -> set[str]:
        """Return the names of the roots to walk because of changes that no file event reports.

        These are roots whose folder was replaced or is no longer watched, and roots for which an
        ignore file changed outside: above the root, or among git's own files. Every ten seconds
        also roots whose folder anchord refuses to read: their files may be back.

        Args:
            watcher: Watches the folders of the roots.
            now: Seconds of the monotonic clock.
        """
        checks_refused = now >= self._next_refused_check
        if checks_refused:
            self._next_refused_check = now + _REFUSED_CHECK_S
        changed = set(watcher.rewatch_changed_roots())
        return changed.union(
            name
            for name, state in watcher.states.items()
            if (state.is_refused and checks_refused) or self._rules.has_outside_changes(name)
        )
