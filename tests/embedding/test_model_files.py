"""Finding a model: its settings, its identity, and the errors when a file is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from anchord.core.ids import ID_LENGTH
from anchord.embedding.model_files import ModelFiles, find_model, find_token_counting_model
from anchord.errors import ConfigError

LIBRARY = "sentence_transformers"
FILES: Mapping[str, object] = {
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": f"{LIBRARY}.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{LIBRARY}.models.Pooling"},
    ],
    "config.json": {"hidden_size": 8, "max_position_embeddings": 512},
    "sentence_bert_config.json": {"max_seq_length": 128},
    "tokenizer_config.json": {"model_max_length": 512},
    "config_sentence_transformers.json": {"prompts": {}, "default_prompt_name": None},
    "1_Pooling/config.json": {
        "word_embedding_dimension": 6,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_cls_token": False,
    },
}
SPECIAL = 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder that looks like a model whose tokenizer knows words, and puts two special tokens around a text."""
    made = tmp_path / "model"
    for name in FILES:
        put(made, name, FILES[name])
    put_tokenizer(made, special=True)
    (made / "model.safetensors").write_bytes(b"weights")
    return made


def put(folder: Path, name: str, value: object) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value))


def put_tokenizer(folder: Path, *, special: bool) -> None:
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}, unk_token="[UNK]"))  # noqa: S106 - a token
    tokenizer.pre_tokenizer = Whitespace()
    if special:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
        )
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=5)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))


def put_modules(folder: Path, *modules: str) -> None:
    """Write modules.json: a transformer at the top, and these after it, each in a folder of its own."""
    entries = [{"path": "", "type": f"{LIBRARY}.models.Transformer"}]
    entries += [
        {"path": f"{at}_{kind}", "type": f"{LIBRARY}.models.{kind}"}
        for at, kind in enumerate(modules, 1)
    ]
    put(folder, "modules.json", entries)


def found(folder: Path) -> ModelFiles:
    return find_model(str(folder))


def prompted(folder: Path, **prompts: object) -> tuple[str, str]:
    """Return the prefixes of a query and of a text, with these prompts."""
    put(folder, "config_sentence_transformers.json", {"prompts": prompts})
    model = found(folder)
    return model.query_prefix, model.text_prefix


def test_the_bundled_model_is_there_and_states_its_sizes() -> None:
    model = find_model("all-MiniLM-L6-v2")
    assert (model.window, model.dimension) == (254, 384)
    assert (model.query_prefix, model.text_prefix) == ("", "")
    assert model.tokenizer.is_file()
    assert len(model.compute_digest()) == ID_LENGTH


def test_a_folder_is_a_model(folder: Path) -> None:
    assert found(folder) == ModelFiles(
        name=str(folder), folder=folder.resolve(), window=126, dimension=6,
        tokenizer=folder.resolve() / "tokenizer.json", module_folders=("", "1_Pooling"),
    )  # fmt: skip


def test_a_folder_may_be_below_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    assert find_model("~/model").folder == folder.resolve()


def test_the_transformer_may_have_a_folder_of_its_own(folder: Path) -> None:
    inner = folder / "0_Transformer"
    inner.mkdir()
    for name in (
        "config.json",
        "sentence_bert_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
    ):
        (folder / name).rename(inner / name)
    put(
        folder, "modules.json", [{"path": "0_Transformer", "type": f"{LIBRARY}.models.Transformer"}]
    )
    model = found(folder)
    assert (model.window, model.dimension) == (126, 8)
    assert model.tokenizer == inner.resolve() / "tokenizer.json"
    assert model.module_folders == ("", "0_Transformer")
    before = model.compute_digest()
    (inner / "model.safetensors").write_bytes(b"weights, tuned")
    assert found(folder).compute_digest() != before


# Window


def test_the_window_comes_from_the_first_file_that_says_it(folder: Path) -> None:
    put(folder, "sentence_bert_config.json", {"max_seq_length": None})
    assert found(folder).window == 512 - SPECIAL
    (folder / "sentence_bert_config.json").unlink()
    assert found(folder).window == 512 - SPECIAL
    put(folder, "config.json", {"hidden_size": 8})
    assert found(folder).window == 512 - SPECIAL
    (folder / "tokenizer_config.json").unlink()
    assert found(folder).window == 256 - SPECIAL


@pytest.mark.parametrize(
    ("positions", "longest"), [(64, 512), (512, 64), (64, 1e30), (64, None), (None, 64)]
)
def test_without_a_length_of_its_own_the_least_of_model_and_tokenizer_counts(
    folder: Path, positions: int | None, longest: float | None
) -> None:
    put(folder, "sentence_bert_config.json", {})
    put(folder, "config.json", {"hidden_size": 8, "max_position_embeddings": positions})
    put(folder, "tokenizer_config.json", {"model_max_length": longest})
    assert found(folder).window == 64 - SPECIAL


def test_a_window_has_a_bound(folder: Path) -> None:
    put(folder, "sentence_bert_config.json", {"max_seq_length": 131_072})
    assert found(folder).window == 8_192 - SPECIAL


def test_a_tokenizer_without_special_tokens_takes_none_from_the_window(folder: Path) -> None:
    put_tokenizer(folder, special=False)
    assert found(folder).window == 128


def test_the_longer_prefix_is_taken_from_the_window_whatever_the_tokenizer_cuts(
    folder: Path,
) -> None:
    assert prompted(folder, query="one two three four five", document="one")
    assert found(folder).window == 128 - SPECIAL - 5
    assert prompted(folder, query="one", document="one two three four five six:")
    assert found(folder).window == 128 - SPECIAL - 7


def test_a_prefix_that_leaves_no_room_for_a_text_is_refused(folder: Path) -> None:
    prompted(folder, query="word " * 125)
    assert found(folder).window == 1
    with pytest.raises(ConfigError):
        prompted(folder, query="word " * 200)


# Dimension


def test_the_dimension_comes_from_the_pooling_or_the_model(folder: Path) -> None:
    (folder / "1_Pooling" / "config.json").unlink()
    assert found(folder).dimension == 8


@pytest.mark.parametrize("key", ["hidden_size", "dim", "d_model", "embedding_dim"])
def test_models_have_several_words_for_it(folder: Path, key: str) -> None:
    put(folder, "1_Pooling/config.json", {})
    put(folder, "config.json", {key: 12})
    assert found(folder).dimension == 12


def test_ways_of_pooling_stand_one_after_another(folder: Path) -> None:
    both = {
        "word_embedding_dimension": 6,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_cls_token": True,
        "include_prompt": True,
    }
    put(folder, "1_Pooling/config.json", both)
    assert found(folder).dimension == 12


@pytest.mark.parametrize(
    ("mode", "dimension"), [("mean", 6), ("cls", 6), (["mean"], 6), (["mean", "max", "cls"], 18)]
)
def test_ways_of_pooling_may_be_named(folder: Path, mode: object, dimension: int) -> None:
    put(
        folder,
        "1_Pooling/config.json",
        {"embedding_dimension": 6, "pooling_mode": mode, "include_prompt": True},
    )
    assert found(folder).dimension == dimension


def test_a_dense_layer_changes_the_dimension_and_the_last_one_counts(folder: Path) -> None:
    put_modules(folder, "Pooling", "Dense", "Dense", "Normalize")
    put(folder, "2_Dense/config.json", {"in_features": 6, "out_features": 20})
    assert found(folder).dimension == 20
    put(folder, "3_Dense/config.json", {"in_features": 20, "out_features": 4})
    assert found(folder).dimension == 4
    assert found(folder).module_folders == ("", "1_Pooling", "2_Dense", "3_Dense", "4_Normalize")


@pytest.mark.parametrize(("cut", "dimension"), [(4, 4), (None, 6), (0, 6), (600, 6)])
def test_vectors_may_be_cut_shorter(folder: Path, cut: int | None, dimension: int) -> None:
    put(folder, "config_sentence_transformers.json", {"truncate_dim": cut})
    assert found(folder).dimension == dimension


def test_a_model_that_does_not_say_its_dimension_is_refused(folder: Path) -> None:
    put(folder, "config.json", {})
    put(folder, "1_Pooling/config.json", {})
    with pytest.raises(ConfigError, match="does not declare the dimension of its vectors"):
        found(folder)


# Prompts


def test_prompts_are_what_stands_before_queries_and_texts(folder: Path) -> None:
    assert prompted(folder, query="query: ", document="passage: ") == ("query: ", "passage: ")
    assert prompted(folder, query="query: ") == ("query: ", "")
    assert prompted(folder, document="passage: ") == ("", "passage: ")
    assert prompted(folder, query=None, document=None) == ("", "")
    assert prompted(folder, clustering="cluster: ", classification="classify: ") == ("", "")


@pytest.mark.parametrize("name", ["document", "passage", "corpus"])
def test_the_prompt_of_texts_has_three_names(folder: Path, name: str) -> None:
    assert prompted(folder, **{name: "text: "}) == ("", "text: ")


def test_of_several_names_the_first_counts(folder: Path) -> None:
    assert prompted(folder, corpus="c: ", passage="p: ", document="d: ") == ("", "d: ")
    assert prompted(folder, corpus="c: ", passage="p: ") == ("", "p: ")


def test_an_empty_prompt_is_none_for_the_library_writes_one_for_documents_by_itself(
    folder: Path,
) -> None:
    assert prompted(folder, query="", document="", passage="p: ") == ("", "p: ")


@pytest.mark.parametrize("prompts", [None, [], "query", 5])
def test_prompts_that_are_none_are_left_out(folder: Path, prompts: object) -> None:
    put(folder, "config_sentence_transformers.json", {"prompts": prompts})
    assert (found(folder).query_prefix, found(folder).text_prefix) == ("", "")


# What is missing, and what cannot be read


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "modules.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=f"has no {name}"):
        found(folder)


def test_weights_that_can_hold_code_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"no model\.safetensors") as raised:
        found(folder)
    assert "can execute code" in raised.value.hint


def test_weights_may_be_in_several_files(folder: Path) -> None:
    before = found(folder).compute_digest()
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model-00002-of-00002.safetensors").write_bytes(b" and more")
    assert found(folder).compute_digest() != before


@pytest.mark.parametrize("content", ["not json", "{}", "[]", "[1, null]", "\xff", "", '"text"'])
def test_a_list_of_modules_that_is_none_is_refused(folder: Path, content: str) -> None:
    (folder / "modules.json").write_text(content, encoding="latin-1")
    with pytest.raises(ConfigError, match=r"has no modules\.json"):
        found(folder)


@pytest.mark.parametrize("content", ["not json", "[]", "\xff", ""])
def test_a_settings_file_that_cannot_be_read_says_nothing(folder: Path, content: str) -> None:
    (folder / "sentence_bert_config.json").write_text(content, encoding="latin-1")
    (folder / "config_sentence_transformers.json").write_text(content, encoding="latin-1")
    assert found(folder).window == 510


@pytest.mark.parametrize("content", ["{}", "", "not json", '{"model": {"type": "unknown"}}'])
def test_a_tokenizer_that_cannot_be_read_is_a_config_error(folder: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ConfigError):
        found(folder)


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ("config_sentence_transformers.json", {"truncate_dim": "short"}),
        ("sentence_bert_config.json", {"max_seq_length": [1]}),
        ("config.json", {"hidden_size": {"text": 8}}),
        ("2_Dense/config.json", {"out_features": "many"}),
        ("tokenizer_config.json", {"model_max_length": "long"}),
    ],
)
def test_a_value_of_another_kind_is_left_out_or_a_config_error(
    folder: Path, file: str, value: dict[str, object]
) -> None:
    put_modules(folder, "Pooling", "Dense")
    if file == "tokenizer_config.json":
        put(folder, "sentence_bert_config.json", {})
    put(folder, file, value)
    try:
        model = found(folder)
    except ConfigError:
        return
    assert model.dimension > 0


@pytest.mark.parametrize(
    "name",
    ["no-such-model", "someone/no-such-model", "/no/such/folder", "a/b/c", "", "~nobody-at-all/x"],
)
def test_a_model_that_is_not_on_this_machine_is_a_config_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as raised:
        find_model(name)
    assert "all-MiniLM-L6-v2" in raised.value.hint


# Identity


def test_the_identity_is_that_of_the_content_wherever_it_lies(folder: Path) -> None:
    before = found(folder).compute_digest()
    moved = folder.rename(folder.parent / "elsewhere")
    assert found(moved).compute_digest() == before
    (moved / "README.md").write_text("words about it")
    assert found(moved).compute_digest() == before


@pytest.mark.parametrize("name", [*FILES, "tokenizer.json"])
def test_every_settings_file_is_part_of_the_identity(folder: Path, name: str) -> None:
    before = found(folder).compute_digest()
    content = (folder / name).read_text()
    (folder / name).write_text(content + " ")
    assert found(folder).compute_digest() != before
    (folder / name).write_text(content)
    assert found(folder).compute_digest() == before


@pytest.mark.parametrize(
    "name", ["model.safetensors", "2_Dense/model.safetensors", "2_Dense/config.json"]
)
def test_the_weights_of_every_module_are_part_of_the_identity(folder: Path, name: str) -> None:
    put_modules(folder, "Pooling", "Dense")
    put(folder, "2_Dense/config.json", {"out_features": 4})
    (folder / "2_Dense" / "model.safetensors").write_bytes(b"weights")
    before = found(folder).compute_digest()
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    assert found(folder).compute_digest() != before


def test_another_order_of_modules_is_another_model(folder: Path) -> None:
    put_modules(folder, "Pooling", "Dense")
    put(folder, "2_Dense/config.json", {"out_features": 4})
    before = found(folder).compute_digest()
    entries = json.loads((folder / "modules.json").read_text())
    put(folder, "modules.json", [entries[0], entries[2], entries[1]])
    assert found(folder).compute_digest() != before


def test_the_same_bytes_in_other_files_are_another_model(folder: Path) -> None:
    put(folder, "a_config.json", {})
    before = found(folder).compute_digest()
    (folder / "a_config.json").rename(folder / "added_tokens.json")
    assert found(folder).compute_digest() != before


# Token counters


def test_003_27_where_a_server_embeds_the_bundled_model_counts_and_the_configuration_says_the_window() -> (
    None
):
    model = find_token_counting_model("openai", "text-embedding-3-small:v1", 1_000)
    bundled = find_model("all-MiniLM-L6-v2")
    assert (model.name, model.window) == ("text-embedding-3-small:v1", 1_000)
    assert (model.tokenizer, model.folder) == (bundled.tokenizer, bundled.folder)


def test_a_model_of_a_server_that_is_here_too_counts_for_itself(folder: Path) -> None:
    model = find_token_counting_model("openai", str(folder), 1_000)
    assert (model.window, model.tokenizer) == (1_000, folder.resolve() / "tokenizer.json")


@pytest.mark.parametrize("provider", ["sentence-transformers", "hash"])
def test_where_no_server_embeds_the_model_itself_counts(folder: Path, provider: str) -> None:
    assert find_token_counting_model(provider, str(folder), 1_000) == found(folder)
    with pytest.raises(ConfigError):
        find_token_counting_model(provider, "no-such-model", 1_000)
