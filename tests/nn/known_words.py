"""A tiny model of random numbers as ELMoForManyLangs has them."""

from __future__ import annotations

import numpy as np

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LexiconConfig, LSTMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import expected_shapes
from elmokit.text.characters import ALPHABET_MARKS
from elmokit.text.dictionary import Dictionary


def known_words() -> BiLM:
    """Characters are code points, and some words are known beside them."""
    alphabet = Dictionary([*ALPHABET_MARKS, *"abehknorstuw"])
    lexicon = Dictionary(["<oov>", "<bos>", "<eos>", "the", "bank"])
    config = BiLMConfig(
        char_cnn=CharCNNConfig(
            filters=((1, 3), (2, 4)),
            embedding_dim=3,
            highways=1,
            characters=len(alphabet),
            max_characters=12,
            scheme="code_points",
        ),
        lstm=LSTMConfig(cells=7, width=5, projection_clip=0.5),
        words=LexiconConfig(entries=len(lexicon), dim=4),
    )
    source = np.random.default_rng(3)
    weights = {
        name: source.normal(scale=0.5, size=shape).astype(np.float32)
        for name, shape in expected_shapes(config).items()
    }
    return BiLM(config, weights, alphabet=alphabet, lexicon=lexicon)
