"""Updates -> the store: embed what is new, note the intent, write rows, delete others, confirm.

The order of the last four is what makes a crash harmless: see `indexer`. What is being embedded can be interrupted between any
two batches of the model; what was made by then is kept beside the table, so that nothing is embedded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anchord.model import Known, Problem, Update, Vector
from anchord.ports import World

BATCH_S = 3.0
"""So long may be embedded between two commits: what a crash can cost."""
BATCH_TEXTS = (64, 2_048)
"""The least and the most texts for that."""
BATCH_ROWS = 4_096
MODEL_S = 1_200.0
"""So long may the model take for its next batch: before the first one on a machine it is made ready, which may take 900."""
_REFUSED = "refused"
"""The catalogue's note of the vector keys that the model cannot make, by line."""


@dataclass
class Committer:
    """The one way into the store."""

    world: World
    commits: int = 0
    """How often the table was changed."""
    _ahead: set[str] = field(default_factory=set)
    """Keys of vectors that were made for a commit that did not come to be."""
    _refused: set[str] | None = None

    @property
    def batch_texts(self) -> int:
        """Return how many texts to embed between two commits."""
        least, most = BATCH_TEXTS
        return min(max(least, round(self.world.embedder.rate * BATCH_S)), most)

    def commit(self, updates: Sequence[Update], enough: Callable[[], bool]) -> tuple[Sequence[Update], set[str]] | None:
        """Write a batch; return it as it is then known, and the keys of the vectors that were made for it.

        None: `enough` said yes while texts were embedded, and nothing was written.

        Raises:
            EmbedderError, StoreError: nothing of it may count as done.
        """
        world = self.world
        writing = [update for update in updates if update.diff.writes]
        rows = [row for update in writing for row in (*update.diff.added, *update.diff.changed)]
        texts = dict(pair for update in writing for pair in update.embed_texts)
        changed = [row.id for update in writing for row in update.diff.changed]
        removed = [chunk_id for update in writing for chunk_id in update.diff.removed]
        some, rest = removed[:BATCH_ROWS], removed[BATCH_ROWS:]
        coming = [row.id for row in rows]
        vectors, absent = self._reused([*changed, *some], list(texts), coming)
        missing = [key for key in texts if key not in vectors]
        made = self._embed({key: texts[key] for key in missing}, enough)
        if made is None:
            return None
        vectors.update(made)
        if writing:
            world.catalogue.intend(writing)  # Only now: an embedder that fails leaves nothing half done.
        for at in range(0, len(rows), BATCH_ROWS):
            world.store.upsert(rows[at : at + BATCH_ROWS], vectors, absent)
        world.store.delete(some)
        self.drop(rest)
        told = [self._told(update) for update in updates]
        world.catalogue.apply(told)
        self.commits += bool(writing)
        fresh = set(missing) | self._ahead.intersection(texts)
        self._ahead -= fresh
        return told, fresh

    def drop(self, ids: Sequence[str]) -> None:
        """Delete rows, keeping their vectors for a while."""
        for at in range(0, len(ids), BATCH_ROWS):
            some = ids[at : at + BATCH_ROWS]
            self.world.beat(0)
            self.world.vanished.put(self.world.store.vectors_of(some), self.world.clock())
            self.world.store.delete(some)

    def _reused(self, leaving: Sequence[str], keys: Sequence[str], coming: Sequence[str]) -> tuple[dict[str, Vector], set[str]]:
        """Return the vectors that exist already (in any row of any file, or of rows that vanished lately), and the absent rows.

        The vectors of the rows `leaving` are kept as those of vanished ones. A row that gets another text under the same id
        is one of them: a heading came before it, or went. Of the rows `coming` those are absent that the table has not; until
        they are written, nobody else writes any.
        """
        if not leaving and not keys and not coming:
            return {}, set()
        there, found = self.world.store.look_up([*dict.fromkeys([*leaving, *coming])], keys)
        kept = dict(there[each] for each in leaving if each in there)
        if kept:
            self.world.vanished.put(kept, self.world.clock())
        vectors = dict(found)
        missing = [key for key in keys if key not in vectors]
        if missing:
            vectors.update(self.world.vanished.get(missing))
            nothing = bytes(4 * self.world.embedder.dimension)
            vectors.update(dict.fromkeys(self.refused.intersection(missing), nothing))
        return vectors, set(coming) - there.keys()

    def _embed(self, texts: Mapping[str, str], enough: Callable[[], bool]) -> dict[str, Vector] | None:
        """Make vectors. What was made when it ends early is kept: it is not made again."""
        keys = list(texts)
        made: dict[str, Vector] = {}
        unkept: dict[str, Vector] = {}
        most, done = self.batch_texts, False
        self.world.beat(MODEL_S if texts else 0)
        try:
            for batch in self.world.embedder.stream(list(texts.values())):
                self.world.beat(MODEL_S if len(made) + len(batch) < len(keys) else 0)
                unkept.update((keys[number], vector) for number, vector in batch.items())
                made.update(unkept)
                if len(unkept) >= most and len(made) < len(keys):
                    self._keep(unkept)
                if len(made) < len(keys) and enough():
                    return None
            done = True
        finally:
            self._refuse(made)
            if not done:
                self._keep(unkept)
                self._ahead.update(made)
        return made

    def _keep(self, vectors: dict[str, Vector]) -> None:
        if vectors:
            self.world.vanished.put(dict(vectors), self.world.clock())
            vectors.clear()

    # What the model cannot embed

    @property
    def refused(self) -> set[str]:
        """Return the keys of vectors that the model cannot make: of zeros, so that words alone find the row."""
        if self._refused is None:
            self._refused = set(self.world.catalogue.noted(_REFUSED).split())
        return self._refused

    def _refuse(self, made: Mapping[str, Vector]) -> None:
        new = {key for key, vector in made.items() if not any(vector)} - self.refused
        if new:
            self.refused.update(new)
            self.world.catalogue.note(_REFUSED, "\n".join(sorted(self.refused)))

    def _told(self, update: Update) -> Update:
        """Name the lines of what the model cannot embed."""
        known = update.known
        if known is None or not self.refused:
            return update
        return replace(update, known=named(known, self.refused))


def named(known: Known, refused: set[str]) -> Known:
    """Add to a file's problems where it holds what the model cannot embed."""
    lines = [f"{p.start_line}-{p.end_line}" for p in known.chunks if p.vector_key in refused]
    if not lines:
        return known
    reason = f"lines {', '.join(lines)} end the embedding process: found by words alone; `anchord rebuild` tries again"
    if known.problem:
        reason = f"{known.problem.reason}; {reason}"
    return known._replace(problem=Problem(reason, partial=True))
