"""The time to look for secrets: ms of CPU for 1 MB, and whether it grows with the text or faster.

    python tests/tools/benchmarks/bench_secrets.py [--chars 40000] [WORD ...]

Each text repeats one part: the beginning of a rule's example, the example with a wrong end, or words that stand
beside secrets. Printed are the texts whose time more than triples when the text doubles (4 times would be
quadratic), the slowest, and the time for this repository's own code and pages. With a WORD, only parts that contain it.
Times are the best of three.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from sources.secrets.examples import filled

from anchord.sources.secrets import commands, prose
from anchord.sources.secrets.redactor import find_secrets
from anchord.sources.secrets.rule_pack import load_rule_pack

RUNS = 3
MOST_TIMES = 3
SLOWEST = 10
REPOSITORY = Path(__file__).parents[3]
OPTIONS = ((" -p", "mysql"), (" -a", "redis-cli"), (" -k", "openssl"))
BESIDE = (
    "password", "password: ", "password is ", "the password for a b c ", "password | ", 'type="password" ',
    "url,username,password\n", "password,", "echo a | sudo ", "seed phrase: word ", "recovery codes: ab12-cd34 ",
    "recovery codes:\n\n", "`a` as ", "key=", "key='", 'token="a', 'token=b"', "bytes(", "</key> <string>", 'accounts: ["',
    "://a:b", "://" + "a" * 40, "cookie: ", "bearer ", "basic ", "machine a login b password ", ":443:a:b:", ":443",
    "-----BEGIN PRIVATE KEY-----", "kind: Secret\ndata:\n  a: b\n", "encryptedData: token: AgA" + "b" * 90 + "\n",
    "%41", "\\u0041", "&amp;", '"a" + ', '"a" "a" ', '"a"\n', "a" * 40 + " ", "aA0" * 20 + ".", "パスワードは", "密码 ",
)  # fmt: skip


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--chars", type=int, default=40_000, help="length of each text")
    parser.add_argument("words", nargs="*", help="only parts that contain one of these")
    arguments = parser.parse_args()
    times = []
    for name, part in parts():
        if arguments.words and not any(word in part for word in arguments.words):
            continue
        text = part * (arguments.chars // len(part))
        whole, half = seconds(text), seconds(text[: len(text) // 2])
        times.append((whole * 1e9 / len(text), whole / half, name, part))
    times.sort(reverse=True)
    grows = [each for each in times if each[1] > MOST_TIMES]
    print(f"{len(times)} texts; time more than triples when the text doubles: {len(grows)}")
    show(grows)
    print("slowest:")
    show(times[:SLOWEST])
    own = "".join(
        path.read_text("utf-8")
        for folder, form in (("src", "*.py"), ("docs", "*.md"))
        for path in sorted((REPOSITORY / folder).rglob(form))
    )
    print(
        f"own code and pages, {len(own) / 1e6:.1f} MB: {seconds(own) * 1e9 / len(own):.0f} ms per MB"
    )


def parts() -> list[tuple[str, str]]:
    """Return what the texts repeat, each with its name."""
    words = [word for word, _ in commands._WORDS]
    words += [f"{tool} x{option} " for option, tool in OPTIONS]
    words += [*prose._NAMES, *prose._SEED_NAMES, *prose._CODE_NAMES, *BESIDE]
    found = [("word", word) for word in words]
    for rule in load_rule_pack().rules:
        example = filled(rule.example)
        found += [(rule.id, example[: max(4, len(example) // 3)]), (rule.id, f"{example[:-1]}!")]
        found += [(rule.id, prefix) for prefix in rule.prefixes]
    return found


def seconds(text: str) -> float:
    """Return the CPU time to look for secrets in a text: the best of some runs."""
    times = []
    for _ in range(RUNS):
        began = time.process_time()
        find_secrets(text)
        times.append(time.process_time() - began)
    return min(times)


def show(times: list[tuple[float, float, str, str]]) -> None:
    """Print rows of a table."""
    for per_mb, growth, name, part in times:
        print(f"  {per_mb:>8.0f} ms per MB  {growth:>4.1f} times  {name:<24} {part[:40]!r}")


if __name__ == "__main__":
    main()
