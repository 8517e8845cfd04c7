"""What a model knows, measured: perplexity, tags, senses, neighbors, adaptation.

    python runs/builtin/measure.py MODEL --data DIR --out measured.json [--adapted MODEL]

Writes the numbers as JSON, with a signature of what determined them, and beside it the same as
Markdown tables (measured.md). Ten minutes on two cores that have other things to do, or less.
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

import elmokit
import tables
import texts
from elmokit import Elmo
from elmokit.errors import ElmoError
from elmokit.lm import perplexity
from elmokit.probe.neighbors.nearest import Uses, in_context
from elmokit.probe.senses.separation import read_senses, senses_apart
from elmokit.probe.tags.data import read_tagged
from elmokit.probe.tags.measure import most_frequent_tag, tag_probe
from elmokit.probe.untrained import untrained
from elmokit.text.files import checksum, write_text

HERE = Path(__file__).parent
WORDS = ("bank", "play")
QUERIES = (
    # The first two are the paper's.
    ("play", "Chico Ruiz made a spectacular play on Alusik 's grounder ."),
    ("play", "Olivia De Havilland signed to do a Broadway play for Garson ."),
    ("bank", "We sat on the grassy bank and watched the river ."),
    ("bank", "The bank refused to lend him any more money ."),
)
SENTENCES_WITH = 2_000
"""Of the training text with each word, to look for neighbors in."""
NEIGHBORS = 3
"""Among uses of the same word, and among all."""
ADAPTATION_WORDS = 50_000
"""Of each text, before and after adaptation."""

Json = dict[str, Any]


def measure(
    model: Elmo,
    data: Path,
    *,
    adapted: Elmo | None = None,
    words: int | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = print,
) -> Json:
    """All of it; `words` shortens the texts, for a quick look."""
    hashes: dict[str, str] = {}
    seconds: dict[str, float] = {}

    @contextmanager
    def part(name: str) -> Iterator[None]:
        tell(f"{name} …")
        start = time.perf_counter()
        yield
        seconds[name] = round(time.perf_counter() - start, 1)
        tell(f"{name}: {seconds[name]:.0f} s")

    found: Json = {}
    blank = Elmo(untrained(model.bilm, seed), threads=model.threads)
    with part("perplexity"):
        general = perplexity(model, texts.sentences(data, "lm-en-test"), words=words)
        found["perplexity"] = general.to_dict()
        hashes["lm-en-test"] = general.signature["data"]
        tell(tables.perplexity_row("lm-en-test", found["perplexity"]))
    with part("senses"):
        found["senses"] = {word: _senses(model, blank, word, hashes) for word in WORDS}
        tell(tables.senses(found["senses"]))
    with part("neighbors"):
        found["neighbors"] = _neighbors(model, data, hashes)
        tell(tables.neighbors(found["neighbors"]))
    with part("tags"):
        found["tags"] = _tags(model, blank, data, seed, hashes, tell)
        tell(tables.tags(found["tags"]))
    if adapted is not None:
        with part("adaptation"):
            found["adaptation"] = _adaptation(model, adapted, data, words)
            tell(tables.adaptation(found["adaptation"]))
    signature = {
        "model": model.bilm.fingerprint,
        "adapted": adapted and adapted.bilm.fingerprint,
        "data": hashes,
        "words": words,
        "seed": seed,
        "state": model.state,
        "dtype": model.dtype,
        "elmokit": elmokit.__version__,
        "command": " ".join(["python", "runs/builtin/measure.py", *_shown(sys.argv[1:])]),
    }
    return {"signature": signature, "seconds": seconds, **found}


def _senses(model: Elmo, blank: Elmo, word: str, hashes: dict[str, str]) -> Json:
    path = HERE / "senses" / f"{word}.tsv"
    uses = read_senses(path)
    hashes[f"senses/{word}"] = checksum(path)
    return {
        "uses": len(uses),
        "trained": [asdict(layer) for layer in senses_apart(model, word, uses)],
        "untrained": [asdict(layer) for layer in senses_apart(blank, word, uses)],
    }


def _neighbors(model: Elmo, data: Path, hashes: dict[str, str]) -> list[Json]:
    """From the top layer, in held-out text and, since there are few uses in it, other text."""
    corpus = list(texts.sentences(data, "lm-en-valid"))
    for word in WORDS:
        corpus += texts.sentences_with(data, "lm-en-train", word, SENTENCES_WITH)
    hashes["neighbors"] = _sentences_hash(corpus)
    uses = Uses(model, corpus, layer="top")
    found = []
    for word, sentence in QUERIES:
        # Words as they are: the sentences are tokenized.
        words, vector = in_context(model, word, sentence.split(), "top")
        nearest = {
            among: [
                {"similarity": one.similarity, "words": list(one.words), "place": one.place}
                for one in uses.nearest(vector, NEIGHBORS, word=only, but=words)
            ]
            for among, only in (("this word", word), ("all words", None))
        }
        found.append({"word": word, "sentence": sentence, "uses": len(uses), "nearest": nearest})
    return found


def _tags(
    model: Elmo,
    blank: Elmo,
    data: Path,
    seed: int,
    hashes: dict[str, str],
    tell: Callable[[str], None],
) -> Json:
    with texts.unpacked(data, "pos-ewt") as place:
        files = {name: place / f"{name}.tsv" for name in ("train", "dev", "test")}
        sets = {name: read_tagged(path) for name, path in files.items()}
        hashes |= {f"pos-ewt/{name}": checksum(path) for name, path in files.items()}
    train = sets["train"]
    tests = {name: sets[name] for name in ("dev", "test")}
    found: Json = {"words": {name: len(each.words) for name, each in sets.items()}}
    found["most frequent"] = {
        column: {name: most_frequent_tag(train, test, column) for name, test in tests.items()}
        for column in train.tags
    }
    for kind, elmo in (("trained", model), ("untrained", blank)):
        scores = tag_probe(
            elmo,
            train,
            tests,
            seed=seed,
            tell=lambda score, kind=kind: tell(  # type: ignore[misc]
                f"  {kind}, {score.column}, layer {score.layer}: {score.accuracy['dev']:.2%} dev"
            ),
        )
        found[kind] = [asdict(score) for score in scores]
    return found


def _adaptation(model: Elmo, adapted: Elmo, data: Path, words: int | None) -> Json:
    """Perplexities on both domains, of the model before and after it was adapted to one."""
    words = min(words or ADAPTATION_WORDS, ADAPTATION_WORDS)
    return {
        name: {
            when: perplexity(elmo, texts.sentences(data, name), words=words).to_dict()
            for when, elmo in (("before", model), ("after", adapted))
        }
        for name in ("lm-biomed-test", "lm-en-test")
    }


def _sentences_hash(corpus: Iterable[Sequence[str]]) -> str:
    digest = hashlib.sha256()
    for words in corpus:
        digest.update((" ".join(words) + "\n").encode("utf-8"))
    return digest.hexdigest()


def _shown(arguments: Sequence[str]) -> list[str]:
    """A command's arguments without the directories of this machine."""
    return [Path(argument).name if os.sep in argument else argument for argument in arguments]


def main() -> None:
    """The command."""
    about = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    about.add_argument("model", help="A directory, or a name.")
    about.add_argument("--data", type=Path, required=True, help="The directory of the data.")
    about.add_argument("--out", type=Path, required=True, help="The file of JSON to write.")
    about.add_argument("--adapted", help="The model after adaptation to lm-biomed.")
    about.add_argument("--words", type=int, help="Of texts, for a quick look; all by default.")
    about.add_argument("--seed", type=int, default=0)
    about.add_argument("--threads", type=int, help="Cores to use; all by default.")
    given = about.parse_args()
    start = time.perf_counter()
    try:
        if given.threads:
            import torch

            torch.set_num_threads(given.threads)
        adapted = Elmo.load(given.adapted, threads=given.threads) if given.adapted else None
        found = measure(
            Elmo.load(given.model, threads=given.threads),
            given.data,
            adapted=adapted,
            words=given.words,
            seed=given.seed,
            tell=lambda line: print(line, flush=True),
        )
    except (ElmoError, OSError) as error:
        sys.exit(f"measure: {error}")
    write(given.out, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    write(given.out.with_suffix(".md"), tables.everything(found))
    print(f"{time.perf_counter() - start:.0f} s -> {given.out}")


def write(path: Path, text: str) -> None:
    """At once or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)


if __name__ == "__main__":
    main()
