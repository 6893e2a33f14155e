"""Load a folder's documents and questions, and compare variants on them."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from anchord.config.paths import Paths
from anchord.config.schema import Config
from anchord.core.quoting import escape_non_utf8
from anchord.core.types import Document, FileContent, Root, RootedPath, WalkResult
from anchord.errors import UsageError
from anchord.index.embedders import ProfileInputs
from anchord.index.profile import (
    RERANKER_LOAD_S,
    build_configured_profile,
    reranker_of,
)
from anchord.index.table_location import store_uri
from anchord.search.evaluation.git_history import Edit, recent_edits
from anchord.search.evaluation.intervals import Margin, best_margin, estimate_mean
from anchord.search.evaluation.questions import (
    GIVEN,
    EvaluationQuestion,
    Section,
    generate_questions,
    sections_of,
    slug,
)
from anchord.search.evaluation.trial import (
    Variant,
    VariantBenchmark,
    VariantChunker,
    VariantResult,
    mean_embeds_per_edit,
)
from anchord.sources.documents.file_types import MARKDOWN_SUFFIXES
from anchord.sources.documents.parse import parse_document
from anchord.sources.files.folder_files import MAX_FILE_BYTES, FolderFiles
from anchord.store.table.connection import model_of_table
from anchord.store.table.table import TABLE_NAME

ProgressCallback = Callable[[int, int, str], None]
"""Called with (steps done, steps in all, what is being done); (0, 0, ...) for no known count."""
_ROOT = "eval"
_DOCUMENT_SUFFIXES = MARKDOWN_SUFFIXES - {".ipynb"}
_QUESTIONS_HINT = "give a file of JSON lines"
_LINE_HINT = (
    '{"query": "...", "file": "a.md"}, and if you like "also", "section", "first" and "last"'
)
_FORMER_NAMES = {"question": "query", "path": "file"}
"""What two fields of a question were called; both names are read."""


class LabelledQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A line of a file of questions: a question, and the file, section or lines that answer it."""

    query: str
    file: str
    """The file that answers, relative to the folder."""
    also: tuple[str, ...] = ()
    """Other files that answer as well."""
    section: str = ""
    """A heading or its anchor, also as `A > B`; "" for the whole document."""
    first: int = 0
    """First line that answers, from 1; 0 for none, then the section counts."""
    last: int = 0


@dataclass(frozen=True, slots=True)
class EvaluationData:
    """What variants are compared on."""

    documents: Mapping[str, str]
    """Texts by paths relative to the folder."""
    questions: Sequence[EvaluationQuestion]
    edits: Sequence[Edit]


def load_documents(target: str) -> dict[str, str]:
    """Read the markdown documents of a folder, or one document. Ignore rules of folders apply.

    Args:
        target: Path of a folder or file.

    Returns:
        Texts by paths relative to the folder, or to the file's folder.

    Raises:
        UsageError: There is no markdown document.
    """
    folder, only_name = target, ""
    if not os.path.isdir(target):
        folder, only_name = os.path.split(target)
    files = FolderFiles({_ROOT: Root(name=_ROOT, path=folder)}, (), MAX_FILE_BYTES)
    documents: dict[str, str] = {}
    for path in [only_name] if only_name else _walk_paths(files):
        text = _read_document(files, path)
        if text is not None:
            documents[escape_non_utf8(path)] = text
    if not documents:
        raise UsageError(f"{target} holds no markdown", "give a folder of documents, or a document")
    return documents


def _walk_paths(files: FolderFiles) -> list[str]:
    walk = files.walk(_ROOT, "")
    return [found.path for found in walk.files] if isinstance(walk, WalkResult) else []


def _read_document(files: FolderFiles, path: str) -> str | None:
    """Return a document's text, None for a file that is no markdown or cannot be read."""
    if Path(path).suffix.lower() not in _DOCUMENT_SUFFIXES:
        return None
    content = files.read(RootedPath(_ROOT, path))
    if not isinstance(content, FileContent):
        return None
    document = parse_document(content.data, path)
    return document.text if isinstance(document, Document) else None


def load_evaluation_data(
    target: str, questions_file: str, max_edits: int, max_questions_per_kind: int
) -> EvaluationData:
    """Load documents, questions and edits. Runs git in a folder with a history.

    Args:
        target: Path of a folder or document.
        questions_file: Path of a file of questions, beside those of links and headings; "" for
            none.
        max_edits: How many of the last edits to load; 0 for none.
        max_questions_per_kind: How many questions of links and of headings to make, each.

    Raises:
        UsageError: There are no documents or no questions, or the file of questions is wrong.
    """
    documents = load_documents(target)
    questions = sample_questions(generate_questions(documents), max_questions_per_kind)
    if questions_file:
        given = read_questions(Path(questions_file), documents)
        if not given:
            raise UsageError(f"{questions_file} has no questions", _QUESTIONS_HINT)
        questions += given
    if not questions:
        raise UsageError(
            f"no questions can be made of {target}: it has no links to sections, no headings",
            "give --questions FILE",
        )
    edits = recent_edits(target, max_edits) if os.path.isdir(target) and max_edits else []
    return EvaluationData(documents, questions, [edit for edit in edits if edit[0] in documents])


def sample_questions(
    questions: Sequence[EvaluationQuestion], max_per_kind: int
) -> list[EvaluationQuestion]:
    """Return at most `max_per_kind` questions of each kind, evenly from all over the documents."""
    kept: list[EvaluationQuestion] = []
    for kind in dict.fromkeys(question.kind for question in questions):
        of_kind = [question for question in questions if question.kind == kind]
        step = max(1, math.ceil(len(of_kind) / max_per_kind))
        kept += of_kind[::step]
    return kept


def read_questions(file: Path, documents: Mapping[str, str]) -> list[EvaluationQuestion]:
    """Return the questions of a file of JSON lines (see `LabelledQuery`); blank lines are skipped.

    Args:
        file: The file of questions.
        documents: The texts that are searched, by path relative to the evaluated folder.

    Raises:
        UsageError: The file cannot be read, a line is wrong, or it names a path that is
            not among the documents.
    """
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"{file}: {reason}", _QUESTIONS_HINT) from None
    questions: list[EvaluationQuestion] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            questions.append(_parse_question(line, f"{file}:{number}", documents))
    return questions


def _parse_question(line: bytes, place: str, documents: Mapping[str, str]) -> EvaluationQuestion:
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
        named = {_FORMER_NAMES.get(name, name): value for name, value in fields.items()}
        query = msgspec.convert(named, LabelledQuery)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{place}: {error}", _LINE_HINT) from None
    others = [LabelledQuery(query=query.query, file=path) for path in query.also]
    return EvaluationQuestion(
        query.query,
        GIVEN,
        _answer_section(query, place, documents),
        other_answers=tuple(_answer_section(other, place, documents) for other in others),
    )


def _answer_section(query: LabelledQuery, place: str, documents: Mapping[str, str]) -> Section:
    """Return the lines that answer a question: those given, the section, or the whole document."""
    text = documents.get(query.file)
    if text is None:
        raise UsageError(
            f"{place}: there is no document {query.file}",
            "give its path relative to the folder",
        )
    line_count = text.count("\n") + 1
    if not 0 <= query.first <= line_count or not 0 <= query.last <= line_count:
        raise UsageError(f"{place}: {query.file} has {line_count} lines", "lines count from 1")
    if query.first:
        return _untitled_section(query.file, query.first, max(query.first, query.last))
    if not query.section:
        return _untitled_section(query.file, 1, line_count)
    section = _find_section(query, text)
    if section is None:
        raise UsageError(
            f"{place}: {query.file} has no section `{query.section}`",
            "give one of its headings, or first and last line",
        )
    return section


def _untitled_section(path: str, first_line: int, last_line: int) -> Section:
    return Section(
        path=path,
        title="",
        anchors=(),
        first_line=first_line,
        last_line=last_line,
    )


def _find_section(query: LabelledQuery, text: str) -> Section | None:
    """Return the first section with the title, else the first with its anchor, None for none."""
    title = query.section.rpartition(">")[2].strip()
    sections = list(sections_of(query.file, text))
    titled = [section for section in sections if section.title == title]
    anchored = [section for section in sections if slug(title) in section.anchors]
    return next(iter(titled + anchored), None)


def compare_variants(
    data: EvaluationData,
    variants: Sequence[Variant],
    config: Config,
    paths: Paths,
    progress: ProgressCallback,
) -> Iterator[VariantResult]:
    """Yield the result of each variant, one embedding model after the other.

    Each model is loaded once, and closed before the next one, or when the iterator is closed.

    Args:
        data: What to compare on.
        variants: What to compare; a model "" is the configured one.
        config: The user's configuration.
        paths: Where models are.
        progress: Called before each step.
    """
    for model in dict.fromkeys(variant.model for variant in variants):
        model_config = _with_model(config, model)
        profile = build_configured_profile(
            ProfileInputs(
                config=model_config,
                roots=(),
                models_folder=paths.choose_models_folder(),
                older_models_folder=paths.home_models_folder,
                indexed_model=model_of_table(store_uri(paths, config), TABLE_NAME),
            )
        )
        reranker = reranker_of(config, RERANKER_LOAD_S)
        try:
            chunker = VariantChunker(
                model_config, profile.model_files.window, profile.token_counter
            )
            benchmark = VariantBenchmark(
                documents=data.documents,
                questions=data.questions,
                chunker=chunker,
                embedder=profile.embedder,
                progress=progress,
                reranker=reranker,
            )
            results = benchmark.run([variant for variant in variants if variant.model == model])
            yield from _with_edit_costs(results, chunker, data.edits, progress)
        finally:
            profile.close()
            if reranker:
                reranker.close()


def _with_model(config: Config, model: str) -> Config:
    if not model:
        return config
    embedding = msgspec.structs.replace(config.embedding, model=model)
    return msgspec.structs.replace(config, embedding=embedding)


def _with_edit_costs(
    results: Iterator[VariantResult],
    chunker: VariantChunker,
    edits: Sequence[Edit],
    progress: ProgressCallback,
) -> Iterator[VariantResult]:
    """Yield results with what an edit costs, which depends on strategy and form alone."""
    costs: dict[tuple[str, str], float | None] = {}
    for result in results:
        variant = result.variant
        key = (variant.strategy, variant.form)
        if key not in costs:
            progress(0, 0, f"edits under {variant.strategy}")
            costs[key] = mean_embeds_per_edit(chunker, variant, edits)
        yield replace(result, embeds_an_edit=costs[key])


METRICS = {"ndcg": "nDCG@10", "cov4k": "Cov4k"}
"""The scores that have intervals, and what they are called."""


def values_of(result: VariantResult, kind: str, metric: str) -> list[float]:
    """Return a metric of each question of a kind, in the order of the questions.

    Args:
        result: The result of a variant.
        kind: A kind of question that was asked.
        metric: One of `METRICS`.
    """
    return [getattr(scores, metric) for scores in result.scores_by_kind[kind]]


def margins(results: Sequence[VariantResult], kind: str) -> dict[str, Margin]:
    """Return by how much the best variant is better than the second, for each of `METRICS`."""
    found = {
        metric: best_margin({each.variant.name: values_of(each, kind, metric) for each in results})
        for metric in METRICS
    }
    return {metric: margin for metric, margin in found.items() if margin}


def comparison_as_dict(data: EvaluationData, results: Sequence[VariantResult]) -> dict[str, Any]:
    """Return a comparison as values for JSON."""
    kinds = Counter(question.kind for question in data.questions)
    return {
        "documents": len(data.documents),
        "questions": dict(kinds),
        "edits": len(data.edits),
        "variants": [_variant_as_dict(result) for result in results],
        "margins": msgspec.to_builtins({kind: margins(results, kind) for kind in kinds}),
    }


def _variant_as_dict(result: VariantResult) -> dict[str, Any]:
    intervals = {
        kind: {metric: estimate_mean(values_of(result, kind, metric)) for metric in METRICS}
        for kind in result.by_kind
    }
    fields = msgspec.to_builtins(replace(result, scores_by_kind={}))
    del fields["scores_by_kind"]
    return {**fields, "name": result.variant.name, "intervals": msgspec.to_builtins(intervals)}
