"""The checks of `anchord doctor` that look at the index, the archive and the model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from anchord.core.counted import counted
from anchord.core.sqlite_errors import damaged_error
from anchord.daemon.findings import CheckContext, Finding, Health
from anchord.daemon.table_check import check_table_files
from anchord.embedding.hash_embedder import HashEmbedder
from anchord.embedding.local import LocalEmbedder
from anchord.embedding.model_files import ModelFiles
from anchord.embedding.precision import precision_of
from anchord.embedding.workers.export_cache import find_or_share_export
from anchord.index.archive_recovery import LOST_EXCHANGES_FILE
from anchord.index.embedders import AnyEmbedder, ProfileInputs
from anchord.index.profile import (
    RERANKER_LOAD_S,
    IndexProfile,
    build_configured_profile,
    reranker_of,
)
from anchord.index.table_location import store_uri
from anchord.sources.conversations.archive.reader import Archive
from anchord.store.catalog.catalog import SqliteCatalog
from anchord.store.table.connection import model_of_table
from anchord.store.table.table import TABLE_FOLDER, TABLE_NAME, LanceStore
from anchord.store.table.uri import is_local


def check_index(context: CheckContext) -> Iterator[Finding]:
    """Check the pages of the catalog, the number of rows, and the files of the table."""
    catalog_file = context.paths.catalog_file
    if not catalog_file.exists():
        yield Finding("index", Health.GOOD, "none yet: `anchord index` builds it")
        return
    with SqliteCatalog(catalog_file, read_only=True) as catalog:
        if not catalog.is_intact():
            yield Finding(
                "index",
                Health.BAD,
                f"{catalog_file} is damaged",
                "`anchord restart` rebuilds it from your files",
            )
            return
        expected_rows = sum(chunks for _, chunks in catalog.counts_by_root().values())
    yield _check_row_count(context, expected_rows)
    uri = store_uri(context.paths, context.config)
    if is_local(uri):
        yield from check_table_files(Path(uri) / TABLE_FOLDER)
    if finding := _check_damaged_folder(context.paths.damaged_folder):
        yield finding


def check_archive(context: CheckContext) -> Iterator[Finding]:
    """Check the pages of the archive, which can be the only copy of conversations."""
    file = context.paths.archive_file
    if not file.exists():
        return
    with closing(Archive(file, read_only=True)) as archive:
        if not archive.is_intact():
            raise damaged_error(str(file), "its pages do not fit together")
        counts = archive.counts_by_root().values()
    exchanges = sum(root["exchanges"] for root in counts)
    if exchanges:
        yield Finding(
            "archive", Health.GOOD, f"{counted(exchanges, 'exchange')}, its pages are sound"
        )


def _check_row_count(context: CheckContext, expected_rows: int) -> Finding:
    """Compare the table's rows with the catalog's. While files wait, they may differ."""
    uri = store_uri(context.paths, context.config)
    dimension = _configured_profile(context).dimension
    rows = LanceStore(uri, dimension, "", read_only=True).count_rows()
    observation = counted(rows, "row")
    if not is_local(uri):
        observation += f" in {uri}"
    is_pending = bool(context.daemon_status and context.daemon_status.pending)
    if rows == expected_rows or is_pending:
        return Finding("index", Health.GOOD, observation)
    return Finding(
        "index",
        Health.DOUBTFUL,
        f"{observation}, but {expected_rows:,} are expected",
        "`anchord verify --repair` finds and repairs the difference",
    )


def _check_damaged_folder(folder: Path) -> Finding | None:
    """Return a finding if damaged files were set aside, None otherwise."""
    count = len(list(folder.iterdir())) if folder.is_dir() else 0
    if not count:
        return None
    lost = sum(
        len(file.read_bytes().splitlines()) for file in folder.glob(f"*/{LOST_EXCHANGES_FILE}")
    )
    if lost:
        return Finding(
            "index",
            Health.DOUBTFUL,
            f"damaged data was set aside {counted(count, 'time')}; {counted(lost, 'exchange')} "
            "could not be saved",
            f"check the health of the disk; {folder}/*/{LOST_EXCHANGES_FILE} names the exchanges",
        )
    return Finding(
        "index",
        Health.DOUBTFUL,
        f"anchord has rebuilt damaged files {count} times; the damaged copies are in {folder}",
        "check the disk for errors; delete the copies when you no longer need them",
    )


def check_model(context: CheckContext) -> Iterator[Finding]:
    """Check the configured models; a model server is asked for one vector."""
    with closing(_configured_profile(context)) as profile:
        yield _check_embedder(
            context,
            "model",
            profile.model_files,
            profile.embedder,
        )
        for model in profile.further.models:
            yield _check_embedder(
                context,
                "further model",
                model.files,
                model.embedder,
            )


def _check_embedder(
    context: CheckContext, subject: str, model: ModelFiles, embedder: AnyEmbedder
) -> Finding:
    if isinstance(embedder, HashEmbedder):
        return Finding(
            subject,
            Health.DOUBTFUL,
            "none: the provider `hash` is for tests and cannot search by meaning",
            "set `provider` under [embedding]",
        )
    if isinstance(embedder, LocalEmbedder):
        observation = f"{model.name}, {_export_state(context, model, embedder)}"
    else:
        began = time.monotonic()
        embedder.embed(["anchord"], is_query=True)
        observation = f"{model.name} answered in {time.monotonic() - began:.2f} s"
    reason = embedder.fallback_reason
    health = Health.DOUBTFUL if reason else Health.GOOD
    return Finding(
        subject,
        health,
        observation,
        reason,
    )


def check_reranker(context: CheckContext) -> Iterator[Finding]:
    """Let the configured reranker score a text; nothing where none is configured."""
    reranker = reranker_of(context.config, RERANKER_LOAD_S)
    if reranker is None:
        return
    name = context.config.search.reranker
    with closing(reranker):
        reranker.score_texts("anchord", ["anchord"])
        began = time.monotonic()
        reranker.score_texts("anchord", ["anchord"])
        yield Finding(
            "reranker", Health.GOOD, f"{name} answered in {time.monotonic() - began:.2f} s"
        )


def _export_state(context: CheckContext, model: ModelFiles, embedder: LocalEmbedder) -> str:
    """Return whether a local model was exported already, and where that is kept, in words."""
    paths = context.paths
    export = find_or_share_export(
        paths.choose_models_folder(),
        paths.home_models_folder,
        model.compute_digest(),
        precision_of(embedder.model_id),
    )
    if export is None:
        return "not prepared yet: the first use takes about 15 s"
    info, model_file = export
    return f"on {info.runtime}, prepared in {model_file.parent}"


def _configured_profile(context: CheckContext) -> IndexProfile:
    inputs = ProfileInputs(
        config=context.config,
        roots=context.roots,
        models_folder=context.paths.choose_models_folder(),
        older_models_folder=context.paths.home_models_folder,
        indexed_model=model_of_table(store_uri(context.paths, context.config), TABLE_NAME),
    )
    return build_configured_profile(inputs)
