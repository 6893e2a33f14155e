"""What the index modules return, as answers."""

from __future__ import annotations

from anchord.core.types import RootedPath
from anchord.daemon.answers import verify_answer
from anchord.index.integrity.verify import Difference, DifferenceKind, VerifyResult
from anchord.ipc.messages.upkeep import DifferenceAnswer


def test_a_verification_lists_a_thousand_differences_at_most() -> None:
    origin = RootedPath("r", "odd\udcff.md")
    difference = Difference(DifferenceKind.EXTRA, origin, "c")
    answer = verify_answer(
        VerifyResult(
            file_count=1,
            chunk_count=2,
            vectors_checked=3,
            differences=(difference,) * 1_500,
            changing_files=(origin,),
        )
    )
    assert (answer.ok, answer.files, answer.chunks, answer.vectors_checked) == (False, 1, 2, 3)
    assert (len(answer.differences), answer.differences_total) == (1_000, 1_500)
    assert answer.differences[0] == DifferenceAnswer(
        kind="extra", root="r", path="odd\\xff.md", chunk_id="c"
    )
    assert answer.changing == ("r:odd\\xff.md",)


def test_a_verification_without_differences_is_ok() -> None:
    result = VerifyResult(file_count=0, chunk_count=0, vectors_checked=0, differences=())
    assert verify_answer(result).ok is True
