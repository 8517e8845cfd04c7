"""The card of the built-in model: card.md, filled with what the run and the measurements say.

python runs/builtin/card.py MODEL --run RUN_DIR --corpus CORPUS --measured measured.json
    --packed packed.json --out MODEL/README.md
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any

import tables
from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX
from elmokit.errors import ElmoError, InputError
from elmokit.train.corpus import Corpus
from elmokit.train.metrics import METRICS, read_metrics
from elmokit.train.run import TRAINING, Plan
from measure import write

Json = dict[str, Any]

SAMPLERS = {
    "poisson": "{} negatives a step, a Poisson sample that estimates the full softmax",
    "log-uniform": "{} negatives a step, log-uniform, as bilm-tf",
    "full": "in full",
}
TEXTS = {
    "sentences": "whole sentences, each from a state of zeros; both directions read the same ones",
    "stream": "a stream with carried state, truncated back-propagation",
}
CURVE_ROWS = 8


def card(bilm: BiLM, run: Path, corpus: Corpus, measured: Json, packed: Json) -> str:
    """The text."""
    if measured["signature"]["model"] != bilm.fingerprint:
        raise InputError(
            "the measurements are of another model: "
            f"{measured['signature']['model'][:12]}…, this one is {bilm.fingerprint[:12]}…"
        )
    template = Template((Path(__file__).parent / "card.md").read_text(encoding="utf-8"))
    return template.substitute(
        _model(bilm, packed) | _training(run, corpus) | _measurements(measured)
    )


def _model(bilm: BiLM, packed: Json) -> dict[str, str]:
    cnn, lstm = bilm.config.char_cnn, bilm.config.lstm
    architecture = f"{lstm.layers}x{lstm.cells}_{lstm.width}_{cnn.n_filters}cnn"
    return {
        "architecture": f"{architecture}_{cnn.highways}xhighway",
        "layers": str(bilm.config.layers),
        "dim": str(bilm.config.dim),
        "parameters": f"{bilm.parameters:,}",
        "softmax": f"{sum(bilm.weights[name].size for name in SOFTMAX):,}",
        "vocabulary": f"{len(bilm.vocabulary or ()):,}",
        "megabytes": f"{packed['bytes'] / 1e6:.1f}",
        "fingerprint": bilm.fingerprint,
    }


def _training(run: Path, corpus: Corpus) -> dict[str, str]:
    plan = Plan.read(run / TRAINING)
    lines = list(read_metrics(run / TRAINING / METRICS))
    if plan.corpus != corpus.fingerprint:
        raise InputError(f"{corpus.path} is not the corpus of the run in {run}")
    if not lines:
        raise InputError(f"{run} has noted nothing; expected a run that has ended")
    last, recipe, train = lines[-1], plan.recipe, corpus.train
    # A sentence is as many predictions as it has words, and one more.
    epochs = last["tokens"] / (train.tokens + train.sentences)
    schedule = {
        "linear": f"warm-up of {recipe.warm_up} steps, then falling to zero",
        "trapezoid": f"warm-up of {recipe.warm_up} steps, falling to zero in the last "
        f"{100 * recipe.decay:.0f} %",
        "constant": "constant",
    }
    return {
        "corpus": corpus.fingerprint,
        "corpus_words": f"{train.tokens:,}",
        "corpus_sentences": f"{train.sentences:,}",
        "tokens": f"{last['tokens']:,}",
        "epochs": f"{epochs:.1f}",
        "hours": f"{last['seconds'] / 3600:.1f}",
        "speed": f"{last['tokens'] / max(last['seconds'], 1e-9):,.0f}",
        "steps": f"{last['step']:,}",
        "batch": f"{last['tokens'] / last['step']:,.0f}",
        "text": TEXTS[recipe.text],
        "optimizer": recipe.optimizer.capitalize(),
        "rate": f"{recipe.rate:g}",
        "schedule": schedule[recipe.schedule],
        "clip": f"{recipe.clip:g}",
        "sampler": SAMPLERS[recipe.sampler].format(f"{recipe.negatives:,}"),
        "dropout": f"{recipe.dropout:g}" if recipe.dropout else "none",
        "seed": str(recipe.seed),
        "curve": _curve([line for line in lines if "perplexity" in line]),
    }


def _curve(looks: Sequence[Json]) -> str:
    """Some of the evaluations, the last among them."""
    if not looks:
        return "(not measured)"
    every = -(-len(looks) // CURVE_ROWS)
    rows = [
        [f"{look['tokens'] / 1e6:.0f} M", f"{look['forward']:.1f}", f"{look['backward']:.1f}"]
        for look in reversed(looks[::-1][::every])
    ]
    return tables.table(["words read", "forward", "backward"], rows)


def _measurements(measured: Json) -> dict[str, str]:
    words, signature = measured["tags"]["words"], measured["signature"]
    adaptation = ""
    if "adaptation" in measured:
        adaptation = (
            "Adaptation: perplexity before and after `elmo finetune` on biomedical articles, on "
            "those and on\ngeneral text:\n\n" + tables.adaptation(measured["adaptation"]) + "\n\n"
        )
    hashes = [[name, f"`{value[:16]}…`"] for name, value in signature["data"].items()]
    return {
        "perplexity_table": tables.perplexity(measured["perplexity"]),
        "tags_table": tables.tags(measured["tags"]),
        "tag_train": f"{words['train']:,}",
        "tag_dev": f"{words['dev']:,}",
        "tag_test": f"{words['test']:,}",
        "senses_table": tables.senses(measured["senses"]),
        "neighbors_table": tables.neighbors(measured["neighbors"]),
        "adaptation_section": adaptation,
        "command": signature["command"],
        "elmokit": signature["elmokit"],
        "signature": tables.table(["data", "SHA-256"], hashes),
    }


def main() -> None:
    """The command."""
    about = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    about.add_argument("model", type=Path, help="The packed model.")
    about.add_argument("--run", type=Path, required=True, help="The run it comes from.")
    about.add_argument("--corpus", type=Path, required=True)
    about.add_argument("--measured", type=Path, required=True)
    about.add_argument("--packed", type=Path, required=True)
    about.add_argument("--out", type=Path, required=True)
    given = about.parse_args()
    try:
        measured, packed = (
            json.loads(path.read_text(encoding="utf-8")) for path in (given.measured, given.packed)
        )
        bilm = formats.read(given.model)
        write(given.out, card(bilm, given.run, Corpus.open(given.corpus), measured, packed))
    except (ElmoError, OSError, ValueError, KeyError) as error:
        sys.exit(f"card: {error!r}")
    print(given.out)


if __name__ == "__main__":
    main()
