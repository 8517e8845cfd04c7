"""Score a model on SST-5 as a classification task of MTEB, from local files.

    python benchmarks/mteb_sst5.py DATA [--model builtin] [--layers mix] [--pooling mean]

DATA is a directory with train.txt and test.txt, as Stanford publishes the trees. MTEB trains a
logistic regression on 256 sentences per label, ten times, and reports the mean accuracy on the
test set.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from elmokit.tasks import read


def load(path: Path) -> dict[str, list[object]]:
    """Return the sentences of a file and their labels, from 0 to 4."""
    examples = read("sentiment", path).items
    return {
        "text": [" ".join(example.words) for example in examples],
        "label": [example.label for example in examples],
    }


def main() -> None:
    """Print the score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="Directory with train.txt and test.txt.")
    parser.add_argument("--model", default="builtin", help="Name or path of a model.")
    parser.add_argument("--layers", default="mix", help="mix, top or the number of a layer.")
    parser.add_argument("--pooling", default="mean", choices=["mean", "max"])
    options = parser.parse_args()

    import mteb
    from datasets import Dataset, DatasetDict
    from mteb.abstasks import AbsTaskClassification
    from mteb.abstasks.task_metadata import TaskMetadata
    from sentence_transformers import SentenceTransformer

    from elmokit.integrations.sentence_transformers import ElmoModule

    class LocalSST5(AbsTaskClassification):
        metadata = TaskMetadata(
            name="LocalSST5",
            description="Sentiment of sentences in five classes, from local files",
            dataset={"path": "local/sst5", "revision": "local"},
            type="Classification",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="accuracy",
        )
        samples_per_label = 256

        def load_data(self, *_: object, **__: object) -> None:
            parts = ("train", "test")
            self.dataset = DatasetDict(
                {part: Dataset.from_dict(load(options.data / f"{part}.txt")) for part in parts}
            )
            self.data_loaded = True

    layers = int(options.layers) if options.layers.isdigit() else options.layers
    module = ElmoModule(options.model, layers=layers, pooling=options.pooling)
    result = mteb.evaluate(SentenceTransformer(modules=[module]), [LocalSST5()], cache=None)
    scores = result.task_results[0].scores["test"][0]
    print(
        f"SST-5, {options.model}, layers {layers}, {options.pooling}: accuracy "
        f"{100 * scores['accuracy']:.1f} (mean of {len(scores['scores_per_experiment'])} runs)"
    )


if __name__ == "__main__":
    main()
