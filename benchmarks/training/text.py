"""What the trainers read: a corpus, and the same sentences as simple_elmo wants them.

Knows nothing about clocks and processes.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from elmokit.bilm.sizes import SIZES
from elmokit.cli.bench import made_up_sentences
from elmokit.text.characters import BOS, EOS
from elmokit.text.vocabulary import UNKNOWN, Vocabulary
from elmokit.train.build import Options, build_corpus
from elmokit.train.corpus import Corpus
from elmokit.train.recipe import RECIPES
from trainer import LANES, NEGATIVES, WINDOW

VOCABULARY = 30_000
SENTENCES = 40_000
"""More than any contestant reads in a measurement of a quarter of an hour."""


def made_up_corpus(directory: Path) -> Corpus:
    """Words as rare and as common as those of a language (Zipf); `directory` is made."""
    sentences = list(islice(made_up_sentences(), SENTENCES))
    text = directory.with_suffix(".txt")
    text.write_text("".join(" ".join(words) + "\n" for words in sentences))
    seen = [w for w, _ in Counter(w for words in sentences for w in words).most_common()]
    words = [BOS, EOS, UNKNOWN, *seen, *(f"never{i}" for i in range(VOCABULARY))][:VOCABULARY]
    options = Options(form="tokenized", held_out=0)
    return build_corpus([str(text)], directory, options, vocabulary=Vocabulary(words))


def write_for_simple_elmo(corpus: Corpus, directory: Path, sizes: Iterable[str]) -> None:
    """Sentences, vocabulary, and the options of each size."""
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
        options["char_cnn"]["n_characters"] -= 1  # it trains without the mask
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
