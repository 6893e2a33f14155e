"""`eval`: compare strategies by search quality on a folder, and by the cost of an edit."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anchord.cli.app import (
    JsonOption,
    app,
    ensure_paths,
    load_user_config,
    print_json,
    print_line,
)
from anchord.cli.output.console import stderr_console, stdout_console
from anchord.cli.parameters import Argument, Option
from anchord.config.schema import check_strategy
from anchord.config.strategies import STRATEGIES
from anchord.errors import UsageError

if TYPE_CHECKING:
    from anchord.search.evaluation.intervals import Estimate
    from anchord.search.evaluation.run import EvaluationData, ProgressCallback
    from anchord.search.evaluation.trial import Variant, VariantResult

_STRATEGIES = "anchored,headers,paragraph,two_stage,recursive,window"
_EMBEDDED = "content,heading,path"
_SHARES = "0.5,0.7"


TargetArgument = Annotated[
    str, Argument(metavar="DIR|FILE", help="A folder of markdown documents, or one document.")
]
QuestionsOption = Annotated[
    str,
    Option(
        "--questions",
        metavar="FILE",
        help="People's own questions: JSON lines with query and file, optionally also.",
    ),
]
StrategiesOption = Annotated[
    str, Option("--strategies", metavar="A,B", help="Chunking strategies to compare.")
]
EmbeddedOption = Annotated[
    str,
    Option(
        "--embedded",
        metavar="A,B",
        help="What to embed, compared for the first strategy: content, heading, path.",
    ),
]
SharesOption = Annotated[
    str,
    Option(
        "--shares",
        metavar="N,M",
        help="Weights of meaning against words, 0 to 1, compared with the default.",
    ),
]
ModelsOption = Annotated[
    str,
    Option("--models", metavar="A,B", help="Models to compare; default: the configured one."),
]
CommitsOption = Annotated[
    int, Option("--commits", min=0, help="How many edits of the git history to measure.")
]
MostOption = Annotated[
    int, Option("--most", min=1, help="Maximum number of questions of each kind.")
]
PictureOption = Annotated[
    str,
    Option("--picture", metavar="FILE.svg", help="Draw a chart of quality and cost."),
]


@app.command("eval")
def evaluate(  # noqa: PLR0917 - one parameter an option
    target: TargetArgument,
    questions: QuestionsOption = "",
    strategies: StrategiesOption = _STRATEGIES,
    embedded: EmbeddedOption = _EMBEDDED,
    shares: SharesOption = _SHARES,
    models: ModelsOption = "",
    commits: CommitsOption = 50,
    most: MostOption = 300,
    picture: PictureOption = "",
    json: JsonOption = False,
) -> None:
    """Compare strategies by how well searches find sections, and by what an edit costs."""
    _check_files(target, picture)
    paths = ensure_paths()
    config = load_user_config(paths)
    from anchord.search.evaluation.run import (
        compare_variants,
        comparison_as_dict,
        load_evaluation_data,
    )

    variants = _variants(strategies, embedded, shares, models)
    if config.search.reranker:
        variants += [replace(variant, is_reranked=True) for variant in variants[:1]]
    data = load_evaluation_data(
        os.path.abspath(target),
        questions,
        commits,
        most,
    )
    with _progress_bar() as progress:
        results = list(compare_variants(data, variants, config, paths, progress))
    if json:
        print_json(comparison_as_dict(data, results))
    else:
        _print_tables(data, results)
    if picture:
        name = os.path.basename(os.path.abspath(target))
        Path(picture).write_text(_draw_chart(results, name), "utf-8")


def _check_files(target: str, picture: str) -> None:
    """Raise UsageError if `target` does not exist, or the folder that `picture` is in."""
    if not os.path.exists(target):
        raise UsageError(f"{target} does not exist", "give a folder of documents, or a document")
    folder = os.path.dirname(os.path.abspath(picture))
    if picture and not os.path.isdir(folder):
        raise UsageError(f"the folder of {picture} does not exist", "create the folder first")


@contextmanager
def _progress_bar() -> Iterator[ProgressCallback]:
    """Show a progress bar on standard error, if that is a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
    )
    is_hidden = not sys.stderr.isatty()
    with Progress(
        *columns,
        console=stderr_console(),
        transient=True,
        disable=is_hidden,
    ) as bar:
        task = bar.add_task("reading")

        def show(done: int, total: int, step: str) -> None:
            bar.update(
                task,
                completed=done,
                total=total or None,
                description=step,
            )

        yield show


def _variants(strategies: str, embedded: str, shares: str, models: str) -> list[Variant]:
    """Return what to compare, once for each model.

    Each strategy; and for the first one each form to embed, searches by meaning or by words alone,
    and each weight of meaning.
    """
    from anchord.search.evaluation.trial import Variant

    strategy_names = _split_list(strategies)
    for strategy in strategy_names:
        check_strategy(strategy)
    form_names = _split_list(embedded)
    for form in form_names:
        _check_form(form)
    strategy_names = strategy_names or [next(iter(STRATEGIES))]
    first = strategy_names[0]
    variants = [Variant(strategy=strategy) for strategy in strategy_names]
    variants += [Variant(strategy=first, form=form) for form in form_names]
    variants += [Variant(strategy=first, mode=mode) for mode in ("vector", "text")]
    variants += [
        Variant(strategy=first, share=_parse_share(share)) for share in _split_list(shares)
    ]
    unique = list(dict.fromkeys(variants))
    model_names = _split_list(models) or [""]
    return [replace(variant, model=model) for model in model_names for variant in unique]


def _split_list(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _check_form(form: str) -> None:
    from anchord.search.evaluation.trial import EMBED_FORMS

    if form not in EMBED_FORMS:
        raise UsageError(
            f"--embedded `{form}` does not exist", f"use one of: {', '.join(EMBED_FORMS)}"
        )


def _parse_share(text: str) -> float:
    hint = "give numbers from 0 (words alone) to 1 (meaning alone)"
    try:
        share = float(text)
    except ValueError:
        raise UsageError(f"`{text}` is not a number", hint) from None
    if not 0 <= share <= 1:
        raise UsageError(f"`{text}` is not between 0 and 1", hint)
    return share


def _print_tables(data: EvaluationData, results: Sequence[VariantResult]) -> None:
    counts = Counter(question.kind for question in data.questions)
    listed = [f"{count} {kind} questions" for kind, count in counts.items()]
    questions = ", ".join(listed)
    print_line(f"{len(data.documents)} documents, {questions}, {len(data.edits)} edits")
    for kind in counts:
        _print_table(kind, results)
        for line in _verdict_lines(kind, results):
            print_line(line)
    print_line("R@k, MRR, nDCG (10 results), %: whether and how early the section is first found")
    print_line("Cov4k, %: how much of the section is in the first 4,000 characters of results")
    print_line("an edit: texts that a change of one file in the git history embeds on average")


def _print_table(kind: str, results: Sequence[VariantResult]) -> None:
    from rich.table import Table

    table = Table(
        title=f"{kind} questions",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("chunked, embedded, searched", overflow="fold")
    for heading in ("R@1", "R@5", "MRR", "nDCG", "Cov4k", "an edit"):
        table.add_column(heading, justify="right")
    for result in results:
        scores = result.by_kind[kind]
        recall_at_1, recall_at_5 = scores.recall[:2]
        figures = (recall_at_1, recall_at_5, scores.mrr, scores.ndcg, scores.cov4k)
        percents = [f"{100 * figure:.1f}" for figure in figures]
        texts = "" if result.embeds_an_edit is None else f"{result.embeds_an_edit:.2f}"
        table.add_row(result.variant.name, *percents, texts)
    stdout_console().print(table)


def _verdict_lines(kind: str, results: Sequence[VariantResult]) -> Iterator[str]:
    """Yield how sure the table is: the interval of the best variant, and its margin."""
    from anchord.search.evaluation.intervals import estimate_mean
    from anchord.search.evaluation.run import METRICS, margins, values_of

    result_by_name = {result.variant.name: result for result in results}
    for metric, margin in margins(results, kind).items():
        best = estimate_mean(values_of(result_by_name[margin.best], kind, metric))
        difference = margin.difference
        verdict = ": no real difference" if difference.has_zero else ""
        yield f"{METRICS[metric]}: {margin.best}"
        yield f"  {_percent(best)}; over {margin.second}"
        yield f"  by {_percent(difference)}{verdict}"
    chunks = results[0].chunks_a_target[kind]
    yield f"chunks a target: {chunks:.1f} ({results[0].variant.name})"


def _percent(estimate: Estimate) -> str:
    low, high = 100 * estimate.low, 100 * estimate.high
    return f"{100 * estimate.mean:.1f} [{low:.1f}, {high:.1f}]"


def _draw_chart(results: Sequence[VariantResult], name: str) -> str:
    """Return an SVG chart of hybrid searches with the default weight: quality over cost."""
    from anchord.search.evaluation.chart import render_scatter_svg

    kind = next(iter(results[0].by_kind))
    points = []
    for result in results:
        variant = result.variant
        if variant.mode == "hybrid" and variant.share is None:
            quality = 100 * result.by_kind[kind].cov4k
            points.append((variant.name, result.embeds_an_edit or 0.0, quality))
    return render_scatter_svg(
        points,
        "texts embedded an edit",
        f"Cov4k of {kind} questions, %",
        f"{name}: search quality and cost of edits",
    )
