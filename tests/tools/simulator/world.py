"""What is true outside the program: folders, files, the configuration, what was ever said, and what `forget` was called for.

The walk, the ignore rules and the configuration are the simulator's own, for the few forms that it writes itself.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.simulator.transcripts import WORDS, readable_words

LINE_WORDS = re.compile(r"line\d{6}")
_RULE_FILES = (".gitignore", ".anchordignore")
_DOCUMENTS = (".md", ".txt")
_TRANSCRIPTS = (".jsonl", ".json")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that the configuration names."""

    name: str
    folder: str
    """Relative to the base of the world."""
    kind: str
    on_delete: str = "keep"
    """What happens to the exchanges of a transcript that is deleted: "keep" or "delete"."""


FIRST_ROOTS = (Root("docs", "docs", "project"), Root("talks", "talks", "conversations"))
_SETTINGS = """[embedding]
provider = "hash"
[watch]
settle_ms = 20
max_wait_ms = 200
poll_s = 0.2
"""


@dataclass(slots=True)
class World:
    """A home, folders beside it, and what should be known of them."""

    base: Path
    roots: list[Root] = field(default_factory=lambda: list(FIRST_ROOTS))
    """What the configuration names, or would name if it were not lost."""
    has_config: bool = True
    """False while the configuration is lost or empty."""
    is_applied: bool = True
    """Whether the program has read the present configuration."""
    forgotten: set[Path] = field(default_factory=set)
    """Files that stay out of the index."""
    erased: set[str] = field(default_factory=set)
    """Words of transcripts that were forgotten: they may be known from a copy only."""
    doubtful: set[str] = field(default_factory=set)
    """Words that a forgotten transcript contained earlier, or of a `forget` that failed midway."""
    kept_out: dict[Path, set[str]] = field(default_factory=dict)
    """Forgotten transcript -> its words that are in a file with another name now."""
    archived: dict[str, set[str]] = field(default_factory=dict)
    """Word of an exchange -> folders of the roots under which the archive held it."""
    said_at: dict[Path, set[str]] = field(default_factory=dict)
    """Transcript -> every word that it ever contained, under this name or an earlier one."""
    was_read: dict[Path, set[str]] = field(default_factory=dict)
    """Transcript -> every word that the program has read in it, under this name."""
    read: dict[Path, bytes] = field(default_factory=dict)
    """Document or transcript -> its content when the index was last brought up to date."""
    indexed_roots: set[Root] = field(default_factory=set)
    """Roots whose own folder was there when the index was brought up to date."""
    read_under: dict[Path, Root] = field(default_factory=dict)
    """Transcript -> the root that it was read as a part of."""
    trashed: set[str] = field(default_factory=set)
    """Words whose transcript was deleted in a root that deletes: 30 days later they may be gone."""
    left_excluded: set[str] = field(default_factory=set)
    """Words whose transcript was deleted while the rules excluded it: they stay out of the index."""
    fileless: set[str] = field(default_factory=set)
    seen_gone: set[str] = field(default_factory=set)
    """Words of transcripts that were absent when the program walked their folder."""
    """Words that were archived when the archive was damaged, and that were not read since: which
    file contains them may be lost, so they stay in the index when that file is excluded."""
    attic: dict[Path, bytes] = field(default_factory=dict)
    """Former contents, for a restore."""
    damage: str = ""
    """What happened below `data/` and was not verified since: "lost", "flipped" or nothing."""
    moved_roots: dict[str, Path] = field(default_factory=dict)
    """Folder of a root that was replaced -> where its content is meanwhile."""
    last_rows: int = 0
    """Rows of the table after the command before."""
    last_roots: list[Root] = field(default_factory=list)
    """The roots that were configured then."""
    lines: int = 0
    exchanges: int = 0
    home_name: str = "home"

    @property
    def home(self) -> Path:
        """The ANCHORD_HOME."""
        return self.base / self.home_name

    @property
    def backups(self) -> Path:
        """Where `backup` writes."""
        return self.base / "backups"

    @property
    def data(self) -> Path:
        """Where the program keeps the index."""
        return self.home / "data"

    def make(self) -> None:
        """Create the folders and the configuration."""
        self.home.mkdir(mode=0o700)
        for folder in ("docs/inner", "talks/old", "elsewhere"):
            (self.base / folder).mkdir(parents=True)
        (self.base / "elsewhere" / "private.md").write_text(self.new_text(2))
        self.write_config()

    def write_config(self) -> None:
        """Write the configuration that should be."""
        tables = [
            f'[[root]]\npath = "{self.base / root.folder}"\nname = "{root.name}"\n'
            f'kind = "{root.kind}"\non_delete = "{root.on_delete}"\n'
            for root in self.roots
        ]
        (self.home / "config.toml").write_text(_SETTINGS + "".join(tables))
        self.has_config = True

    def new_text(self, lines: int) -> str:
        """Return a Markdown text whose lines exist nowhere else."""
        first = self.lines
        self.lines += lines
        # The word is the end of its line: whatever is cut off a text, a word goes.
        words = [f"what is written here is line{number:06}" for number in range(first, self.lines)]
        return f"# Head line{first:06}\n\n" + "\n\n".join(words) + "\n"

    def folder_of(self, root: Root) -> Path:
        """Return the absolute folder of a root."""
        return self.base / root.folder

    def is_usable(self, root: Root) -> bool:
        """Whether the root's folder is the one that was configured."""
        folder = self.folder_of(root)
        return root.folder not in self.moved_roots and folder.is_dir() and not folder.is_symlink()

    def documents(self, root: Root) -> dict[str, set[str]]:
        """Return the included documents of a project root: path -> words of its lines.

        Files with NUL bytes are left out: whether they are text is the program's to say.
        """
        found = {}
        for path in _walk(self.folder_of(root), self.forgotten, _DOCUMENTS):
            data = path.read_bytes()
            if data.strip() and b"\0" not in data:
                words = set(LINE_WORDS.findall(data.decode()))
                found[str(path.relative_to(self.folder_of(root)))] = words
        return found

    def transcripts(self, root: Root) -> dict[Path, set[str]]:
        """Return the included transcripts of a root: path -> words that can be read there."""
        walked = _walk(self.folder_of(root), self.forgotten, _TRANSCRIPTS)
        return {path: readable_words(path) for path in walked}

    def files_below(self, kind: str) -> list[Path]:
        """Return every document or transcript below the folders of the configured roots, sorted."""
        suffixes = _TRANSCRIPTS if kind == "conversations" else _DOCUMENTS
        folder = self.base / ("talks" if kind == "conversations" else "docs")
        found = [
            Path(at) / name
            for at, _, names in os.walk(folder)
            for name in names
            if name.endswith(suffixes) and not name.startswith(".")
        ]
        return sorted(found)

    def note_what_is_said(self) -> None:
        """Remember which words each transcript contains now, torn or not."""
        for path in self.files_below("conversations"):
            self.said_at.setdefault(path, set()).update(words_of(path))
        for path, said in self.said_at.items():
            if not path.exists() and self.is_excluded(path):
                self.left_excluded |= said

    def note_what_is_read(self) -> None:
        """Remember what each file contained when the program has just read it."""
        self.read = {path: data for path, data in self.read.items() if path.exists()}
        for path in self.files_below("project"):
            self.read[path] = path.read_bytes()
        # The identity of a root's folder is forgotten with the root.
        names = {root.name for root in self.roots}
        self.indexed_roots = {root for root in self.indexed_roots if root.name in names}
        self.indexed_roots.update(filter(self.is_usable, self.roots))
        for path, said in self.said_at.items():
            if not path.exists():
                self.seen_gone |= said
        for root in self.roots:
            if root.kind == "conversations" and self.is_usable(root):
                for path, words in self.transcripts(root).items():
                    self.read[path] = path.read_bytes()
                    self.was_read.setdefault(path, set()).update(words)
                    self.read_under[path] = root
                    self.fileless -= words

    def note_a_rename(self, old: Path, new: Path) -> None:
        """Remember that a transcript is another one's continuation."""
        lineage = self.said_at.get(old, set())
        self.note_a_copy(old)
        self.said_at.setdefault(new, set()).update(lineage)

    def note_a_copy(self, path: Path) -> None:
        """Remember that another name does not bring back what was forgotten."""
        if path in self.forgotten:
            self.kept_out.setdefault(path, set()).update(self.said_at.get(path, ()))

    def note_undo(self, path: Path) -> None:
        """Remember that a forgotten file may be indexed again."""
        self.forgotten.discard(path)
        let_in = self.said_at.get(path, set())
        self.erased -= let_in
        self.doubtful |= let_in

    def note_unread_copies(self, path: Path) -> None:
        """Remember that what unread copies of a forgotten transcript contain stays out.

        What was read of them makes them files of their own, and `forget` leaves those alone.
        """
        words = readable_words(path)
        for copy in self.files_below("conversations"):
            if copy != path and self.read.get(copy) != copy.read_bytes():
                self.kept_out.setdefault(path, set()).update(words & readable_words(copy))

    @property
    def stays_forgotten(self) -> set[str]:
        """Words of forgotten transcripts that were renamed or copied afterwards."""
        kept_out = (words for path, words in self.kept_out.items() if path in self.forgotten)
        return set().union(*kept_out)

    @property
    def may_be_out_of_the_index(self) -> set[str]:
        """Words of exchanges that need have no rows if no included transcript contains them."""
        said = (words for path, words in self.said_at.items() if self.is_excluded(path))
        return self.erased.union(self.doubtful, self.trashed, self.left_excluded, *said)

    def is_excluded(self, path: Path) -> bool:
        """Whether the rules of every root that a transcript is in exclude it."""
        folders = [self.folder_of(root) for root in self.roots if root.kind == "conversations"]
        around = [folder for folder in folders if path.is_relative_to(folder)]
        return bool(around) and all(_is_ignored(path, folder) for folder in around)

    def only_in_excluded(self, words: set[str]) -> set[str]:
        """Return those of some words that only transcripts ever contained that are excluded now.

        A deleted transcript counts under the name that it had.
        """
        return {
            word
            for word in words - self.fileless
            if (paths := [path for path, said in self.said_at.items() if word in said])
            and all(map(self.is_excluded, paths))
        }

    def sourceless_words(self) -> set[str]:
        """Return the words that are in no transcript any more, because one was deleted.

        What was only cut off a transcript after the program read it has a source. If another
        transcript contained it too and was deleted, the last one that contained it may be that.
        """
        cut_off, deleted = set[str](), set[str]()
        for path, said in self.said_at.items():
            if path.exists():
                cut_off |= self.was_read.get(path, set())
            else:
                deleted |= said
        # A file that was gone when the program looked counts as deleted, whatever comes back.
        return self.archived.keys() - self.present_words() - (cut_off - deleted - self.seen_gone)

    def present_words(self) -> set[str]:
        """Return the words that can be read in the transcripts that exist."""
        existing = filter(Path.exists, self.said_at)
        return set().union(*map(readable_words, existing))

    def words_below(self, root: Root) -> set[str]:
        """Return the words that transcripts have contained which are in a root's folder now."""
        folder = self.folder_of(root)
        below = (path for path in self.said_at if path.exists() and path.is_relative_to(folder))
        return set().union(*(self.said_at[path] for path in below))

    def keep(self, path: Path) -> None:
        """Remember a file's content for a later restore."""
        self.attic[path] = path.read_bytes()


def words_of(path: Path) -> set[str]:
    """Return the words that a transcript's bytes contain, torn or not."""
    return set(WORDS.findall(path.read_bytes().decode("utf-8", "replace")))


def _walk(folder: Path, forgotten: set[Path], suffixes: tuple[str, ...]) -> Iterator[Path]:
    yield from _walk_inside(folder, (), forgotten, suffixes)


def _walk_inside(
    folder: Path,
    rules: tuple[tuple[Path, str], ...],
    forgotten: set[Path],
    suffixes: tuple[str, ...],
) -> Iterator[Path]:
    rules = (*rules, *_rules_of(folder))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or path in forgotten:
            continue
        if any(_ignores(pattern, entry.name, is_folder=is_folder) for _, pattern in rules):
            continue
        if is_folder:
            yield from _walk_inside(path, rules, forgotten, suffixes)
        elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode) and path.suffix in suffixes:
            yield path


def _is_ignored(path: Path, root: Path) -> bool:
    """Whether the rules of a root and of the folders in it match a path, or a folder above it."""
    rules: list[tuple[Path, str]] = []
    at = root
    for part in path.relative_to(root).parts:
        rules += _rules_of(at)
        at /= part
        if any(_ignores(pattern, part, is_folder=at != path) for _, pattern in rules):
            return True
    return False


def _rules_of(folder: Path) -> list[tuple[Path, str]]:
    found = []
    for name in _RULE_FILES:
        file = folder / name
        if file.is_file():
            found += [(folder, line) for line in file.read_text().split("\n") if line]
    return found


def _ignores(pattern: str, name: str, *, is_folder: bool) -> bool:
    """Whether one of the three forms of patterns that are written matches: `x/`, `*.x` or `x`."""
    if pattern.endswith("/"):
        return is_folder and name == pattern[:-1]
    if pattern.startswith("*"):
        return name.endswith(pattern[1:])
    return name == pattern
