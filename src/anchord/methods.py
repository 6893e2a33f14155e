"""The socket's methods: each takes parsed parameters and returns JSON values. They run in threads beside the writer's."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog

from anchord import __version__
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.catalogue_pool import CataloguePool
from anchord.adapters.config_file import load_config
from anchord.adapters.lance import LanceStore
from anchord.config import root_config
from anchord.errors import AnchordError, StoreError, TimeoutExpiredError, UsageError
from anchord.forgetting import forget, recall
from anchord.generation import REBUILD, RECHUNK, Order, refuse_remote
from anchord.ipc import protocol
from anchord.ipc.protocol import Params
from anchord.model import Filters, Root
from anchord.pipeline import Pipeline
from anchord.queries import answer_dump, answer_explain, answer_search, answer_show
from anchord.roots import add_to_config, gather_roots, list_roots, remove_from_config
from anchord.shared_lock import SharedLock
from anchord.status import Status
from anchord.verification import Verification
from anchord.verifying import repair, verification_dict, verify_index
from anchord.workspace import Reader, Writer, store_uri

log = structlog.get_logger()

_VERIFY_ROUNDS = 3
_PAUSE_S = 0.05
_PATIENCE_S = 2.0
"""So long a new generation waits for answers that are being given."""

Table = dict[str, tuple[type[Params], Callable[[Any], object]]]


class Methods:
    """What the daemon can be asked, over one writer's pipeline and reading handles of its own."""

    def __init__(self, writer: Writer, reader: Reader, pipeline: Pipeline, shut_down: Callable[[], None]) -> None:
        """Answer for these."""
        self._writer = writer
        self._reader = reader
        self._pipeline = pipeline
        self._shut_down = shut_down
        self._reloading = threading.Lock()
        self._catalogues = CataloguePool(writer.places.catalogue)
        self._questions = SharedLock()
        self.status = Status(pipeline, writer)
        self.status.store = reader.store

    def table(self) -> Table:
        """Return the methods by name, with the type of their parameters."""
        return {
            "hello": (Params, lambda _: {"protocol": protocol.PROTOCOL, "version": __version__, "pid": os.getpid()}),
            "ping": (Params, lambda _: "pong"),
            "status": (Params, lambda _: self._ask(self.status.report)),
            "errors": (Params, lambda _: self._ask(self.status.failures)),
            "search": (protocol.SearchParams, self._search),
            "show": (protocol.ShowParams, lambda p: self._ask(lambda c: answer_show(self._reader, c, p))),
            "explain": (protocol.PathParams, lambda p: self._ask(lambda c: answer_explain(self._reader, c, p.path))),
            "dump": (Params, lambda _: self._ask(lambda c: list(answer_dump(self._reader, c)))),
            "roots": (Params, lambda _: self._ask(lambda c: list_roots(self._reader.roots, c.counts()))),
            "roots.list": (Params, lambda _: self._ask(lambda c: list_roots(self._reader.roots, c.counts()))),
            "roots.add": (protocol.RootParams, self._add_root),
            "roots.remove": (protocol.NameParams, self._remove_root),
            "reload": (Params, lambda _: self.reload()),
            "index": (protocol.IndexParams, self._index),
            "sync": (protocol.SyncParams, lambda p: self._sync(p.timeout)),
            "verify": (protocol.VerifyParams, self._verify),
            "rescan": (protocol.NameParams, self._rescan),
            "confirm-delete": (protocol.NameParams, self._confirm_delete),
            "reindex": (protocol.ReindexParams, self._reindex),
            "rebuild": (Params, lambda _: self._build(REBUILD)),
            "forget": (protocol.ForgetParams, self._forget),
            "pause": (Params, lambda _: self._pause(paused=True)),
            "resume": (Params, lambda _: self._pause(paused=False)),
            "shutdown": (Params, lambda _: self._stop()),
        }

    def follow(self) -> None:
        """Answer from the generation that has just begun to serve, or with nothing in memory of an index that was merged."""
        writer = self._writer
        store = LanceStore(store_uri(writer.places, writer.config), writer.means.dimension, "", read_only=True)
        self._reader = dataclasses.replace(self._reader, means=writer.means, catalogue=writer.catalogue, store=store)
        self.status.store = store

    def replace(self, promote: Callable[[], None]) -> None:
        """Put a new generation in place between two answers: its table and its catalogue come one after the other."""
        with self._questions.alone(_PATIENCE_S):
            promote()
            self.follow()

    def close(self) -> None:
        """Let go of what answers were read from."""
        self._catalogues.close()

    def warm(self) -> None:
        """Ask once by words, so that the first person who does so need not wait for what is loaded then."""
        with suppress(AnchordError):
            self._reader.store.matching("warm", 1, Filters())

    def reload(self) -> dict[str, Any]:
        """Follow the configuration's roots; what is the same stays as it is. Other keys take effect at the next start.

        One after another: the next must see what this one took in.
        """
        with self._reloading:
            return self._reload()

    def _reload(self) -> dict[str, Any]:
        config = load_config(self._writer.places.config)
        wanted = {root.name: root for root in gather_roots(config, self._remembered(), (), self._writer.places.own)}
        now = {root.name: root for root in self._writer.roots}
        gone = sorted(now.keys() - wanted.keys())
        for name in gone:
            self._drop(name)
        self.status.config_trouble = ""
        changed = [root for name, root in wanted.items() if now.get(name) != root]
        for root in changed:
            self._take(root)
        return {"added": [root.name for root in changed], "removed": gone}

    def hang_up(self) -> None:
        """Reload on a signal, when there is nobody to tell but the log and the status."""
        try:
            log.info("config.reloaded", **self.reload())
        except AnchordError as error:
            self.status.config_trouble = f"the configuration was not taken over: {error.message}"
            log.warning("config.refused", reason=error.message)

    def _ask(self, question: Callable[[SqliteCatalogue], object]) -> object:
        """Ask what reads the index; once more where a merge replaced what was being read."""
        reader = self._reader
        try:
            return self._asked(question)
        except StoreError:
            if reader is self._reader:
                raise
        return self._asked(question)

    def _asked(self, question: Callable[[SqliteCatalogue], object]) -> object:
        """Ask with a connection of its own: the writer's belongs to the writer's thread."""
        with self._questions.shared(), self._catalogues.one() as catalogue:
            return question(catalogue)

    def _search(self, params: protocol.SearchParams) -> object:
        if params.fresh:
            self._sync(None)
        return self._ask(lambda catalogue: answer_search(self._reader, catalogue, params))

    def _index(self, params: protocol.IndexParams) -> object:
        """Take in folders that no root covers yet, sync, and sum up."""
        before = self._pipeline.counters.work.copy()
        of = self._writer.places
        roots = gather_roots(load_config(of.config), self._remembered(), params.paths, of.own)
        known = {root.path for root in self._writer.roots}
        for root in roots:
            if root.path not in known:
                self._take(root)
        self._sync(None)
        work = self._pipeline.counters.work.since(before)
        return self._ask(lambda catalogue: self.status.summed_up(work, catalogue))

    def _remembered(self) -> list[Root]:
        return [root for root in self._writer.roots if not root.configured]

    def _sync(self, timeout: float | None) -> dict[str, Any]:
        began = time.monotonic()
        if not self._pipeline.sync(timeout):
            reason = self._pipeline.trouble or f"{self._pipeline.pending} files still wait"
            waited = time.monotonic() - began
            raise TimeoutExpiredError(f"not in sync after {waited:.1f} s: {reason}", "`anchord status` shows what it does")
        states = list(self._pipeline.survey.roots.states.values())
        return {
            "synced": True,
            "waited_s": round(time.monotonic() - began, 3),
            "away": [state.root.name for state in states if state.trouble],
            "held": {state.root.name: state.held for state in states if state.held},
        }

    def _rescan(self, params: protocol.NameParams) -> object:
        """Walk roots now, and wait until what that found is done."""
        for name in [self._known(params.name)] if params.name else list(self._pipeline.survey.roots.states):
            self._pipeline.call(lambda name=name: self._pipeline.survey.reconcile(name)).result()  # type: ignore[misc] # one type
        return self._sync(None)

    def _confirm_delete(self, params: protocol.NameParams) -> object:
        """Let the rows of files go that the delete guard holds."""
        name = self._known(params.name)
        held = self._pipeline.survey.roots.states[name].held
        self._pipeline.call(lambda: self._pipeline.survey.reconcile(name, confirmed=True)).result()
        self._sync(None)
        return {"name": name, "let_go": held}

    def _reindex(self, params: protocol.ReindexParams) -> object:
        """Read every file again; with `force_rechunk`, chunk every file again beside the present index."""
        if params.force_rechunk:
            return self._build(RECHUNK)
        before = self._pipeline.counters.work.copy()
        self._pipeline.call(self._writer.catalogue.distrust).result()
        self._sync(None)
        work = self._pipeline.counters.work.since(before)
        return self._ask(lambda catalogue: self.status.summed_up(work, catalogue))

    def _build(self, order: Order) -> object:
        """Build a new generation, and wait until it serves."""
        refuse_remote(self._writer)
        before = self._pipeline.counters.work.copy()
        self._pipeline.call(lambda: self._pipeline.build(order)).result()
        self._await_generation()
        work = self._pipeline.counters.work.since(before)
        return self._ask(lambda catalogue: self.status.summed_up(work, catalogue))

    def _await_generation(self) -> None:
        while self._pipeline.building and self._pipeline.alive:
            if self._pipeline.building.waits_for:
                away = ", ".join(self._pipeline.building.waits_for)
                raise AnchordError(f"the new index waits for {away}, which is away", "it is put in place once that is back")
            time.sleep(_PAUSE_S)

    def _forget(self, params: protocol.ForgetParams) -> object:
        def job() -> dict[str, Any]:
            pipeline = self._pipeline
            if params.undo:
                name = recall(self._writer, params.path)
                pipeline.survey.reconcile(name)
                return {"path": params.path, "root": name}
            order = pipeline.drop_building()
            gone = forget(self._writer, params.path)
            if order:
                pipeline.build(order)
            return {"path": gone.path, "files": gone.files, "rows": gone.rows, "disk_files_removed": gone.disk_files}

        told = self._pipeline.call(job).result()
        if params.undo:
            self._sync(None)
        return told

    def _known(self, name: str) -> str:
        names = sorted(self._pipeline.survey.roots.states)
        if name not in names:
            raise UsageError(f"no root `{name}`", f"there are: {', '.join(names) or 'none'}")
        return name

    def _pause(self, *, paused: bool) -> object:
        self._pipeline.pause(paused=paused)
        return {"paused": paused}

    def _stop(self) -> object:
        self._shut_down()
        return {"stopping": True, "pid": os.getpid()}

    def _add_root(self, params: protocol.RootParams) -> object:
        places = self._writer.places
        wanted = root_config(params.path, params.kind, params.name)
        root = add_to_config(places.config, self._remembered(), wanted, places.own)
        self.reload()
        return {"name": root.name, "path": root.path, "kind": root.kind}

    def _remove_root(self, params: protocol.NameParams) -> object:
        self._known(params.name)
        places = self._writer.places
        remove_from_config(places.config, params.name)
        return {"name": params.name, "removed_chunks": self._drop(params.name)}

    def _take(self, root: Root) -> None:
        self._pipeline.call(lambda: self._pipeline.add_root(root)).result()

    def _drop(self, name: str) -> int:
        return self._pipeline.call(lambda: self._pipeline.remove_root(name)).result()

    def _verify(self, params: protocol.VerifyParams) -> object:
        """Verify in the writer's thread, where nothing moves; a difference must outlive a new walk to be one.

        A generation that is being built is waited for: until it serves the index is what the configuration said before.
        """
        self._await_generation()
        result = self._verify_once(params.vectors)
        for _ in range(_VERIFY_ROUNDS - 1):
            if result.differences:
                result = self._verify_once(params.vectors)
        if result.differences and params.repair:
            found = result.differences
            self._pipeline.call(lambda: self._pipeline.survey.enqueue(repair(self._writer, found))).result()
            result = self._verify_once(params.vectors)
        if not result.differences:
            self._pipeline.counters.last_verified = time.monotonic()
        return verification_dict(result)

    def _verify_once(self, vectors: int | None) -> Verification:
        def job() -> Verification:
            self._pipeline.catch_up()
            return verify_index(self._writer, vectors)

        return self._pipeline.call(job).result()
