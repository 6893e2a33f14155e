"""The configuration's text: defaults, and errors that name the key; no other kind of error."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anchord.config.effective import (
    chunking_by_kind,
    chunking_of_root,
    find_ignored_keys,
    iter_effective_values,
)
from anchord.config.schema import (
    DOCUMENT_KINDS,
    Config,
    RoomConfig,
    RootConfig,
    make_root_config,
    parse_config,
)
from anchord.config.strategies import OptionValue
from anchord.errors import ConfigError

INTERFACE = """
[[root]]
path = "~/code/app"
kind = "project"
name = "app"
include = []
exclude = []
strategy = "anchored"

[chunking]
strategy = "anchored"

[embedding]
provider = "sentence-transformers"
model = "all-MiniLM-L6-v2"
[store]
uri = ""
[watch]
mode = "auto"
settle_ms = 200
max_wait_ms = 2000
reconcile_s = 900
[privacy]
redact = "all"
"""


def refusal(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        parse_config(text, "config.toml")
    return refused.value


def outcome_of(text: str) -> Config | ConfigError:
    try:
        return parse_config(text, "config.toml")
    except ConfigError as refused:
        return refused


def one_root(line: str) -> str:
    return f'[[root]]\npath = "/a"\n{line}\n'


# Accepted values


def test_an_empty_text_gives_the_defaults() -> None:
    assert parse_config("", "config.toml") == Config()


def without_line(error: ConfigError) -> str:
    return re.sub(r"^config\.toml:[0-9]+: ", "config.toml: ", error.message)


def test_the_defaults_are_those_of_the_interface() -> None:
    config = parse_config(INTERFACE, "config.toml")
    expected = RootConfig(
        path="~/code/app", kind="project", name="app", include=(), exclude=(), strategy="anchored"
    )
    assert config == Config(root=(expected,))


def test_a_root_needs_only_its_path() -> None:
    (root,) = parse_config('[[root]]\npath = "/a"\n', "config.toml").root
    assert (root.kind, root.name, root.include, root.exclude) == ("project", "", (), ())


def test_roots_keep_their_order_and_their_patterns() -> None:
    text = '[[root]]\npath = "/b"\ninclude = ["x", "y"]\n[[root]]\npath = "/a"\nexclude = ["z"]\n'
    first, second = parse_config(text, "config.toml").root
    assert (first.path, first.include) == ("/b", ("x", "y"))
    assert (second.path, second.exclude) == ("/a", ("z",))


def test_roots_may_be_written_as_an_inline_array() -> None:
    assert parse_config('root = [{path = "/a", name = "n"}]', "config.toml").root == (
        RootConfig(path="/a", name="n"),
    )


def test_a_whole_number_does_for_a_time() -> None:
    assert parse_config("[watch]\nreconcile_s = 60\n", "config.toml").watch.reconcile_s == 60


@pytest.mark.parametrize("line", ["reconcile_s = 0.5", "poll_s = 0.25"])
def test_a_time_below_a_second_is_above_zero(line: str) -> None:
    name, _, value = line.partition(" = ")
    watch = parse_config(f"[watch]\n{line}\n", "config.toml").watch
    assert getattr(watch, name) == float(value)


@pytest.mark.parametrize("tokens", [64, 8192])
def test_the_ends_of_the_range_of_tokens_are_in_it(tokens: int) -> None:
    text = f"[chunking]\nmax_chunk_tokens = {tokens}\n"
    assert parse_config(text, "config.toml").chunking.max_chunk_tokens == tokens


# Unknown keys


@pytest.mark.parametrize(
    ("text", "key", "near"),
    [
        ("[embeding]\n", "embeding", "embedding"),
        ("[[roots]]\npath = '/a'\n", "roots", "root"),
        ("chunk = 1\n", "chunk", "chunking"),
        ("[watch]\nsettel_ms = 1\n", "watch.settel_ms", "settle_ms"),
        ("[watch]\nreconcile = 1\n", "watch.reconcile", "reconcile_s"),
        ("[store]\nurl = ''\n", "store.url", "uri"),
        ("[privacy]\nredacted = true\n", "privacy.redacted", "redact"),
        ("[chunking]\nmax_char = 1\n", "chunking.max_char", "max_chars"),
        ("[embedding]\nmodels = ''\n", "embedding.models", "model"),
        ("[[root]]\npth = '/a'\n", "root.pth", "path"),
        (
            "[[root]]\npath = '/a'\n[[root]]\npath = '/b'\nexcludes = []\n",
            "root.excludes",
            "exclude",
        ),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(
    text: str, key: str, near: str
) -> None:
    refused = refusal(text)
    assert without_line(refused) == f"config.toml: unknown key `{key}`"
    assert refused.hint == f"did you mean `{near}`?"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (
            "zzz = 1\n",
            "chunking, embedding, kind, model, privacy, room, root, search, store, version, watch",
        ),
        ("[privacy]\nzzz = 1\n", "redact"),
    ],
)
def test_an_unknown_key_like_none_is_refused_with_those_there_are(text: str, known: str) -> None:
    assert refusal(text).hint == f"known here: {known}"


# Further models

GERMAN = '[embedding.further.german]\nprovider = "hash"\ndimension = 64\n'


def test_a_further_model_has_the_keys_of_embedding_and_their_defaults() -> None:
    embedding = parse_config(
        f"{GERMAN}[embedding.by_language]\nde = 'german'\n", "config.toml"
    ).embedding
    assert embedding.by_language == {"de": "german"}
    assert embedding.further["german"].dimension == 64
    assert embedding.further["german"].max_tokens == embedding.max_tokens
    shown = dict(iter_effective_values(parse_config(GERMAN, "config.toml")))
    assert shown["embedding.further.german.dimension"] == 64
    assert "embedding.further" not in shown


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        (
            "[embedding.by_language]\nde = 'germna'\n",
            "5: there is no further model `germna`",
            "did you mean `german`?",
        ),
        (
            one_root("embedding = 'x'"),
            "there is no further model `x`",
            "describe it in [embedding.further.x]",
        ),
        (
            "[embedding.by_language]\nxx = 'german'\n",
            "5: `xx` is no language that anchord detects",
            "there are: Arab, ",
        ),
        (
            "[embedding.further.other]\nprovider = 'openai'\n",
            "5: provider `openai` needs embedding.further.other.url",
            "use url",
        ),
        (
            "[embedding.further.other]\nthreads = 3\n",
            "5: unknown key `embedding.further.other.threads`",
            "",
        ),
    ],
)
def test_what_cannot_be_a_further_model_is_refused(text: str, words: str, hint: str) -> None:
    refused = refusal(GERMAN + text)
    assert words in refused.message
    assert hint in refused.hint


# Wrong values


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[watch]\nsettle_ms = '200'\n", "watch.settle_ms: expected int, got str"),
        ("[watch]\nsettle_ms = 0.5\n", "watch.settle_ms: expected int, got float"),
        ("[watch]\nmode = 'often'\n", "watch.mode: invalid enum value 'often'"),
        ("[privacy]\nredact = 1\n", "privacy.redact: expected bool | str, got int"),
        ("[embedding]\nmodel = 3\n", "embedding.model: expected str, got int"),
        ("[embedding]\nprovider = 'magic'\n", "embedding.provider: invalid enum value 'magic'"),
        ("chunking = 3\n", "chunking: expected object, got int"),
        ("[root]\npath = '/a'\n", "root: expected array, got object"),
        ("root = [1]\n", "root[0]: expected object, got int"),
        ("[[root]]\nname = 'n'\n", "root[0]: object missing required field path"),
        (one_root("kind = 'odd'"), "root[0].kind: invalid enum value 'odd'"),
        (one_root("include = 'x'"), "root[0].include: expected array, got str"),
        (one_root("exclude = [1]"), "root[0].exclude[0]: expected str, got int"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_place(text: str, words: str) -> None:
    assert without_line(refusal(text)).startswith(f"config.toml: {words}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[chunking]\nstrategy = 'fixed'\n", "unknown strategy `fixed`"),
        (one_root("strategy = 'fixed'"), "unknown strategy `fixed`"),
        (
            "[embedding]\nprovider = 'openai'\n",
            "provider `openai` needs embedding.url, starting with http:// or https://",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(text: str, words: str) -> None:
    refused = refusal(text)
    assert without_line(refused) == f"config.toml: {words}"
    assert refused.hint.startswith(("use ", "there are: "))


@pytest.mark.parametrize(
    "line",
    [
        "chunking.max_chunk_tokens = 63",
        "chunking.max_chunk_tokens = 8193",
        "chunking.max_chunk_tokens = -1",
        "chunking.max_chunk_tokens = 0",
        "chunking.max_heading_level_for_path = -1",
        "chunking.max_heading_level_for_path = 7",
        "watch.settle_ms = 0",
        "watch.settle_ms = -1",
        "watch.max_wait_ms = 0",
        "watch.reconcile_s = 0",
        "watch.reconcile_s = -3.5",
        "watch.reconcile_s = nan",
        "watch.poll_s = 0",
        "embedding.threads = -1",
        "embedding.idle_unload_s = nan",
    ],
)
def test_a_number_out_of_range_is_refused_by_name(line: str) -> None:
    table, _, rest = line.partition(".")
    refused = refusal(f"[{table}]\n{rest}\n")
    assert rest.partition(" = ")[0] in refused.message
    assert refused.hint


@pytest.mark.parametrize("path", ["", r"/a\u0000b"], ids=["empty", "NUL"])
def test_a_path_that_names_no_folder_is_refused(path: str) -> None:
    assert "path" in refusal(f'[[root]]\npath = "{path}"\n').message


# Text that is not TOML


@pytest.mark.parametrize(
    "text",
    [
        "a = \n",
        "[watch\n",
        "= 1",
        "a = 1\na = 2\n",
        "[watch]\n[watch]\n",
        '"',
        "\ufeff[watch]\n",
        "a = 2024-02-31\n",
        '"\\ud800" = 1',
    ],
)
def test_text_that_is_no_toml_is_refused_with_the_file_named(text: str) -> None:
    refused = refusal(text)
    assert without_line(refused).startswith("config.toml: ")
    assert "anchord config check" in refused.hint


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "9" * 5_000,
        "[watch]\nsettle_ms = " + "9" * 5_000,
        "a = " + "[" * 5_000,
        "a = " + "{a=" * 5_000,
    ],
    ids=["a long number", "a long number for a key", "deep arrays", "deep tables"],
)
def test_text_that_python_cannot_hold_is_refused_as_any_other(text: str) -> None:
    refusal(text)


_KEYS = [
    *(key for key, _ in iter_effective_values(Config())),
    "root",
    "root.path",
    "watch",
    "x",
    "watch.x",
    '"é"',
    "''",
]
_VALUES = [
    '""',
    "'x'",
    "[]",
    "['a']",
    "[{path='/a'}]",
    "{}",
    "2024-01-01",
    "[[1]]",
    "1e400",
    "nan",
    "-inf",
    "0x_",
    r'"\u0000"',
]
_lines = st.one_of(
    st.sampled_from(_KEYS).map(lambda name: f"[{name}]"),
    st.sampled_from(_KEYS).map(lambda name: f"[[{name}]]"),
    st.tuples(
        st.sampled_from(_KEYS),
        st.one_of(
            st.integers().map(str),
            st.floats().map(str),
            st.booleans().map(lambda flag: str(flag).lower()),
            st.sampled_from(_VALUES),
        ),
    ).map(" = ".join),
)
_texts = st.one_of(st.text(), st.lists(_lines, max_size=6).map("\n".join))


@given(_texts)
@example("watch.poll_s = inf")
@example("watch.reconcile_s = -inf")
@example("watch.settle_ms = 1" + "0" * 400)
def test_any_text_parses_or_is_refused_with_the_file_named_and_a_hint(text: str) -> None:
    outcome = outcome_of(text)
    if isinstance(outcome, ConfigError):
        assert without_line(outcome).startswith("config.toml: ")
        assert outcome.hint


# Other sources than the text


def test_a_root_of_the_command_line_is_held_to_the_same_rules() -> None:
    assert make_root_config("/a", "project", "n") == RootConfig(path="/a", name="n")
    with pytest.raises(ConfigError, match="unknown kind of root `odd`"):
        make_root_config("/a", "odd", "")
    assert make_root_config("/a", "conversations", "").kind == "conversations"


def test_values_yields_each_key_once_in_the_order_of_the_tables() -> None:
    keys = [key for key, _ in iter_effective_values(Config())]
    assert len(keys) == len(set(keys))
    assert [*dict.fromkeys(key.partition(".")[0] for key in keys)] == [
        "chunking",
        "embedding",
        "search",
        "store",
        "watch",
        "privacy",
    ]
    assert dict(iter_effective_values(Config()))["watch.settle_ms"] == 200


def test_values_shows_what_the_text_set() -> None:
    shown = dict(iter_effective_values(parse_config("[watch]\nmode = 'poll'\n", "config.toml")))
    assert shown["watch.mode"] == "poll"


def test_the_defaults_have_no_key_without_effect() -> None:
    assert find_ignored_keys(Config()) == []


def test_keys_that_nothing_uses_are_named_when_they_are_set() -> None:
    set_ones = "overlap_tokens = 0\nextract = 'general'\nmin_chunk_size = 9\n"
    text = f"[chunking]\n{set_ones}max_chunk_tokens = 100\nmax_chars = 900\n[privacy]\nredact = false\n"
    named = find_ignored_keys(parse_config(text, "config.toml"))
    assert sorted(named) == ["chunking.min_chunk_size", "chunking.overlap_tokens"]


def test_a_key_that_the_strategy_of_one_root_uses_has_an_effect() -> None:
    text = '[chunking]\noverlap_tokens = 9\n[[root]]\npath = "/a"\nstrategy = "semantic"\n'
    assert find_ignored_keys(parse_config(text, "config.toml")) == []


def test_003_12_a_kind_of_document_has_settings_of_its_own() -> None:
    text = '[chunking]\nmax_chunk_tokens = 200\n[kind.code]\nstrategy = "window"\nmax_chars = 500\n[kind.text]\nenabled = false\n'
    chosen = chunking_by_kind(parse_config(text, "config.toml"))
    assert {kind: keys["strategy"] for kind, keys in chosen.items()} == {
        "markdown": "anchored", "text": "whole", "code": "window", "exchange": "anchored", "attachment": "anchored",
        "summary": "anchored",
    }  # fmt: skip
    assert (
        chosen["code"]["max_chars"],
        chosen["code"]["max_chunk_tokens"],
        chosen["code"]["overlap_chars"],
    ) == (500, 200, 100)
    assert chosen["markdown"]["max_chars"] is None


def test_003_12_a_key_of_a_kind_that_its_strategy_does_not_use_is_named() -> None:
    config = parse_config("[kind.code]\noverlap_chars = 9\n", "config.toml")
    assert find_ignored_keys(config) == ["kind.code.overlap_chars"]
    assert ("kind.code.overlap_chars", 9) in list(iter_effective_values(config))


def test_003_12_an_unknown_kind_or_key_of_a_kind_is_refused_by_name() -> None:
    assert "`kind.cod`" in refusal("[kind.cod]\n").message
    refused = refusal("[kind.code]\nmax_char = 9\n")
    assert "`kind.code.max_char`" in refused.message
    assert "max_chars" in refused.hint


def test_a_strategy_of_a_root_goes_before_that_of_a_kind() -> None:
    config = parse_config('[kind.code]\nstrategy = "window"\n', "config.toml")
    assert {keys["strategy"] for keys in chunking_by_kind(config, strategy="headers").values()} == {
        "headers"
    }


# The settings of one root


def root_options(text: str) -> dict[str, dict[str, OptionValue]]:
    """Return the chunking options of each kind in the first root of a configuration."""
    config = parse_config(f'{text}\n[[root]]\npath = "/a"\n{ROOT_KEYS}', "config.toml")
    return chunking_by_kind(config, chunking_of_root(config.root[0]))


ROOT_KEYS = """name = "notes"
max_chars = 900
[root.kinds.code]
max_chars = 1200
"""


def test_seed_002_04_a_root_has_sizes_of_its_own_and_one_kind_in_it_others() -> None:
    options = root_options("chunking.max_chars = 500\nkind.text.max_chars = 700\n")
    sizes = {kind: own["max_chars"] for kind, own in options.items()}
    assert sizes == dict.fromkeys(DOCUMENT_KINDS, 900) | {"code": 1200}
    config = parse_config("chunking.max_chars = 500\nkind.text.max_chars = 700\n", "config.toml")
    assert chunking_by_kind(config)["text"]["max_chars"] == 700
    assert chunking_by_kind(config)["code"]["max_chars"] == 500


def test_seed_002_04_a_size_under_another_name_does_not_outlive_that_of_the_root() -> None:
    general = "chunking.strategy = 'window'\nchunking.max_chars = 500\nkind.text.chunk_size = 300\n"
    assert root_options(general)["text"]["max_chars"] == 900


def test_seed_002_04_a_strategy_of_a_root_or_of_a_kind_in_it_overrides_enabled_false() -> None:
    config = parse_config(
        "chunking.enabled = false\n[[root]]\npath = '/a'\n[root.kinds.text]\nstrategy = 'headers'\n",
        "config.toml",
    )
    options = chunking_by_kind(config, chunking_of_root(config.root[0]))
    assert {kind: own["strategy"] for kind, own in options.items()} == dict.fromkeys(
        DOCUMENT_KINDS, "whole"
    ) | {"text": "headers"}


def test_seed_002_04_the_keys_of_a_root_are_shown_and_those_without_effect_named() -> None:
    text = "[[root]]\npath = '/a'\nname = 'n'\nmax_chars = 900\nmin_chunk_tokens = 9\n"
    config = parse_config(f"{text}[root.kinds.code]\noverlap_chars = 3\n", "config.toml")
    assert dict(iter_effective_values(config)).items() >= {
        ("root.n.max_chars", 900),
        ("root.n.kinds.code.overlap_chars", 3),
    }
    assert find_ignored_keys(config) == [
        "root.n.min_chunk_tokens",
        "root.n.kinds.code.overlap_chars",
    ]
    windows = f"{text}[root.kinds.code]\nstrategy = 'window'\noverlap_chars = 3\n"
    assert find_ignored_keys(parse_config(windows, "config.toml")) == ["root.n.min_chunk_tokens"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[root.kinds.cod]", "`root.kinds.cod`", "`code`"),
        ("[root.kinds.code]\nmax_char = 9", "`root.kinds.code.max_char`", "`max_chars`"),
        ("[root.kinds.code]\nstrategy = 'windo'", "`windo`", "`window`"),
        ("[root.kinds.code]\nmax_chars = 9", ">= 64", "config show"),
        ("[root.kind.code]\nmax_chars = 900", "expected str", "[root.kinds.NAME]"),
        ("max_chars = '9'", "expected int", "config show"),
    ],
)
def test_seed_002_04_a_wrong_key_of_a_root_is_refused_with_a_hint(
    text: str, message: str, hint: str
) -> None:
    refused = refusal(f"[[root]]\npath = '/a'\n{text}\n")
    assert message in refused.message
    assert hint in refused.hint


# The user's rooms


def test_seed_000_20_a_room_has_a_name_keywords_and_paths() -> None:
    text = "[[room]]\nname = 'Bills'\nkeywords = ['invoice']\npaths = ['billing/']\n"
    config = parse_config(text, "config.toml")
    assert config.room == (RoomConfig(name="Bills", keywords=("invoice",), paths=("billing/",)),)
    assert dict(iter_effective_values(config))["room.Bills.keywords"] == ("invoice",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = 'a'", "`a` has no keywords and no paths"),
        ("name = ' '\nkeywords = ['b']", "no name"),
        ("name = 'a'\nkeywords = ['++']", "`++` has no letter and no digit"),
        ("keywords = ['b']", "name"),
        ("name = 'a'\nkeyword = ['b']", "`room.keyword`"),
    ],
)
def test_seed_000_20_a_room_that_nothing_can_be_in_is_refused(text: str, message: str) -> None:
    refused = refusal(f"[[room]]\n{text}\n")
    assert message in refused.message
    assert refused.hint


def test_two_servers_with_models_of_one_name_are_refused() -> None:
    """Both would have one identity, and the second would never be asked."""
    server = "provider = 'openai'\nmodel = 'default'\n"
    first = f"[embedding]\n{server}url = 'http://a/v1'\n"
    further = f"[embedding.further.x]\n{server}"
    with pytest.raises(ConfigError, match="has a model of this name on another server"):
        parse_config(f"{first}{further}url = 'http://b/v1'\n", "config.toml")
    config = parse_config(f"{first}{further}url = 'http://a/v1'\n", "config.toml")
    assert [each.url for each in config.embedding.servers] == ["http://a/v1"] * 2
    other = parse_config(f"{further}url = 'http://b/v1'\n", "config.toml")
    assert [each.url for each in other.embedding.servers] == ["http://b/v1"]
