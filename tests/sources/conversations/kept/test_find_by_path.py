"""Kept transcripts are found by their path below any folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from anchord.sources.conversations.kept.store import Place
from anchord.sources.conversations.kept.writer import KeptTranscriptsWriter
from anchord.sources.files.file_status import fingerprint_of


def test_only_files_with_a_version_are_found(tmp_path: Path) -> None:
    kept_here, noted, refused = (Place(f"/{name}", "s.jsonl") for name in "abc")
    file = tmp_path / "s.jsonl"
    file.write_bytes(b"{}\n")
    with closing(KeptTranscriptsWriter(tmp_path / "transcripts.sqlite")) as kept:
        kept.note(noted, fingerprint_of(file.stat()))
        kept.refuse([refused])
        assert kept.find_by_path("s.jsonl") == []
        with file.open("rb") as stream:
            kept.save(kept_here, fingerprint_of(file.stat()), stream, 1)
        assert kept.find_by_path("s.jsonl") == [kept_here]
