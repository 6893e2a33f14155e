"""The rule pack: forms of tokens by provider, read from `rules.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRule:
    """A provider's token.

    Attributes:
        id: Unique name.
        kind: Kind of secret, as in `[REDACTED:kind]`.
        prefixes: How such a token can begin; empty if its beginning is random.
        anchor: A text inside each such token, if it has no prefix; else "".
        pattern: The whole token.
        example: A token with `{36}` for 36 random characters.
        look_alike: A text that is no token.
        source: URL that documents the form.
        checked: What was opened to compare the form; "" if nothing was.
    """

    id: str
    kind: str
    prefixes: tuple[str, ...]
    anchor: str
    pattern: re.Pattern[str]
    example: str
    look_alike: str
    source: str
    checked: str


@dataclass(frozen=True, slots=True)
class RulePack:
    """All rules, and the version that is part of the recipe of what is stored."""

    version: str
    rules: Sequence[TokenRule]


def _read_rules() -> str:
    return files(__package__).joinpath("rules.toml").read_text("utf-8")


@cache
def read_rule_pack_version() -> str:
    """Return the version of the rule pack without its rules, whose patterns take 0.1 CPU seconds.

    Every start needs the version, and none needs the rules until a text is read.
    """
    before_rules, _, _ = _read_rules().partition("[[rule]]")
    version: str = tomllib.loads(before_rules)["version"]
    return version


@cache
def load_rule_pack() -> RulePack:
    """Return the rule pack of this version of anchord."""
    pack = tomllib.loads(_read_rules())
    rules = tuple(
        TokenRule(
            id=fields["id"],
            kind=fields["kind"],
            prefixes=tuple(fields.get("prefixes", ())),
            anchor=fields.get("anchor", ""),
            pattern=re.compile(fields["pattern"]),
            example=fields["example"],
            look_alike=fields["look_alike"],
            source=fields["source"],
            checked=fields["checked"],
        )
        for fields in pack["rule"]
    )
    return RulePack(pack["version"], rules)
