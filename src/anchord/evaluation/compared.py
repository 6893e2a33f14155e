"""A folder -> its documents, its questions, and the outcomes of the variants that are compared on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from anchord.adapters.files import FolderFiles
from anchord.config import Config
from anchord.errors import UsageError
from anchord.evaluation.history import Edit, edits_of
from anchord.evaluation.questions import GIVEN, Question, Section, questions_of, sections_of, slug
from anchord.evaluation.trial import Bench, Cutter, Outcome, Variant, cost_of_edits
from anchord.means import Given, find_means
from anchord.model import Content, Document, Origin, Root, Walk, printable
from anchord.places import Places
from anchord.rows import MAX_BYTES
from anchord.sources import MARKDOWN, parse

Progress = Callable[[int, int, str], None]
_ROOT = "eval"


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a file of questions: what is asked, and the section, or the lines, that answer."""

    question: str
    path: str
    section: str = ""
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Material:
    """What variants are compared on."""

    documents: Mapping[str, str]
    questions: Sequence[Question]
    edits: Sequence[Edit]


def documents_of(target: str) -> dict[str, str]:
    """Return the markdown documents of a folder by their paths in it, or the one that a file is.

    Raises:
        UsageError: there is none.
    """
    folder, only = (target, "") if os.path.isdir(target) else os.path.split(target)
    files = FolderFiles({_ROOT: Root(_ROOT, folder)}, (), MAX_BYTES)
    walk = files.walk(_ROOT, "")
    paths = [only] if only else [found.path for found in walk.found] if isinstance(walk, Walk) else []
    documents: dict[str, str] = {}
    for path in paths:
        content = files.read(Origin(_ROOT, path)) if Path(path).suffix.lower() in MARKDOWN - {".ipynb"} else None
        document = parse(content.data, path) if isinstance(content, Content) else None
        if isinstance(document, Document):
            documents[printable(path)] = document.text
    if not documents:
        raise UsageError(f"{target} holds no markdown", "give a folder of documents, or a document")
    return documents


def material_of(target: str, questions: str, commits: int, most: int) -> Material:
    """Read a folder or a document, the questions of a file or those that the documents ask, and the last edits.

    Raises:
        UsageError: there are no documents, or no questions.
    """
    documents = documents_of(target)
    asked = read_questions(Path(questions), documents) if questions else spread(questions_of(documents), most)
    if questions and not asked:
        raise UsageError(f"{questions} asks nothing", "give a file of JSON lines")
    if not asked:
        raise UsageError(f"{target} asks nothing: no links to sections and no headings", "give --questions FILE")
    edits = edits_of(target, commits) if os.path.isdir(target) and commits else []
    return Material(documents, asked, [edit for edit in edits if edit[0] in documents])


def spread(questions: Sequence[Question], most: int) -> list[Question]:
    """Return at most so many questions of each kind, from all over the documents."""
    kept: list[Question] = []
    for kind in dict.fromkeys(question.kind for question in questions):
        some = [question for question in questions if question.kind == kind]
        step = max(1, -(-len(some) // most))
        kept += some[::step]
    return kept


def read_questions(file: Path, documents: Mapping[str, str]) -> list[Question]:
    """Return the questions of a file of JSON lines.

    Raises:
        UsageError: a line is not as it should be, or what it names is not there.
    """
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{file}: {os.strerror(error.errno or 0)}", "give a file of JSON lines") from None
    questions = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                asked = msgspec.json.decode(line, type=Asked)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                hint = '{"question": "...", "path": "a.md", "section": "Heading"}, or "first" and "last" lines'
                raise UsageError(f"{file}:{number}: {error}", hint) from None
            questions.append(Question(asked.question, GIVEN, _section(asked, documents, f"{file}:{number}")))
    return questions


def _section(asked: Asked, documents: Mapping[str, str], where: str) -> Section:
    text = documents.get(asked.path)
    if text is None:
        raise UsageError(f"{where}: there is no document {asked.path}", "paths are those below the folder")
    length = text.count("\n") + 1
    if not 0 <= asked.first <= length or not 0 <= asked.last <= length:
        raise UsageError(f"{where}: {asked.path} has {length} lines", "lines count from 1")
    if asked.first:
        return Section(asked.path, "", (), asked.first, max(asked.first, asked.last))
    if not asked.section:
        return Section(asked.path, "", (), 1, length)
    title = asked.section.rpartition(">")[2].strip()
    sections = list(sections_of(asked.path, text))
    named = [section for section in sections if section.title == title]
    found = named or [section for section in sections if slug(title) in section.anchors]
    if not found:
        raise UsageError(f"{where}: {asked.path} has no section `{asked.section}`", "name its heading, or give lines")
    return found[0]


def compare(
    material: Material, variants: Sequence[Variant], config: Config, places: Places, progress: Progress
) -> Iterator[Outcome]:
    """Yield the outcome of each variant, model by model."""
    for name in dict.fromkeys(variant.model for variant in variants):
        embedding = msgspec.structs.replace(config.embedding, model=name) if name else config.embedding
        own = msgspec.structs.replace(config, embedding=embedding)
        means = find_means(Given(own, (), places.models))
        try:
            cutter = Cutter(own, means.model.window, means.count)
            bench = Bench(material.documents, material.questions, cutter, means.embedder, progress)
            costs: dict[tuple[str, str], float | None] = {}
            for outcome in bench.run([variant for variant in variants if variant.model == name]):
                way = outcome.variant.strategy, outcome.variant.form
                if way not in costs:
                    progress(0, 0, f"edits under {outcome.variant.strategy}")
                    costs[way] = cost_of_edits(cutter, outcome.variant, material.edits)
                yield replace(outcome, embeds_an_edit=costs[way])
        finally:
            means.embedder.close()


def as_json(material: Material, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return everything as JSON values."""
    kinds = {
        kind: sum(q.kind == kind for q in material.questions) for kind in dict.fromkeys(q.kind for q in material.questions)
    }
    return {
        "documents": len(material.documents),
        "questions": dict(kinds),
        "edits": len(material.edits),
        "variants": [{**msgspec.to_builtins(outcome), "name": outcome.variant.name} for outcome in outcomes],
    }
