"""Coverage-guided fuzzing of what reads other people's bytes, by atheris (libFuzzer for Python).

    pip install -e '.[dev,fuzz]'
    python tests/tools/fuzz/fuzz.py all --minutes 5                 # each target for five minutes, one after the other
    python tests/tools/fuzz/fuzz.py chunking --minutes 60 --seed 7  # one of them
    python tests/tools/fuzz/fuzz.py chunking --reproduce FILE       # run one input; no atheris needed
    python tests/tools/fuzz/fuzz.py chunking --minimise FILE        # write a smaller input with the same defect next to it

Targets are in `targets/`: functions of bytes that raise if a law is violated; `registry.py` lists them. New inputs
stay in the corpus folder, so the next run continues from there. Exit code 1 if a law was broken, or an input took too
long, too much memory, or crashed the process: the inputs are named. Put a minimised one into `found/TARGET/`, where the
tests run it from then on; while its defect is open, `found/known.toml` gives the reason, and runs skip it.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.fuzz.registry import TARGETS, found
from tools.fuzz.shrinking import shrink

_ENGINE = Path(__file__).resolve().parent / "engine.py"
_STATUS = re.compile(r"#(\d+)\t.*?cov: (\d+) ft: (\d+) corp: (\d+)/")
_DEFECT = re.compile(r"DEFECT (.+)\t(.+)")
_WRITTEN = re.compile(r"Test unit written to (.+)")
_INPUT_S = 20
_MOST_MB = 2_048
_PROGRESS_S = 15.0
_MOST_STARTS = 6
_LEAST_S = 5


@dataclass
class Ran:
    """The results of a target's runs."""

    target: str
    executions: int = 0
    seconds: float = 0.0
    edges: int = 0
    corpus: int = 0
    defects: dict[str, str] = field(default_factory=dict)
    """Name -> the input that shows it."""


def main() -> int:
    """Fuzz, reproduce or minimise; return the exit code."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("target", choices=[*TARGETS, "all"])
    asked.add_argument("--minutes", type=float, default=5.0, help="for each target")
    asked.add_argument(
        "--corpus",
        type=Path,
        default=Path(tempfile.gettempdir()) / "anchord-fuzz",
        help="kept between runs",
    )
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--reproduce", type=Path, metavar="FILE")
    asked.add_argument("--minimise", type=Path, metavar="FILE")
    given = asked.parse_args()
    if (given.reproduce or given.minimise) and given.target == "all":
        asked.error("name the target that the file is for")
    if given.reproduce:
        return _reproduce(given.target, given.reproduce)
    if given.minimise:
        return _minimise(given.target, given.minimise)
    if find_spec("atheris") is None:
        asked.error(
            "atheris is not installed: pip install -e '.[fuzz]' (CPython 3.11 to 3.13, Linux or macOS)"
        )
    names = list(TARGETS) if given.target == "all" else [given.target]
    ran = [_fuzz(name, given.corpus, given.minutes * 60, given.seed) for name in names]
    sys.stdout.write(_table(ran))
    return 1 if any(each.defects for each in ran) else 0


def _reproduce(name: str, file: Path) -> int:
    try:
        TARGETS[name].run(file.read_bytes())
    except Exception:  # noqa: BLE001 - whatever a target raises is its defect
        traceback.print_exc()
        return 1
    sys.stdout.write(f"{name}: {file} keeps every law.\n")
    return 0


def _minimise(name: str, file: Path) -> int:
    small = shrink(TARGETS[name].run, file.read_bytes())
    smaller = file.with_name(f"{file.name}.min")
    smaller.write_bytes(small)
    sys.stdout.write(f"{smaller}: {len(small)} of {file.stat().st_size} bytes\n{small!r}\n")
    return 0


def _fuzz(name: str, folder: Path, seconds: float, seed: int) -> Ran:
    """Run a target for some seconds; restart it for the rest if the process ended early."""
    corpus, defects, ran = folder / name, folder / f"{name}.defects", Ran(name)
    corpus.mkdir(parents=True, exist_ok=True)
    defects.mkdir(exist_ok=True)
    for data in (*TARGETS[name].seeds, *(file.read_bytes() for file in found(name))):
        (corpus / f"seed-{zlib.crc32(data):08x}").write_bytes(data)
    began = time.monotonic()
    for start in range(_MOST_STARTS):
        left = seconds - (time.monotonic() - began)
        if left < _LEAST_S and start:
            break
        options = [
            f"-max_total_time={max(1, round(left))}",
            f"-seed={seed + start}",
            f"-artifact_prefix={defects}/",
        ]
        options += [
            f"-max_len={TARGETS[name].longest}",
            f"-timeout={_INPUT_S}",
            f"-report_slow_units={_INPUT_S}",
            f"-rss_limit_mb={_MOST_MB}",
        ]
        if _watch([name, str(defects), *options, str(corpus)], ran) == 0:
            break
    ran.seconds = time.monotonic() - began
    return ran


def _watch(arguments: Sequence[str], ran: Ran) -> int:
    """Start the engine and read its output; return how it ended."""
    command = [sys.executable, "-W", "ignore", str(_ENGINE), *arguments]
    before, shown, tail = ran.executions, time.monotonic(), list[str]()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as engine:
        for line in engine.stderr or ():
            tail = [*tail[-20:], line]
            if status := _STATUS.match(line):
                ran.executions, ran.edges, ran.corpus = (
                    before + int(status[1]),
                    int(status[2]),
                    int(status[4]),
                )
            elif defect := _DEFECT.match(line):
                ran.defects[defect[1]] = defect[2]
                sys.stdout.write(f"{ran.target}: {defect[1]}\n    {defect[2]}\n")
            elif written := _WRITTEN.search(line):
                kind = Path(written[1]).name.partition("-")[
                    0
                ]  # As libFuzzer names it: timeout, oom, crash.
                is_sure = kind not in ("timeout", "slow") or _takes_long(ran.target, written[1])
                ran.defects |= {f"{kind} {len(ran.defects) + 1}": written[1]} if is_sure else {}
                sys.stdout.write(
                    f"{ran.target}: {kind}{'' if is_sure else ', and not again'}\n    {written[1]}\n"
                )
            if time.monotonic() - shown > _PROGRESS_S:
                shown = time.monotonic()
                sys.stdout.write(
                    f"{ran.target}: {ran.executions:,} executions, {ran.edges:,} edges, {ran.corpus:,} inputs\n"
                )
                sys.stdout.flush()
    if engine.returncode and not ran.defects:
        ran.defects[f"the engine ended with {engine.returncode}"] = "no input"
        sys.stdout.write("".join(tail))
    return engine.returncode


def _takes_long(name: str, file: str) -> bool:
    """Whether an input is slow again, in CPU time: on a busy machine every input is slow."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (2 * _INPUT_S, 2 * _INPUT_S))

    command = [sys.executable, "-W", "ignore", __file__, name, "--reproduce", file]
    try:
        ran = subprocess.run(
            command, capture_output=True, timeout=20 * _INPUT_S, check=False, preexec_fn=limit
        )
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode not in (0, 1)


def _table(ran: Sequence[Ran]) -> str:
    """Return the figures of all targets, and below them what shows each defect."""
    rows = [("target", "executions", "seconds", "edges", "corpus", "defects")]
    rows += [
        (
            each.target,
            f"{each.executions:,}",
            f"{each.seconds:.0f}",
            f"{each.edges:,}",
            f"{each.corpus:,}",
            str(len(each.defects)),
        )
        for each in ran
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    for each in ran:
        lines += [
            f"\n{each.target}: {name}\n    python tests/tools/fuzz/fuzz.py {each.target} --reproduce {file}"
            for name, file in each.defects.items()
        ]
    return "\n".join(["", *lines, ""])


if __name__ == "__main__":
    sys.exit(main())
