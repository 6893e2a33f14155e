"""Questions for whoever asks from outside: answered by the daemon where one runs, else from the index beside its writer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from anchord.adapters.config_file import load_config
from anchord.adapters.lock import lock_holder
from anchord.errors import AnchordError, NotRunningError, StoreError
from anchord.ipc.client import Client
from anchord.ipc.protocol import PathParams, SearchParams, ShowParams, read_params
from anchord.places import Places

_PATIENCE_S = 5.0
_AGAIN_S = 0.1
_END_S = 60.0
_LOOK_S = 0.02

T = TypeVar("T")
Told = tuple[Any, bool]
"""An answer, and whether the daemon gave it: one from the index is as of its last writer."""


def connect(of: Places) -> Client | None:
    """Return a connection to the daemon, None when there is none."""
    try:
        return Client(of.socket)
    except NotRunningError:
        return None


def not_running(of: Places) -> NotRunningError:
    """Return why no daemon answers, and what to do."""
    holder = lock_holder(of.lock)
    if holder is None:
        return NotRunningError("anchord is not running", "`anchord start` starts it")
    return NotRunningError(
        f"no daemon answers on {of.socket}, but process {holder} is writing the index",
        "wait for it if it is `anchord index`, else end it and run `anchord start`",
    )


def await_end(of: Places, pid: int) -> None:
    """Wait until a daemon that was told to end has let go of the index.

    Raises:
        AnchordError: it did not within a minute.
    """
    deadline = time.monotonic() + _END_S
    while lock_holder(of.lock) in (pid, 0):  # 0: somebody holds it, and the file that tells who is gone.
        if time.monotonic() > deadline:
            hint = f"`kill -9 {pid}` is safe: nothing is lost by it"
            raise AnchordError(f"process {pid} did not end within {_END_S:.0f} s", hint)
        time.sleep(_LOOK_S)


def ask(of: Places, method: str, params: Mapping[str, Any], *, patient: bool = False) -> Told:
    """Ask what can be read from the index too: `search`, `show`, `explain`, `roots`.

    `patient`: a daemon that ends or starts just now is asked again before the index itself is.

    Raises:
        AnchordError: what the daemon answered, or why the index cannot be read.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        client = connect(of)
        if client is None:
            break
        try:
            with client:
                return client.call(method, **params), True
        except NotRunningError:
            if not patient or time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_S)
    return _read(of, method, params), False


def read(of: Places, question: Callable[[Any], T]) -> T:
    """Ask the index itself; what a new generation got in the way of is asked again.

    Raises:
        AnchordError: what the question raises; or why the index cannot be read.
    """
    while True:
        before = _generation(of)
        try:
            with open_index(of) as reader:
                answer = question(reader)
        except AnchordError:
            if _generation(of) == before:
                raise
        else:
            if _generation(of) == before:
                return answer


@contextmanager
def open_index(of: Places) -> Iterator[Any]:
    """Open the index itself, to read it beside whoever writes.

    Raises:
        StoreError: there is none yet, or no whole one.
    """
    from anchord.workspace import open_reader  # noqa: PLC0415 - loads LanceDB: half a second that no client of the socket needs

    require_index(of)
    _await_whole(of)
    reader = open_reader(of, load_config(of.config))
    try:
        yield reader
    finally:
        reader.close()


def require_index(of: Places) -> None:
    """Refuse what needs an index where there is none yet.

    Raises:
        StoreError: so it is.
    """
    if not of.catalogue.exists():
        raise StoreError("there is no index yet", "`anchord index FOLDER` makes one")


def _generation(of: Places) -> int:
    """Return what tells one generation of the index from the next, once it is whole.

    Raises:
        StoreError: as `_await_whole` does.
    """
    from anchord.adapters.lance import TABLE  # noqa: PLC0415 - likewise
    from anchord.workspace import store_uri  # noqa: PLC0415 - likewise

    _await_whole(of)
    try:
        return (Path(store_uri(of, load_config(of.config))) / f"{TABLE}.lance").stat().st_ino
    except OSError:
        return 0


def _await_whole(of: Places) -> None:
    """Wait while a new generation takes over: the catalogue changes first, and until the table has its ids lead to no rows.

    Raises:
        StoreError: a writer ended in that moment, or takes too long.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while of.promoting.exists():
        if lock_holder(of.lock) is None and of.promoting.exists():
            raise StoreError("its writer ended while a new index took over from the old one", "`anchord start` finishes that")
        if time.monotonic() > deadline:
            raise StoreError("a new index is taking over from the old one", "ask again in a moment")
        time.sleep(_LOOK_S)


def _read(of: Places, method: str, params: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    from anchord import queries  # noqa: PLC0415 - likewise
    from anchord.roots import list_roots  # noqa: PLC0415 - likewise

    given = {name: value for name, value in params.items() if name != "fresh"}
    answers: Mapping[str, Callable[[Any], Any]] = {
        "search": lambda r: queries.answer_search(r, r.catalogue, read_params(SearchParams, given)),
        "show": lambda r: queries.answer_show(r, r.catalogue, read_params(ShowParams, given)),
        "explain": lambda r: queries.answer_explain(r, r.catalogue, read_params(PathParams, given).path),
        "roots": lambda r: list_roots(r.roots, r.catalogue.counts()),
    }
    return read(of, answers[method])
