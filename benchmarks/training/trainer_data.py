"""The input of the trainers: a corpus, and the same sentences in the format of simple_elmo.

Knows nothing about timing and processes.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from elmokit.bench import synthetic_sentences
from elmokit.bilm.sizes import SIZES
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import UNKNOWN, Vocabulary
from elmokit.train.build import CorpusOptions, build_corpus
from elmokit.train.corpus import Corpus
from elmokit.train.recipe import RECIPES
from trainer_worker import LANES, NEGATIVES, WINDOW

VOCABULARY = 30_000
"""Number of words in the vocabulary of the made-up corpus."""
SENTENCES = 40_000
"""Number of made-up sentences: more than any trainer reads in a quarter of an hour."""


def made_up_corpus(directory: Path) -> Corpus:
    """Build a corpus of made-up words with the frequencies of a language (Zipf)."""
    sentences = list(islice(synthetic_sentences(), SENTENCES))
    text = directory.with_suffix(".txt")
    text.write_text("".join(" ".join(words) + "\n" for words in sentences))
    by_frequency = [w for w, _ in Counter(w for words in sentences for w in words).most_common()]
    words = [BOS, EOS, UNKNOWN, *by_frequency, *(f"never{i}" for i in range(VOCABULARY))]
    options = CorpusOptions(form="tokenized", held_out=0)
    return build_corpus([str(text)], directory, options, vocabulary=Vocabulary(words[:VOCABULARY]))


def write_for_simple_elmo(corpus: Corpus, directory: Path, sizes: Iterable[str]) -> None:
    """Write sentences, vocabulary, and the options of each size."""
    directory.mkdir()
    count = min(SENTENCES, corpus.train.sentences)
    ids, lengths = corpus.train.gather(np.arange(count))
    with gzip.open(directory / "text-0.gz", "wt", encoding="utf-8", compresslevel=1) as file:
        for sentence in np.split(ids, np.cumsum(lengths)[:-1]):
            file.write(" ".join(corpus.words[i] for i in sentence.tolist()) + "\n")
    (directory / "vocab.txt").write_bytes(corpus.vocabulary.dump())
    recipe = RECIPES["bilm-tf"]
    for size in sizes:
        options = SIZES[size].to_options()
        options["char_cnn"]["n_characters"] -= 1  # it is trained without the mask character
        options |= {
            "bidirectional": True,
            "dropout": recipe.dropout,
            "all_clip_norm_val": recipe.clip,
            "learning_rate": recipe.rate,
            "batch_size": LANES,
            "unroll_steps": WINDOW,
            "n_negative_samples_batch": NEGATIVES,
            "n_tokens_vocab": len(corpus.vocabulary),
            "n_train_tokens": 10**12,
            "n_epochs": 1,
        }
        (directory / f"{size}.json").write_text(json.dumps(options))
