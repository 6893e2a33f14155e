"""Opens the roots' files as the configuration has them, and cleans the archive."""

from __future__ import annotations

from anchord.config.cli_state import CliState
from anchord.config.paths import Paths
from anchord.config.privacy import redacts_conversations, redacts_files
from anchord.config.schema import Config
from anchord.core.types import Root
from anchord.sources.conversations.archive.reader import Archive
from anchord.sources.conversations.archive.writer import ArchiveWriter
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles
from anchord.sources.files.secret_names import redact_path
from anchord.sources.files.source_memory import SourceMemory
from anchord.sources.secrets.redactor import rules_version
from anchord.sources.source_tree import SourceTree


def open_source_tree(
    paths: Paths,
    config: Config,
    roots_by_name: dict[str, Root],
    archive: Archive | None,
    remembered: tuple[SourceMemory, CliState],
) -> SourceTree:
    """Return the files and exchanges of the roots; reads nothing yet.

    Args:
        paths: Its folders of anchord are never indexed.
        config: Says whether names are redacted.
        roots_by_name: The roots. Changes to the mapping take effect.
        archive: The exchanges; None if there is no archive yet.
        remembered: The last good rules and the folders of the roots; the forgotten paths.
    """
    memory, cli_state = remembered
    folder_files = FolderFiles(
        roots_by_name,
        paths.own_folders,
        MAX_FILE_BYTES,
        memory,
    )
    folder_files.redacts_names = redacts_files(config)
    files = SourceTree(folder_files, roots_by_name, archive)
    files.set_forgotten_paths(cli_state.forgotten_paths)
    return files


def redact_archive(archive: ArchiveWriter, config: Config) -> None:
    """Replace secrets in stored conversations after an update of the rules; reads all of them once.

    Raises:
        StoreError: The archive cannot be written.
    """
    if redacts_conversations(config):
        redacts_names = redacts_files(config)
        rules = f"{rules_version()}, ids{' and file names' if redacts_names else ''}"
        archive.redact_stored(rules, redact_path if redacts_names else str)
