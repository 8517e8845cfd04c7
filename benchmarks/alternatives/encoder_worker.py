"""One system in a process of its own: reads one JSON object per line, and writes one per line.

    python benchmarks/alternatives/encoder_worker.py builtin --threads 2

    {"command": "embed", "sentences": [["She", "went"], …]}     seconds, words
    {"command": "tags", "train": FILE, "dev": FILE, "test": FILE, "words": N}
                                         accuracy of a linear probe, layer by layer
    {"command": "senses", "semcor": DIR, "dev": FILE, "test": FILE, "sentences": N}
                                         share of right senses, layer by layer

The first line that it writes says how long it took from the start of the process to the first
vector, and how large the model is. Every line has the peak memory of the process so far.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

STARTED = time.time()


def main() -> None:
    """Load a system and answer requests until stdin ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("system", help="name of a system (systems.py)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--began", type=float, default=STARTED, help="time.time() of the caller")
    arguments = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")  # libraries print to stdout
    os.dup2(2, 1)

    def write(content: dict[str, Any]) -> None:
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
        answers.write(json.dumps({**content, "peak_mb": peak}) + "\n")
        answers.flush()

    from systems import load

    encoder = load(arguments.system, arguments.threads)
    encoder.embed([["She", "went", "to", "the", "bank", "."]])
    seconds = time.time() - arguments.began
    disk = sum(path.stat().st_size for path in encoder.files())
    write({"seconds": seconds, "disk_mb": disk / 1e6, "dim": encoder.dim})
    commands: dict[str, Callable[..., dict[str, Any]]] = {
        "embed": time_embedding,
        "tags": probe_tags,
        "senses": probe_senses,
    }
    for line in sys.stdin:
        request = json.loads(line)
        write(commands[request.pop("command")](encoder, **request))


def time_embedding(encoder: Any, sentences: list[list[str]]) -> dict[str, Any]:
    """Embed the sentences in one call."""
    start = time.perf_counter()
    encoder.embed(sentences)
    return {"seconds": time.perf_counter() - start, "words": sum(map(len, sentences))}


def probe_tags(encoder: Any, train: str, dev: str, test: str, words: int | None) -> dict[str, Any]:
    """Train a linear classifier on frozen vectors and return its accuracy, layer by layer."""
    import numpy as np

    from elmokit.nn.threads import torch_threads
    from elmokit.probe.tags.data import read_tagged
    from elmokit.probe.tags.linear import fit_linear

    sets = {"train": read_tagged(train), "dev": read_tagged(dev), "test": read_tagged(test)}
    if words is not None:
        sets["train"] = sets["train"].first(words)
    column = next(iter(sets["train"].tags))
    names = sorted(set(sets["train"].tags[column]))
    classes = {
        part: np.array([names.index(tag) if tag in names else -1 for tag in each.tags[column]])
        for part, each in sets.items()
    }
    vectors = {
        part: np.concatenate(list(encoder.stream(each.sentences)), axis=1)
        for part, each in sets.items()
    }
    scores: dict[str, list[float]] = {"dev": [], "test": []}
    for layer in range(encoder.layers):
        with torch_threads(1):  # the classifiers are too small to be divided
            classifier = fit_linear([vectors["train"][layer]], classes["train"])
            for part, values in scores.items():
                answers = classifier.predict([vectors[part][layer]])
                values.append(float((answers == classes[part]).mean()))
    sizes = {part: len(each) for part, each in classes.items()}
    return {"column": column, "layers": scores["test"], "dev": scores["dev"], "words": sizes}


def probe_senses(
    encoder: Any, semcor: str, dev: str, test: str, sentences: int | None
) -> dict[str, Any]:
    """Choose the nearest sense of SemCor for each instance; return the share of right ones."""
    from dataclasses import replace

    from elmokit.probe.senses.evaluation_sets import read_evaluation_set
    from elmokit.probe.senses.measure import TRAINED, choose_senses
    from elmokit.probe.senses.semcor import read_semcor
    from elmokit.probe.senses.wordnet import find_wordnet, read_wordnet

    corpus = read_semcor(semcor)
    if sentences is not None:
        corpus = replace(corpus, sentences=corpus.sentences[:sentences])
    sets = [read_evaluation_set(path) for path in (dev, test)]
    wordnet = read_wordnet(find_wordnet())
    answers = choose_senses({TRAINED: encoder}, corpus, sets, wordnet)
    dev_part, test_part = (answers.sets[each.name] for each in sets)
    correct = [answers.method(TRAINED, str(layer)).correct_N for layer in range(encoder.layers)]
    return {
        "layers": [float(layer_N[test_part].mean()) for layer_N in correct],
        "dev": [float(layer_N[dev_part].mean()) for layer_N in correct],
        "first": float(answers.method("", "first").correct_N[test_part].mean()),
        "instances": test_part.stop - test_part.start,
    }


if __name__ == "__main__":
    main()
