"""Measure a model: perplexity, part-of-speech tags, word senses, neighbors, adaptation.

    python runs/builtin/measure.py MODEL --data DIR --out measured.json [--adapted MODEL]

Writes the numbers as JSON, with a signature of what determined them, and beside that file the same
as Markdown tables (measured.md). Takes about ten minutes on two busy cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import data_files
import elmokit
import separation
import tables
from corpus_search import CorpusSearch
from elmokit import Elmo
from elmokit.errors import ElmoError
from elmokit.lm import perplexity
from elmokit.probe.neighbors.word_use import embed_word
from elmokit.probe.tags.data import read_tagged
from elmokit.probe.tags.measure import frequent_tag_correct, tag_answers
from elmokit.probe.untrained import untrained_copy
from elmokit.storage import checksum, write_text

HERE = Path(__file__).parent
WORDS = ("bank", "play")
"""Words with two senses each, for the measurements of senses and neighbors."""
QUERIES = (
    # The first two are the paper's.
    ("play", "Chico Ruiz made a spectacular play on Alusik 's grounder ."),
    ("play", "Olivia De Havilland signed to do a Broadway play for Garson ."),
    ("bank", "We sat on the grassy bank and watched the river ."),
    ("bank", "The bank refused to lend him any more money ."),
)
SENTENCES_PER_WORD = 2_000
"""Sentences of the training text with each word that are searched for neighbors, at most."""
NEIGHBORS = 3
"""Neighbors per query among uses of the same word, and as many among all words."""
ADAPTATION_WORDS = 50_000
"""Words of each text whose perplexity is measured before and after adaptation, at most."""

Json = dict[str, Any]


def measure(
    model: Elmo,
    data: Path,
    *,
    adapted: Elmo | None = None,
    max_words: int | None = None,
    seed: int = 0,
    log: Callable[[str], None] = print,
) -> Json:
    """Return all measurements of a model.

    Args:
        model: The model.
        data: Directory of the data sets.
        adapted: The model after adaptation to biomedical text, to compare with.
        max_words: Words of each text to read, for a quick look; all by default.
        seed: Random seed.
        log: Called with lines about the progress and the results.
    """
    hashes: dict[str, str] = {}
    seconds: dict[str, float] = {}

    @contextmanager
    def section(name: str) -> Iterator[None]:
        log(f"{name} …")
        start = time.perf_counter()
        yield
        seconds[name] = round(time.perf_counter() - start, 1)
        log(f"{name}: {seconds[name]:.0f} s")

    results: Json = {}
    control = Elmo(untrained_copy(model.bilm, seed), threads=model.threads)
    with section("perplexity"):
        sentences = data_files.read_sentences(data, "lm-en-test")
        general = perplexity(model, sentences, max_words=max_words)
        results["perplexity"] = general.to_dict()
        hashes["lm-en-test"] = general.signature["data"]
        log(tables.perplexity_line("lm-en-test", results["perplexity"]))
        # The same text as a reader has it, each sentence after those before it.
        reader = Elmo(model.bilm, state="carry", threads=model.threads)
        sentences = data_files.read_sentences(data, "lm-en-test")
        results["running"] = perplexity(reader, sentences, max_words=max_words).to_dict()
        log(tables.perplexity_line("lm-en-test, running", results["running"]))
    with section("senses"):
        results["senses"] = {word: _senses(model, control, word, hashes) for word in WORDS}
        log(tables.senses_table(results["senses"]))
    with section("neighbors"):
        results["neighbors"] = _neighbors(model, data, hashes)
        log(tables.neighbors_table(results["neighbors"]))
    with section("tags"):
        results["tags"] = _tags(model, control, data, seed, hashes, log)
        log(tables.tags_table(results["tags"]))
    if adapted is not None:
        with section("adaptation"):
            results["adaptation"] = _adaptation(model, adapted, data, max_words)
            log(tables.adaptation_table(results["adaptation"]))
    signature = {
        "model": model.bilm.fingerprint,
        "adapted": adapted and adapted.bilm.fingerprint,
        "data": hashes,
        "words": max_words,
        "seed": seed,
        "state": model.state,
        "dtype": model.dtype,
        "elmokit": elmokit.__version__,
        "command": " ".join(["python", "runs/builtin/measure.py", *_file_names(sys.argv[1:])]),
    }
    return {"signature": signature, "seconds": seconds, **results}


def _senses(model: Elmo, control: Elmo, word: str, hashes: dict[str, str]) -> Json:
    path = HERE / "senses" / f"{word}.tsv"
    uses = separation.read_senses(path)
    hashes[f"senses/{word}"] = checksum(path)
    return {
        "uses": len(uses),
        "trained": [asdict(layer) for layer in separation.sense_separation(model, word, uses)],
        "untrained": [asdict(layer) for layer in separation.sense_separation(control, word, uses)],
    }


def _neighbors(model: Elmo, data: Path, hashes: dict[str, str]) -> list[Json]:
    """Search held-out text and, since it has few uses of the words, sentences of other text."""
    corpus = list(data_files.read_sentences(data, "lm-en-valid"))
    for word in WORDS:
        corpus += data_files.sentences_with_word(data, "lm-en-train", word, SENTENCES_PER_WORD)
    hashes["neighbors"] = _hash_sentences(corpus)
    uses = CorpusSearch(model, corpus, layer="top")
    results = []
    for word, sentence in QUERIES:
        query = embed_word(model, word, sentence.split(), "top")  # the sentences are tokenized
        nearest = {
            among: [
                {"similarity": one.similarity, "words": list(one.words), "place": one.position}
                for one in uses.search(query.vector, NEIGHBORS, word=only, exclude=query.words)
            ]
            for among, only in (("this word", word), ("all words", None))
        }
        results.append({"word": word, "sentence": sentence, "uses": len(uses), "nearest": nearest})
    return results


def _tags(
    model: Elmo,
    control: Elmo,
    data: Path,
    seed: int,
    hashes: dict[str, str],
    log: Callable[[str], None],
) -> Json:
    with data_files.unpacked_data(data, "pos-ewt") as directory:
        files = {name: directory / f"{name}.tsv" for name in ("train", "dev", "test")}
        sets = {name: read_tagged(path) for name, path in files.items()}
        hashes |= {f"pos-ewt/{name}": checksum(path) for name, path in files.items()}
    train = sets["train"]
    tests = {name: sets[name] for name in ("dev", "test")}
    results: Json = {"words": {name: len(each.words) for name, each in sets.items()}}
    results["most frequent"] = {
        column: {
            name: float(frequent_tag_correct(train, test, column).mean())
            for name, test in tests.items()
        }
        for column in train.tags
    }
    for network, elmo in (("trained", model), ("untrained", control)):
        results[network] = []
        for answers in tag_answers(elmo, train, tests, seed=seed):
            score = answers.score
            results[network].append(asdict(score))
            accuracy = f"{score.accuracy['dev']:.2%} dev"
            log(f"  {network}, {score.column}, layer {score.layer}: {accuracy}")
    return results


def _adaptation(model: Elmo, adapted: Elmo, data: Path, max_words: int | None) -> Json:
    """Measure perplexity on both domains, before and after adaptation to one of them."""
    words = min(max_words or ADAPTATION_WORDS, ADAPTATION_WORDS)
    return {
        name: {
            when: perplexity(elmo, data_files.read_sentences(data, name), max_words=words).to_dict()
            for when, elmo in (("before", model), ("after", adapted))
        }
        for name in ("lm-biomed-test", "lm-en-test")
    }


def _hash_sentences(corpus: Iterable[Sequence[str]]) -> str:
    digest = hashlib.sha256()
    for words in corpus:
        digest.update((" ".join(words) + "\n").encode("utf-8"))
    return digest.hexdigest()


def _file_names(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command without the directories of this machine."""
    return [Path(argument).name if os.sep in argument else argument for argument in arguments]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("model", help="Model directory, or name of a model.")
    parser.add_argument("--data", type=Path, required=True, help="Directory of the data sets.")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write.")
    parser.add_argument("--adapted", help="Model after adaptation to lm-biomed.")
    parser.add_argument(
        "--words", type=int, help="Words of each text to read, for a quick look (default: all)."
    )
    parser.add_argument("--seed", type=int, default=0, help="Random seed (default: 0).")
    parser.add_argument("--threads", type=int, help="Number of threads (default: all cores).")
    options = parser.parse_args()
    start = time.perf_counter()
    try:
        if options.threads:
            import torch

            torch.set_num_threads(options.threads)
        adapted = Elmo.load(options.adapted, threads=options.threads) if options.adapted else None
        results = measure(
            Elmo.load(options.model, threads=options.threads),
            options.data,
            adapted=adapted,
            max_words=options.words,
            seed=options.seed,
            log=lambda line: print(line, flush=True),
        )
    except (ElmoError, OSError) as error:
        sys.exit(f"measure: {error}")
    write_file(options.out, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    write_file(options.out.with_suffix(".md"), tables.all_tables(results))
    print(f"{time.perf_counter() - start:.0f} s -> {options.out}")


def write_file(path: Path, text: str) -> None:
    """Write a text file, all or nothing, and its directory if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


if __name__ == "__main__":
    main()
