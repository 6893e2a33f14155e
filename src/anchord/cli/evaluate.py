"""`eval`: which way of chunking and searching finds a folder's sections best, and what an edit costs under each."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from anchord.cli.frame import AsJson, app, configuration, err, out, places, print_json, say
from anchord.config import check_strategy
from anchord.errors import UsageError
from anchord.settings import STRATEGIES

if TYPE_CHECKING:
    from anchord.evaluation.compared import Material
    from anchord.evaluation.trial import Outcome, Variant

_STRATEGIES = "anchored,headers,paragraph,two_stage,recursive,window"
_EMBEDDED = "content,heading,path"
_SHARES = "0.5,0.7"


@app.command("eval")
def evaluate(  # noqa: PLR0917 - one parameter an option
    target: Annotated[str, typer.Argument(metavar="DIR|FILE", help="A folder of markdown documents, or one document.")],
    questions: Annotated[
        str, typer.Option("--questions", metavar="FILE", help="JSON lines: question, path, and section or first and last line.")
    ] = "",
    strategies: Annotated[str, typer.Option("--strategies", metavar="A,B", help="What to chunk by.")] = _STRATEGIES,
    embedded: Annotated[
        str, typer.Option("--embedded", metavar="A,B", help="What `anchored` embeds: content, heading (and content), path.")
    ] = _EMBEDDED,
    shares: Annotated[
        str, typer.Option("--shares", metavar="N,M", help="How much meaning counts beside words, 0 to 1, besides as delivered.")
    ] = _SHARES,
    models: Annotated[str, typer.Option("--models", metavar="A,B", help="Default: the configured one.")] = "",
    commits: Annotated[int, typer.Option("--commits", min=0, help="Edits of the git history to count.")] = 50,
    most: Annotated[int, typer.Option("--most", min=1, help="Questions of each kind, at most.")] = 300,
    picture: Annotated[str, typer.Option("--picture", metavar="FILE.svg", help="Draw it.")] = "",
    json: AsJson = False,
) -> None:
    """Compare strategies by how well sections are found again, and by what an edit costs."""
    if not os.path.exists(target):
        raise UsageError(f"{target} does not exist", "give a folder of documents, or a document")
    if picture and not os.path.isdir(os.path.dirname(os.path.abspath(picture))):
        raise UsageError(f"{picture} is in no folder that exists", "make its folder first")
    of = places()
    config = configuration(of)
    from anchord.evaluation.compared import as_json, compare, material_of

    variants = _variants(strategies, embedded, shares, models)
    material = material_of(os.path.abspath(target), questions, commits, most)
    outcomes: list[Outcome] = []
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    with Progress(*columns, console=err, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("reading")

        def progress(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total or None, description=what)

        outcomes += compare(material, variants, config, of, progress)
    if json:
        print_json(as_json(material, outcomes))
    else:
        _say_table(material, outcomes)
    if picture:
        Path(picture).write_text(_drawn(outcomes, os.path.basename(os.path.abspath(target))), "utf-8")


def _variants(strategies: str, embedded: str, shares: str, models: str) -> list[Variant]:
    """Return what is compared: each strategy, and for the default one each form, each way to search, each share."""
    from anchord.evaluation.trial import FORMS, Variant

    named = _listed(strategies)
    for strategy in named:
        check_strategy(strategy)
    forms = _listed(embedded)
    for form in forms:
        if form not in FORMS:
            raise UsageError(f"`{form}` is no form to embed", f"there are: {', '.join(FORMS)}")
    first = named[0] if named else next(iter(STRATEGIES))
    found = [Variant(strategy) for strategy in named or [first]]
    found += [Variant(first, form) for form in forms]
    found += [Variant(first, mode=mode) for mode in ("vector", "text")]
    found += [Variant(first, share=_share(share)) for share in _listed(shares)]
    return [
        Variant(each.strategy, each.form, each.mode, each.share, model)
        for model in _listed(models) or [""]
        for each in dict.fromkeys(found)
    ]


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"`{text}` is no share", "give numbers from 0 (words alone) to 1 (meaning alone)")
    return share


def _say_table(material: Material, outcomes: list[Outcome]) -> None:
    kinds = list(dict.fromkeys(question.kind for question in material.questions))
    asked = ", ".join(f"{sum(q.kind == kind for q in material.questions)} {kind} questions" for kind in kinds)
    say(f"{len(material.documents)} documents, {asked}, {len(material.edits)} edits")
    for kind in kinds:
        table = Table(title=f"{kind} questions", title_justify="left", box=None, pad_edge=False)
        table.add_column("chunked, embedded, searched", overflow="fold")
        for name in ("R@1", "R@5", "MRR", "nDCG", "Cov4k", "an edit"):
            table.add_column(name, justify="right")
        for outcome in outcomes:
            scores = outcome.by_kind[kind]
            figures = (*scores.recall[:2], scores.mrr, scores.ndcg, scores.cov4k)
            edit = "" if outcome.embeds_an_edit is None else f"{outcome.embeds_an_edit:.2f}"
            table.add_row(outcome.variant.name, *(f"{100 * figure:.1f}" for figure in figures), edit)
        out.print(table)
    say("R@k, MRR, nDCG (of 10): whether and how early the section comes, in per cent;")
    say("Cov4k: how much of it stands in the first 4,000 characters of the results;")
    say("an edit: how many texts a change of one file in the git history makes anew.")


def _drawn(outcomes: list[Outcome], name: str) -> str:
    from anchord.evaluation.picture import picture

    kind = next(iter(outcomes[0].by_kind))
    hybrid = [each for each in outcomes if each.variant.mode == "hybrid" and each.variant.share is None]
    points = [(each.variant.name, each.embeds_an_edit or 0.0, 100 * each.by_kind[kind].cov4k) for each in hybrid]
    title = f"{name}: found again, and what edits cost"
    return picture(points, "texts embedded an edit", f"Cov4k of {kind} questions, %", title)
