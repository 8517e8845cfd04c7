"""Write the model card of the built-in model: card.md, filled with the numbers of the run.

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
from elmokit.train.batches import make_batch_reader
from elmokit.train.corpus import Corpus
from elmokit.train.metrics import METRICS, read_metrics
from elmokit.train.run_plan import TRAINING, RunPlan
from measure import write_file

Json = dict[str, Any]

SAMPLERS = {
    "poisson": "{} negative samples per step, a Poisson sample that estimates the full softmax",
    "log-uniform": "{} negative samples per step, log-uniform, as in bilm-tf",
    "full": "full",
}
OPTIMIZERS = {
    "adam": "Adam",
    "adagrad": "Adagrad",
    "muon": "Muon for the matrices of the LSTMs, Adam for the rest",
}
TEXTS = {
    "sentences": "whole sentences, each starting from a zero state; both directions read the same "
    "sentences",
    "passages": "passages of 1 to {} consecutive sentences, each starting from a zero state; both "
    "directions read the same passages",
    "stream": "one stream of text with carried state, truncated back-propagation",
}
PRODUCTS = {"float32": "float32", "bfloat16": "factors rounded to bfloat16, sums in float32"}
CURVE_ROWS = 8
"""Evaluations shown in the table of the training curve, at most."""


def make_card(bilm: BiLM, run: Path, corpus: Corpus, measured: Json, packed: Json) -> str:
    """Return the text of the model card.

    Args:
        bilm: The packed model.
        run: Directory of the training run that it comes from.
        corpus: The corpus of that run.
        measured: What measure.py has written.
        packed: What pack.py has written.
    """
    if measured["signature"]["model"] != bilm.fingerprint:
        raise InputError(
            "the measurements are of another model: "
            f"{measured['signature']['model'][:12]}…; expected {bilm.fingerprint[:12]}…"
        )
    template = Template((Path(__file__).parent / "card.md").read_text(encoding="utf-8"))
    return template.substitute(
        _model_fields(bilm, packed) | _training_fields(run, corpus) | _measured_fields(measured)
    )


def _model_fields(bilm: BiLM, packed: Json) -> dict[str, str]:
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


def _training_fields(run: Path, corpus: Corpus) -> dict[str, str]:
    plan = RunPlan.read(run / TRAINING)
    lines = list(read_metrics(run / TRAINING / METRICS))
    if plan.corpus != corpus.fingerprint:
        raise InputError(f"{corpus.path} is not the corpus of the run in {run}")
    if not lines:
        raise InputError(f"{run} has no metrics; expected a finished training run")
    last, recipe, train = lines[-1], plan.recipe, corpus.train
    epochs = last["tokens"] / make_batch_reader(corpus, recipe).epoch_tokens
    schedule = {
        "linear": f"{recipe.warm_up} warm-up steps, then a linear decay to zero",
        "trapezoid": f"{recipe.warm_up} warm-up steps, a decay to zero in the last "
        f"{100 * recipe.decay:.0f} %",
        "constant": "constant",
    }
    return {
        "corpus": corpus.fingerprint,
        "corpus_words": f"{train.tokens:,}",
        "corpus_sentences": f"{train.sentences:,}",
        "start": f"weights of `{plan.start[:12]}…`" if plan.start else "random weights",
        "tokens": f"{last['tokens']:,}",
        "epochs": f"{epochs:.1f}",
        "hours": f"{last['seconds'] / 3600:.1f}",
        "speed": f"{last['tokens'] / max(last['seconds'], 1e-9):,.0f}",
        "steps": f"{last['step']:,}",
        "batch": f"{last['tokens'] / last['step']:,.0f}",
        "text": TEXTS[recipe.text].format(recipe.passage),
        "optimizer": OPTIMIZERS[recipe.optimizer],
        "rate": f"{recipe.rate:g}",
        "schedule": schedule[recipe.schedule],
        "clip": f"{recipe.clip:g}",
        "sampler": SAMPLERS[recipe.sampler].format(f"{recipe.negatives:,}"),
        "products": PRODUCTS[recipe.products],
        "dropout": f"{recipe.dropout:g}" if recipe.dropout else "none",
        "seed": str(recipe.seed),
        "curve": _curve_table([line for line in lines if "perplexity" in line]),
    }


def _curve_table(evaluations: Sequence[Json]) -> str:
    """Return a table of evenly spaced evaluations, with the last one."""
    if not evaluations:
        return "(not measured)"
    step = -(-len(evaluations) // CURVE_ROWS)
    rows = [
        [f"{each['tokens'] / 1e6:.0f} M", f"{each['forward']:.1f}", f"{each['backward']:.1f}"]
        for each in reversed(evaluations[::-1][::step])
    ]
    return tables.markdown_table(["words read", "forward", "backward"], rows)


def _measured_fields(measured: Json) -> dict[str, str]:
    words, signature = measured["tags"]["words"], measured["signature"]
    adaptation = ""
    if "adaptation" in measured:
        adaptation = (
            "### Adaptation\n\n"
            "Perplexity before and after `elmo finetune` has read six million words of biomedical "
            "articles\nonce, measured on other such articles and on general text:\n\n"
            + tables.adaptation_table(measured["adaptation"])
            + "\n\n"
        )
    hashes = [[name, f"`{value[:16]}…`"] for name, value in signature["data"].items()]
    return {
        "perplexity_table": tables.perplexity_table(measured),
        "tags_table": tables.tags_table(measured["tags"]),
        "tag_train": f"{words['train']:,}",
        "tag_dev": f"{words['dev']:,}",
        "tag_test": f"{words['test']:,}",
        "senses_table": tables.senses_table(measured["senses"]),
        "neighbors_table": tables.neighbors_table(measured["neighbors"]),
        "adaptation_section": adaptation,
        "command": signature["command"],
        "elmokit": signature["elmokit"],
        "signature": tables.markdown_table(["data", "SHA-256"], hashes),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("model", type=Path, help="Directory of the packed model.")
    parser.add_argument("--run", type=Path, required=True, help="Directory of its training run.")
    parser.add_argument("--corpus", type=Path, required=True, help="Directory of its corpus.")
    parser.add_argument(
        "--measured", type=Path, required=True, help="JSON file that measure.py has written."
    )
    parser.add_argument(
        "--packed", type=Path, required=True, help="JSON file that pack.py has written."
    )
    parser.add_argument("--out", type=Path, required=True, help="Markdown file to write.")
    options = parser.parse_args()
    try:
        measured, packed = (
            json.loads(path.read_text(encoding="utf-8"))
            for path in (options.measured, options.packed)
        )
        bilm, corpus = formats.read(options.model), Corpus.open(options.corpus)
        write_file(options.out, make_card(bilm, options.run, corpus, measured, packed))
    except (ElmoError, OSError, ValueError, KeyError) as error:
        sys.exit(f"card: {error!r}")
    print(options.out)


if __name__ == "__main__":
    main()
