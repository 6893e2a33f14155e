"""Compares what a walk leaves out with what git ignores; one call of git judges many trees.

python -m tools.git_trees.judge --trees 10000 --seed 1
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tools.git_trees.trees import change_tree, make_tree, random_rules

from anchord.core.types import Root, WalkResult
from anchord.sources.files.folder_files import FolderFiles

_PER_BATCH = 250
_LATER_NS = 60_000_000_000
"""Rules are judged after they have settled."""


@dataclass
class Verdict:
    """How often a walk and git agreed."""

    trees: int = 0
    comparisons: int = 0
    differences: list[str] = field(default_factory=list)
    """`TREE: PATH: git ... (rule), anchord ...` each."""


def git(folder: Path, *arguments: str, given: bytes = b"", home: Path | None = None) -> bytes:
    """Run git without user settings, or with those of a home folder; return its output.

    Exit code 1 of `check-ignore` says that nothing is ignored.
    """
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home or os.devnull),
        "XDG_CONFIG_HOME": str(home or os.devnull),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def ignored_by_git(folder: Path, home: Path | None = None) -> set[str]:
    """Return the files below a folder that git ignores; paths are relative to it."""
    listed = git(folder, "ls-files", "-z", "-oi", "--exclude-standard", home=home)
    return {os.fsdecode(path) for path in listed.split(b"\0") if path}


def files_below(folder: Path) -> set[str]:
    """Return the relative paths of all files but ignore files and those of git."""
    found = set()
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        inside = os.path.relpath(place, folder)
        found |= {os.path.normpath(f"{inside}/{name}") for name in names if name != ".gitignore"}
    return found


def walked(files: FolderFiles, root: str) -> set[str]:
    """Return the files that the rules let in."""
    walk = files.walk(root, "")
    assert isinstance(walk, WalkResult)
    assert walk.folder_problems == ()
    return {found.path for found in walk.files}


def compare(top: Path, files: FolderFiles, root: str, home: Path | None) -> Iterator[str]:
    """Yield each file below a folder of which the walk of a root and git differ."""
    ignored = ignored_by_git(top, home)
    included = walked(files, root)
    everything = files_below(top)
    for path in sorted(everything & (included ^ (everything - ignored))):
        rule = git(
            top, "check-ignore", "-v", "--stdin", "-z", given=os.fsencode(path) + b"\0", home=home
        )
        said = "ignores" if path in ignored else "keeps"
        yield f"{path!r}: git {said} it ({rule!r})"


def judge_batch(base: Path, trees: int, rng: Random) -> Verdict:
    """Make some trees in one repository, judge them, change them and judge them again.

    The repository has random rules of every kind: `core.excludesFile`, `info/exclude`, a
    `.gitignore` above the trees, and `core.ignoreCase` once in four times. It is judged as one
    root, and then each tree as a root of its own.
    """
    verdict = Verdict(trees=trees)
    top, home = base / "work", base / "home"
    top.mkdir(parents=True)
    (home / "git").mkdir(parents=True)
    git(top, "init", "--quiet", home=home)
    git(top, "config", "core.ignoreCase", str(rng.random() < 0.25).lower(), home=home)
    for place in (home / "git" / "ignore", top / ".git" / "info" / "exclude", top / ".gitignore"):
        if rng.random() < 0.5:
            place.write_bytes(random_rules(rng))
    places = [top / f"t{number}" for number in range(trees)]
    for place in places:
        make_tree(place, rng)
    roots = {"top": Root(name="top", path=str(top), include=("*",))}
    for place in places:
        roots[place.name] = Root(name=place.name, path=str(place), include=("*",))
    files = FolderFiles(roots, (), 1_000, clock=lambda: time.time_ns() + _LATER_NS)
    for moment in ("made", "changed"):
        if moment == "changed":
            for place in places:
                change_tree(place, rng)
        verdict.differences += [f"{moment} {each}" for each in compare(top, files, "top", home)]
        verdict.comparisons += len(files_below(top))
    ignored = ignored_by_git(top, home)
    asked = b"\0".join(os.fsencode(place.name) for place in places)
    out = git(top, "check-ignore", "--stdin", "-z", given=asked, home=home).split(b"\0")
    for place in places:
        if os.fsencode(place.name) in out:
            continue  # The user named this folder: rules about the folder itself do not count.
        included = {f"{place.name}/{path}" for path in walked(files, place.name)}
        everything = {f"{place.name}/{path}" for path in files_below(place)}
        wrong = everything & (included ^ (everything - ignored))
        verdict.differences += [f"as a root {path!r}" for path in sorted(wrong)]
        verdict.comparisons += len(everything)
    return verdict


def judge_trees(trees: int, seed: int) -> Verdict:
    """Judge random trees in batches."""
    total = Verdict()
    while total.trees < trees:
        rng = Random(f"{seed}:{total.trees}")  # noqa: S311 - repeatable, not secret
        count = min(_PER_BATCH, trees - total.trees)
        with tempfile.TemporaryDirectory(prefix="git-trees-") as base:
            os.environ["XDG_CONFIG_HOME"] = f"{base}/home"
            verdict = judge_batch(Path(os.path.realpath(base)), count, rng)
        total.trees += count
        total.comparisons += verdict.comparisons
        total.differences += [
            f"{seed}:{total.trees - count} {each}" for each in verdict.differences
        ]
    return total


def main() -> None:
    """Judge the requested number of trees; exit with 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trees", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("error")
    os.environ |= {"HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    verdict = judge_trees(given.trees, given.seed)
    print(*verdict.differences[:20], sep="\n")  # noqa: T201 - its output
    print(  # noqa: T201 - likewise
        f"{verdict.trees} trees, {verdict.comparisons} verdicts, "
        f"{len(verdict.differences)} differences"
    )
    raise SystemExit(bool(verdict.differences))


if __name__ == "__main__":
    main()
