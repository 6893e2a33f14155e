"""Opening what a crash, a power loss or a failing disk may have left: nothing is thrown away, and each repair is told.

What can be made from something else is set aside under `data/damaged/` and made anew: the table from the files (with the
vectors that were kept), the catalogue from the files (with the vectors of the table).
"""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from anchord.adapters import lance_upkeep
from anchord.adapters.archive_writer import ArchiveWriter
from anchord.adapters.asked import Asked, load_asked
from anchord.adapters.catalogue import SqliteCatalogue
from anchord.adapters.lance import TABLE, LanceStore
from anchord.errors import OtherFormError, StoreDamagedError, StoreError
from anchord.means import Means
from anchord.places import Places

_SUFFIXES = ("", "-wal", "-shm")


def open_asked(places: Places, repairs: list[str]) -> Asked:
    """Read what was asked for by commands."""
    try:
        return load_asked(places.asked)
    except StoreDamagedError:
        kept = _kept(places)
        shutil.move(places.asked, kept / places.asked.name)
        repairs.append(f"the list of folders given to commands was damaged and is lost: give them again (kept in {kept})")
        return Asked()


def open_catalogue(places: Places, repairs: list[str]) -> SqliteCatalogue:
    """Open the catalogue; after an unclean stop all of it is read first."""
    try:
        catalogue = SqliteCatalogue(places.catalogue)
    except StoreDamagedError as error:
        return _remade(places, repairs, error.message)
    if catalogue.noted("clean") == "1" or catalogue.is_sound():
        return catalogue
    catalogue.close()
    return _remade(places, repairs, "pages of it are damaged")


def open_archive(places: Places, repairs: list[str]) -> ArchiveWriter:
    """Open the archive of conversations; a damaged one is read anew from what is still there."""
    try:
        return ArchiveWriter(places.conversations)
    except StoreDamagedError as error:
        kept = _kept(places)
        for suffix in _SUFFIXES:
            file = Path(f"{places.conversations}{suffix}")
            if file.exists():
                shutil.move(file, kept / file.name)
        repairs.append(f"the archive of conversations was damaged and is read anew: {error.message} (kept in {kept})")
        return ArchiveWriter(places.conversations)


def open_table(places: Places, uri: str, means: Means, repairs: list[str], *, was_clean: bool) -> LanceStore:
    """Open the table; after an unclean stop its ids are read first. A damaged one goes back some versions, or is made anew."""
    folder = Path(uri)
    if folder.is_dir():
        swept = lance_upkeep.sweep(folder)
        if swept:
            repairs.append(f"{swept} temporary files of a killed writer were removed")
    try:
        return _readable(uri, means, was_clean=was_clean)
    except (StoreDamagedError, OtherFormError) as error:
        if not folder.is_dir():
            raise
        kept = _kept(places)
        if isinstance(error, StoreDamagedError) and lance_upkeep.recover(folder, kept):
            repairs.append(f"the newest version of the table was damaged: went back to the one before (kept in {kept})")
        else:
            lance_upkeep.set_aside(folder, kept)
            repairs.append(f"the table is made anew from the files: {error.message} (kept in {kept})")
        return _readable(uri, means, was_clean=True)


def begin_promotion(places: Places, catalogue: SqliteCatalogue) -> None:
    """Put a finished generation's catalogue in place, and mark that its table is to follow.

    Raises:
        StoreError: there is no room for it. Then nothing has changed.
    """
    places.promoting.touch()
    try:
        catalogue.take_over(places.next_catalogue)
    except StoreError:
        places.promoting.unlink()
        raise


def finish_promotion(places: Places, uri: str, repairs: list[str]) -> None:
    """Put a finished generation in place; can be repeated after a crash at any step, and does nothing without its mark."""
    if not places.promoting.exists():
        return
    if places.next_catalogue.exists():
        with open_catalogue(places, repairs) as catalogue:
            try:
                catalogue.take_over(places.next_catalogue)
            except StoreDamagedError as error:
                repairs.append(
                    f"the catalogue of a new index was damaged: the one before is brought up to it ({error.message})"
                )
        discard_catalogue(places)
    lance_upkeep.promote(Path(uri))
    places.promoting.unlink()


def discard_catalogue(places: Places) -> None:
    """Delete the catalogue of a generation that is not wanted any more."""
    for suffix in _SUFFIXES:
        Path(f"{places.next_catalogue}{suffix}").unlink(missing_ok=True)


def _readable(uri: str, means: Means, *, was_clean: bool) -> LanceStore:
    store = LanceStore(uri, means.dimension, means.embedder.model, table=TABLE)
    if not was_clean:
        try:
            store.ids()
        except StoreError as error:
            raise StoreDamagedError(error.message, error.hint) from error
    return store


def _remade(places: Places, repairs: list[str], reason: str) -> SqliteCatalogue:
    kept = _kept(places)
    for suffix in _SUFFIXES:
        file = Path(f"{places.catalogue}{suffix}")
        if file.exists():
            shutil.move(file, kept / file.name)
    repairs.append(f"the catalogue was damaged and is made anew from the files: {reason} (kept in {kept})")
    return SqliteCatalogue(places.catalogue)


def _kept(places: Places) -> Path:
    """Return a new folder for what is set aside."""
    kept = places.damaged / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
    kept.mkdir(parents=True, exist_ok=True)
    return kept
