"""What a biLM predicts: the probability of the words of a text, and what else could stand there.

Needs a model with its softmax and vocabulary; runs on the frozen engine, without torch.
"""

from elmokit.lm.evaluation import Perplexity, perplexity
from elmokit.lm.scores import Scores, score
from elmokit.lm.substitution import Place, Ranking, substitutes

__all__ = [
    "Perplexity",
    "Place",
    "Ranking",
    "Scores",
    "perplexity",
    "score",
    "substitutes",
]
