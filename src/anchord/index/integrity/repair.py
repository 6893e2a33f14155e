"""Verify an opened index, and delete the rows that a verification found wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from anchord.core.counted import counted
from anchord.core.ports import no_heartbeat
from anchord.core.quoting import quote_names
from anchord.core.types import RootedPath
from anchord.index.integrity.merged_files import merged_files
from anchord.index.integrity.table_repair import repair_index_table
from anchord.index.integrity.verify import (
    UNKNOWN_FILE,
    Difference,
    DifferenceKind,
    VerifyResult,
    expected_rows_of_roots,
    verify,
)
from anchord.index.integrity.verify_archive import TranscriptProgress, compare_archive
from anchord.index.session import IndexReader, IndexWriter

_EXTRA_KINDS = frozenset({DifferenceKind.EXTRA, DifferenceKind.DUPLICATE})
_ARCHIVE_KINDS = frozenset({DifferenceKind.NOT_ARCHIVED, DifferenceKind.ARCHIVED})
_CORRUPT_KINDS = frozenset({DifferenceKind.VECTOR, DifferenceKind.SPOILED})


def verify_index(
    reader: IndexReader,
    vector_sample_size: int | None,
    on_progress: TranscriptProgress = lambda _done, _total: None,
) -> VerifyResult:
    """Compare the index with a clean rebuild; reads and chunks every file, and writes nothing.

    Transcript files are read too, and compared with the archive. Files and chunks are counted as
    status counts them: those that the index holds.

    Args:
        reader: The index.
        vector_sample_size: How many texts to embed again; None means all.
        on_progress: Called before each transcript file is read.

    Raises:
        EmbedderError: The model is not available.
        StoreError: The store cannot be read.
    """
    profile = reader.profile
    archived = compare_archive(reader, on_progress)
    expected_parts = expected_rows_of_roots(
        [root.name for root in reader.roots],
        (merged_files(reader), reader.catalog),
        profile.recipe,
        profile.token_counter,
    )
    heartbeat = reader.heartbeat.beat if isinstance(reader, IndexWriter) else no_heartbeat
    result = verify(
        expected_parts,
        reader.catalog,
        reader.store,
        (profile.models, vector_sample_size),
        heartbeat,
    )
    kept_files = Counter(result.kept_files)
    kept_files.update(each.root for each in archived.unreadable_files)
    archive = reader.files.archive
    exchange_counts = archive.counts_by_root().values() if archive else ()
    return replace(
        result,
        file_count=sum(files for files, _ in reader.catalog.counts_by_root().values()),
        chunk_count=reader.store.count_rows(),
        without_vector=reader.store.count_due(),
        exchange_count=sum(counts["exchanges"] for counts in exchange_counts),
        transcript_count=len(archived.transcripts),
        differences=(*archived.differences, *result.differences),
        changing_files=(*result.changing_files, *archived.changing_files),
        kept_files=kept_files,
    )


def delete_damaged_rows(writer: IndexWriter, differences: Sequence[Difference]) -> list[RootedPath]:
    """Delete the rows that a verification found wrong.

    Deletes extra, duplicate and corrupt rows, and the vectors of corrupt ones from the vector
    cache. Transcript files that differ from the archive are marked to be read again in full.

    Returns:
        The files of all differences, marked in the catalog. Index them to complete the repair.
    """
    writer.archive.schedule_full_reads(
        [each.origin for each in differences if each.kind in _ARCHIVE_KINDS]
    )
    if any(each.origin == UNKNOWN_FILE for each in differences):
        # What an index does not find is not deleted by it either.
        writer.repairs += repair_index_table(writer, (), rebuild_indices=True)
    extra_ids = [each.chunk_id for each in differences if each.kind in _EXTRA_KINDS]
    corrupt_ids = [each.chunk_id for each in differences if each.kind in _CORRUPT_KINDS]
    files_to_reread = [
        each.origin for each in differences if each.origin.root in writer.roots_by_name
    ]
    unique_files = list(dict.fromkeys(files_to_reread))
    return list(writer.indexer.delete_damaged_rows(extra_ids, unique_files, corrupt_ids))


def list_repairs(writer: IndexWriter) -> list[str]:
    """Return a sentence for each thing that was found damaged since the start."""
    repairs = list(writer.repairs)
    restored = writer.archive.exchange_places(tuple(writer.conversations.restored))
    if count := sum(place.transcript is None for place in restored.values()):
        repairs.append(
            f"the archive of conversations had lost {counted(count, 'exchange')} that no "
            "transcript contains any more, restored from the index"
        )
    if lost := tuple(writer.conversations.without_copy):
        names = quote_names(f"{each.root}{each.path}" for each in lost)
        repairs.append(
            f"{counted(len(lost), 'exchange')} could not be restored: in the index before, and "
            "neither in the archive of conversations nor in the table nor in a transcript now: "
            f"{names}. A backup may contain them (`anchord restore`)"
        )
    return repairs
