"""`chunk` and `diff`: what the chunker makes of a file, and what an edit would cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from anchord.cli.frame import AsJson, app, configuration, places, print_json, say
from anchord.cli.sides import show_diff
from anchord.config import Config, check_strategy
from anchord.errors import UsageError
from anchord.model import Document, Origin
from anchord.places import Places
from anchord.settings import STRATEGIES

if TYPE_CHECKING:
    from anchord.chunkers.plan import Plan


@app.command()
def chunk(
    file: Annotated[str, typer.Argument(metavar="FILE|-")],
    strategy: Annotated[str, typer.Option("--strategy", help=f"{', '.join(STRATEGIES)}; default: as configured.")] = "",
    path: Annotated[str, typer.Option("--path", metavar="NAME", help="Name for the ids and the format.")] = "",
    check: Annotated[bool, typer.Option("--check", help="Validate and print figures; exit 1 where a law is broken.")] = False,
    json: AsJson = False,
) -> None:
    """Chunk one file, with the ids it has in the index when it lies in a root; needs no daemon and no index."""
    from anchord.api import check_documents, chunk_document
    from anchord.description import describe

    check_strategy(strategy)
    of = places()
    config = configuration(of)
    origin, own = (Origin("", path), "") if path or file == "-" else _origin(of, config, file)
    documents = _documents(file, origin)
    plan, tokenizer = _plan(config, documents[0][1], strategy or own)
    cut = [(where, document, chunk_document(document, where, plan, tokenizer)) for where, document in documents]
    if check:
        figures = check_documents([(document, pieces) for _, document, pieces in cut], plan, tokenizer)
        broken = figures.breaks(plan)
        if json:
            print_json({"ok": not broken, **asdict(figures)})
        else:
            _say_figures(asdict(figures))
        raise typer.Exit(1 if broken else 0)
    if json:
        told = [describe(pieces, document, where, plan.strategy, keywords=True) for where, document, pieces in cut]
        print_json([each for described in told for each in described])
        return
    for piece in (piece for _, _, pieces in cut for piece in pieces):
        section = escape(" > ".join(piece.header_path))
        place = f"[bold cyan]{piece.start_line}-{piece.end_line}[/]"
        say(f"{place}  [green]{section}[/]  [dim]{piece.tokens} tokens  {piece.chunk_id[:12]}[/]", markup=True)
        for line in piece.content.split("\n"):
            say(f"    {line}")


def _documents(file: str, origin: Origin) -> list[tuple[Origin, Document]]:
    """Read a file as a document, or a file of conversations as its exchanges."""
    from anchord.api import read_document
    from anchord.conversing import exchanges_of, holds_conversations

    data = sys.stdin.buffer.read() if file == "-" else _read(file)
    if file != "-" and holds_conversations(file):
        documents = exchanges_of(file, origin.root)
        if not documents:
            raise UsageError(f"{file} holds no exchange", "give a file in which something was said")
        return documents
    return [(origin, read_document(data, origin, origin.path if file == "-" else file))]


def _say_figures(figures: dict[str, float]) -> None:
    for name, figure in figures.items():
        say(f"{name.replace('_', ' ') + ':':<20} {figure if isinstance(figure, int) else f'{figure:.2f}'}")


@app.command()
def diff(
    file: Annotated[str, typer.Argument(metavar="FILE")],
    against: Annotated[str, typer.Option("--against", metavar="FILE2|GIT_REV", help="Default: HEAD.")] = "HEAD",
    json: AsJson = False,
) -> None:
    """Show side by side which chunks stay, move, are new or vanish, and what embedding would cost."""
    from anchord.api import chunk_document, compare, read_document
    from anchord.description import describe

    of = places()
    config = configuration(of)
    origin, own = _origin(of, config, file)
    now = _read(file)
    other = _read(against) if os.path.isfile(against) else _from_git(file, against)
    described = []
    for data, name in ((other, against), (now, file)):
        document = read_document(data, origin, name)
        plan, tokenizer = _plan(config, document, own)
        described.append(describe(chunk_document(document, origin, plan, tokenizer), document, origin, plan.strategy))
    found = compare(*described)
    if json:
        print_json(found)
        return
    show_diff(found)


def _origin(of: Places, config: Config, file: str) -> tuple[Origin, str]:
    """Return where a file stands (in its root, so that its ids are those of the index, or anywhere) and its root's strategy."""
    from anchord.adapters.asked import load_asked
    from anchord.roots import gather_roots, real, root_of

    absolute = os.path.join(real(os.path.dirname(file)), os.path.basename(file))
    found = root_of(gather_roots(config, load_asked(of.asked).roots, (), of.own), absolute)
    return (Origin(found[0].name, found[1]), found[0].strategy) if found else (Origin("", os.path.basename(file)), "")


def _plan(config: Config, document: Document, strategy: str) -> tuple[Plan, Path]:
    from anchord.adapters.models import counted_by
    from anchord.config import chunking_by_kind
    from anchord.core.recipe import plan_of

    model = counted_by(config.embedding.provider, config.embedding.model, config.embedding.max_tokens)
    return plan_of(model.window, chunking_by_kind(config, strategy)[document.kind]), model.tokenizer


def _read(file: str) -> bytes:
    try:
        if not os.path.isfile(file):
            raise UsageError(f"{file} is no file", "give a file that is there")
        return Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {os.strerror(error.errno or 0)}", "see its permissions") from None


def _from_git(file: str, revision: str) -> bytes:
    folder, name = os.path.split(os.path.abspath(file))
    git = ["git", "-C", folder]
    try:  # First its name: `show` would take `*` for a pattern and a dash for an option.
        shown = _run([*git, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"])
        if shown.returncode == 0:
            shown = _run([*git, "show", f"{shown.stdout.decode('ascii', 'replace').strip()}:./{name}"])
    except FileNotFoundError:
        raise UsageError(f"{revision} is no file, and git is not installed", "give --against FILE2") from None
    if shown.returncode:
        said = shown.stderr.decode("utf-8", "replace").strip().splitlines() or ["git knows no such revision"]
        raise UsageError(
            f"{revision} is no file and no revision of {file} ({said[-1]})", "give --against FILE2 or a git revision"
        )
    return shown.stdout


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
