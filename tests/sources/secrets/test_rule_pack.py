"""Every rule of the pack finds its example, leaves its look-alike, and names its source."""

from __future__ import annotations

import pytest
from sources.secrets.examples import filled

from anchord.sources.secrets.redactor import redact, rules_version
from anchord.sources.secrets.rule_pack import TokenRule, load_rule_pack

RULES = load_rule_pack().rules


def by_id(rule: TokenRule) -> str:
    return rule.id


@pytest.mark.parametrize("rule", RULES, ids=by_id)
def test_a_rule_finds_its_example_in_a_sentence(rule: TokenRule) -> None:
    example = filled(rule.example)
    redacted = redact(f"Use {example} for it.")
    assert redacted.counts_by_kind[rule.kind] == 1
    lines = "\n" * example.count("\n")
    assert redacted.text == f"Use [REDACTED:{rule.kind}]{lines} for it."


@pytest.mark.parametrize("rule", RULES, ids=by_id)
def test_a_rule_leaves_its_look_alike(rule: TokenRule) -> None:
    text = f"Use {rule.look_alike} for it."
    assert redact(text).text == text


@pytest.mark.parametrize("rule", RULES, ids=by_id)
def test_a_token_is_found_wherever_it_begins(rule: TokenRule) -> None:
    example = filled(rule.example)
    core = example[len(example) // 2 :][:12]
    for text in (
        example,
        f'"{example}"',
        f"a={example};",
        f"x\n{example}\ny",
        f'{{"a":"{example}"}}',
    ):
        assert core not in redact(text).text


def test_a_rule_has_an_id_of_its_own_and_a_source() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert [rule.id for rule in RULES if not rule.source.startswith("https://")] == []
    assert [rule.id for rule in RULES if bool(rule.prefixes) == bool(rule.anchor)] == []


def test_a_rule_says_what_its_form_was_compared_with() -> None:
    known = ("gitleaks ", "trufflehog ", "detect-secrets ", "https://")
    assert [rule.id for rule in RULES if rule.checked and not rule.checked.startswith(known)] == []
    assert sum(bool(rule.checked) for rule in RULES) >= 127


def test_the_version_of_the_pack_is_part_of_the_name_of_the_rules() -> None:
    assert rules_version().endswith(f" {load_rule_pack().version}")
