"""The wheel, built from the source archive, in a clean environment."""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_BUILD_S, _INSTALL_S, _COMMAND_S = 300, 1_200, 120


@dataclass(frozen=True)
class Built:
    """Both archives."""

    wheel: Path
    source: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build the source archive, and the wheel from it: what is missing there is missing here."""
    out = tmp_path_factory.mktemp("dist")
    ran = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), str(_ROOT)],
        capture_output=True, text=True, check=False, timeout=_BUILD_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return Built(wheel, source)


@dataclass(frozen=True)
class Installed:
    """An environment with only the wheel and its dependencies, and a new home."""

    folder: Path
    home: Path

    def site_packages(self) -> Path:
        """Return the folder that its packages are in."""
        (folder,) = self.folder.glob("lib/python*/site-packages")
        return folder

    def run(self, *command: str, timeout: float = _COMMAND_S) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment as a new user: no variable of this process is set."""
        environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        environment |= {
            name: os.environ[name]
            for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "SSL_CERT_FILE")
            if name in os.environ
        }
        program = self.folder / "bin" / command[0]
        return subprocess.run(
            [str(program), *command[1:]],
            env=environment, cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=timeout,
        )  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(True, id="with the packages of this environment", marks=pytest.mark.slow),
        pytest.param(False, id="with packages installed anew", marks=pytest.mark.slow),
    ],
)
def installed(
    built: Built, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Installed]:
    """Install the wheel; installing what it needs takes two minutes, so one variant borrows that."""
    base = tmp_path_factory.mktemp("i")
    (base / "home").mkdir(mode=0o700)
    venv.create(base / "env", with_pip=not request.param)
    made = Installed(base / "env", base / "home")
    options = ["-c", str(_ROOT / "requirements.lock")]
    if request.param:
        options = ["--no-deps"]
        own, ours = made.site_packages(), sysconfig.get_path("purelib")
        (own / "borrowed.pth").write_text(f"{ours}\n", "utf-8")
    ran = made.run(
        "python", "-m", "pip", "install", "--quiet", *options, str(built.wheel), timeout=_INSTALL_S
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    yield made
    shutil.rmtree(made.folder)  # Two gigabytes, which pytest would keep for three runs.


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_module_and_the_templates_and_nothing_else(built: Built) -> None:
    ours = {
        str(path.relative_to(_ROOT / "src")) for path in (_ROOT / "src" / "anchord").rglob("*.py")
    }
    templates = {
        f"anchord/{kind}/{path.name}"
        for kind in ("systemd", "launchd")
        for path in (_ROOT / kind).iterdir()
    }
    plugin = _ROOT / "src" / "anchord" / "agents" / "plugin"
    others = {
        "anchord/py.typed",
        "anchord/sources/secrets/rules.toml",
        *(str(path.relative_to(_ROOT / "src")) for path in plugin.rglob("*") if path.is_file()),
    }
    assert {
        name for name in names(built.wheel) if ".dist-info/" not in name
    } == ours | templates | others


def test_the_source_archive_holds_what_builds_and_tests_it(built: Built) -> None:
    with tarfile.open(built.source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "requirements.lock",
        ".ci/run",
        "tests/test_packaging.py",
    } <= inside
    assert not [name for name in inside if "__pycache__" in name or name.endswith(".pyc")]


def test_its_metadata_names_the_licence_the_readme_and_the_extras(built: Built) -> None:
    (place,) = (name for name in names(built.wheel) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(built.wheel) as archive:
        metadata = email.message_from_bytes(archive.read(place))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert {"code", "dev"} <= set(metadata.get_all("Provides-Extra", []))
    assert "# anchord" in str(metadata.get_payload())


@pytest.mark.timeout(_INSTALL_S + 300)
def test_in_a_clean_environment_it_indexes_searches_and_prints_its_service(
    installed: Installed,
) -> None:
    (installed.home / "notes").mkdir()
    (installed.home / "notes" / "a.md").write_text(
        "# Gulls\n\nSeagulls sleep on chimneys.\n", "utf-8"
    )
    (installed.home / ".config" / "anchord").mkdir(mode=0o700, parents=True)
    (installed.home / ".config" / "anchord" / "config.toml").write_text(
        '[embedding]\nprovider = "hash"\n', "utf-8"
    )
    added = installed.run("anchord", "add", str(installed.home / "notes"))
    assert added.returncode == 0, added.stderr
    done = installed.run("anchord", "index")
    assert done.returncode == 0, done.stderr
    found = installed.run("anchord", "search", "seagulls", "--mode", "text")
    assert "notes/a.md:1" in found.stdout, found.stderr
    assert installed.run("anchord", "verify").returncode == 0
    printed = installed.run("anchord", "service", "print")
    assert f'ExecStart="{installed.folder}/bin/anchord" run' in printed.stdout, printed.stderr
    assert installed.run("anchord", "doctor").returncode == 0


def test_its_modules_come_from_the_wheel_and_not_from_here(installed: Installed) -> None:
    """Otherwise the tests above would test the source tree."""
    where = installed.run("python", "-c", "import anchord; print(anchord.__file__)").stdout.strip()
    assert where.startswith(str(installed.folder))


def test_its_dependencies_agree_with_each_other(installed: Installed) -> None:
    checked = installed.run("python", "-m", "pip", "check")
    assert checked.returncode == 0, checked.stdout
