"""Limits for child processes that read what strangers wrote: files, system calls, memory, CPU.

Three layers, each of which the next one backs:

- Landlock, where the kernel has it (Linux 5.13 or later): the process opens only files below the
  folders it was given, and those only to read them; it starts no program.
- seccomp, where libseccomp is installed (systemd needs it): no process, no socket, no signal to
  another process, no change of a file's mode, owner or times.
- Resource limits, everywhere: memory, CPU time, size of files, number of processes.

A layer that the system lacks is skipped. `missing_layers` names it, and `anchord doctor` says so.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

_KEPT_VARIABLES = (
    "HOME",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONUSERBASE",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)
"""With these Python finds its modules. The rest of the environment can hold keys."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System calls of Landlock. Newer calls have one number on all architectures."""
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 5: 16}
"""Version of Landlock from which on it knows so many rights to files (bits, counted from 0)."""
_TCP_VERSION, _TCP_RIGHTS = 4, 0b11
_SCOPES_VERSION, _SCOPES = 6, 0b11
"""Abstract Unix sockets and signals stay inside the process."""
_PR_SET_NO_NEW_PRIVS = 38

_LIBSECCOMP = "libseccomp.so.2"
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_NOT_EQUAL, _EQUAL = 1, 4
_SIGNAL_CALLS = ("kill", "tgkill")
"""Allowed to the process itself only: with these it aborts."""
_REFUSED_CALLS = (
    # Other processes.
    *("execve", "execveat", "fork", "vfork", "clone", "clone3", "tkill", "rt_sigqueueinfo"),
    *("rt_tgsigqueueinfo", "pidfd_open", "pidfd_send_signal", "pidfd_getfd", "ptrace"),
    *("process_vm_readv", "process_vm_writev", "process_madvise", "kcmp"),
    # Sockets, and what can open one unseen.
    *("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "io_uring_setup"),
    # What Landlock does not govern: modes, owners, times and attributes of files.
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "utimensat", "futimesat", "setxattr", "lsetxattr", "fsetxattr"),
    *("removexattr", "lremovexattr", "fremovexattr"),
    # Parts of the kernel that reading needs none of.
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "bpf", "perf_event_open"),
    *("userfaultfd", "keyctl", "add_key", "request_key", "memfd_create", "memfd_secret"),
    *("shmget", "msgget", "semget", "mq_open"),
)
_INTERNET_FAMILIES = (2, 10)
"""AF_INET and AF_INET6 on Linux."""


class _Comparison(ctypes.Structure):
    """libseccomp's condition on one argument of a system call."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("unused", ctypes.c_uint64),
    )


def environment_without_keys() -> dict[str, str]:
    """Return the environment variables of this process that a confined child process needs."""
    return {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}


def limit_resources(limits: Mapping[str, int]) -> None:
    """Limit this process; it cannot raise the limits again.

    A limit that the system lacks or refuses is skipped. A lower hard limit stays.

    Args:
        limits: Name of a limit without "RLIMIT_", such as "AS" -> its value.
    """
    for name, value in limits.items():
        with suppress(AttributeError, OSError, ValueError):
            limit = getattr(resource, f"RLIMIT_{name}")
            _, hard = resource.getrlimit(limit)
            lowered = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (lowered, lowered))


def reset_cpu_limit(seconds: int) -> None:
    """Allow some more seconds of CPU from now on; the system ends the process after them."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used_s = int(usage.ru_utime + usage.ru_stime)
    with suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (used_s + seconds, hard))


def confine_to_reading(folders: Iterable[str]) -> None:
    """Confine this process for good: it may read files below some folders, and little else.

    It can also read Python, its modules and the system's libraries, and use what is open already.
    It can write no file, start no process and open no socket.

    Landlock restricts files, seccomp restricts system calls. One that the system lacks is left out
    without an error (`anchord doctor` reports it); on other systems than Linux nothing is confined.

    Args:
        folders: Absolute paths. One that does not exist is skipped.
    """
    if sys.platform != "linux":
        return
    # seccomp is second: loading its library opens a file, but so does nothing after it.
    library = _load_libseccomp()
    _restrict_files((*folders, *_code_paths()))
    if library is not None:
        signals = [(name, (_NOT_EQUAL, os.getpid())) for name in _SIGNAL_CALLS]
        _refuse_calls(library, [*((name, None) for name in _REFUSED_CALLS), *signals])


def refuse_internet() -> None:
    """Refuse sockets of the internet to this process and to those it starts, for good.

    For processes that run a model: the libraries of some can download. Skipped without libseccomp.
    """
    library = _load_libseccomp()
    if library is not None:
        _refuse_calls(library, [("socket", (_EQUAL, family)) for family in _INTERNET_FAMILIES])


def missing_layers() -> tuple[str, ...]:
    """Return the names of the layers that this system lacks, such as "Landlock"."""
    layers = {"Landlock": _landlock_version() > 0, _LIBSECCOMP: _load_libseccomp() is not None}
    return tuple(name for name, is_present in layers.items() if not is_present)


def _code_paths() -> tuple[str, ...]:
    """Return what Python and its modules are loaded from, and the zones of the clock."""
    libraries = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", f"{sys.base_prefix}/lib")
    files = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom")
    return (*filter(None, sys.path), *libraries, *files)


def _landlock_version() -> int:
    """Return the version of the kernel's Landlock; 0 or less if there is none."""
    if sys.platform != "linux":
        return 0
    return _system_call(
        _CREATE_RULESET,
        None,
        ctypes.c_size_t(0),
        _VERSION_FLAG,
    )


def _restrict_files(readable: Iterable[str]) -> None:
    version = _landlock_version()
    if version < 1:
        return
    bits = max(bits for since, bits in _FILE_RIGHTS_BY_VERSION.items() if since <= version)
    handled = [(1 << bits) - 1]
    if version >= _TCP_VERSION:
        handled.append(_TCP_RIGHTS)
    if version >= _SCOPES_VERSION:
        handled.append(_SCOPES)
    attributes = struct.pack(f"={len(handled)}Q", *handled)
    ruleset = _system_call(
        _CREATE_RULESET,
        attributes,
        ctypes.c_size_t(len(attributes)),
        0,
    )
    if ruleset < 0:
        return
    try:
        for path in readable:
            _allow_reading(ruleset, path)
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _system_call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # What is not there cannot be read either.
    try:
        rights = _READ_FILE | _READ_DIR if os.path.isdir(path) else _READ_FILE
        _system_call(
            _ADD_RULE,
            ruleset,
            _PATH_BENEATH,
            struct.pack("=Qi", rights, descriptor),
            0,
        )
    finally:
        os.close(descriptor)


def _system_call(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None).syscall(number, *arguments))


def _load_libseccomp() -> Any:  # noqa: ANN401 - ctypes has no type for a library's functions
    if sys.platform != "linux":
        return None
    try:
        library = ctypes.CDLL(_LIBSECCOMP)
    except OSError:
        return None
    library.seccomp_init.restype = ctypes.c_void_p
    return library


def _refuse_calls(library: Any, calls: Iterable[tuple[str, tuple[int, int] | None]]) -> None:  # noqa: ANN401 - likewise
    """Load a filter that answers some system calls with EPERM.

    Args:
        library: libseccomp.
        calls: Name -> None, or a comparison (operator, value) that its first argument must meet.
            A name that the library does not know is skipped: an old one has fewer names.
    """
    context = ctypes.c_void_p(library.seccomp_init(_ALLOW))
    if not context:
        return
    for name, condition in calls:
        number = library.seccomp_syscall_resolve_name(name.encode())
        comparisons = (_Comparison * 1)()
        if condition:
            comparisons[0] = _Comparison(0, *condition, 0)
        count = ctypes.c_uint(1 if condition else 0)
        library.seccomp_rule_add_array(
            context, ctypes.c_uint32(_REFUSE), number, count, comparisons
        )
    library.seccomp_load(context)
    library.seccomp_release(context)
