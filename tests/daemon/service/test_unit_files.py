"""The service files: systemd's own verifier accepts the unit, a schema stricter than `plistlib` accepts the agent.

`systemd-analyze verify` exits 0 on an unknown key and `plistlib` takes the last of two equal keys, so neither verdict
is enough: here any word from the verifier fails, and the plist must satisfy a table of what launchd knows. Each check
is also shown a file that it must refuse.
"""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from anchord.daemon.service.supervisor import read_templates
from anchord.daemon.service.unit_files import (
    AGENT_PLIST,
    SANDBOX_DROP_IN,
    SERVICE_UNIT,
    SOCKET_UNIT,
    ServiceSettings,
    render_launchd_agent,
    render_systemd_files,
)
from anchord.errors import UsageError

_ROOT = Path(__file__).parents[3]
_UNIT = _ROOT / "systemd" / SERVICE_UNIT
_AGENT = _ROOT / "launchd" / AGENT_PLIST
_EXPOSURE_LIMIT = 65  # tenths: the unit scored 6.3 on systemd 252 ...
_SANDBOX_LIMIT = 15  # ... and 1.1 with the drop-in

_HOME = "/Users/ada"
_PROGRAM = "/Users/ada/.local/bin/anchord"
_ODD = 'od d%h$HOME"\\x'
"""A folder name with every character that is syntax to systemd."""

_PLACEHOLDER = re.compile(r"@\w+@")

_needs_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="not Linux: systemd runs on Linux only"
)
_needs_analyzer = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


# The systemd unit


def _installation(folder: Path, program: str = sys.executable) -> ServiceSettings:
    return ServiceSettings(
        command=(program,),
        environment={"ANCHORD_HOME": str(folder)},
        home=str(folder),
        writable_folders=(str(folder),),
        socket_path=str(folder / "anchord.sock"),
    )


def _written(folder: Path, of: ServiceSettings, unit: str = "") -> Path:
    """Write the files of an installation, with another text of the unit if one is given; return the unit."""
    texts = {name: text.decode() for name, text in read_templates("systemd").items()}
    for name, text in render_systemd_files(
        of, texts | ({SERVICE_UNIT: unit} if unit else {})
    ).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / SERVICE_UNIT


def _render_unit(text: str, folder: Path, program: str = sys.executable) -> Path:
    """Write a unit whose program exists on this machine."""
    return _written(folder, _installation(folder, program), text)


def _analyze(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze as a user without own units; it needs a runtime folder to start."""
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(runtime),
        "LC_ALL": "C",
    }
    return subprocess.run(
        ["systemd-analyze", "--user", "--no-pager", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )


def _verify(unit: Path) -> str:
    """Return the output and exit status of the verifier; "" for a good unit."""
    ran = _analyze(unit.parent, "verify", "--man=no", str(unit))
    return ran.stdout + (f"exit status {ran.returncode}\n" if ran.returncode else "")


def _exposure(unit: Path, limit: int = _EXPOSURE_LIMIT) -> subprocess.CompletedProcess[str]:
    return _analyze(unit.parent, "security", "--offline=true", f"--threshold={limit}", str(unit))


@_needs_linux
@_needs_analyzer
def test_systemd_finds_nothing_to_say_about_the_unit(tmp_path: Path) -> None:
    assert _verify(_render_unit(_UNIT.read_text(encoding="utf-8"), tmp_path)) == ""


@_needs_linux
@_needs_analyzer
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[Service]\n", "[Service]\nRestartEver=yes\n", "RestartEver"),
        ("[Unit]\n", "[Unti]\n", "Unti"),
        ("TimeoutStopSec=30\n", "TimeoutStopSec=soon\n", "ignoring: soon"),
        ("SystemCallFilter=@system-service\n", "SystemCallFilter=@no-such-set\n", "no-such-set"),
    ],
)
def test_a_mistake_in_the_unit_is_named(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    text = _UNIT.read_text(encoding="utf-8")
    assert text.count(old) == 1
    assert complaint in _verify(_render_unit(text.replace(old, new), tmp_path))


@_needs_linux
@_needs_analyzer
def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere" / "anchord")
    assert missing in _verify(_render_unit(_UNIT.read_text(encoding="utf-8"), tmp_path, missing))


@_needs_linux
@_needs_analyzer
def test_the_unit_stays_below_the_exposure_limit(tmp_path: Path) -> None:
    ran = _exposure(_render_unit(_UNIT.read_text(encoding="utf-8"), tmp_path))
    assert ran.returncode == 0, ran.stdout


@_needs_linux
@_needs_analyzer
def test_a_unit_without_its_restrictions_exceeds_the_exposure_limit(tmp_path: Path) -> None:
    text = _UNIT.read_text(encoding="utf-8")
    bare = re.sub(
        r"(?m)^(NoNewPrivileges|Restrict\w+|LockPersonality|SystemCall\w+)=.*\n", "", text
    )
    ran = _exposure(_render_unit(bare, tmp_path))
    assert ran.returncode == 1, ran.stdout
    assert "Overall exposure level" in ran.stdout


@_needs_linux
@_needs_analyzer
@pytest.mark.parametrize("network", [False, True])
def test_every_form_of_the_units_is_verified_and_the_sandbox_is_tight(
    tmp_path: Path,
    network: bool,  # noqa: FBT001 - a case
) -> None:
    of = replace(
        _installation(tmp_path), sandbox=True, socket_activated=True, needs_network=network
    )
    unit = _written(tmp_path, of)
    assert _verify(unit) == ""
    assert _verify(tmp_path / SOCKET_UNIT) == ""
    if not network:
        ran = _exposure(unit, _SANDBOX_LIMIT)
        assert ran.returncode == 0, ran.stdout
        assert _exposure(unit, 5).returncode == 1


@_needs_linux
@_needs_analyzer
def test_whatever_a_path_holds_systemd_reads_it_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / _ODD
    folder.mkdir()
    program = folder / "anchord it"
    program.symlink_to("/bin/true")
    of = replace(_installation(folder, str(program)), sandbox=True, socket_activated=True)
    unit = _written(tmp_path, of)
    assert (
        _verify(unit) == ""
    )  # The message names the missing program: so the path was read correctly.


def test_a_path_that_no_unit_can_hold_is_refused() -> None:
    texts = {name: text.decode() for name, text in read_templates("systemd").items()}
    with pytest.raises(UsageError, match="line break"):
        render_systemd_files(
            ServiceSettings(
                command=("/a\nb/anchord",),
                environment={},
                home="/",
                writable_folders=(),
                socket_path="",
            ),
            texts,
        )


def test_a_server_in_the_configuration_opens_the_network_and_nothing_else_does() -> None:
    texts = {name: text.decode() for name, text in read_templates("systemd").items()}
    closed = render_systemd_files(
        ServiceSettings(
            command=("/anchord",),
            environment={},
            home="/",
            writable_folders=("/a",),
            socket_path="",
            sandbox=True,
        ),
        texts,
    )
    opened = render_systemd_files(
        ServiceSettings(
            command=("/anchord",),
            environment={},
            home="/",
            writable_folders=("/a",),
            socket_path="",
            needs_network=True,
            sandbox=True,
        ),
        texts,
    )
    drop_in = f"{SERVICE_UNIT}.d/{SANDBOX_DROP_IN}"
    assert "\nRestrictAddressFamilies=AF_UNIX\n" in closed[SERVICE_UNIT]
    assert "PrivateNetwork=yes" in closed[drop_in]
    assert "\nRestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n" in opened[SERVICE_UNIT]
    assert "PrivateNetwork" not in opened[drop_in].replace("# ", "")
    assert "IPAddressDeny" not in opened[drop_in]


def test_nothing_is_left_to_be_put_in() -> None:
    texts = {name: text.decode() for name, text in read_templates("systemd").items()}
    of = ServiceSettings(
        command=("/anchord",),
        environment={},
        home="/",
        writable_folders=("/a",),
        socket_path="/run/x.sock",
        sandbox=True,
        socket_activated=True,
    )
    assert not [
        name
        for name, text in render_systemd_files(of, texts).items()
        if re.search("@[A-Z]+@", text)
    ]


def test_the_unit_has_its_three_sections_in_order() -> None:
    sections = re.findall(r"(?m)^\[(.*)\]$", _UNIT.read_text(encoding="utf-8"))
    assert sections == ["Unit", "Service", "Install"]


# The LaunchAgent

_Check = Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Whether a value is a number; a bool, which is an int in Python, is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/")


def _is_command(value: object) -> bool:
    return (
        isinstance(value, list) and value != [] and all(map(_is_text, value)) and _is_path(value[0])
    )


def _is_environment(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_text(key) and isinstance(item, str) for key, item in value.items()
    )


def _one_of(*words: str) -> _Check:
    return lambda value: value in words


def _all_within(known: dict[str, _Check]) -> _Check:
    """Return a check: a dictionary is not empty, its keys are known and its values fit."""

    def check(value: object) -> bool:
        if not isinstance(value, dict) or not value:
            return False
        return all(key in known and known[key](item) for key, item in value.items())

    return check


_SCHEMA: dict[str, _Check] = {
    "Label": _one_of("io.anchord"),
    "ProgramArguments": _is_command,
    "EnvironmentVariables": _is_environment,
    "RunAtLoad": _is_flag,
    "KeepAlive": _all_within({"SuccessfulExit": _is_flag, "Crashed": _is_flag}),
    "ThrottleInterval": _is_number,
    "ExitTimeOut": _is_number,
    "ProcessType": _one_of("Background", "Standard", "Adaptive", "Interactive"),
    "LowPriorityIO": _is_flag,
    "Nice": _is_number,
    "Umask": _is_number,
    "SoftResourceLimits": _all_within({"NumberOfFiles": _is_number}),
    "StandardOutPath": _is_path,
    "StandardErrorPath": _is_path,
}
_REQUIRED = ("Label", "ProgramArguments")


def _render_agent(text: str) -> str:
    return text.replace("@HOME@", _HOME).replace("@ANCHORD@", _PROGRAM)


def _agent(home: str = _HOME, program: tuple[str, ...] = (_PROGRAM,), **environment: str) -> bytes:
    return render_launchd_agent(
        ServiceSettings(
            command=program, environment=environment, home=home, writable_folders=(), socket_path=""
        ),
        _AGENT.read_bytes(),
    )


def _texts(value: object) -> list[str]:
    """Return every string in the value, keys included."""
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def _repeated_keys(text: str) -> list[str]:
    """Return the keys that a dictionary has twice, which `plistlib` does not report."""
    tree = ET.fromstring(text)  # noqa: S314 - our own file
    counts = [
        Counter(key.text or "" for key in block.findall("key")) for block in tree.iter("dict")
    ]
    return [key for count in counts for key, times in count.items() if times > 1]


def _faults(text: str) -> list[str]:
    """Return what is wrong with a rendered agent; empty if launchd will read it as intended."""
    agent = plistlib.loads(text.encode())
    assert isinstance(agent, dict)
    return [
        *(f"repeated key {key}" for key in _repeated_keys(text)),
        *(f"missing key {key}" for key in _REQUIRED if key not in agent),
        *(f"unknown key {key}" for key in agent if key not in _SCHEMA),
        *(
            f"bad value of {key}"
            for key, value in agent.items()
            if key in _SCHEMA and not _SCHEMA[key](value)
        ),
        *(
            f"not expanded by launchd: {found}"
            for found in _texts(agent)
            if "~" in found or "$" in found
        ),
        *(f"not rendered: {found}" for found in _texts(agent) if _PLACEHOLDER.search(found)),
    ]


def test_the_rendered_agent_has_no_faults() -> None:
    assert _faults(_render_agent(_AGENT.read_text(encoding="utf-8"))) == []
    assert _faults(_agent().decode()) == []


def test_the_installed_agent_says_what_the_template_says_with_this_installations_paths() -> None:
    assert plistlib.loads(_agent()) == plistlib.loads(
        _render_agent(_AGENT.read_text(encoding="utf-8")).encode()
    )
    odd = plistlib.loads(
        _agent('/Users/a<&"b', ("/opt/p y/python", "-m", "anchord"), ANCHORD_HOME="/x & y")
    )
    assert odd["ProgramArguments"] == ["/opt/p y/python", "-m", "anchord", "run"]
    assert odd["EnvironmentVariables"] == {"HF_HUB_OFFLINE": "1", "ANCHORD_HOME": "/x & y"}
    assert odd["StandardOutPath"] == '/Users/a<&"b/Library/Logs/anchord/launchd.out.log'


def test_the_agent_runs_the_program_it_was_rendered_with_and_logs_below_the_home() -> None:
    agent = plistlib.loads(_render_agent(_AGENT.read_text(encoding="utf-8")).encode())
    assert agent["ProgramArguments"] == [_PROGRAM, "run"]
    for key in ("StandardOutPath", "StandardErrorPath"):
        assert Path(agent[key]).parent == Path(_HOME, "Library", "Logs", "anchord")


def test_the_agent_starts_again_after_a_failure_only() -> None:
    assert plistlib.loads(_AGENT.read_bytes())["KeepAlive"] == {"SuccessfulExit": False}


def test_the_agent_keeps_what_it_makes_for_its_owner() -> None:
    assert plistlib.loads(_AGENT.read_bytes())["Umask"] == stat.S_IRWXG | stat.S_IRWXO


def test_the_template_itself_is_refused() -> None:
    faults = _faults(_AGENT.read_text(encoding="utf-8"))
    assert "not rendered: @ANCHORD@" in faults
    assert "bad value of ProgramArguments" in faults


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (
            "<key>RunAtLoad</key>",
            "<key>Nice</key><integer>5</integer><key>RunAtLoad</key>",
            "repeated key Nice",
        ),
        (
            "<key>SuccessfulExit</key>",
            "<key>SuccessfulExit</key><true/><key>SuccessfulExit</key>",
            "repeated key SuccessfulExit",
        ),
        ("<key>RunAtLoad</key>", "<key>RunAtLaod</key>", "unknown key RunAtLaod"),
        ("<key>SuccessfulExit</key>", "<key>SuccesfulExit</key>", "bad value of KeepAlive"),
        ("<key>Label</key>", "<key>ServiceDescription</key>", "missing key Label"),
        ("<string>@ANCHORD@</string>", "<string>anchord</string>", "bad value of ProgramArguments"),
        (
            "@HOME@/Library/Logs/anchord/launchd.out.log",
            "launchd.out.log",
            "bad value of StandardOutPath",
        ),
        (
            "@HOME@/Library/Logs/anchord/launchd.err.log",
            "/~ada/launchd.err.log",
            "not expanded by launchd: /~ada/launchd.err.log",
        ),
        (
            "<string>@ANCHORD@</string>",
            "<string>~/bin/anchord</string>",
            "not expanded by launchd: ~/bin/anchord",
        ),
        (
            "<string>@ANCHORD@</string>",
            "<string>/$HOME/anchord</string>",
            "not expanded by launchd: /$HOME/anchord",
        ),
        ("<string>run</string>", "<string>@COMMAND@</string>", "not rendered: @COMMAND@"),
        ("<integer>63</integer>", "<string>077</string>", "bad value of Umask"),
        ("<integer>10</integer>", "<true/>", "bad value of Nice"),
        ("<string>Background</string>", "<string>background</string>", "bad value of ProcessType"),
    ],
)
def test_a_mistake_in_the_agent_is_named(old: str, new: str, fault: str) -> None:
    text = _AGENT.read_text(encoding="utf-8")
    assert text.count(old) == 1
    assert fault in _faults(_render_agent(text.replace(old, new)))
