"""Fill the gap: what would the model have written?

Both directions of the language model predict each word from its context. Their product ranks the
words that would fit in its place; perplexity says how surprised the model is by a whole text.
Needs nothing but elmokit:

    python examples/fill_the_gap.py
"""

from __future__ import annotations

from elmokit import Elmo
from elmokit.lm import perplexity, substitutes

elmo = Elmo.load()
for sentence, gap in [
    ("She went to the bank .", "bank"),
    ("He was born in London in 1912 .", "London"),
    ("The children were very happy .", "were"),
]:
    position = sentence.split().index(gap)
    ranking = substitutes(elmo, sentence, k=20)[position].both
    fitting = ", ".join([word for word, _ in ranking.best if word.isalpha()][:8])
    print(f"{sentence.replace(gap, '____')}\n    {fitting}")

print()
for text in ["The cat sat on the mat .", "Mat the on sat cat the ."]:
    print(f"perplexity {perplexity(elmo, [text]).mean:8,.0f}  {text}")
