"""Questions about an index, answered as JSON values: the same for the daemon and for a command without one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from anchord.adapters.archive import Archive, Talk
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.config import KINDS
from anchord.core.decide import decide
from anchord.core.moments import moment
from anchord.core.wording import Wording, matched_words
from anchord.errors import UsageError
from anchord.ipc.protocol import SearchParams, ShowParams
from anchord.model import Filters, Fingerprint, Origin, Problem, Root, Row, Spot, printable
from anchord.reconcile import NO_LIMIT
from anchord.roots import root_of
from anchord.rows import MAX_BYTES
from anchord.search import MODES, Passage, Question, Ways, search
from anchord.sources import kind_of
from anchord.sources.archived import is_archived
from anchord.tally import Tally
from anchord.workspace import Reader

A = TypeVar("A")
B = TypeVar("B")

_ID_MATCHES = 10
_WORDS = ThreadPoolExecutor(8, "words")
"""Its threads are made when they are first needed."""


def answer_search(reader: Reader, catalogue: SqliteCatalogue, params: SearchParams) -> dict[str, Any]:
    """Answer `search`: groups of hits by file, best first, each with where it stands now.

    Raises:
        UsageError: the mode or the root is unknown. EmbedderError: no vector of the query can be had.
    """
    if params.mode not in MODES:
        raise UsageError(f"no search mode `{params.mode}`", f"there are: {', '.join(MODES)}")
    paths = {root.name: root.path for root in reader.roots}
    if params.root and params.root not in paths:
        raise UsageError(f"no root `{params.root}`", f"there are: {', '.join(sorted(paths)) or 'none yet'}")
    if params.kind and params.kind not in KINDS:
        raise UsageError(f"no kind `{params.kind}`", f"there are: {', '.join(KINDS)}")
    now = datetime.now().astimezone()
    since, until = moment(params.since, now), moment(params.until, now, end=True)
    if since and until and since >= until:
        raise UsageError(f"nothing is since {params.since} and until {params.until}", "give the earlier one to `since`")
    root, path = _place(reader.roots, params.root, params.path)
    filters = Filters(root, path, params.kind, params.section, params.room, params.session, since, until)
    question = Question(params.query, params.mode, filters, params.k, params.show_chunks, params.expand)
    found = search(question, Ways(reader.store, reader.means.embedder, _at_once), catalogue, reader.reranker)
    said = [each.hit.spot.origin for group in found.groups for each in group if is_archived(each.hit.spot.origin.path)]
    carriers: Mapping[Origin, str] = {}
    if said:
        with open_archive_of(reader) as archive:
            carriers = archive.carriers_of(said) if archive else {}
    plans = reader.means.recipe.plans
    groups = [
        [
            {**_passage(each, found.wording, paths, carriers), "strategy": plans.of(each.row.root, each.row.kind).strategy}
            for each in group
        ]
        for group in found.groups
    ]
    return {"query": params.query, "mode": params.mode, "note": found.note, "groups": groups}


def _place(roots: Sequence[Root], root: str, path: str) -> tuple[str, str]:
    """Return the root and the glob in it that a glob means: one that begins with a root's folder is of that root."""
    found = root_of(roots, path) if path.startswith("/") else None
    if found is None or root not in {"", found[0].name}:
        return root, path
    return found[0].name, f"/{found[1]}" if found[1] else ""


def _at_once(first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]:
    """Do the second in another thread: words are looked for while another process embeds the query."""
    running = _WORDS.submit(second)
    try:
        return first(), running.result()
    finally:
        running.cancel()


@contextmanager
def open_archive_of(reader: Reader) -> Iterator[Archive | None]:
    """Open the archive of conversations with a connection of its own; None where there is none."""
    if not reader.places.conversations.exists():
        yield None
        return
    with closing(Archive(reader.places.conversations, read_only=True)) as archive:
        yield archive


def _file(origin: Origin, roots: Mapping[str, str], carriers: Mapping[Origin, str]) -> str | None:
    """Return the file that holds a row's text; None for an exchange whose last file is gone."""
    path = carriers.get(origin) if is_archived(origin.path) else origin.path
    return printable(os.path.join(roots.get(origin.root, ""), path)) if path else None


def _said(row: Row) -> dict[str, Any]:
    """Return what is told of an exchange besides its text."""
    if not row.session:
        return {}
    return {
        "source": row.source,
        "session": row.session,
        "exchange_id": row.exchange_id,
        "at": row.at or None,
        "until": row.until or None,
        "project": row.project or None,
        "model": row.model or None,
        "tools": row.tools.split("\n") if row.tools else [],
        "files": row.files.split("\n") if row.files else [],
        "part_index": row.part_index,
        "total_parts": row.total_parts,
    }


def _passage(passage: Passage, wording: Wording, roots: Mapping[str, str], carriers: Mapping[Origin, str]) -> dict[str, Any]:
    """Return a passage; id, scores and fields are those of its best chunk, text and lines those of all its `ids`."""
    row, hit = passage.row, passage.hit
    return {
        "id": row.id,
        "score": round(hit.score, 4),
        "cosine": None if hit.cosine is None else round(hit.cosine, 4),
        "cosine_rank": hit.cosine_rank,
        "bm25": None if hit.bm25 is None else round(hit.bm25, 4),
        "bm25_rank": hit.bm25_rank,
        "exact": hit.is_exact,
        "named": hit.is_named,
        "matched": matched_words(wording, f"{row.header_path}\n{passage.text}"),
        "root": row.root,
        "path": row.path,
        "file": _file(hit.spot.origin, roots, carriers),
        "kind": row.kind,
        "room": row.room or None,
        "header_path": row.header_path,
        "start_line": passage.start_line,
        "end_line": passage.end_line,
        "ids": list(passage.ids),
        "chunk_index": hit.spot.ordinal,
        "locator": "#".join(filter(None, [row.path, row.header_path.rpartition(" > ")[2], str(hit.spot.ordinal)])),
        "content_hash": row.content_hash,
        "text": passage.text,
        **_said(row),
    }


def answer_show(reader: Reader, catalogue: SqliteCatalogue, params: ShowParams) -> dict[str, Any]:
    """Answer `show`: a chunk by the first digits of its id, with neighbours, or with all chunks of its file.

    `previous` and `next` are the ids around what is shown, None at the ends of the file.

    Raises:
        UsageError: no chunk, or several, have such an id; or no such file is indexed.
    """
    whole = params.whole or bool(params.path)
    found = [_first_of(catalogue, Origin(params.root, params.path))] if params.path else _one(catalogue, params.id)
    reach = 1 << 30 if whole else max(0, params.context)
    around = list(catalogue.neighbours(found[0], reach if whole else reach + 1))
    at = around.index(found[0])
    ids = around[max(0, at - reach) : at + reach + 1]
    rows = {row.id: row for row in reader.store.rows(ids)}
    spots = catalogue.spots(ids)
    chunks = [_located(rows[chunk], spots[chunk]) for chunk in ids if chunk in rows and chunk in spots]
    before, after = around[: max(0, at - reach)], around[at + reach + 1 :]
    ends = {"previous": before[-1] if before else None, "next": after[0] if after else None}
    told = {"id": found[0], "chunks": chunks, **ends}
    row = rows.get(found[0])
    if row is None or not row.session:
        return told
    with open_archive_of(reader) as archive:
        talk = archive.conversation(Origin(row.root, row.path)) if archive else None
    return {**told, "conversation": _conversation(talk, row.root, catalogue)} if talk else told


def _one(catalogue: SqliteCatalogue, digits: str) -> list[str]:
    found = list(catalogue.starting_with(digits.lower(), _ID_MATCHES)) if digits else []
    if len(found) != 1:
        what = f"{len(found)} or more chunks start" if found else "no chunk starts"
        raise UsageError(f"{what} with `{digits}`", "give more digits, as `anchord search --json` shows them")
    return found


def _first_of(catalogue: SqliteCatalogue, origin: Origin) -> str:
    known = catalogue.known(origin)
    if known is None or not known.chunks:
        what = "holds no text" if known else "is not indexed"
        raise UsageError(f"{printable(origin.path)} of root `{origin.root}` {what}", "`anchord explain PATH` says why")
    return known.chunks[0].chunk_id


def _conversation(talk: Talk, root: str, catalogue: SqliteCatalogue) -> dict[str, Any]:
    """Return what an exchange is part of, and where to go on from it."""

    def neighbour(path: str, question: str) -> dict[str, Any] | None:
        known = catalogue.known(Origin(root, path)) if path else None
        return {"id": known.chunks[0].chunk_id, "question": question} if known and known.chunks else None

    return {
        "source": talk.source,
        "session": talk.session,
        "title": talk.title or None,
        "project": talk.project or None,
        "number": talk.number + 1,
        "exchanges": talk.exchanges,
        "source_missing": talk.source_missing,
        "previous": neighbour(*talk.previous),
        "next": neighbour(*talk.next),
    }


def _located(row: Row, spot: Spot | None) -> dict[str, Any]:
    return {
        "id": row.id,
        "root": row.root,
        "path": row.path,
        "kind": row.kind,
        "header_path": row.header_path,
        "start_line": spot.start_line if spot else None,
        "end_line": spot.end_line if spot else None,
        "content_hash": row.content_hash,
        "vector_key": row.vector_key,
        "text": row.text,
        **_said(row),
    }


def answer_dump(reader: Reader, catalogue: SqliteCatalogue) -> Iterator[dict[str, Any]]:
    """Yield every row with its lines, sorted by root, path, place and id; lines are null between intent and confirmation."""
    rows = sorted(reader.store.all_rows(), key=lambda row: (row.root, row.path))
    spots = catalogue.spots([row.id for row in rows])
    located = [_located(row, spots.get(row.id)) for row in rows]
    yield from sorted(located, key=lambda r: (r["root"], r["path"], r["start_line"] or 0, r["end_line"] or 0, r["id"]))


def answer_explain(reader: Reader, catalogue: SqliteCatalogue, path: str) -> dict[str, Any]:
    """Answer `explain`: is a file indexed, which rule decided, what would be done with it now, and its last problem."""
    absolute = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), os.path.basename(path))
    found = root_of(reader.roots, absolute)
    if found is None or not found[1] or os.path.isdir(absolute):
        what, hint = _no_file(found)
        return {"path": printable(absolute), "indexed": False, "rule": what, "decision": "skip", "reason": hint}
    origin, is_carrier = Origin(found[0].name, found[1]), found[0].kind == "conversations"
    told = _exchanges_in(reader, origin) if is_carrier else ()
    known, seen, verdict = catalogue.known(origin), reader.files.fingerprint(origin), reader.files.judge()(origin)
    decision = decide(verdict, seen, known, reader.means.recipe.digest(origin.root), NO_LIMIT if is_carrier else MAX_BYTES)
    problem = known.problem if known else seen if isinstance(seen, Problem) else None
    return {
        "path": printable(absolute),
        "root": origin.root,
        "indexed": bool(known and known.digest and not (known.problem and not known.problem.partial)),
        "chunks": sum(len(each.chunks) for each in (known, *map(catalogue.known, told)) if each),
        **({"exchanges": len(told)} if is_carrier else {}),
        "rule": verdict.reason,
        "strategy": reader.means.recipe.plans.of(origin.root, "exchange" if told else kind_of(origin.path) or "text").strategy,
        "decision": type(decision).__name__.lower(),
        "reason": decision.reason,
        "last_reason": catalogue.reason(origin),
        "problem": problem.reason if problem else None,
        "size": seen.size if isinstance(seen, Fingerprint) else None,
    }


def _no_file(found: tuple[Root, str] | None) -> tuple[str, str]:
    """Return what a place is that no file of a root can be, and what to do."""
    if found is None:
        return "is in no root", "`anchord add FOLDER` makes its folder one"
    root, inside = found
    if inside:
        return f"is a folder of the root `{root.name}`", "name a file; `search --path` takes a folder"
    return "is a root itself", "`anchord roots` lists the roots"


def _exchanges_in(reader: Reader, carrier: Origin) -> tuple[Origin, ...]:
    with open_archive_of(reader) as archive:
        return archive.exchanges_in(carrier) if archive else ()


def answer_failures(catalogue: SqliteCatalogue, paths: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the files that are not indexed, or not wholly, with the reason and since when; `paths` of roots by name."""
    return [failure_of(paths.get(f.origin.root, ""), f.origin.path, f.problem, f.since_ns) for f in catalogue.failures()]


def failure_of(root: str, path: str, problem: Problem, since_ns: int) -> dict[str, Any]:
    """Return a listed problem; `since` is a time of the wall clock, in UTC."""
    since = datetime.fromtimestamp(since_ns // 1_000_000_000, UTC).isoformat()
    full = printable(os.path.join(root, path))
    return {"path": full, "reason": problem.reason, "partial": problem.partial, "since": since}


def answer_index(
    work: Tally, counts: Mapping[str, tuple[int, int]], rows: int, away: Sequence[str], problems: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return what one `index` did, and what there is now; `counts` are (files, chunks) by root."""
    files = sum(files for files, _ in counts.values())
    return {"files": files, "chunks": rows, **work.as_dict(), "away": list(away), "problems": list(problems)}
