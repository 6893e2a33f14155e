"""What the writer does when nobody waits for it: fold the table, check some files again, see to its own memory.

A daemon that runs for months must not grow, and must not trust itself: at each rest the next few files of the index are read
and compared with their rows, so that in time everything is, and what differs is mended and counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import psutil
import structlog

from anchord.adapters import lance_upkeep
from anchord.adapters.lance_fold import FOLD_S, Folding
from anchord.adapters.memory import give_back
from anchord.errors import StoreError
from anchord.model import Origin
from anchord.verification import Difference, verify_settled
from anchord.verifying import repair
from anchord.workspace import Writer

log = structlog.get_logger()

FOLD_COMMITS = 48
"""After so many commits the table is folded even while there is more to do.

Folding costs a quarter of a second: with upkeep shared out a commit costs least from about 45 to 100 on, whatever the size of
the table. But a search looks into each fragment that they left: at 48 it takes 3 ms longer, at 64 already 8.
"""
MERGE_EVERY = 10
"""After so many folds the parts that they left of the indices become one, and at a rest after so few: people search then."""
_MERGE_AT_REST = 4
_APART = "upkeep passes"
"""The catalogue's note of how often the table was folded since: processes that live for a few passes only must merge too."""
_IDLE_COMMITS = 20
_IDLE_S = 30.0
_LONG_IDLE_S = 300.0
"""At a rest of this length fewer commits are folded too: a dozen of them make a search by words a fifth slower."""
_UNINDEXED = 200
"""With so many rows that no index has, one commit is enough at any rest: each of a first index writes thousands."""
_CHECK_EVERY_S = 120.0
_CHECK_S = 0.03
"""So long may a check take at a rest: a twentieth of a percent of the time."""
_CHECK_FILES = 8


class Upkeep:
    """In the writer's thread, between two commits."""

    def __init__(self, writer: Writer, ceiling_bytes: int) -> None:
        """Begin with a table that was just folded, as far as is known."""
        self.trouble: list[str] = []
        """What failed when the table was last folded."""
        self.passes = 0
        self.seconds = 0.0
        self.mended = 0
        """Differences that checks found."""
        self.checked_at: float | None = None
        self.merged: Callable[[], None] = lambda: None
        """Is called when parts of the indices became one: readers hold files open that are gone."""
        self._writer = writer
        self._ceiling = ceiling_bytes
        self._process = psutil.Process()
        self._folding = Folding(writer.lock.descriptor)
        # What the process before left unfolded is not known by its commits: it can be half of a first index.
        self._commits = 0
        with suppress(StoreError):
            self._commits -= bool(writer.store.unindexed())
        self._looked = 0
        """How many unfolded commits there were when their rows were last counted."""
        self._apart = min(int((writer.catalogue.noted(_APART) or "0").split()[0]), MERGE_EVERY)
        self._trimmed = 0
        """How many commits there had been when memory was last given back."""
        self._after: Origin | None = None
        self._next_check = time.monotonic() + _CHECK_EVERY_S

    def fold_if_due(self, *, idle_s: float = 0.0) -> None:
        """Fold the table when enough was committed since."""
        commits, rests = self._writer.indexer.commits - self._commits, idle_s >= _IDLE_S
        if commits >= FOLD_COMMITS or (rests and (self._apart >= _MERGE_AT_REST or self._hinders(commits, idle_s))):
            self.fold(rests=rests)
        elif rests and self._commits + commits > self._trimmed:
            give_back()
            self._trimmed = self._commits + commits

    def _hinders(self, commits: int, idle_s: float) -> bool:
        """Whether so many unfolded commits make searches slower than a rest of this length should leave them."""
        if commits >= (1 if idle_s >= _LONG_IDLE_S else _IDLE_COMMITS):
            return True
        if commits == self._looked:
            return False
        self._looked = commits
        try:
            return self._writer.store.unindexed() >= _UNINDEXED
        except StoreError:
            return True  # Folding says what is wrong, or mends it.

    def fold(self, *, rests: bool = False) -> None:
        """Fold the table now; `rests`: there is nothing else to do."""
        began = time.monotonic()
        self.passes += 1
        merge = self._apart + 1 >= (_MERGE_AT_REST if rests else MERGE_EVERY)
        self._apart = 0 if merge else self._apart + 1
        with suppress(StoreError):  # On a full disk folding is what makes room.
            self._writer.catalogue.note(_APART, str(self._apart))
        self._commits, self._looked = self._writer.indexer.commits, 0
        self._writer.pulse.beat(FOLD_S)
        self.trouble = lance_upkeep.maintain(self._writer.store, merge=merge, drop=merge or rests, fold=self._folding)
        self._writer.pulse.beat()
        if merge:
            self.merged()
        give_back()
        self.seconds += time.monotonic() - began
        log.info("store.maintained", seconds=round(time.monotonic() - began, 3), trouble=self.trouble)

    def check_if_due(self, now: float) -> list[Origin]:
        """Compare the next few files with their rows; return those to be indexed again."""
        if now < self._next_check:
            return []
        self._next_check = now + _CHECK_EVERY_S
        writer, doubtful = self._writer, list[Origin]()
        deadline = now + _CHECK_S
        while True:
            found = self._check(writer)
            doubtful += found
            if self._after is None or time.monotonic() >= deadline:
                break
        self.checked_at = time.monotonic()
        return doubtful

    def rest(self) -> None:
        """Let the process go that folds, when it was not needed for a while."""
        self._folding.rest()

    def close(self) -> None:
        """End the process that folds."""
        self._folding.close()

    def is_too_large(self) -> bool:
        """Whether this process outgrew its ceiling."""
        return bool(self._ceiling) and self._process.memory_info().rss > self._ceiling

    def _check(self, writer: Writer) -> list[Origin]:
        entries = writer.catalogue.page(self._after, _CHECK_FILES)
        self._after = entries[-1][0] if entries else None
        present = [(origin, known) for origin, known in entries if origin.root in writer.by_name and known.digest]
        current = [(origin, known) for origin, known in present if known.recipe == writer.wanted.recipe.digest(origin.root)]
        differences: list[Difference] = verify_settled(
            current, writer.files, writer.catalogue, writer.store, (writer.means.recipe, writer.means.count)
        )
        if not differences:
            return []
        self.mended += len(differences)
        log.warning("index.differed", differences=len(differences))
        return repair(writer, differences)
