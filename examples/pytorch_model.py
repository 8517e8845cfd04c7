"""ELMo as a layer of your own PyTorch model.

A tagger in thirty lines: `ElmoEmbedding` turns sentences into vectors and learns which layers the
task needs (the weights s and γ of the paper); a linear layer over them learns the tags. The words
to tag ("can", "watch", "left", "play", "light") are nouns, verbs or adjectives depending on their
sentence.

    pip install 'elmokit[train]'
    python examples/pytorch_model.py
"""

from __future__ import annotations

import torch

from elmokit.nn import ElmoEmbedding

TRAIN = """
She can/VERB swim . | He opened a can/NOUN of beans . | We can/VERB see you .
The can/NOUN is empty . | They watch/VERB the birds . | My watch/NOUN is slow .
I watch/VERB every game . | He lost his watch/NOUN . | He left/VERB the house .
Raise your left/ADJ hand . | They left/VERB early . | Use the left/ADJ door .
We play/VERB chess . | The play/NOUN was long . | Children play/VERB here .
She wrote a play/NOUN . | Turn on the light/NOUN . | A light/ADJ meal is enough .
The light/NOUN was bright . | He wore a light/ADJ coat .
"""
TEST = """
You can/VERB help me . | She threw the can/NOUN away . | We watch/VERB films .
This watch/NOUN was a present . | The guests left/VERB at ten . | It is on the left/ADJ side .
Do you play/VERB tennis ? | The play/NOUN ended . | There is light/NOUN in the room .
She carried a light/ADJ bag .
"""
TAGS = ["O", "NOUN", "VERB", "ADJ"]


def read(text: str) -> list[tuple[list[str], list[int]]]:
    """Return the words of each sentence and the numbers of their tags."""
    sentences = []
    for sentence in text.replace("\n", "|").split("|"):
        pairs = [token.partition("/") for token in sentence.split()]
        if pairs:
            sentences.append(([p[0] for p in pairs], [TAGS.index(p[2] or "O") for p in pairs]))
    return sentences


class Tagger(torch.nn.Module):
    """ELMo, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.elmo = ElmoEmbedding("builtin", dropout=0.2)  # frozen; only its mix learns
        self.tags = torch.nn.Linear(384, len(TAGS))

    def forward(self, sentences: list[list[str]]) -> torch.Tensor:
        """Return scores (B, T, tags)."""
        return self.tags(self.elmo(sentences).vectors[0])


def pad(tags: list[list[int]]) -> torch.Tensor:
    """Return tags (B, T) with -100, which the loss ignores, after the end of a sentence."""
    rows = [torch.tensor(row) for row in tags]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.02)
train = read(TRAIN)
words, tags = [list(column) for column in zip(*train, strict=True)]
for epoch in range(60):
    scores = model(words)
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), pad(tags).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        print(f"epoch {epoch + 1}: loss {loss.item():.2f}")

model.eval()
right = 0
for sentence, gold in read(TEST):
    guess = model([sentence]).argmax(-1)[0].tolist()
    place = next(i for i, tag in enumerate(gold) if tag)
    right += guess[place] == gold[place]
    print(f"{TAGS[guess[place]]:5} {' '.join(sentence)}")
print(f"{right} of {len(read(TEST))} right")
print("layers' weights:", " ".join(f"{share:.2f}" for share in model.elmo.mixes[0].shares.tolist()))
