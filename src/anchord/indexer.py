"""One path -> Outcome, and a walk -> the paths that are due: the story of anchord on one page.

    fingerprint, known -> decide (stop?) -> bytes -> digest (stop?) -> parse -> chunk -> diff
    -> embed what is new -> catalogue.intend -> store.upsert -> store.delete -> catalogue.apply -> Outcome

The order of the last four is what makes a crash harmless. An intent without its confirmation is repaired by reading the
file again and comparing with what the store really holds; rows come before others go, so that no search finds a hole.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from anchord.chunkers.layout import Count
from anchord.committing import Committer
from anchord.core.decide import decide
from anchord.core.diff import diff, row_hash
from anchord.core.guard import Leave
from anchord.core.identity import digest
from anchord.core.recipe import Recipe
from anchord.model import (
    UNSEEN,
    Absent,
    Action,
    Content,
    Diff,
    Fingerprint,
    Forget,
    Ingested,
    Known,
    Origin,
    Outcome,
    Placed,
    Problem,
    Read,
    Skip,
    Unstable,
    Update,
)
from anchord.ports import Entering, Judge, World, unheard
from anchord.reconcile import NO_LIMIT, Reconciled, reconcile
from anchord.rows import MAX_BYTES, make_rows
from anchord.sources.archived import is_archived

BATCH_FILES = 200

_ASK = Leave()
_TAKE_IN_S = 900.0
"""An export of a gigabyte is read in one go, in half a minute."""
_TOLD = "told"
"""Stands for the digest of a file of conversations, whose content is in the archive."""


@dataclass(frozen=True, slots=True)
class _Look:
    """A file whose content is as known; only its fingerprint is new."""

    outcome: Outcome
    fingerprint: Fingerprint
    read_ns: int


@dataclass(frozen=True, slots=True)
class _TakeIn:
    """A file of conversations that has something to tell, or is gone."""

    seen: Fingerprint | Absent | Problem
    known: Known | None
    reason: str
    read_ns: int
    may_go: bool


class Indexer:
    """Brings single paths and whole trees up to date. One at a time: it is the one writer."""

    def __init__(self, world: World, count: Count, recipe: Recipe) -> None:
        """Work on this world by this recipe; `count` counts the model's tokens."""
        self._world = world
        self._files = world.files
        self._catalogue = world.catalogue
        self._store = world.store
        self._vanished = world.vanished
        self._clock = world.clock
        self._conversations = world.conversations
        self._count = count
        self._recipe = recipe
        self._committer = Committer(world)

    @property
    def commits(self) -> int:
        """How often the table was changed."""
        return self._committer.commits

    @commits.setter
    def commits(self, commits: int) -> None:
        self._committer.commits = commits

    # Which paths

    def reconcile(self, root: str, prefix: str = "", entering: Entering = unheard, leave: Leave = _ASK) -> Reconciled:
        """Compare a tree with the catalogue by fingerprints alone."""
        return reconcile(self._world, self._recipe, Origin(root, prefix), entering, leave)

    def audit(self) -> Sequence[Origin]:
        """Compare ids and hashes of the whole table with the catalogue's, after an unclean stop or when their numbers differ.

        Rows of no file go; files with a missing, a doubled or another row are returned, to be read and written again.
        """
        wanted: dict[str, Origin] = {}
        hashes: dict[str, str] = {}
        for chunk_id, hashed, origin in self._catalogue.wanted_rows():
            wanted[chunk_id], hashes[chunk_id] = origin, hashed
        rows = self._store.hashes()
        present = Counter(chunk_id for chunk_id, _ in rows)
        other = [chunk_id for chunk_id, hashed in rows if hashed and hashes.get(chunk_id, hashed) != hashed]
        extra = [chunk_id for chunk_id in present if chunk_id not in wanted]
        doubled = [chunk_id for chunk_id, times in present.items() if times > 1 and chunk_id in wanted]
        self.drop([*extra, *doubled])
        gone = [*(chunk_id for chunk_id in wanted if chunk_id not in present), *doubled, *other]
        origins = list(dict.fromkeys(wanted[chunk_id] for chunk_id in gone))
        self._catalogue.doubt(origins)
        return origins

    def repair(self, extra: Sequence[str], doubtful: Sequence[Origin], spoiled: Sequence[str]) -> Sequence[Origin]:
        """Drop rows of no file and rows with spoiled vectors; return the files to read and write again."""
        self.drop(extra)
        self._vanished.drop(list(self._store.vectors_of(spoiled)))
        self._store.delete(spoiled)  # Not kept with the vanished: they must be made anew.
        self._catalogue.doubt(doubtful)
        return doubtful

    def drop(self, ids: Sequence[str]) -> None:
        """Delete rows, keeping their vectors for a while."""
        self._committer.drop(ids)

    # What to do with them

    def index(
        self, origins: Iterable[Origin], enough: Callable[[], bool] = lambda: False, gone: Collection[Origin] | None = None
    ) -> Iterator[Outcome]:
        """Bring files up to date, many to a commit; an outcome is given once it is durable.

        Before each file, and between two batches of texts that are embedded, `enough` is asked; once it says yes, the rest is
        left, to be asked for again: what was embedded for it is not embedded again. With `gone`, the rows of a file that is
        not there, or is empty as one that is just being written, go only if it is among those; any other is to be looked for
        again, through the guard.

        Raises:
            EmbedderError, StoreError: nothing of the batch at hand may count as done; call again later.
        """
        enough = _for_good(enough)
        updates: list[Update] = []
        looks: list[_Look] = []
        texts = 0
        for plan in self._plans(list(dict.fromkeys(origins)), enough, gone):
            if plan is None:
                yield from self._finish(updates, looks, enough)
                updates, looks, texts = [], [], 0
            elif isinstance(plan, Outcome):
                yield plan
            elif isinstance(plan, _Look):
                looks.append(plan)
            else:
                updates.append(plan)
                texts += len(plan.embed_texts)
            if len(updates) + len(looks) >= BATCH_FILES or texts >= self._committer.batch_texts:
                yield from self._finish(updates, looks, enough)
                updates, looks, texts = [], [], 0
        yield from self._finish(updates, looks, enough)

    def _plans(
        self, origins: Sequence[Origin], enough: Callable[[], bool], gone: Collection[Origin] | None
    ) -> Iterator[Outcome | _Look | Update | None]:
        """Plan for each file; None asks for what was planned to be done first.

        What a file of conversations tells comes before it: it is done once they are. Several may tell the same exchange.
        """
        judge, waiting = self._files.judge(), deque(origins)
        told: dict[Origin, Fingerprint | Absent | Problem] = {}
        while waiting:
            if enough():
                return
            origin = waiting.popleft()
            plan = self._plan(origin, judge, gone)
            if isinstance(plan, _TakeIn):
                self._world.beat(_TAKE_IN_S)
                ingested = self._conversations.take_in(origin)
                for each in ingested.changed:
                    if enough():
                        return
                    seen = self._files.fingerprint(each)
                    if told.get(each) == seen:
                        continue
                    if each in told:
                        yield None
                    told[each] = seen
                    exchange = self._plan(each, judge, None)
                    if isinstance(exchange, Outcome):
                        self._conversations.done([each])
                    if not isinstance(exchange, _TakeIn):  # It never is: an exchange is no carrier.
                        yield exchange
                self._catalogue.doubt(ingested.again)
                waiting.extend(ingested.again)
                plan = self._taken_in(origin, plan, ingested)
            yield plan

    def _taken_in(self, origin: Origin, plan: _TakeIn, ingested: Ingested) -> Outcome | _Look | Update:
        """Plan for the file itself, of which the index holds nothing but that it was read."""
        if ingested.ordinary:
            return self._read(origin, plan.known, plan.reason, may_go=plan.may_go)
        if not isinstance(plan.seen, Fingerprint):
            return self._forget(origin, plan.known, plan.reason, ingested.problem, UNSEEN)
        rows = tuple(placed.chunk_id for placed in self._present(origin, plan.known))
        recipe = self._recipe.digest(origin.root)
        now = Known(plan.seen, plan.read_ns, _TOLD, recipe, True, (), ingested.problem)
        return Update(origin, now, Diff((), (), rows, 0, 0), (), plan.reason)

    def _plan(self, origin: Origin, judge: Judge, gone: Collection[Origin] | None) -> Outcome | _Look | Update | _TakeIn:
        known = self._catalogue.known(origin)
        seen = self._files.fingerprint(origin)
        if known and isinstance(seen, Absent) and gone is not None and origin not in gone:
            return Outcome(origin, Action.RETRY, "it left after the look at its folder")
        carried = self._conversations.is_carrier(origin)
        most = NO_LIMIT if carried or is_archived(origin.path) else MAX_BYTES
        decision = decide(judge(origin), seen, known, self._recipe.digest(origin.root), most)
        if carried and not isinstance(decision, Skip):
            return _TakeIn(seen, known, decision.reason, self._clock(), gone is None or origin in gone)
        match decision:
            case Skip(reason):
                return Outcome(origin, Action.SKIPPED if known is None else Action.UNCHANGED, reason)
            case Forget(reason, problem):
                fingerprint = seen if isinstance(seen, Fingerprint) else UNSEEN
                return self._forget(origin, known, reason, problem, fingerprint)
            case Read(reason):
                return self._read(origin, known, reason, may_go=gone is None or origin in gone)

    def _read(self, origin: Origin, known: Known | None, reason: str, *, may_go: bool) -> Outcome | _Look | Update:
        read_ns = self._clock()
        content = self._files.read(origin)
        match content:
            case Unstable():
                return Outcome(origin, Action.RETRY, "written while it was read")
            case Absent():
                return Outcome(origin, Action.RETRY, "it left while it was opened")
            case Problem():
                return self._forget(origin, known, content.reason, content, UNSEEN)
            case Content():
                pass
        if known and known.chunks and not content.data and not may_go:
            return Outcome(origin, Action.RETRY, "it was emptied after the look at it")
        content_digest = digest(content.data)
        if known and known.settled and known.recipe == self._recipe.digest(origin.root) and known.digest == content_digest:
            outcome = Outcome(origin, Action.UNCHANGED, f"{reason}, its content did not", len(known.chunks), len(known.chunks))
            return _Look(outcome, content.fingerprint, read_ns)
        made, problem = make_rows(origin, content.data, self._recipe, self._count)
        rows = [each.row for each in made]
        placed = tuple(Placed(m.row.id, m.row.vector_key, row_hash(m.row), m.start_line, m.end_line) for m in made)
        change = diff(self._present(origin, known), rows, placed)
        texts = {each.row.vector_key: each.embed_text for each in made}
        wanted = [(row.vector_key, texts[row.vector_key]) for row in (*change.added, *change.changed)]
        now = Known(content.fingerprint, read_ns, content_digest, self._recipe.digest(origin.root), True, placed, problem)
        return Update(origin, now, change, tuple(dict(wanted).items()), reason)

    def _present(self, origin: Origin, known: Known | None) -> Sequence[Placed]:
        """Return the rows a file has. After an unconfirmed change only the store knows; their text is not trusted then."""
        if known is None or known.settled:
            return known.chunks if known else ()
        return [Placed(chunk_id, "", "", 0, 0) for chunk_id in self._store.ids_of(origin)]

    def _forget(
        self, origin: Origin, known: Known | None, reason: str, problem: Problem | None, fingerprint: Fingerprint
    ) -> Outcome | Update:
        if known is None and problem is None:
            return Outcome(origin, Action.SKIPPED, reason)
        gone = tuple(placed.chunk_id for placed in self._present(origin, known))
        left = Known(fingerprint, self._clock(), "", self._recipe.digest(origin.root), True, (), problem) if problem else None
        return Update(origin, left, Diff((), (), gone, 0, 0), (), reason)

    # Doing it

    def _finish(self, updates: Sequence[Update], looks: Sequence[_Look], enough: Callable[[], bool]) -> Iterator[Outcome]:
        """Do what was planned; what is interrupted has no outcome, and is to be asked for again."""
        if looks:
            self._catalogue.seen([(look.outcome.origin, look.fingerprint, look.read_ns) for look in looks])
            self._tell([look.outcome.origin for look in looks])
            yield from (look.outcome for look in looks)
        done = self._committer.commit(updates, enough) if updates else None
        if done:
            told, embedded = done
            self._tell([update.origin for update in told])
            yield from (_outcome(update, embedded) for update in told)

    def _tell(self, handled: Sequence[Origin]) -> None:
        """Note in the archive of conversations what is in the index now."""
        exchanges = [origin for origin in handled if is_archived(origin.path)]
        if exchanges:
            self._conversations.done(exchanges)


def _for_good(enough: Callable[[], bool]) -> Callable[[], bool]:
    """Return a question that stays answered with yes: nothing may be done after what was left."""
    said = False

    def ask() -> bool:
        nonlocal said
        said = said or enough()
        return said

    return ask


def _outcome(update: Update, embedded: set[str]) -> Outcome:
    """Sum up an update. A text that several files of a batch share counts for the first of them."""
    change = update.diff
    made = {key for key, _ in update.embed_texts if key in embedded}
    embedded -= made
    known = update.known
    if known is None:
        action = Action.REMOVED
    elif known.problem and not known.problem.partial:
        action = Action.FAILED
    else:
        action = Action.INDEXED if change.writes else Action.SHIFTED if change.shifted else Action.UNCHANGED
    upserted = len(change.added) + len(change.changed)
    reason = f"{update.reason}; {known.problem.reason}" if known and known.problem else update.reason
    return Outcome(
        update.origin, action, reason,
        chunks=len(known.chunks) if known else 0, kept=change.kept, shifted=change.shifted, upserted=upserted,
        deleted=len(change.removed), embedded=len(made), reused=upserted - len(made),
    )  # fmt: skip
