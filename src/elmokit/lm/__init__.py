"""Predictions of a biLM: the probabilities of the words of a text, and likely substitutes.

    from elmokit import Elmo
    from elmokit.lm import perplexity, substitutes

    elmo = Elmo.load()
    perplexity(elmo, ["She went to the bank ."]).mean
    substitutes(elmo, "She went to the bank .")[4].both.best    # likely words instead of "bank"

All functions need a model that has its softmax and its vocabulary; they do not need torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.lm.evaluation import Perplexity, perplexity
    from elmokit.lm.scores import SentenceScores, score_sentences
    from elmokit.lm.substitution import SubstitutePosition, SubstituteRanking, substitutes

__all__ = [
    "Perplexity",
    "SentenceScores",
    "SubstitutePosition",
    "SubstituteRanking",
    "perplexity",
    "score_sentences",
    "substitutes",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Perplexity": "elmokit.lm.evaluation",
        "SentenceScores": "elmokit.lm.scores",
        "SubstitutePosition": "elmokit.lm.substitution",
        "SubstituteRanking": "elmokit.lm.substitution",
        "perplexity": "elmokit.lm.evaluation",
        "score_sentences": "elmokit.lm.scores",
        "substitutes": "elmokit.lm.substitution",
    },
    renamed={
        "Place": "SubstitutePosition",
        "Ranking": "SubstituteRanking",
        "Scores": "SentenceScores",
        "score": "score_sentences",
    },
)
