"""The programs of `bench_peers.py`, each driven by its own commands in a home and a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from commands import Command
from daemons import until


class Program(ABC):
    """What the benchmark asks of a program. Subclasses have its commands."""

    name: ClassVar[str]
    executable: ClassVar[str]
    install: ClassVar[str]
    """The command that installs it."""
    version_option: ClassVar[str] = "--version"
    embeds: ClassVar[bool] = True
    """False: it cannot ask a server, so that its words alone are measured."""
    has_words_first: ClassVar[bool] = False
    """Whether words can be found before the first text was embedded."""

    def __init__(self, base: Path, url: str) -> None:
        """Make its home and the folder of notes in `base`; `url` is of the server of embeddings."""
        self.home = base / "home"
        self.folder = base / "notes"
        self.url = url
        self.home.mkdir(mode=0o700, parents=True)
        self.folder.mkdir()
        self.environment = dict(os.environ) | {
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "ANCHORD_HOME": str(self.home / "anchord"),
            "COCOINDEX_CODE_DIR": str(self.home / "cocoindex"),
            "COCOINDEX_CODE_DAEMON_SUPERVISED": "1",
            "OPENAI_API_KEY": "none",
        }
        # All programs load compiled modules, as after an installation.
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._daemon: Command | None = None
        self._ended_s = 0.0
        self.configure()

    @classmethod
    def version(cls) -> str | None:
        """Return the installed version, or None."""
        if not shutil.which(cls.executable):
            return None
        run = subprocess.run(
            [cls.executable, cls.version_option], capture_output=True, text=True, check=False
        )
        return next((word for word in run.stdout.split() if word[:1].isdigit()), "?")

    @abstractmethod
    def configure(self) -> None:
        """Write its settings."""

    @abstractmethod
    def index(self) -> Command:
        """Begin to bring the index up to date; the command ends when that is done."""

    @abstractmethod
    def search(self, word: str) -> Command:
        """Begin a search, as the program does it if nothing else is said."""

    @abstractmethod
    def status(self) -> Command:
        """Begin a look at the status."""

    def find(self, word: str) -> Command:
        """Begin the cheapest search that finds a word."""
        return self.search(word)

    def words(self) -> Command | None:
        """Begin to wait until all words are found; None: that is the end of `index`."""
        return None

    def daemon(self) -> tuple[list[str], Path] | None:
        """Return the command of its daemon and the socket that is there when it answers."""
        return None

    def data(self) -> Path:
        """Return the folder with its index."""
        return self.home

    def start(self) -> None:
        """Start its daemon, if it has one."""
        if found := self.daemon():
            arguments, socket = found
            socket.unlink(missing_ok=True)
            daemon = self._daemon = self.begin(*arguments)
            until(lambda: socket.exists() or daemon.is_ended)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End its daemon, if it runs."""
        if self._daemon:
            self._daemon.kill(number)
            self._ended_s += self._daemon.cpu_s
            self._daemon = None

    def daemon_s(self) -> float:
        """Return the CPU seconds of its daemons."""
        return self._ended_s + (self._daemon.used_s if self._daemon else 0.0)

    def begin(self, *arguments: str) -> Command:
        """Begin a command of it."""
        return Command([self.executable, *arguments], self.environment, self.folder)


class Anchord(Program):
    """anchord with its daemon."""

    name = "anchord"
    executable = sys.executable
    install = "this repository"
    has_words_first = True

    @classmethod
    def version(cls) -> str | None:
        """Return that of the code beside this file."""
        from anchord import __version__  # noqa: PLC0415 - only if it is measured

        return __version__

    def begin(self, *arguments: str) -> Command:
        """Begin a command of it."""
        return super().begin("-m", "anchord", *arguments)

    def configure(self) -> None:
        """Write its settings."""
        home = self.home / "anchord"
        home.mkdir(mode=0o700)
        server = f'[embedding]\nprovider = "openai"\nmodel = "slow"\nurl = "{self.url}"\n'
        (home / "config.toml").write_text(server, "utf-8")

    def daemon(self) -> tuple[list[str], Path] | None:
        """Return `anchord run`."""
        return ["run", str(self.folder)], self.home / "anchord" / "run" / "anchord.sock"

    def index(self) -> Command:
        """Begin `anchord sync`."""
        return self.begin("sync")

    def words(self) -> Command | None:
        """Begin `anchord sync --words`."""
        return self.begin("sync", "--words")

    def search(self, word: str) -> Command:
        """Begin `anchord search`."""
        return self.begin("search", word, "--json")

    def find(self, word: str) -> Command:
        """Begin `anchord search` by words."""
        return self.begin("search", word, "--mode", "text", "--json")

    def status(self) -> Command:
        """Begin `anchord status`."""
        return self.begin("status")


class AnchordOnce(Anchord):
    """anchord without a daemon."""

    name = "anchord index"

    def daemon(self) -> None:
        """Return none."""

    def index(self) -> Command:
        """Begin `anchord index`."""
        return self.begin("index", str(self.folder))

    def words(self) -> None:
        """Return none: it ends when all texts are embedded."""


class MemSearch(Program):
    """memsearch, with Milvus Lite."""

    name = "memsearch"
    executable = "memsearch"
    install = "pipx install memsearch"

    def configure(self) -> None:
        """Do nothing: each command has its settings."""
        self._store = ("--milvus-uri", str(self.home / "milvus.db"))
        server = ("--provider", "openai", "--model", "slow", "--base-url", self.url)
        self._settings = (*server, "--api-key", "none", *self._store)

    def index(self) -> Command:
        """Begin `memsearch index`."""
        return self.begin("index", str(self.folder), *self._settings)

    def search(self, word: str) -> Command:
        """Begin `memsearch search`."""
        return self.begin("search", word, "--json-output", *self._settings)

    def status(self) -> Command:
        """Begin `memsearch stats`."""
        return self.begin("stats", *self._store)


class CocoIndexCode(Program):
    """cocoindex-code with its daemon. It searches by vectors alone."""

    name = "cocoindex-code"
    executable = "ccc"
    install = "pipx install cocoindex-code"
    version_option = "version"

    def configure(self) -> None:
        """Write the settings of the user and of the project."""
        home = self.home / "cocoindex"
        home.mkdir()
        model = "embedding:\n  provider: litellm\n  model: openai/slow\n"
        server = f"envs:\n  OPENAI_API_KEY: none\n  OPENAI_API_BASE: {self.url}\n"
        (home / "global_settings.yml").write_text(model + server, "utf-8")
        self.begin("init", "-f").end()

    def daemon(self) -> tuple[list[str], Path] | None:
        """Return `ccc run-daemon`, what its first command starts."""
        return ["run-daemon"], self.home / "cocoindex" / "daemon.sock"

    def data(self) -> Path:
        """Return the folder in the project."""
        return self.folder / ".cocoindex_code"

    def index(self) -> Command:
        """Begin `ccc index`."""
        return self.begin("index")

    def search(self, word: str) -> Command:
        """Begin `ccc search`."""
        return self.begin("search", word, "--json")

    def status(self) -> Command:
        """Begin `ccc status`."""
        return self.begin("status")


class Qmd(Program):
    """qmd, words alone: its models are files that it downloads."""

    name = "qmd (words)"
    executable = "qmd"
    install = "npm install --global @tobilu/qmd"
    embeds = False
    has_words_first = True

    def configure(self) -> None:
        """Do nothing: the first `index` adds the folder."""
        self._update = ["collection", "add", str(self.folder), "--name", "notes"]

    def index(self) -> Command:
        """Begin `qmd collection add`, later `qmd update`."""
        arguments, self._update = self._update, ["update"]
        return self.begin(*arguments)

    def search(self, word: str) -> Command:
        """Begin `qmd search`, by words."""
        return self.begin("search", word, "--json")

    def status(self) -> Command:
        """Begin `qmd status`."""
        return self.begin("status")


PROGRAMS: tuple[type[Program], ...] = (Anchord, AnchordOnce, MemSearch, CocoIndexCode, Qmd)
