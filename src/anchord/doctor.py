"""`doctor`: what on this machine keeps anchord from its work, or soon will; each with what to do about it.

Nothing is changed but for a file of a moment, which tells the clock of the disk. A check that fails itself is a finding.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from anchord import __version__, supervising
from anchord.adapters import limits, prepared
from anchord.adapters.asked import load_asked
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.config_file import load_config
from anchord.adapters.lance import LanceStore
from anchord.adapters.mounts import mounts, remote_kind
from anchord.asking import connect
from anchord.config import Config
from anchord.discovery import discover
from anchord.errors import AnchordError
from anchord.means import Given, Means, find_means
from anchord.model import Root
from anchord.places import Places
from anchord.roots import gather_roots
from anchord.workspace import is_local, store_uri

_MUCH_OF_IT = 0.8
_WATCHES = 524_288
_INSTANCES = 128
_FILES = 1_024
_LITTLE_BYTES, _TOO_LITTLE_BYTES = 1_000_000_000, 200_000_000
_GAP_S = 2.0
_BUILT = 1_790_000_000
"""September 2026: no clock that is right is before it."""


class Health(StrEnum):
    """How a thing stands."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, how it stands, and what to do; "" where nothing is."""

    name: str
    health: Health
    what: str
    do: str = ""


@dataclass(frozen=True, slots=True)
class Patient:
    """What the checks look at."""

    places: Places
    config: Config
    roots: tuple[Root, ...]
    status: Mapping[str, Any] | None
    """What the daemon tells of itself."""
    environment: Mapping[str, str]


def examine(places: Places, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield one finding after another; without places or a configuration there is nothing more to look at."""
    try:
        places.make()
        yield Finding("places", Health.GOOD, f"configuration {places.config}, index {places.data}, socket {places.socket}")
        config = load_config(places.config)
        roots = tuple(gather_roots(config, load_asked(places.asked).roots, (), places.own))
    except AnchordError as error:
        yield Finding("configuration", Health.BAD, error.message, error.hint)
        return
    there = "" if places.config.exists() else ", which does not exist: all defaults"
    yield Finding("configuration", Health.GOOD, f"{places.config}{there}")
    patient = Patient(places, config, roots, _status(places), environment)
    checks = (_daemon, _service, _roots, _watches, _files, _disk, _store, _model, _clock, _conversations)
    for check in checks:
        yield from _carefully(check, patient)


def _carefully(check: Callable[[Patient], Iterator[Finding]], patient: Patient) -> Iterator[Finding]:
    try:
        yield from check(patient)
    except AnchordError as error:
        yield Finding(check.__name__.strip("_"), Health.BAD, error.message, error.hint)
    except OSError as error:
        what = f"{error.filename or 'it'}: {os.strerror(error.errno or 0).lower()}"
        yield Finding(check.__name__.strip("_"), Health.BAD, what, "see what stands there, and its permissions")


def _status(places: Places) -> Mapping[str, Any] | None:
    client = connect(places)
    if client is None:
        return None
    with client, suppress(AnchordError):
        return dict(client.call("status"))
    return {}


def _daemon(of: Patient) -> Iterator[Finding]:
    if of.status is None:
        yield Finding("daemon", Health.DOUBTFUL, "not running: what changes is not indexed", "`anchord start` starts it")
        return
    version = of.status.get("version", "")
    if version != __version__:
        what = f"runs version {version}, and this is {__version__}"
        yield Finding("daemon", Health.DOUBTFUL, what, "`anchord restart` takes over the new one")
    for reason in of.status.get("degraded", ()):
        yield Finding("daemon", Health.BAD, reason, "`anchord status` shows more")
    if failed := of.status.get("failed"):
        yield Finding("files", Health.DOUBTFUL, f"{len(failed)} are not indexed, or not wholly", "`anchord errors` lists them")
    if version == __version__ and not of.status.get("degraded"):
        yield Finding("daemon", Health.GOOD, f"{of.status['state']}, process {of.status['pid']}")


def _service(of: Patient) -> Iterator[Finding]:
    stands = supervising.standing(of.places, of.config, of.environment)
    if not stands.installed:
        yield Finding("service", Health.GOOD, "not installed: `anchord service install` starts it with your session")
    elif not stands.current:
        what = "its files are not those of this version and configuration"
        yield Finding("service", Health.DOUBTFUL, what, "`anchord service install` writes them anew")
    elif not stands.active:
        what = f"installed, and not running ({stands.detail})"
        yield Finding("service", Health.BAD, what, "`journalctl --user -u anchord -n 20` says why")
    else:
        yield Finding("service", Health.GOOD, f"{stands.kind} runs it")


def _roots(of: Patient) -> Iterator[Finding]:
    if not of.roots:
        yield Finding("roots", Health.DOUBTFUL, "none: nothing is indexed", "`anchord add FOLDER` adds one")
    table = mounts()
    for root in of.roots:
        if not Path(root.path).is_dir():
            yield Finding(
                "roots", Health.BAD, f"{root.name}: {root.path} is away", f"bring it back, or `anchord remove {root.name}`"
            )
        elif not os.access(root.path, os.R_OK | os.X_OK):
            yield Finding("roots", Health.BAD, f"{root.name}: {root.path} cannot be read", f"see `ls -ld {root.path}`")
        elif kind := remote_kind(root.path, table):
            what = f"{root.name} is on {kind}, which tells of no changes made elsewhere: it is polled"
            yield Finding("roots", Health.DOUBTFUL, what, "index it on the machine that holds it, if that can be")
        else:
            yield Finding("roots", Health.GOOD, f"{root.name}: {root.path}")


def _watches(of: Patient) -> Iterator[Finding]:
    allowed = limits.inotify()
    if allowed is None:
        return
    watching = of.status.get("roots", ()) if of.status else ()
    ours = sum(root["watches"] for root in watching)
    polled = sum(root["polled_dirs"] for root in watching)
    needed = allowed.used + polled + (0 if of.status else _folders(of))
    told = f"{allowed.used:,} of {allowed.watches:,} are used" + (f", {ours:,} by anchord" if of.status else "")
    if polled or needed > _MUCH_OF_IT * allowed.watches:
        more = max(_WATCHES, 1 << (2 * needed).bit_length())
        do = (
            f"`sudo sysctl fs.inotify.max_user_watches={more}` now, and for good: "
            f"`echo fs.inotify.max_user_watches={more} | sudo tee /etc/sysctl.d/60-anchord.conf`"
        )
        health = Health.BAD if polled else Health.DOUBTFUL
        yield Finding("watches", health, f"{told}; {polled:,} folders cannot be watched and are polled" if polled else told, do)
    else:
        yield Finding("watches", Health.GOOD, told)
    if allowed.instances < _INSTANCES:
        do = f"`sudo sysctl fs.inotify.max_user_instances={_INSTANCES}`"
        yield Finding("watches", Health.DOUBTFUL, f"only {allowed.instances} programs of a user may watch at once", do)


def _folders(of: Patient) -> int:
    """Count the folders that hold indexed files: as many, at least, are to be watched."""
    if not of.places.catalogue.exists():
        return 0
    with SqliteCatalogue(of.places.catalogue, read_only=True) as catalogue:
        return sum(len({path.rpartition("/")[0] for path in catalogue.overview(root.name, "")}) for root in of.roots)


def _files(_: Patient) -> Iterator[Finding]:
    allowed = limits.open_files()
    if allowed < _FILES:
        yield Finding("open files", Health.DOUBTFUL, f"a process may have only {allowed} open", f"`ulimit -n {_FILES * 4}`")
    else:
        yield Finding("open files", Health.GOOD, f"{allowed:,} for a process")


def _disk(of: Patient) -> Iterator[Finding]:
    free, used = limits.free_bytes(of.places.data), limits.folder_bytes(of.places.data)
    told = f"{free / 1e9:.1f} GB free, the index takes {used / 1e6:.0f} MB"
    if free < _TOO_LITTLE_BYTES:
        yield Finding("disk", Health.BAD, told, f"make room on the disk of {of.places.data}; nothing is lost meanwhile")
    elif free < max(_LITTLE_BYTES, used):
        yield Finding(
            "disk", Health.DOUBTFUL, f"{told}: too little to build a new one beside it", "make room before a setting changes"
        )
    else:
        yield Finding("disk", Health.GOOD, told)


def _store(of: Patient) -> Iterator[Finding]:
    if not of.places.catalogue.exists():
        yield Finding("index", Health.GOOD, "there is none yet: `anchord index` makes it")
        return
    with SqliteCatalogue(of.places.catalogue, read_only=True) as catalogue:
        if not catalogue.is_sound():
            yield Finding(
                "index", Health.BAD, "pages of the catalogue are damaged", "`anchord restart` makes it anew from the files"
            )
            return
        wanted = sum(chunks for _, chunks in catalogue.counts().values())
    uri = store_uri(of.places, of.config)
    rows = LanceStore(uri, _means(of).dimension, "", read_only=True).count()
    told = f"{rows:,} rows" + ("" if is_local(uri) else f" in {uri}")
    if rows != wanted and not (of.status and of.status.get("pending")):
        yield Finding(
            "index", Health.DOUBTFUL, f"{told}, {wanted:,} are wanted", "`anchord verify --repair` compares and mends"
        )
    else:
        yield Finding("index", Health.GOOD, told)
    if of.places.damaged.is_dir() and (kept := [each.name for each in of.places.damaged.iterdir()]):
        what = f"{len(kept)} times something damaged was set aside and made anew"
        yield Finding("index", Health.DOUBTFUL, what, f"see the disk's health; {of.places.damaged} can be deleted")


def _model(of: Patient) -> Iterator[Finding]:
    means = _means(of)
    with closing(means.embedder) as embedder:
        if means.provider == "openai":
            began = time.monotonic()
            embedder.embed(["anchord"], query=True)
            told = f"{means.model.name} answered in {time.monotonic() - began:.2f} s"
        elif means.provider == "hash":
            told = "none: the provider `hash` is for tests, and finds nothing by meaning"
        else:
            made = prepared.find(of.places.models, means.model.identity(), of.config.embedding.precision)
            ready = f"on {made[0].runtime}" if made else "made ready at the first text, in some fifteen seconds"
            told = f"{means.model.name}, {ready}"
        health = Health.DOUBTFUL if means.provider == "hash" or embedder.why else Health.GOOD
        do = "set `provider` under [embedding]" if means.provider == "hash" else embedder.why
        yield Finding("model", health, told, do)


def _means(of: Patient) -> Means:
    return find_means(Given(of.config, of.roots, of.places.models))


def _clock(of: Patient) -> Iterator[Finding]:
    now, gap = time.time(), limits.clock_gap_s(of.places.data)
    if now < _BUILT:
        what = f"this machine thinks it is {time.strftime('%Y-%m-%d', time.gmtime(now))}"
        yield Finding("clock", Health.BAD, what, "set the clock (`timedatectl set-ntp true`)")
    elif abs(gap) > _GAP_S:
        what = f"the disk of {of.places.data} is {abs(gap):.0f} s {'ahead of' if gap > 0 else 'behind'} this machine"
        yield Finding("clock", Health.DOUBTFUL, what, "have both follow one clock: edits within the gap are read twice")
    else:
        yield Finding("clock", Health.GOOD, "the disk's and the machine's agree")


def _conversations(of: Patient) -> Iterator[Finding]:
    found = [each for each in discover(str(Path.home()), of.environment, of.roots) if not each.root]
    if found:
        programs = ", ".join(sorted({each.program for each in found}))
        yield Finding(
            "conversations", Health.GOOD, f"{programs}: not indexed; `anchord discover` shows them, `--add` offers them"
        )
