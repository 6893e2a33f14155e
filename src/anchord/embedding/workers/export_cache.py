"""The cache of exported models, by the digest of a model's weights: which runtime serves it here.

    models/<digest>-<precision>[-<driver>]/  model.onnx or model.int8.onnx, and facts.json

A machine with an accelerator has a folder of its own, named after the driver: several machines can
share a cache.

`export_model` makes the folder in a process of its own, under another name. The finished folder is
then moved to its place. All homes of a user share a cache, so that several processes may work in it
at once: an export that is complete is never replaced by another one of the same model.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from anchord.embedding.workers.worker_main import WorkerSettings

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
OnProcessStarted = Callable[["subprocess.Popen[bytes]"], None]
"""Receive the export's process, for example to kill it later."""

CPU = "cpu"
INT8 = "int8"
EXPORT_INFO_FILE = "facts.json"
_FORMAT = "1"
"""Raise it when `export_model` does something else: every model is then exported again."""
_EXPORT_TIMEOUT_S = 900.0
_MIN_SPEEDUP = 1.5
"""How many times as fast as the CPU an accelerator must be to be used."""
_DRIVERS = ("/dev/nvidiactl", "/dev/kfd")


class ExportInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which runtime serves a model on this machine, and why; stored as JSON."""

    runtime: str
    """"onnx": the light process, and a large backlog on `device`; "torch": the model itself."""
    device: str = CPU
    why: str = ""
    """Why the runtime is torch; "" for onnx."""
    cosine: float = 0.0
    """The smallest between the vectors of the export and of the model itself."""
    rates: Mapping[str, float] = {}
    """Device -> texts of half a window a second."""
    made_by: str = ""
    """`library_versions` of the export: a failed one is tried again with other libraries."""
    machine: str = ""
    """`machine_signature` of the export: with another one the model is exported again."""


def library_versions() -> str:
    """Return the versions of the libraries that an export depends on, as one text."""
    libraries = ("torch", "sentence-transformers", "transformers", "onnxruntime")
    return " ".join(f"{name}={_version(name)}" for name in libraries)


def machine_signature() -> str:
    """Return the format of the cache and the drivers of accelerators that exist, as one text."""
    return " ".join([_FORMAT, *_drivers()])


def has_accelerator() -> bool:
    """Return whether this machine has the driver of an accelerator."""
    return bool(_drivers())


def _drivers() -> list[str]:
    return [path for path in _DRIVERS if os.path.exists(path)]


def _export_folder(exports_folder: Path, model_digest: str, precision: str) -> Path:
    drivers = [os.path.basename(path) for path in _drivers()]
    return exports_folder / "-".join([model_digest, precision, *drivers])


def choose_backlog_device(rate_by_device: Mapping[str, float]) -> str:
    """Return the fastest device if it is over 1.5 times as fast as the CPU, otherwise the CPU.

    Args:
        rate_by_device: Device -> texts a second; at least one.
    """
    fastest = max(rate_by_device, key=lambda device: rate_by_device[device])
    min_rate = rate_by_device.get(CPU, 0.0) * _MIN_SPEEDUP
    return fastest if rate_by_device[fastest] > min_rate else CPU


def find_export(
    exports_folder: Path, model_digest: str, precision: str
) -> tuple[ExportInfo, Path] | None:
    """Return the cached export of a model.

    Args:
        exports_folder: The folder of the cache.
        model_digest: Digest of the model's weights.
        precision: "fp32" or "int8".

    Returns:
        The export and the path of its model file; the file exists only if the runtime is onnx.
        None if the model must be exported: there is no export yet, it is damaged or of another
        machine, or it records a failure and the libraries have changed since.
    """
    folder = _export_folder(exports_folder, model_digest, precision)
    try:
        info_json = (folder / EXPORT_INFO_FILE).read_bytes()
        info = msgspec.json.decode(info_json, type=ExportInfo)
    except (OSError, msgspec.MsgspecError):
        return None
    failed_with_other_libraries = info.why and info.made_by != library_versions()
    if info.machine != machine_signature() or failed_with_other_libraries:
        return None
    model_file = folder / ("model.int8.onnx" if precision == INT8 else "model.onnx")
    if info.runtime == "onnx" and not model_file.is_file():
        return None
    return info, model_file


def find_or_share_export(
    exports_folder: Path, older_folder: Path, model_digest: str, precision: str
) -> tuple[ExportInfo, Path] | None:
    """Return the cached export of a model, as `find_export`; share one that a home made before.

    Args:
        exports_folder: The folder of the cache.
        older_folder: Where this home kept its exports before homes shared them. The files of one
            that is found there are linked into the cache, or copied from another file system.
        model_digest: Digest of the model's weights.
        precision: "fp32" or "int8".
    """
    found = find_export(exports_folder, model_digest, precision)
    if found or older_folder == exports_folder:
        return found
    older = find_export(older_folder, model_digest, precision)
    if older is None:
        return None
    older_files = _export_folder(older_folder, model_digest, precision)
    with suppress(OSError), _build_folder(exports_folder) as build_folder:
        for file in older_files.iterdir():
            _link_or_copy(file, build_folder / file.name)
        _move_unless_cached(
            build_folder,
            exports_folder,
            model_digest,
            precision,
        )
    return find_export(exports_folder, model_digest, precision) or older


def export_and_cache_model(
    exports_folder: Path,
    model_digest: str,
    precision: str,
    settings: WorkerSettings,
    on_process_started: OnProcessStarted,
) -> tuple[ExportInfo, Path]:
    """Export a model in a child process and store the result; replaces an unusable export.

    Blocks for some ten seconds, at most 900. The process takes a gigabyte of memory.

    Args:
        exports_folder: The folder of the cache; it is created.
        model_digest: Digest of the model's weights.
        precision: "fp32" or "int8".
        settings: The settings of the embedding process of this model.
        on_process_started: Receives the process, so that it can be killed.

    Returns:
        The export and the path of its model file. If the export fails, nothing is raised: the
        export's runtime is "torch", its reason says why, and there is no file at the path. A
        failure that would happen again is stored, so that it is not tried again; running out of
        disk space or memory is not stored.
    """
    target = _export_folder(exports_folder, model_digest, precision)
    try:
        exports_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _build_folder(exports_folder) as build_folder:
            exit_code = _run_export(
                settings,
                build_folder,
                precision,
                on_process_started,
            )
            info_file = build_folder / EXPORT_INFO_FILE
            if not info_file.is_file():
                info = _failed_export(exit_code)
                if not _is_repeatable_crash(exit_code):
                    return info, target
                # Stored, so that the export does not crash at every start.
                info_file.write_bytes(msgspec.json.encode(info))
            _move_unless_cached(
                build_folder,
                exports_folder,
                model_digest,
                precision,
            )
    except OSError as error:
        # Another process may have stored the same export at the same time.
        cached = find_export(exports_folder, model_digest, precision)
        return cached or (_unusable(f"the model cannot be exported: {error.strerror}"), target)
    cached = find_export(exports_folder, model_digest, precision)
    return cached or (_unusable("the exported model was deleted at once"), target)


@contextmanager
def _build_folder(exports_folder: Path) -> Iterator[Path]:
    """Create a folder to build an export in; delete what is left of it at the end."""
    folder = Path(tempfile.mkdtemp(prefix=".making-", dir=exports_folder))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move_unless_cached(
    build_folder: Path, exports_folder: Path, model_digest: str, precision: str
) -> None:
    """Move a finished export to its place, unless a usable one is there.

    Raises:
        OSError: It cannot be moved.
    """
    target = _export_folder(exports_folder, model_digest, precision)
    for file in build_folder.iterdir():
        _flush(file)  # After a power loss nothing else would tell half a file from a whole one.
    try:
        build_folder.rename(target)  # It replaces no folder that has files.
    except OSError:
        # Invariant: another process may use this export, and only in this moment it got it.
        if find_export(exports_folder, model_digest, precision):
            return
        shutil.rmtree(target, ignore_errors=True)
        build_folder.rename(target)


def _flush(file: Path) -> None:
    """Write a file's content to the disk."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link_or_copy(file: Path, target: Path) -> None:
    try:
        target.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, target)


def delete_interrupted_exports(exports_folder: Path, now_s: float) -> None:
    """Delete what interrupted exports left behind. Failures are ignored.

    Args:
        exports_folder: The folder of the cache.
        now_s: The time in seconds since the epoch. Folders younger than 900 s stay: another process
            may be working in them.
    """
    for folder in exports_folder.glob(".making-*"):
        with suppress(OSError):
            age_s = now_s - folder.stat().st_mtime
            if age_s > _EXPORT_TIMEOUT_S:
                shutil.rmtree(folder, ignore_errors=True)


def offline_environment() -> dict[str, str]:
    """Return this process's environment for a process that loads a model.

    The libraries contact no model hub and print no warnings or progress bars. Variables that are
    named like a secret, such as API keys, are left out. The rest can configure the libraries.
    """
    kept = {name: value for name, value in os.environ.items() if not _SECRET_NAME.search(name)}
    return kept | {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONWARNINGS": "ignore",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }


def _run_export(
    settings: WorkerSettings,
    build_folder: Path,
    precision: str,
    on_process_started: OnProcessStarted,
) -> int | None:
    """Run the export; return its exit code, or None after a timeout, which kills it.

    Raises:
        OSError: It cannot be started.
    """
    module = "anchord.embedding.workers.export_model"
    settings_json = msgspec.json.encode(settings).decode()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, settings_json, str(build_folder), precision],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=offline_environment(),
        start_new_session=True,
    )
    on_process_started(process)
    try:
        return process.wait(_EXPORT_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _failed_export(exit_code: int | None) -> ExportInfo:
    """Describe an export that ended without a result; None means a timeout."""
    how = f"ended with {exit_code}"
    if exit_code is None:
        how = f"did not end in {_EXPORT_TIMEOUT_S:.0f} s"
    return ExportInfo(
        runtime="torch",
        why=f"the program that exports the model {how}",
        made_by=library_versions(),
        machine=machine_signature(),
    )


def _unusable(reason: str) -> ExportInfo:
    return ExportInfo(runtime="torch", why=reason)


def _is_repeatable_crash(exit_code: int | None) -> bool:
    """Whether another try would end the same way.

    SIGTERM and SIGKILL come from this process when it stops, or from a system short of memory.
    """
    if exit_code is None:
        return True
    return exit_code < 0 and -exit_code not in {signal.SIGKILL, signal.SIGTERM}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
