"""Training biLMs: corpora, pretraining and fine-tuning.

    from elmokit.train import Budget, build_corpus, pretrain
    corpus = build_corpus(["books/"], "corpus")
    elmo = pretrain(corpus.path, "model", budget=Budget(minutes=10))

Names are imported at first use: importing this package does not import torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.bilm.sizes import SIZES
    from elmokit.train.budget import Budget
    from elmokit.train.build import CorpusOptions, build_corpus
    from elmokit.train.corpus import Corpus
    from elmokit.train.finetuning import FinetuneResult, finetune, resume_finetune
    from elmokit.train.interrupt import TrainingStopped
    from elmokit.train.pretraining import pretrain, resume
    from elmokit.train.recipe import RECIPES, Recipe
    from elmokit.train.run import TrainingReport
    from elmokit.train.text_source import TextSource

__all__ = [
    "RECIPES",
    "SIZES",
    "Budget",
    "Corpus",
    "CorpusOptions",
    "FinetuneResult",
    "Recipe",
    "TextSource",
    "TrainingReport",
    "TrainingStopped",
    "build_corpus",
    "finetune",
    "pretrain",
    "resume",
    "resume_finetune",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "RECIPES": "elmokit.train.recipe",
        "SIZES": "elmokit.bilm.sizes",
        "Budget": "elmokit.train.budget",
        "Corpus": "elmokit.train.corpus",
        "CorpusOptions": "elmokit.train.build",
        "FinetuneResult": "elmokit.train.finetuning",
        "Recipe": "elmokit.train.recipe",
        "TextSource": "elmokit.train.text_source",
        "TrainingReport": "elmokit.train.run",
        "TrainingStopped": "elmokit.train.interrupt",
        "build_corpus": "elmokit.train.build",
        "finetune": "elmokit.train.finetuning",
        "pretrain": "elmokit.train.pretraining",
        "resume": "elmokit.train.pretraining",
        "resume_finetune": "elmokit.train.finetuning",
    },
)
