"""`chunk` and `diff`: how a file is chunked, and what an edit of it would cost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from anchord.cli import values
from anchord.cli.app import JsonOption, app, ensure_paths, load_user_config, print_json, print_line
from anchord.cli.output.markup import escape_markup
from anchord.cli.parameters import Argument, Option
from anchord.cli.registry import Exit
from anchord.config.paths import Paths
from anchord.config.schema import Config, check_strategy
from anchord.config.strategies import STRATEGIES
from anchord.core.quoting import quote_command, quote_name
from anchord.core.types import Chunk, Document, Root, RootedPath
from anchord.errors import UsageError

if TYPE_CHECKING:
    from anchord.chunking.plan import Plan
    from anchord.ipc.messages.chunks import ChunkAnswer

_NO_ROOT = Root(name="", path="")
_AGAINST_HINT = "give --against FILE2 or a git revision"
_GIT_TIMEOUT_S = 20.0
"""git waits for ever where a file of its own is a named pipe, or on a disk that is away."""


class _ChunkedDocument(NamedTuple):
    origin: RootedPath
    document: Document
    chunks: Sequence[Chunk]


@app.command()
def chunk(
    file: Annotated[str, Argument(metavar="FILE|-")],
    strategy: Annotated[
        str,
        Option(
            "--strategy",
            help=f"{', '.join(STRATEGIES)}; default: as configured.",
            autocompletion=values.one_of(STRATEGIES),
        ),
    ] = "",
    path: Annotated[
        str, Option("--path", metavar="NAME", help="Path to use for the ids and the format.")
    ] = "",
    check: Annotated[
        bool,
        Option("--check", help="Check the chunks, print figures; exit 1 if a check fails."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Chunk one file. Its ids are those of the index if it is in an indexed folder.

    Needs no daemon and no index.
    """
    from anchord.api.chunks import chunk_document

    check_strategy(strategy)
    paths = ensure_paths()
    config = load_user_config(paths)
    if path or file == "-":
        origin, root = RootedPath("", path), _NO_ROOT
    else:
        origin, root = _locate(paths, config, file)
    documents = _read_documents(config, file, origin)
    _, first_document = documents[0]
    plan, tokenizer = _build_plan(
        config,
        first_document,
        root,
        strategy,
    )
    chunked = [
        _ChunkedDocument(origin, document, chunk_document(document, origin, plan, tokenizer))
        for origin, document in documents
    ]
    if check:
        is_valid = _print_check(chunked, plan, tokenizer, as_json=json)
        raise Exit(0 if is_valid else 1)
    if json:
        print_json(_describe(chunked, plan))
    else:
        _print_chunks(chunk for each in chunked for chunk in each.chunks)


def _print_check(
    chunked: Sequence[_ChunkedDocument], plan: Plan, tokenizer: Path, *, as_json: bool
) -> bool:
    """Check chunks, print the figures, and return whether every check passed."""
    from anchord.api.chunks import check_documents

    figures = check_documents([(each.document, each.chunks) for each in chunked], plan, tokenizer)
    is_valid = not figures.has_violations(plan)
    if as_json:
        print_json({"ok": is_valid, **asdict(figures)})
        return is_valid
    for name, figure in asdict(figures).items():
        label = f"{name.replace('_', ' ')}:"
        value = str(figure) if isinstance(figure, int) else f"{figure:.2f}"
        print_line(f"{label:<20} {value}")
    return is_valid


def _describe(chunked: Sequence[_ChunkedDocument], plan: Plan) -> list[ChunkAnswer]:
    """Return the records of all chunks; those of exchanges with their turns."""
    from anchord.chunking.chunk_metadata import describe_chunks

    described: list[ChunkAnswer] = []
    for (origin, document, chunks), turn in zip(chunked, _turns(chunked), strict=True):
        described += describe_chunks(
            chunks,
            document,
            origin,
            plan.strategy,
            turn,
        )
    return described


def _turns(chunked: Sequence[_ChunkedDocument]) -> Iterator[int | None]:
    """Yield the number of each exchange in its conversation; None for any other document."""
    counts: Counter[str] = Counter()
    for _, document, _ in chunked:
        session = document.exchange_metadata.session
        if not session or document.exchange_metadata.branch:
            yield None
            continue
        counts[session] += 1
        yield counts[session]


def _print_chunks(chunks: Iterable[Chunk]) -> None:
    for chunk in chunks:
        lines = f"[bold cyan]{chunk.start_line}-{chunk.end_line}[/]"
        section = f"[green]{escape_markup(' > '.join(chunk.header_path))}[/]"
        size_and_id = f"[dim]{chunk.token_count} tokens  {chunk.chunk_id[:12]}[/]"
        print_line(f"{lines}  {section}  {size_and_id}", markup=True)
        for line in chunk.content.split("\n"):
            print_line(f"    {line}")


def _read_documents(
    config: Config, file: str, origin: RootedPath
) -> list[tuple[RootedPath, Document]]:
    """Read a file as one document, or a transcript file as one document for each exchange."""
    from anchord.api.chunks import read_document
    from anchord.sources.conversations.preview import holds_conversations, preview_exchanges

    if file == "-":
        document = read_document(sys.stdin.buffer.read(), origin, origin.path)
        return [(origin, _without_secrets(config, document, "the text"))]
    data = _read_bytes(file)
    if not holds_conversations(file):
        document = read_document(data, origin, file)
        return [(origin, _without_secrets(config, document, file))]
    documents = preview_exchanges(file, origin.root)
    if not documents:
        raise UsageError(
            f"{file} contains no exchange", "give a file with a question and its answer"
        )
    return documents


def _without_secrets(config: Config, document: Document, name: str) -> Document:
    """Return a document as the index has it."""
    from anchord.config.privacy import redacts_files
    from anchord.core.types import Problem
    from anchord.sources.secrets.documents import redact_document

    if not redacts_files(config):
        return document
    redacted = redact_document(document)
    if isinstance(redacted, Problem):
        raise UsageError(
            f"{quote_name(name)}: {redacted.reason}",
            f"{quote_command('anchord privacy check', name, 'FILE')} lists them",
        )
    return redacted


@app.command()
def diff(
    file: Annotated[str, Argument(metavar="FILE")],
    against: Annotated[
        str, Option("--against", metavar="FILE2|GIT_REV", help="Default: HEAD.")
    ] = "HEAD",
    json: JsonOption = False,
) -> None:
    """Compare two versions of a file by their chunks, and show what embedding would cost."""
    from anchord.api.chunks import chunk_document, compare_chunks, read_document
    from anchord.chunking.chunk_metadata import describe_chunks

    paths = ensure_paths()
    config = load_user_config(paths)
    origin, root = _locate(paths, config, file)
    data_now = _read_bytes(file)
    is_file = os.path.isfile(against)
    data_before = _read_bytes(against) if is_file else _read_from_git(file, against)

    def chunks_of(data: bytes, name: str) -> list[dict[str, Any]]:
        document = read_document(data, origin, name)
        document = _without_secrets(config, document, name)
        plan, tokenizer = _build_plan(config, document, root)
        chunks = chunk_document(document, origin, plan, tokenizer)
        described = describe_chunks(chunks, document, origin, plan.strategy)
        return [chunk.as_json() for chunk in described]

    comparison = compare_chunks(chunks_of(data_before, against), chunks_of(data_now, file))
    if json:
        print_json(comparison)
    else:
        from anchord.cli.output.diff_view import print_diff

        print_diff(comparison)


def _locate(paths: Paths, config: Config, file: str) -> tuple[RootedPath, Root]:
    """Return a file's path in its root, and the root.

    A file in no indexed folder has the root "", which sets nothing, and its name as its path.
    """
    from anchord.config.cli_state import load_cli_state
    from anchord.config.roots import find_root, gather_roots, resolve_path

    # Only the folder is resolved: a symbolic link to a file is not the file it points to.
    folder, name = os.path.split(file)
    absolute = os.path.join(resolve_path(folder), name)
    remembered_roots = load_cli_state(paths.cli_state_file).given_roots
    roots = gather_roots(config, remembered_roots, (), paths.own_folders)
    found = find_root(roots, absolute)
    if found is None:
        return RootedPath("", os.path.basename(file)), _NO_ROOT
    root, path = found
    return RootedPath(root.name, path), root


def _build_plan(
    config: Config, document: Document, root: Root, strategy: str = ""
) -> tuple[Plan, Path]:
    """Return how to chunk a document, and the tokenizer's file; strategy "": as configured."""
    from anchord.chunking.plan import build_plan
    from anchord.config.effective import chunking_by_kind
    from anchord.index.embedders import find_model_files
    from anchord.index.model_choice import language_of_document

    embedding = config.embedding
    of_language = embedding.by_language.get(language_of_document(document.text), "")
    options = embedding.further.get(root.embedding or of_language, embedding)
    model = find_model_files(config, options)
    settings = chunking_by_kind(config, root.chunking, strategy)[document.kind]
    return build_plan(model.window, settings), model.tokenizer


def _read_bytes(file: str) -> bytes:
    try:
        if not os.path.isfile(file):
            raise UsageError(
                f"{quote_name(file)} is not a file", "give the path of an existing file"
            )
        return Path(file).read_bytes()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(
            f"cannot read {quote_name(file)}: {reason}", "check its permissions"
        ) from None


def _read_from_git(file: str, revision: str) -> bytes:
    """Return a file's content in a git revision."""
    folder, name = os.path.split(os.path.abspath(file))
    try:
        shown = _git_show(folder, name, revision)
    except FileNotFoundError:
        raise UsageError(
            f"{quote_name(revision)} is not a file, and git is not installed",
            "give --against FILE2",
        ) from None
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"git did not answer within {_GIT_TIMEOUT_S:.0f} s",
            "give --against FILE2, or look for a named pipe in its .git folder",
        ) from None
    if shown.returncode:
        reason = _reason_of_git(shown.stderr.decode("utf-8", "replace"))
        raise UsageError(
            f"cannot compare {quote_name(file)} with {quote_name(revision)}, a file or git "
            f"revision: {reason}",
            _AGAINST_HINT,
        )
    return shown.stdout


def _reason_of_git(stderr: str) -> str:
    """Return the line that says why git failed. Warnings stand before it, and hints after it."""
    lines = stderr.strip().splitlines() or ["git knows no such revision"]
    return next((line for line in lines if line.startswith("fatal: ")), lines[-1])


def _git_show(folder: str, name: str, revision: str) -> subprocess.CompletedProcess[bytes]:
    """Run `git show` for a file, and return its process, or the one that failed before it."""
    # `rev-parse` turns the revision into a commit's hash first: `show` would take `*` in it for a
    # pattern and a leading dash for an option.
    commit = f"{revision}^{{commit}}"
    parsed = _git(
        folder,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        commit,
    )
    if parsed.returncode:
        return parsed
    commit_hash = parsed.stdout.decode("ascii", "replace").strip()
    return _git(folder, "show", f"{commit_hash}:./{name}")


def _git(folder: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = ["git", "-C", folder, *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=_GIT_TIMEOUT_S,
    )
