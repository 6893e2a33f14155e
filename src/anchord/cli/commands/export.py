"""`export`: write the index to a file that other programs read."""

from __future__ import annotations

import os
import sys
from collections import deque
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anchord.cli.app import app, ensure_paths, warn
from anchord.cli.output.console import stderr_console
from anchord.cli.parameters import Argument, Option
from anchord.config.roots import find_root
from anchord.core.quoting import quote_name
from anchord.daemon.access import open_index_reader
from anchord.errors import UsageError

if TYPE_CHECKING:
    from anchord.index.session import IndexReader

_FORMATS = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@app.command()
def export(
    file: Annotated[
        str,
        Argument(metavar="FILE|-", help="FILE.parquet or FILE.jsonl; `-` prints JSON lines."),
    ],
    vectors: Annotated[bool, Option("--vectors/--no-vectors", help="Include the vectors.")] = True,
) -> None:
    """Write every chunk with its text, place and vector to a file that other programs read."""
    suffix = Path(file).suffix.lower()
    if file != "-" and suffix not in _FORMATS:
        shown = f"Unknown format {suffix}" if suffix else f"{file} has no file extension"
        raise UsageError(shown, f"use {' or '.join(_FORMATS)}")
    with open_index_reader(ensure_paths()) as reader:
        _refuse_indexed_file(reader, file)
        if file == "-":
            _print_jsonl(reader, include_vectors=vectors)
            return
        _write_file(reader, file, _FORMATS[suffix], include_vectors=vectors)
    warn(f"wrote {file}")


def _refuse_indexed_file(reader: IndexReader, file: str) -> None:
    """Raise UsageError for a file that the index knows: it would be overwritten."""
    absolute = os.path.realpath(file)
    found = find_root(reader.roots, absolute)
    if found and reader.catalog.list_records(found[0].name, found[1]):
        raise UsageError(
            f"{quote_name(file)} is indexed: exporting would overwrite it", "give a new file"
        )


def _print_jsonl(reader: IndexReader, *, include_vectors: bool) -> None:
    from anchord.search.answers import describe_rows
    from anchord.store.table.export import export_jsonl

    batches = export_jsonl(
        reader.store,
        partial(describe_rows, reader, reader.catalog),
        sys.stdout.buffer,
        include_vectors=include_vectors,
    )
    deque(batches, maxlen=0)  # The export advances as it is iterated.


def _write_file(reader: IndexReader, file: str, file_format: str, *, include_vectors: bool) -> None:
    """Export with a progress bar. The file appears only when it is complete."""
    from anchord.search.answers import describe_rows
    from anchord.store.table.export import export_jsonl, export_parquet

    write = export_parquet if file_format == "parquet" else export_jsonl
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("exporting"), BarColumn(), MofNCompleteColumn()
    is_hidden = not sys.stderr.isatty()
    partial_file = Path(f"{file}.part")
    with Progress(
        *columns,
        console=stderr_console(),
        transient=True,
        disable=is_hidden,
    ) as bar:
        task = bar.add_task("", total=reader.store.count_rows())
        try:
            with partial_file.open("wb") as output:
                for written in write(
                    reader.store,
                    partial(describe_rows, reader, reader.catalog),
                    output,
                    include_vectors=include_vectors,
                ):
                    bar.update(task, completed=written)
            os.replace(partial_file, file)
        finally:
            partial_file.unlink(missing_ok=True)
