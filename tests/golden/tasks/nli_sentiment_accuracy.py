"""Make nli_accuracy.json and sentiment_accuracy.json with scikit-learn.

python tests/golden/tasks/nli_sentiment_accuracy.py
"""

import json
import random
from pathlib import Path

from sklearn.metrics import accuracy_score, mean_absolute_error, recall_score

HERE = Path(__file__).parent
NLI = (["entailment", "neutral", "contradiction"], ["entailment", "not_entailment"])


def main() -> None:
    draw = random.Random(6)
    nli, sentiment = [], []
    for case in range(12):
        names, size, classes = NLI[case % 2], draw.randint(1, 60), (5, 2)[case % 2]
        gold, predicted = draw.choices(names, k=size), draw.choices(names, k=size)
        present = sorted(set(gold))
        recalls = recall_score(gold, predicted, labels=present, average=None)
        nli.append(
            {
                "gold": gold,
                "predicted": predicted,
                "accuracy": 100 * accuracy_score(gold, predicted),
                "recall": {
                    label: 100 * recall for label, recall in zip(present, recalls, strict=True)
                },
            }
        )
        scale = range(classes)
        gold, predicted = draw.choices(scale, k=size), draw.choices(scale, k=size)
        sentiment.append(
            {
                "classes": classes,
                "gold": gold,
                "predicted": predicted,
                "accuracy": 100 * accuracy_score(gold, predicted),
                "error": mean_absolute_error(gold, predicted),
            }
        )
    (HERE / "nli_accuracy.json").write_text(json.dumps(nli) + "\n", encoding="utf-8")
    (HERE / "sentiment_accuracy.json").write_text(json.dumps(sentiment) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
