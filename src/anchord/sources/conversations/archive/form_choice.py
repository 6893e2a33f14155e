"""The choice of the form of an exchange to store, where several files contain it or one changed.

The same exchange can differ between files: an export from last month lacks the end of its answer.
What is stored must not depend on the order in which files are read, so the choice uses properties
of the forms alone. The winning form is the one with the latest last message; among equals the form
in the file that was modified last, then the larger digest.

Only the file that is being read has its text at hand. If another file's form wins and is not
stored, that file must be read again.
"""

from __future__ import annotations

from typing import NamedTuple


class StoredForm(NamedTuple):
    """The form of an exchange that the archive stores now."""

    file_id: int | None
    """The file that it is read from; None for an orphan: no file contains the exchange."""
    digest: str
    until: str
    """Time of the last message, ISO 8601 in UTC, "" if unknown. Compares as text."""


class OfferedForm(NamedTuple):
    """The form in the file that is being read."""

    file_id: int
    digest: str
    until: str


class WinningForm(NamedTuple):
    """The form that wins among all files that contain the exchange now."""

    file_id: int
    digest: str
    until: str


class FormChoice(NamedTuple):
    """What to do with an offered form."""

    store_offered: bool
    """Store the offered form and its file in place of the stored ones."""
    reread_winner: bool
    """Read the winning form's file again: its text is needed and not at hand."""


def choose_form(stored: StoredForm, offered: OfferedForm, winner: WinningForm) -> FormChoice:
    """Decide whether the offered form replaces the stored one.

    Args:
        stored: What the archive stores.
        offered: The form in the file that is being read. It takes part in the choice of `winner`.
        winner: The winning form of all files, the offered one's included.
    """
    if offered.file_id == winner.file_id:
        # Invariant: no other file has a better form. The stored form is the same, an older form of
        # this file, a worse form of another file, or an orphan.
        return FormChoice(store_offered=_may_replace(stored, offered), reread_winner=False)
    if stored.digest == winner.digest:
        # Invariant: the winning form of another file is stored. This file only contains a worse
        # form, or the same.
        return FormChoice(store_offered=False, reread_winner=False)
    if stored.digest == offered.digest:
        # Invariant: the stored form is this file's form, and another file's form beats it. It stays
        # until that file has been read again.
        return FormChoice(store_offered=False, reread_winner=True)
    # Invariant: the stored form is neither the winner's nor this file's: the file that it came from
    # has changed, or is a third one that loses as well. This file's form is at hand and stands in
    # until the winner's file has been read again.
    return FormChoice(store_offered=_may_replace(stored, offered), reread_winner=True)


def _may_replace(stored: StoredForm, offered: OfferedForm) -> bool:
    """Return False where the stored form is an orphan and later than the offered form."""
    is_orphan = stored.file_id is None
    return not is_orphan or offered.until >= stored.until
