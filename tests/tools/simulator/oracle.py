"""Compares the program's files and statements with the world, after each command. Shares no code with the program.

The archive is read with sqlite3, the table with lancedb, the folders with `world.World`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import lancedb
from tools.simulator.transcripts import WORDS
from tools.simulator.world import LINE_WORDS, Root, World, words_of

BRINGS_UP_TO_DATE = frozenset({"index", "reindex", "rebuild", "sync"})
TRASH_S = 30 * 24 * 3600
"""How long the trash keeps exchanges."""
_MISSING_ROWS = frozenset({"row-missing-conversation", "row-missing-detached"})
_UNREAD_RULES = "nothing in its folder is indexed"
_SHOWN = 4


class Finding(NamedTuple):
    """A difference between what is and what should be, or what was said."""

    kind: str
    what: str


@dataclass(slots=True)
class Answer:
    """What a command answered."""

    command: str
    """The first word, such as `index`."""
    code: int
    """Its exit code; -9 if its process was ended on purpose, -1 if it did not answer in time."""
    json: Any = None
    error: str = ""
    arguments: tuple[str, ...] = ()
    was_faulty: bool = False
    """Whether a fault was armed."""
    ahead_s: int = 0
    """So far the program's clock ran ahead."""


Rows = Mapping[tuple[str, str], set[str]]
"""(root, path) -> words of its rows."""


def judge(world: World, answer: Answer) -> list[Finding]:
    """Return what is wrong after a command, and take over what is archived now."""
    findings = [*_manners(answer), *_archive_losses(world, answer)]
    rows, error = read_rows(world.data)
    if rows is None:
        if answer.code == 0 and answer.command in BRINGS_UP_TO_DATE and world.damage != "flipped":
            findings.append(Finding("success-over-unreadable-table", error))
        return findings
    # A root that left the configuration takes its rows with it, whatever the command says else.
    is_same = not world.has_config or world.roots == world.last_roots
    if answer.code == 2 and len(rows) < world.last_rows and is_same and not world.damage:
        result = f"{world.last_rows} rows before, {len(rows)} after: {answer.error.strip()[:200]}"
        findings.append(Finding("refused-but-deleted", f"{answer.command}: {result}"))
    world.last_rows, world.last_roots = len(rows), list(world.roots)
    findings += _statements(world, answer, rows)
    return findings


def _manners(answer: Answer) -> Iterator[Finding]:
    if answer.code == -1:
        yield Finding("hang", f"{answer.command} did not answer in time")
    if "Traceback" in answer.error:
        last = answer.error.strip().split("\n")[-1][:300]
        kind = "traceback-under-fault" if answer.was_faulty else "traceback"
        yield Finding(f"{kind}/{last.partition(':')[0]}", f"{answer.command}: {last}")


# What is there


def read_rows(data: Path) -> tuple[list[dict[str, str]] | None, str]:
    """Return the rows of the table, none if it does not exist; None and the reason if unreadable.

    A table whose files are the same as at the call before is not read again.
    """
    folder = data / "lance"
    if not (folder / "chunks.lance").is_dir():
        return [], ""
    return _read_table(folder, _state_of_files(folder / "chunks.lance"))


def _state_of_files(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    found = []
    for at, _, names in os.walk(folder):
        for name in names:
            status = os.stat(os.path.join(at, name))
            found.append(
                (os.path.join(at, name), status.st_ino, status.st_size, status.st_mtime_ns)
            )
    return tuple(sorted(found))


@lru_cache(maxsize=4)
def _read_table(
    folder: Path, state: tuple[tuple[str, int, int, int], ...]
) -> tuple[list[dict[str, str]] | None, str]:
    del state
    try:
        table = lancedb.connect(str(folder)).open_table("chunks").to_arrow()
    except Exception as error:  # noqa: BLE001 - Lance also panics at damaged pages
        return None, str(error)[:300]
    rows: list[dict[str, str]] = table.select(
        ["id", "root", "path", "text", "header_path"]
    ).to_pylist()
    return rows, ""


def archived_words(data: Path) -> dict[str, set[str]]:
    """Return the words of every exchange that can be read, row by row: word -> names of roots."""
    file = data / "conversations.sqlite"
    found: dict[str, set[str]] = {}
    if not file.exists():
        return found
    with suppress(sqlite3.Error), closing(_connect(file)) as db:
        highest = db.execute("SELECT max(id) FROM exchanges").fetchone()[0] or 0
        for number in range(1, highest + 1):
            with suppress(sqlite3.Error, zlib.error):
                row = db.execute(
                    "SELECT root, content FROM exchanges WHERE id=?", (number,)
                ).fetchone()
                text = zlib.decompress(row[1]).decode() if row else ""
                for word in WORDS.findall(text):
                    found.setdefault(word, set()).add(row[0])
    return found


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=10)


def words_on_disk(data: Path, words: set[str]) -> dict[str, str]:
    """Return the files below a folder that contain one of these words as bytes: word -> file."""
    pattern = re.compile("|".join(sorted(words)).encode())
    found = {}
    for file in sorted(data.rglob("*")):
        is_set_aside = "damaged" in file.relative_to(data).parts
        if file.is_file() and not is_set_aside and (hit := pattern.search(file.read_bytes())):
            found[hit[0].decode()] = str(file.relative_to(data))
    return found


def _words_by_file(rows: list[dict[str, str]]) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        text = f"{row['header_path']}\n{row['text']}"
        words = found.setdefault((row["root"], row["path"]), set())
        words.update(LINE_WORDS.findall(text), WORDS.findall(text))
    return found


# The archive


def _archive_losses(world: World, answer: Answer) -> Iterator[Finding]:
    """Compare with all earlier content of the archive, and record the present content."""
    now = archived_words(world.data)
    lost = world.archived.keys() - now.keys() - world.erased - world.doubtful
    if answer.ahead_s >= TRASH_S:
        expired = lost & world.trashed
        lost -= expired
        for word in expired:
            del world.archived[word]
    if lost:
        yield Finding("archive-lost", f"after `{answer.command}` ({answer.code}): {_some(lost)}")
        for word in lost:
            del world.archived[word]
    # Other commands do not move what is archived to the folders that are configured now.
    is_moved = answer.code == 0 and answer.command in BRINGS_UP_TO_DATE
    folder_by_name = {root.name: root.folder for root in world.roots} if is_moved else {}
    for word, names in now.items():
        folders = {folder_by_name[name] for name in names if name in folder_by_name}
        world.archived.setdefault(word, set()).update(folders)
    _note_the_trash(world)


def _note_the_trash(world: World) -> None:
    """Note what may be in the trash: its transcript is gone, from a root that deletes.

    What is in a root whose folder is away seems to be gone, and is not deleted.
    """
    away = world.moved_roots.keys()
    sourceless = {word for word in world.sourceless_words() if not world.archived[word] & away}
    deleting = [root for root in world.roots if root.on_delete == "delete"]
    folders = {root.folder for root in deleting}
    # A file that came back cut off brings only those exchanges back that can be read in it.
    world.trashed -= world.present_words()
    world.trashed |= {word for word in sourceless if world.archived[word] & folders}
    # A transcript that left the folder is a deletion to a root that does not see where it is now.
    for root in deleting:
        left = {word for word in world.archived if root.folder in world.archived[word]}
        world.trashed |= left - world.words_below(root) if root.folder not in away else set()


def rebase_archive(world: World) -> None:
    """Take what is readable now as all that the archive ever held: something else damaged it."""
    now = archived_words(world.data)
    for word in world.archived.keys() - now.keys():
        del world.archived[word]


# Statements


def _statements(world: World, answer: Answer, rows: list[dict[str, str]]) -> Iterator[Finding]:
    is_known = world.has_config and world.is_applied
    if answer.code not in (0, 1) or not is_known or not isinstance(answer.json, dict):
        return
    by_file = _words_by_file(rows)
    is_read = answer.command in {*BRINGS_UP_TO_DATE, "verify"}
    if is_read and answer.code == 0 and not answer.was_faulty:
        world.note_what_is_read()
    if answer.command in BRINGS_UP_TO_DATE and answer.code == 0:
        if world.damage != "flipped":
            yield from _table_differences(world, by_file, answer)
        yield from _count_differences(answer, rows)
    elif answer.command == "verify":
        yield from _verify_statement(world, by_file, answer)
    elif answer.command == "search" and answer.code == 0:
        yield from _search_statement(world, by_file, answer)
    elif answer.command == "forget" and answer.code == 0:
        yield from _forget_statement(world, by_file, answer)


def _verify_statement(world: World, by_file: Rows, answer: Answer) -> Iterator[Finding]:
    if answer.code == 0:
        false = list(_table_differences(world, by_file, answer))
        world.damage = "" if not false else world.damage
        yield from (Finding(f"says-equal/{kind}", what) for kind, what in false)
    elif not (world.damage or answer.was_faulty or world.moved_roots):
        listed = [each for each in answer.json["differences"] if not _is_of_unread(world, each)]
        if listed and not list(_table_differences(world, by_file, answer)):
            yield Finding("says-different", str(listed)[:300])


def _is_of_unread(world: World, difference: dict[str, str]) -> bool:
    """Whether a difference is one of a file that has changed since it was read.

    A transcript that was torn, or a copy of another, differs although the table is right: `verify`
    compares what the archive has recorded of each transcript. So does a document with NUL bytes:
    `World.documents` leaves it out. And a transcript has another name in a root whose folder was
    configured anew.
    """
    for root in world.roots:
        path = world.folder_of(root) / difference["path"]
        if root.name == difference["root"] and path.is_file():
            data = path.read_bytes()
            is_archived = difference["kind"] in {"archived", "unarchived"}
            is_damaged = root.kind == "project" and b"\0" in data
            is_unread = world.read.get(path) != data
            is_renamed = is_archived and world.read_under.get(path, root).folder != root.folder
            return is_renamed or ((is_archived or is_damaged) and is_unread)
    return False


def _table_differences(world: World, by_file: Rows, answer: Answer) -> Iterator[Finding]:
    """Compare the whole table with all files; skip what the answer says is held or away."""
    spared = _spared_roots(answer)
    problems = {problem["path"] for problem in answer.json.get("problems", ())}
    names = {root.name for root in world.roots}
    for (name, path), words in sorted(by_file.items()):
        if name not in names:
            yield Finding("row-of-absent-root", f"{name}: {path}: {_some(words)}")
        elif path.startswith("/") and (gone := words & world.erased):
            yield from _rows_of_forgotten(world, gone, path)
    for root in world.roots:
        of_root = {path: words for (name, path), words in by_file.items() if name == root.name}
        if not world.is_usable(root):
            yield from _replaced_root_rows(world, root, of_root)
        elif root.kind == "project":
            found = _document_differences(world, root, of_root, problems)
            # What became excluded is not missing: it leaves at once, also from a root that is held.
            only = ("row-of-excluded",) if root.name in spared else ()
            yield from (each for each in found if not only or each.kind in only)
        elif root.name not in spared:
            found = _conversation_differences(world, root, of_root)
            may_miss = _has_unread_rules(world, root, answer)
            yield from (each for each in found if not (may_miss and each.kind in _MISSING_ROWS))


def _has_unread_rules(world: World, root: Root, answer: Answer) -> bool:
    """Return whether nothing of a folder is indexed because its ignore file cannot be read."""
    folder = str(world.folder_of(root))
    return any(
        problem["path"].startswith(f"{folder}/") and _UNREAD_RULES in problem["reason"]
        for problem in answer.json.get("problems", ())
    )


def _rows_of_forgotten(world: World, words: set[str], path: str) -> Iterator[Finding]:
    """Rows of a forgotten transcript are wrong unless another transcript says the same."""
    if only_here := words - _words_to_read(world):
        yield Finding("row-of-forgotten", f"{path}: {_some(only_here)}")


def _words_to_read(world: World) -> set[str]:
    """Return the words of all transcripts that are not forgotten, of torn ones too.

    Of a torn file the program reads more than the oracle can.
    """
    return {
        word
        for root in world.roots
        if root.kind == "conversations"
        for path, readable in world.transcripts(root).items()
        for word in {*readable, *words_of(path)}
    }


def _spared_roots(answer: Answer) -> set[str]:
    """Return the roots of which an answer says that they are held or away."""
    # A command says `"docs": 60 files disappeared`, with the name quoted.
    away = {str(text).partition(":")[0].strip('"') for text in answer.json.get("away", ())}
    return away | set(answer.json.get("held") or {})


def _replaced_root_rows(
    world: World, root: Root, of_root: Mapping[str, set[str]]
) -> Iterator[Finding]:
    private = set(LINE_WORDS.findall((world.base / "elsewhere" / "private.md").read_text()))
    for path, words in of_root.items():
        if words & private:
            yield Finding("replaced-root-followed", f"{root.name}: {path}: {_some(words)}")


def _document_differences(
    world: World, root: Root, of_root: Mapping[str, set[str]], problems: set[str]
) -> Iterator[Finding]:
    files = world.documents(root)
    for path, words in sorted(files.items()):
        absolute = str(world.folder_of(root) / path)
        missing = words - of_root.get(path, set())
        if missing and absolute not in problems:
            yield Finding("row-missing", f"{root.name}: {path}: {_some(missing)}")
        stale = of_root.get(path, set()) - words
        if stale and absolute not in problems:
            yield Finding("row-stale", f"{root.name}: {path}: {_some(stale)}")
    for path in sorted(of_root.keys() - files.keys()):
        file = world.folder_of(root) / path
        if file.exists() and b"\0" in file.read_bytes():
            continue
        kind = "row-of-excluded" if file.exists() else "row-of-absent"
        yield Finding(kind, f"{root.name}: {path}")


def _conversation_differences(
    world: World, root: Root, of_root: Mapping[str, set[str]]
) -> Iterator[Finding]:
    held = set().union(*of_root.values()) if of_root else set()
    present = set().union(*world.transcripts(root).values()) - world.stays_forgotten
    if stale := world.only_in_excluded(held):
        yield Finding("row-of-excluded-talk", f"{root.name}: {_some(stale)}")
    if missing := present - world.archived.keys():
        yield Finding("archive-missing", f"{root.name}: {_some(missing)}")
    if missing := (present & world.archived.keys()) - held:
        yield Finding("row-missing-conversation", f"{root.name}: {_some(missing)}")
    said = {word for word, folders in world.archived.items() if root.folder in folders}
    if missing := said - held - present - world.may_be_out_of_the_index:
        yield Finding("row-missing-detached", f"{root.name}: {_some(missing)}")


def _count_differences(answer: Answer, rows: list[dict[str, str]]) -> Iterator[Finding]:
    said = answer.json.get("chunks")
    if said is not None and said != len(rows):
        yield Finding("counts-differ", f"{answer.command}: {said} chunks, {len(rows)} rows")


def _search_statement(world: World, by_file: Rows, answer: Answer) -> Iterator[Finding]:
    """Compare what a search for one word found with the table."""
    word = answer.arguments[0]
    holders = {key for key, words in by_file.items() if word in words}
    hits = [hit for group in answer.json["groups"] for hit in group if word in str(hit.get("text"))]
    if holders and not hits and not world.damage:
        yield Finding("nothing-found", f"{word} is in the rows of {min(holders)}")


def _forget_statement(world: World, by_file: Rows, answer: Answer) -> Iterator[Finding]:
    if answer.json.get("root"):
        return  # `--undo`, which removes nothing.
    removed = (answer.json.get("files"), answer.json.get("rows"))
    if removed == (0, 0) and not answer.json.get("exchanges"):
        yield Finding("forget-nothing-exit-0", answer.arguments[0])
    words = set(answer.arguments[1:]) - _words_to_read(world)
    shown = {key for key, known in by_file.items() if known & words}
    if shown:
        yield Finding("forgotten-in-table", f"{min(shown)}: {answer.arguments[0]}")
    if words and (on_disk := words_on_disk(world.data, words)):
        yield Finding("forgotten-on-disk", f"{answer.arguments[0]}: {on_disk}")
    if kept := words & archived_words(world.data).keys():
        yield Finding("forgotten-in-archive", f"{answer.arguments[0]}: {_some(kept)}")


def _some(words: set[str]) -> str:
    shown = sorted(words)[:_SHOWN]
    return f"{len(words)} words ({', '.join(shown)})"
