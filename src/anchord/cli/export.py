"""`export` and `man`: the index for other programs, the manual for `man`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from anchord.asking import open_index
from anchord.cli.frame import app, err, places, warn
from anchord.errors import UsageError

_FORMATS = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="FILE.parquet or FILE.jsonl; `-` prints JSON lines.")],
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="With the vectors.")] = True,
) -> None:
    """Write every chunk with its text, place and vector to a file that other programs read."""
    form = "jsonl" if file == "-" else _FORMATS.get(Path(file).suffix.lower(), "")
    if not form:
        raise UsageError(f"{file} ends in nothing known", f"name it {' or '.join(_FORMATS)}")
    from anchord.adapters.lance_export import export_jsonl, export_parquet

    write = export_parquet if form == "parquet" else export_jsonl
    with open_index(places()) as reader:
        spots_of = reader.catalogue.spots
        if file == "-":
            for _ in export_jsonl(reader.store, spots_of, sys.stdout.buffer, vectors=vectors):
                pass
            return
        columns = TextColumn("exporting"), BarColumn(), MofNCompleteColumn()
        half = Path(f"{file}.part")
        with Progress(*columns, console=err, transient=True, disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task("", total=reader.store.count())
            try:
                with half.open("wb") as into:
                    for done in write(reader.store, spots_of, into, vectors=vectors):
                        bar.update(task, completed=done)
                os.replace(half, file)
            finally:
                half.unlink(missing_ok=True)
    warn(f"written: {file}")
