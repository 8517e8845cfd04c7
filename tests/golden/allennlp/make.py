"""Make the golden files of `elmokit.compat.allennlp`: what AllenNLP 2.10.1's own module computes.

    ~/.cache/elmokit/peers/allennlp/bin/python tests/golden/allennlp/make.py

runs AllenNLP's modules as they were installed (benchmarks/peers/allennlp_modules.py) on tiny models
of tests/golden/models, and writes one MODEL.npz for each next to this file. Names of the arrays:

    {case}/mask_{i}, {case}/vectors_{k}_{i}   call i, representation k; the state is carried
    {case}/before/{name}                      values set before the first call, by state-dict name
    {case}/gradient/{name}                    after a backward pass through the last call
    {case}/after/{name}                       the state dict after a step of gradient descent

The sentences are those of tests/golden/sentences.json. With dropout, torch's seed is set to 1
before the first call. Does not use elmokit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent
GOLDEN = HERE.parent
sys.path.insert(0, str(GOLDEN.parent.parent / "benchmarks" / "peers"))

import allennlp_modules  # noqa: E402


class TokenEmbedder(torch.nn.Module):
    """The base class of AllenNLP, without its registry."""

    @classmethod
    def register(cls, _: str) -> Any:
        """Return a decorator that does nothing."""
        return lambda registered: registered


class Embedding(torch.nn.Module):
    """The part of AllenNLP's class that `vocab_to_cache` needs: a table whose row 0 is zero."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        weight: torch.Tensor,
        trainable: bool,
        padding_index: int,
    ) -> None:
        super().__init__()
        assert weight.shape == (num_embeddings, embedding_dim)
        self.weight = torch.nn.Parameter(weight, requires_grad=trainable)
        self.weight.data[padding_index].fill_(0)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of the table."""
        return torch.nn.functional.embedding(ids, self.weight)


allennlp_modules.UNMODIFIED |= {
    "allennlp.modules.time_distributed",
    "allennlp.modules.token_embedders.elmo_token_embedder",
}
allennlp_modules.STUBS |= {
    "allennlp.modules.token_embedders": {"Embedding": Embedding},
    "allennlp.modules.token_embedders.token_embedder": {"TokenEmbedder": TokenEmbedder},
}
allennlp_modules.install()

import allennlp.modules.elmo as theirs  # noqa: E402
from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper  # noqa: E402
from allennlp.modules.token_embedders.elmo_token_embedder import (  # noqa: E402
    ElmoTokenEmbedder,
)

BATCHES = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))
VOCABULARY = ["@@PADDING@@", "@@UNKNOWN@@", "She", "went", "to", "the", "bank", ".", "Yes"]
MODELS = ("plain", "odd", "tanh", "one_layer", "no_highway", "no_clips", "wide_projection")
Arrays = dict[str, Any]


def batch_to_ids(batch: list[list[str]]) -> torch.Tensor:
    """Compute the result of AllenNLP's function with its mapper, without its data classes."""
    mapper = ELMoCharacterMapper()
    ids = torch.zeros(len(batch), max(map(len, batch)), mapper.max_word_length, dtype=torch.long)
    for row, sentence in enumerate(batch):
        for column, word in enumerate(sentence):
            ids[row, column] = torch.tensor(mapper.convert_word_to_char_ids(word))
    return ids


theirs.batch_to_ids = batch_to_ids


def elmo(model: str, representations: int = 1, **options: Any) -> Any:
    """Return AllenNLP's module with a golden model, in evaluation mode."""
    folder = GOLDEN / "models" / model
    files = str(folder / "options.json"), str(folder / "weights.hdf5")
    return theirs.Elmo(*files, representations, **options).eval()


def randomize_mixes(module: Any, case: str, out: Arrays) -> None:
    """Set the scalars and gammas to random values, and record them."""
    source = np.random.default_rng(7)
    for name, parameter in module.named_parameters():
        if name.startswith("scalar_mix"):
            numbers = source.normal(size=parameter.shape).astype(np.float32)
            parameter.data.copy_(torch.from_numpy(numbers))
            out[f"{case}/before/{name}"] = numbers


def record(output: Arrays, case: str, i: int, out: Arrays) -> None:
    """Record the results of one call."""
    out[f"{case}/mask_{i}"] = output["mask"].numpy()
    for k, vectors in enumerate(output["elmo_representations"]):
        out[f"{case}/vectors_{k}_{i}"] = vectors.detach().numpy()


def run(module: Any, case: str, batches: list[Any], out: Arrays) -> None:
    """Run several calls with carried state."""
    for i, batch in enumerate(batches):
        record(module(batch_to_ids(batch)), case, i, out)


def loss(output: Arrays) -> torch.Tensor:
    """Return a loss that depends on every vector in a different way."""
    total = torch.zeros(())
    for k, vectors in enumerate(output["elmo_representations"]):
        total = total + (vectors * loss_weights(vectors.shape, k)).sum()
    return total


def loss_weights(shape: Any, k: int) -> torch.Tensor:
    """Return the weights of the loss; the tests compute the same."""
    return torch.from_numpy(np.random.default_rng(k).normal(size=shape).astype(np.float32))


def train_step(model: str, requires_grad: bool, case: str, out: Arrays, whole: bool) -> None:
    """Train one step on the second of two calls with carried state, in training mode."""
    module = elmo(model, 2, requires_grad=requires_grad, dropout=0.0).train()
    randomize_mixes(module, case, out)
    record(module(batch_to_ids(BATCHES[0])), case, 0, out)
    output = module(batch_to_ids(BATCHES[1]))
    record(output, case, 1, out)
    loss(output).backward()
    for name, parameter in module.named_parameters():
        if parameter.grad is not None and (whole or "layer_0" in name or "conv_1" in name):
            out[f"{case}/gradient/{name}"] = parameter.grad.numpy().copy()
    if whole:
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.grad is not None:
                    parameter -= 0.01 * parameter.grad
        for name, tensor in module.state_dict().items():
            out[f"{case}/after/{name}"] = tensor.numpy().copy()
        record(module.eval()(batch_to_ids(BATCHES[3])), case, 2, out)


def run_cases(model: str) -> Arrays:
    """Run all cases for the model `plain`, the main cases for the others."""
    out: Arrays = {}
    module = elmo(model, 2, dropout=0.5)
    randomize_mixes(module, "carried", out)
    run(module, "carried", BATCHES, out)
    run(elmo(model, do_layer_norm=True), "layer_norm", BATCHES[:2], out)
    train_step(model, True, "trained", out, whole=model == "plain")
    if model != "plain":
        return out

    out["state_dict_names"] = np.array(sorted(module.state_dict()))
    train_step(model, False, "frozen", out, whole=True)
    run(elmo(model, keep_sentence_boundaries=True), "boundaries", BATCHES[:2], out)
    both = {"keep_sentence_boundaries": True, "do_layer_norm": True}
    run(elmo(model, **both), "layer_norm_boundaries", BATCHES[:2], out)
    run(elmo(model, scalar_mix_parameters=[0.5, -1.0, 2.0]), "fixed", BATCHES[:2], out)

    module = elmo(model, 2, dropout=0.5).train()
    torch.manual_seed(1)
    run(module, "dropout", BATCHES[:2], out)

    four = batch_to_ids(BATCHES[3])[None].repeat(2, 1, 1, 1)
    record(elmo(model)(four), "four_dimensions", 0, out)

    module = elmo(model, vocab_to_cache=VOCABULARY)
    number = {word: i for i, word in enumerate(VOCABULARY)}
    words = torch.tensor([[number.get(w, 1) for w in BATCHES[0][0]], [number["Yes"]] + [0] * 5])
    record(module(batch_to_ids(BATCHES[0]), words), "cached", 0, out)
    record(module(batch_to_ids(BATCHES[1])), "cached", 1, out)
    out["cached/words_0"] = words.numpy()
    for name, tensor in module.state_dict().items():
        if "word_embedding" in name:
            out[f"cached/after/{name}"] = tensor.numpy().copy()

    folder = GOLDEN / "models" / model
    files = str(folder / "options.json"), str(folder / "weights.hdf5")
    torch.manual_seed(2)
    embedder = ElmoTokenEmbedder(*files, projection_dim=3).eval()
    for name, tensor in embedder.state_dict().items():
        if not name.startswith("_elmo._elmo_lstm"):
            out[f"token_embedder/before/{name}"] = tensor.numpy().copy()
    out["token_embedder/names"] = np.array(sorted(embedder.state_dict()))
    for i in range(2):
        vectors = embedder(batch_to_ids(BATCHES[i]))
        out[f"token_embedder/vectors_0_{i}"] = vectors.detach().numpy()
    return out


def main() -> None:
    """Write one file per model."""
    torch.set_num_threads(1)
    for model in MODELS:
        arrays = run_cases(model)
        np.savez_compressed(HERE / f"{model}.npz", **arrays)
        print(f"{model:18}{len(arrays)} arrays")


if __name__ == "__main__":
    main()
