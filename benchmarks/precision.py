"""What the approximate dtypes cost a model: vectors, tags and senses beside those of float32.

    python benchmarks/precision.py --text lm-en-test.txt --sentences 500
    python benchmarks/precision.py --tags pos-ewt
    python benchmarks/precision.py --senses wsd-semcor wsd-raganato/ALL.data.xml
    python benchmarks/precision.py --task my-ner test.conll

Prints one table per argument: the cosine between the vectors of each word in float32 and in the
other dtypes, layer by layer; the accuracy of linear taggers (`elmo probe pos`, needs torch) that
are trained and tested on the vectors of each dtype, or trained on those of float32 (`--transfer`);
the F1 of senses (`elmo probe wsd`); and the scores of a task model that was trained with float32
(`elmo task train`, needs torch). A dtype may name an instruction set:
`bfloat16:emulated_bf16` computes what `avx512_bf16` does, on any machine. The last line has all
numbers as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
from itertools import islice
from pathlib import Path

import numpy as np

from elmokit import Elmo
from elmokit.engine.native import ISA_VARIABLE

DTYPES = ("bfloat16", "bfloat16:emulated_bf16", "int8")
EXACT = "float32"

Rows = dict[str, list[float]]
"""One number per column, by the name of the row."""


def load(model: str, dtype: str, threads: int) -> Elmo:
    """Load a model with a dtype, which may name an instruction set after a colon."""
    name, _, isa = dtype.partition(":")
    if isa:
        os.environ[ISA_VARIABLE] = isa
    try:
        return Elmo.load(model, dtype=name, threads=threads)
    finally:
        if isa:
            del os.environ[ISA_VARIABLE]


def compare_vectors(elmos: dict[str, Elmo], text: Path, count: int) -> dict[str, Rows]:
    """Return mean, first percentile and minimum of the cosine with float32, by dtype and layer."""
    with open(text, encoding="utf-8") as file:
        sentences = list(islice((line for line in file if line.strip()), count))
    exact_LND = np.concatenate(elmos[EXACT].embed(sentences, "all"), axis=1)
    print(f"\n{exact_LND.shape[1]:,} words of {text.name}; cosine with float32")
    print(f"{'dtype':24} layer   mean      1st percentile  minimum")
    results: dict[str, Rows] = {}
    for dtype, elmo in elmos.items():
        if dtype == EXACT:
            continue
        results[dtype] = {}
        approximate_LND = np.concatenate(elmo.embed(sentences, "all"), axis=1)
        for layer, (exact_ND, other_ND) in enumerate(zip(exact_LND, approximate_LND, strict=True)):
            norms_N = np.linalg.norm(exact_ND, axis=1) * np.linalg.norm(other_ND, axis=1)
            cosine_N = (exact_ND * other_ND).sum(axis=1) / norms_N
            low = np.quantile(cosine_N, 0.01)
            row = [float(cosine_N.mean()), float(low), float(cosine_N.min())]
            results[dtype][str(layer)] = row
            print(f"{dtype:24} {layer:5}   {row[0]:.6f}  {row[1]:.6f}        {row[2]:.6f}")
    return results


def compare_tags(
    elmos: dict[str, Elmo], directory: Path, words: int, transfer: bool
) -> dict[str, Rows]:
    """Return the accuracy of linear taggers on the development and the test set, in percent."""
    from elmokit.probe.tags.data import read_tagged
    from elmokit.probe.tags.linear import fit_linear
    from elmokit.probe.tags.measure import ALL, embed_layers

    texts = {name: read_tagged(directory / f"{name}.tsv", None, None) for name in ("dev", "test")}
    train = read_tagged(directory / "train.tsv", None, None).first(words)
    column, tags = next(iter(train.tags.items()))
    number = {tag: k for k, tag in enumerate(sorted(set(tags)))}
    classes_N = np.array([number[tag] for tag in tags], np.int64)
    print(f"\n{directory.name}, {column}: accuracy in %, trained on {len(train.words):,} words")
    print(f"{'dtype':24} layer      dev    test")
    results: dict[str, Rows] = {}
    classifiers = {}
    for dtype, elmo in elmos.items():
        results[dtype] = {}
        layers = {str(j): [j] for j in range(elmo.layers)} | {ALL: list(range(elmo.layers))}
        if not transfer or dtype == EXACT:
            train_vectors = embed_layers(elmo, train.sentences)
            classifiers = {
                layer: fit_linear([train_vectors[j] for j in indices], classes_N, seed=0)
                for layer, indices in layers.items()
            }
        vectors = {name: embed_layers(elmo, text.sentences) for name, text in texts.items()}
        for layer, indices in layers.items():
            results[dtype][layer] = []
            for name, text in texts.items():
                gold_N = np.array([number.get(tag, -1) for tag in text.tags[column]])
                found_N = classifiers[layer].predict([vectors[name][j] for j in indices])
                results[dtype][layer].append(100 * float((found_N == gold_N).mean()))
            dev, test = results[dtype][layer]
            print(f"{dtype:24} {layer:5}   {dev:6.2f}  {test:6.2f}", flush=True)
    return results


def compare_senses(elmos: dict[str, Elmo], semcor: Path, test: Path) -> dict[str, Rows]:
    """Return the F1 of the nearest sense, in percent."""
    from elmokit.probe.senses.evaluation_sets import find_gold_keys, read_evaluation_set
    from elmokit.probe.senses.measure import TRAINED, choose_senses
    from elmokit.probe.senses.semcor import read_semcor
    from elmokit.probe.senses.wordnet import find_wordnet, read_wordnet

    wordnet, corpus = read_wordnet(find_wordnet()), read_semcor(semcor)
    tests = [read_evaluation_set(test, find_gold_keys(test))]
    print(f"\nsenses of {test.name} by the vectors of {corpus.words:,} words: F1 in %")
    print(f"{'dtype':24} layer       F1")
    results: dict[str, Rows] = {}
    for dtype, elmo in elmos.items():
        answers = choose_senses({TRAINED: elmo}, corpus, tests, wordnet)
        results[dtype] = {
            method.layer: [100 * float(method.correct_N.mean())]
            for method in answers.methods
            if method.network
        }
        for layer, (f1,) in results[dtype].items():
            print(f"{dtype:24} {layer:5}   {f1:6.2f}", flush=True)
    return results


def compare_task(
    elmos: dict[str, Elmo], directory: Path, test: Path
) -> dict[str, dict[str, float]]:
    """Return the scores of a trained task model with the vectors of each dtype."""
    from elmokit import tasks

    results = {}
    for dtype, elmo in elmos.items():
        trained = tasks.load(directory, elmo)
        results[dtype] = trained.evaluate(tasks.read(trained.settings.task, test))
        shown = "  ".join(f"{name} {score:.2f}" for name, score in results[dtype].items())
        print(f"{dtype:24} {shown}", flush=True)
    return results


def main() -> None:
    """Compare what the arguments name, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--text", type=Path, help="Text file with one sentence per line.")
    parser.add_argument("--sentences", type=int, default=2_000, help="Number of sentences to read.")
    parser.add_argument("--tags", type=Path, help="Directory of train.tsv, dev.tsv and test.tsv.")
    parser.add_argument(
        "--words", type=int, default=10**9, help="Number of words to train taggers on."
    )
    parser.add_argument(
        "--transfer", action="store_true", help="Train taggers on the vectors of float32 only."
    )
    parser.add_argument(
        "--senses", type=Path, nargs=2, metavar=("SEMCOR", "DATA.XML"), help="Corpus and test set."
    )
    parser.add_argument(
        "--task", type=Path, nargs=2, metavar=("DIR", "TEST"), help="Task model and test file."
    )
    parser.add_argument("--model", default="builtin", help="Path or name of the model.")
    parser.add_argument(
        "--dtype", action="append", help=f"Dtype to compare; by default {', '.join(DTYPES)}."
    )
    parser.add_argument("--threads", type=int, default=2, help="Number of threads.")
    options = parser.parse_args()
    if not (options.text or options.tags or options.senses or options.task):
        parser.error("nothing to compare; give --text, --tags, --senses or --task")
    dtypes = [EXACT, *(options.dtype or DTYPES)]
    elmos = {dtype: load(options.model, dtype, options.threads) for dtype in dtypes}
    results: dict[str, object] = {}
    if options.text:
        results["cosine"] = compare_vectors(elmos, options.text, options.sentences)
    if options.tags:
        results["tags"] = compare_tags(elmos, options.tags, options.words, options.transfer)
    if options.senses:
        results["senses"] = compare_senses(elmos, *options.senses)
    if options.task:
        results["task"] = compare_task(elmos, *options.task)
    print(json.dumps({"model": options.model, **results}))


if __name__ == "__main__":
    main()
