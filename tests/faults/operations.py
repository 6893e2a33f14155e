"""All operations on a tree, by name and weight, and the drawing of one."""

from __future__ import annotations

from random import Random

from faults import moves, saves
from faults.saves import Operation
from faults.tree import NotNow, Tree

OPERATIONS: dict[str, tuple[int, Operation]] = {
    "create": (14, saves.create),
    "write in place": (16, saves.write_in_place),
    "save by rename": (8, saves.save_by_rename),
    "save with backup": (6, saves.save_with_backup),
    "save unnamed": (2, saves.save_unnamed),
    "truncate and rewrite": (4, saves.truncate_and_rewrite),
    "append": (5, saves.append),
    "same size, same time": (5, saves.same_size_same_time),
    "mmap": (2, saves.map_and_write),
    "touch": (3, saves.touch),
    "chmod": (2, saves.change_mode),
    "save unchanged": (3, saves.save_unchanged),
    "undo": (6, saves.undo),
    "bad bytes": (3, saves.write_bad_bytes),
    "grow and shrink": (2, saves.grow),
    "hard link outside": (2, saves.write_through_link),
    "large": (1, saves.write_large),
    "delete": (6, moves.delete),
    "rename": (6, moves.rename),
    "rename over": (3, moves.rename_over),
    "rename case": (2, moves.rename_case),
    "rename folder": (4, moves.rename_folder),
    "chain": (3, moves.chain),
    "exchange": (4, moves.exchange),
    "file to folder": (3, moves.file_to_folder),
    "folder to file": (2, moves.folder_to_file),
    "mkdir -p": (3, moves.make_folders),
    "cp -r": (3, moves.copy_folder),
    "unpack": (2, moves.unpack),
    "rm -rf": (3, moves.remove_folder),
    "move out or in": (4, moves.move_out_and_in),
    "rules": (6, moves.change_rules),
    "link": (4, moves.make_link),
    "pipe": (1, moves.make_pipe),
    "drop oddity": (3, moves.drop_oddity),
    "odd name": (5, moves.odd_name),
    "copy": (4, moves.copy),
    "hard link inside": (3, moves.link_inside),
    "switch branch": (4, moves.switch_branch),
}
"""Name -> its weight in the draw, and its function."""

_NAMES = list(OPERATIONS)
_WEIGHTS = [weight for weight, _ in OPERATIONS.values()]
_TRIES = 20


def operate(tree: Tree, rng: Random, name: str = "") -> str:
    """Run an operation, or draw one that is possible now; return what was done, "" if nothing was."""
    for _ in range(1 if name else _TRIES):
        chosen = name or rng.choices(_NAMES, _WEIGHTS)[0]
        try:
            return OPERATIONS[chosen][1](tree, rng)
        except NotNow:
            continue
    return ""
