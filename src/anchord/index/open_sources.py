"""Opens the files of the roots and the exchanges of the archive as one tree."""

from __future__ import annotations

from anchord.config.cli_state import CliState
from anchord.config.paths import Paths
from anchord.core.types import Root
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles
from anchord.sources.files.source_memory import SourceMemory
from anchord.sources.source_tree import SourceTree


def open_source_tree(
    opened: tuple[Paths, SourceMemory, CliState],
    roots_by_name: dict[str, Root],
    archive: Archive | None,
) -> SourceTree:
    """Return the tree that the index is made from; nothing is read yet.

    Args:
        opened: The files of this anchord; the last good rules and the folders of the roots; the
            forgotten paths.
        roots_by_name: The roots. Changes to the dictionary take effect.
        archive: The exchanges; None if there is no archive yet.
    """
    paths, memory, cli_state = opened
    folder_files = FolderFiles(roots_by_name, paths.own_folders, MAX_FILE_BYTES, memory)
    files = SourceTree(folder_files, roots_by_name, archive)
    files.set_forgotten_paths(cli_state.forgotten_paths)
    return files
