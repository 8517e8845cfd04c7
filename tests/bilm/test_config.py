from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import small_config

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LexiconConfig, LSTMConfig
from elmokit.bilm.weights import parameter_count
from elmokit.errors import ConfigError

FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]


def published(cells: int, width: int, highways: int) -> dict:
    return {
        "lstm": {
            "use_skip_connections": True,
            "projection_dim": width,
            "cell_clip": 3,
            "proj_clip": 3,
            "dim": cells,
            "n_layers": 2,
        },
        "char_cnn": {
            "activation": "relu",
            "filters": FILTERS,
            "n_highway": highways,
            "embedding": {"dim": 16},
            "n_characters": 262,
            "max_characters_per_token": 50,
        },
    }


configs = st.builds(
    lambda filters, cells, width, rest: small_config(
        filters=tuple(filters), cells=cells, width=width, **rest
    ),
    st.lists(st.tuples(st.integers(1, 7), st.integers(1, 40)), min_size=1, max_size=4),
    st.integers(1, 60),
    st.integers(1, 60),
    st.fixed_dictionaries(
        {
            "activation": st.sampled_from(["relu", "tanh"]),
            "highways": st.integers(0, 3),
            "layers": st.integers(1, 4),
            "skip": st.booleans(),
            "cell_clip": st.none() | st.floats(0.1, 9),
            "projection_clip": st.none() | st.integers(1, 9),
            "max_characters": st.integers(7, 70),
        }
    ),
)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (published(1024, 128, 1), 13_593_296),
        (published(2048, 256, 1), 28_027_728),
        (published(4096, 512, 2), 93_600_848),
    ],
)
def test_the_published_sizes(options: dict, parameters: int) -> None:
    config = BiLMConfig.from_options(options)
    assert parameter_count(config) == parameters
    assert config.to_options() == options


@given(configs)
def test_both_forms_round_trip(config: BiLMConfig) -> None:
    assert BiLMConfig.from_dict(config.to_dict()) == config
    again = BiLMConfig.from_options(
        config.to_options(),
        cnn_projection=config.char_cnn.projection,
        lstm_projection=config.lstm.projection,
    )
    assert again == config


def test_unknown_keys_are_kept_in_their_places() -> None:
    options = published(64, 16, 1)
    options |= {"n_train_tokens": 768648884, "bidirectional": True, "dropout": 0.1}
    options["lstm"]["note"] = "x"
    options["char_cnn"]["embedding"]["trainable"] = False
    before = copy.deepcopy(options)
    config = BiLMConfig.from_options(options)
    assert options == before, "the argument was changed"
    assert config.to_options() == before
    assert BiLMConfig.from_dict(config.to_dict()).to_options() == before


def test_characters_are_counted_with_and_without_the_mask() -> None:
    options = published(64, 16, 1)
    options["char_cnn"]["n_characters"] = 261
    config = BiLMConfig.from_options(options)
    assert config.char_cnn.characters == 261
    assert config.to_options()["char_cnn"]["n_characters"] == 262


def test_what_may_be_absent() -> None:
    """bilm-tf takes no highways, no clips and no skip connections by leaving the keys out."""
    config = BiLMConfig.from_options(
        {
            "char_cnn": {"filters": [[2, 8]], "embedding": {"dim": 4}},
            "lstm": {"dim": 8, "projection_dim": 8},
        }
    )
    assert config.char_cnn.highways == 0
    assert (config.lstm.cell_clip, config.lstm.projection_clip) == (None, None)
    assert not config.lstm.skip
    assert not config.char_cnn.projection and not config.lstm.projection


@pytest.mark.parametrize("value", [0, 0.0, None])
def test_no_clip_is_said_in_several_ways(value: object) -> None:
    options = published(64, 16, 1)
    options["lstm"]["cell_clip"] = value
    assert BiLMConfig.from_options(options).lstm.cell_clip is None


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        ("lstm", "dim", None, r"lstm\.dim is None; expected an integer"),
        ("lstm", "dim", -4, r"lstm\.dim is -4"),
        ("lstm", "dim", 1 << 40, r"lstm\.dim is 1099511627776"),
        ("lstm", "dim", True, r"lstm\.dim is True"),
        ("lstm", "dim", "64", r"lstm\.dim is '64'"),
        ("lstm", "n_layers", 0, r"lstm\.layers is 0"),
        ("lstm", "n_layers", 1 << 20, r"lstm\.layers is 1048576; expected .* from 1 to 1000"),
        ("char_cnn", "n_highway", 1 << 20, r"char_cnn\.highways is 1048576; expected .* to 1000"),
        ("char_cnn", "filters", [[1, 1]] * 1001, r"char_cnn\.filters has 1,001 pairs; expected"),
        ("lstm", "cell_clip", -3, r"lstm\.cell_clip is -3; expected a positive number"),
        ("lstm", "cell_clip", float("nan"), r"lstm\.cell_clip is nan"),
        ("lstm", "use_skip_connections", "yes", r"lstm\.skip is 'yes'; expected true or false"),
        ("char_cnn", "filters", [], r"char_cnn\.filters is \[\]; expected a list of pairs"),
        ("char_cnn", "filters", [[1, 2, 3]], r"char_cnn\.filters contains \[1, 2, 3\]"),
        ("char_cnn", "filters", [[51, 8]], r"a filter 51 characters wide, but a word has at most"),
        ("char_cnn", "activation", "gelu", r"activation is 'gelu'; expected 'relu' or 'tanh'"),
        ("char_cnn", "embedding", 16, r"char_cnn\.embedding is 16; expected an object"),
        ("char_cnn", "n_characters", 60, r"n_characters is 60; expected an integer from 261"),
        ("char_cnn", "max_characters_per_token", 2, r"max_characters is 2"),
    ],
)
def test_wrong_options_are_named(section: str, key: str, value: object, message: str) -> None:
    options = published(64, 16, 1)
    options[section][key] = value
    with pytest.raises(ConfigError, match=message):
        BiLMConfig.from_options(options)


@pytest.mark.parametrize("name", ["char_cnn.filters", "lstm.projection_dim", "lstm.dim"])
def test_missing_options_are_named(name: str) -> None:
    options = published(64, 16, 1)
    section, key = name.split(".")
    del options[section][key]
    with pytest.raises(ConfigError, match=f"{name} is missing"):
        BiLMConfig.from_options(options)
    with pytest.raises(ConfigError, match="lstm is missing"):
        BiLMConfig.from_options({"char_cnn": published(64, 16, 1)["char_cnn"]})


def test_one_direction_is_no_elmo() -> None:
    with pytest.raises(ConfigError, match="needs a bidirectional model"):
        BiLMConfig.from_options(published(64, 16, 1) | {"bidirectional": False})


def test_projections_can_only_be_left_out_where_sizes_fit() -> None:
    with pytest.raises(ConfigError, match="without projection needs"):
        LSTMConfig(cells=8, width=4, projection=False)
    with pytest.raises(ConfigError, match="the filters are the word vector"):
        BiLMConfig(
            char_cnn=CharCNNConfig(filters=((1, 5),), projection=False),
            lstm=LSTMConfig(cells=8, width=4),
        )


def test_the_native_form_refuses_what_it_does_not_know() -> None:
    data = small_config().to_dict()
    with pytest.raises(ConfigError, match="lstm: unknown option 'peepholes'"):
        BiLMConfig.from_dict(data | {"lstm": data["lstm"] | {"peepholes": True}})
    with pytest.raises(ConfigError, match="config: unknown option 'attention'"):
        BiLMConfig.from_dict(data | {"attention": {}})
    with pytest.raises(ConfigError, match="cells"):
        BiLMConfig.from_dict(data | {"lstm": {"width": 3}})
    with pytest.raises(ConfigError, match="expected an object"):
        BiLMConfig.from_dict({"lstm": data["lstm"]})


# -- characters that are code points, words that are known -----------------------------------------


def with_words(**changes: object) -> BiLMConfig:
    cnn = {"filters": ((1, 4), (3, 5)), "characters": 40, "scheme": "code_points"} | changes
    return BiLMConfig(
        char_cnn=CharCNNConfig(**cnn),  # type: ignore[arg-type]
        lstm=LSTMConfig(cells=8, width=4),
        words=LexiconConfig(entries=30, dim=7),
    )


def test_the_published_shape_of_many_languages() -> None:
    """Counted by hand, for an alphabet of 6000 and 150,000 words."""
    config = BiLMConfig(
        char_cnn=CharCNNConfig(
            filters=tuple(map(tuple, FILTERS)),
            embedding_dim=50,
            highways=2,
            characters=6000,
            scheme="code_points",
        ),
        lstm=LSTMConfig(cells=4096, width=512),
        words=LexiconConfig(entries=150_000, dim=100),
    )
    original = BiLMConfig.from_options(published(4096, 512, 2))
    spans = sum(width * count for width, count in FILTERS)
    more = 6000 * 50 - 261 * 16 + spans * (50 - 16) + 150_000 * 100 + 100 * 512
    assert parameter_count(config) == parameter_count(original) + more


def test_the_native_form_knows_words_and_schemes() -> None:
    config = with_words()
    assert BiLMConfig.from_dict(config.to_dict()) == config
    data = config.to_dict()
    assert data["words"] == {"entries": 30, "dim": 7}
    with pytest.raises(ConfigError, match="words: unknown option 'size'"):
        BiLMConfig.from_dict(data | {"words": {"size": 3}})
    with pytest.raises(ConfigError, match="words is 3; expected an object"):
        BiLMConfig.from_dict(data | {"words": 3})


def test_models_of_bytes_are_written_as_before() -> None:
    """Old files, fingerprints and versions of elmokit do not know the new keys."""
    data = small_config().to_dict()
    assert set(data) == {"char_cnn", "lstm"} and "scheme" not in data["char_cnn"]


@pytest.mark.parametrize("extra", [{"char_cnn": 5}, {"lstm": []}, {"char_cnn": {"embedding": ""}}])
def test_further_keys_that_options_json_has_no_place_for(extra: dict) -> None:
    with pytest.raises(ConfigError, match=r"config: extra\.\w+ is .*; expected an object"):
        BiLMConfig.from_dict(small_config().to_dict() | {"extra": extra})


def test_what_options_json_cannot_say() -> None:
    with pytest.raises(ConfigError, match="its own alphabet and word embeddings; save"):
        with_words().to_options()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scheme": "runes"}, "scheme is 'runes'; expected 'bytes' or 'code_points'"),
        ({"scheme": "bytes"}, "characters is 40; expected an integer from 261"),
        ({"scheme": "bytes", "characters": 261}, "reads code points, not bytes"),
        ({"characters": 5}, "characters is 5; expected an integer from 6 to 32768"),
        ({"characters": 32769}, "characters is 32769"),
        ({"max_characters": 6}, "max_characters is 6; expected an integer from 7 to"),
        ({"filters": ((1, 4),), "projection": False}, "with word embeddings needs a projection"),
    ],
)
def test_words_and_schemes_that_cannot_be(changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_words(**changes)
    for wrong in (0, -1, "x", True):
        with pytest.raises(ConfigError, match=r"words\.dim is"):
            LexiconConfig(entries=3, dim=wrong)  # type: ignore[arg-type]
