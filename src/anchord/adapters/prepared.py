"""What was found out about a model on this machine, once, and kept by the digest of its weights: which runtime serves it.

    models/<identity>-<precision>/  model.onnx or model.int8.onnx, and facts.json, written last

`export` makes the folder in a process of its own, beside its place; it is then put there whole.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from anchord.adapters.serving import Settings

Running = Callable[["subprocess.Popen[bytes]"], None]

CPU = "cpu"
INT8 = "int8"
FACTS = "facts.json"
_FORM = "1"
"""Raise it when `export` does something else."""
_EXPORT_S = 900.0
_WORTH = 1.5
"""So much faster must an accelerator be to be woken."""
_DRIVERS = ("/dev/nvidiactl", "/dev/kfd")


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is served here."""

    runtime: str
    """"onnx": the light process, and a large backlog on `device`; "torch": the model as it is."""
    device: str = CPU
    why: str = ""
    """Why not the light process."""
    cosine: float = 0.0
    """The smallest between the export's and the original's vectors."""
    rates: Mapping[str, float] = {}
    """Device -> texts of half a window a second."""
    made_by: str = ""
    """The libraries: what failed is tried again with others."""
    machine: str = ""
    """The form of these facts and the drivers: with others everything is measured again."""


def made_by() -> str:
    """Return the libraries that an export depends on besides the model."""
    libraries = ("torch", "sentence-transformers", "transformers", "onnxruntime")
    return " ".join(f"{name}={_version(name)}" for name in libraries)


def machine() -> str:
    """Return the form of the facts, and the accelerators that may be there."""
    return " ".join([_FORM, *(name for name in _DRIVERS if os.path.exists(name))])


def choose(rates: Mapping[str, float]) -> str:
    """Return the device for a backlog: an accelerator that is clearly faster than the processor, else that."""
    best = max(rates, key=lambda device: rates[device])
    return best if rates[best] > rates.get(CPU, 0.0) * _WORTH else CPU


def find(models: Path, identity: str, precision: str) -> tuple[Facts, Path] | None:
    """Return what is known of a model, and its exported file; None where nothing is, or it should be tried anew."""
    folder = models / f"{identity}-{precision}"
    try:
        facts = msgspec.json.decode((folder / FACTS).read_bytes(), type=Facts)
    except (OSError, msgspec.MsgspecError):
        return None
    file = folder / ("model.int8.onnx" if precision == INT8 else "model.onnx")
    if facts.machine != machine() or (facts.why and facts.made_by != made_by()):
        return None
    return None if facts.runtime == "onnx" and not file.is_file() else (facts, file)


def prepare(models: Path, identity: str, precision: str, given: Settings, running: Running) -> tuple[Facts, Path]:
    """Make a model ready, which takes some ten seconds and a gigabyte; a model that cannot be is served as it is.

    `running` is handed the process, so that it can be ended. What fails for want of room or memory is told, and not kept.
    """
    target = models / f"{identity}-{precision}"
    made: Path | None = None
    try:
        models.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=models))
        code = _run([msgspec.json.encode(given).decode(), str(made), precision], running)
        if not (made / FACTS).is_file():
            facts = Facts(runtime="torch", why=_became(code), made_by=made_by(), machine=machine())
            if not _is_crash(code):
                return facts, target
            (made / FACTS).write_bytes(msgspec.json.encode(facts))  # So that it does not crash at every start.
        shutil.rmtree(target, ignore_errors=True)
        os.replace(made, target)
    except OSError as error:
        beside = find(models, identity, precision)  # Another process can have made it at the same time.
        return beside or (Facts(runtime="torch", why=f"it cannot be made ready: {error.strerror}"), target)
    finally:
        if made:
            shutil.rmtree(made, ignore_errors=True)
    return find(models, identity, precision) or (Facts(runtime="torch", why="its export was gone at once"), target)


def sweep(models: Path, now: float) -> None:
    """Delete what interrupted exports left; one that another process makes just now is younger than that."""
    for left in models.glob(".making-*"):
        with suppress(OSError):
            if now - left.stat().st_mtime > _EXPORT_S:
                shutil.rmtree(left, ignore_errors=True)


def offline() -> dict[str, str]:
    """Return the environment of a process that loads a model: nothing asks a hub, nothing warns into a pipe."""
    quiet = {"TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    return os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", **quiet}


def _run(arguments: list[str], running: Running) -> int | None:
    """Run the program; return its exit code, None when it did not end in time.

    Raises:
        OSError: it cannot be started.
    """
    command = [sys.executable, "-m", "anchord.adapters.export", *arguments]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env=offline(), start_new_session=True)
    running(process)
    try:
        return process.wait(_EXPORT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _became(code: int | None) -> str:
    how = f"did not end in {_EXPORT_S:.0f} s" if code is None else f"ended with {code}"
    return f"the program that exports it {how}"


def _is_crash(code: int | None) -> bool:
    """Whether trying again would end the same way. It is killed when this process stops, or by the system for its memory."""
    return code is None or (code < 0 and -code not in (signal.SIGKILL, signal.SIGTERM))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
