"""A lazy pattern does what the compiled one does, and is compiled when it is first used."""

from __future__ import annotations

import re

import pytest

from anchord.core.lazy_re import lazy_re


def test_it_has_the_methods_and_attributes_of_a_pattern() -> None:
    lazy, compiled = (
        lazy_re(r"(?P<word>[a-z]+)\d", re.IGNORECASE),
        re.compile(r"(?P<word>[a-z]+)\d", re.IGNORECASE),
    )
    assert lazy.findall("Ab1 c2") == compiled.findall("Ab1 c2")
    assert [found["word"] for found in lazy.finditer("Ab1 c2")] == ["Ab", "c"]
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (
        compiled.pattern,
        compiled.flags,
        compiled.groupindex,
    )
    assert lazy_re(rb"\d").sub(b"", b"a1") == b"a"


def test_a_wrong_pattern_fails_at_its_first_use() -> None:
    wrong = lazy_re("(")
    with pytest.raises(re.error):
        wrong.search("")
    with pytest.raises(AttributeError):
        lazy_re("a").nothing  # type: ignore[attr-defined] # noqa: B018 - that is the test
