"""The ELMo of AllenNLP 2.10.1 as a peer: its own module, run batch by batch.

State: `ElmoLstm` keeps one state per row between calls. Row i of a call continues from row i of
the last call that had a row i; new rows start at zero; a smaller batch does not change the states
of the rows after it. `reset_states()` clears all states.

Characters: the ids come from its own mapper, called directly. Its `batch_to_ids` computes the same
ids through Instance, TextField and Vocabulary, which is slower. Words always have 50 characters: a
model with another `max_characters_per_token` is rejected here, since AllenNLP would misread it.

    ~/.cache/elmokit/peers/allennlp/bin/python benchmarks/peers/peer_allennlp.py   (see worker.py)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker import Sentences, serve

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from worker import Floats


class AllenNlp:
    """Runs `allennlp.modules.elmo.Elmo`."""

    packages: tuple[str, ...] = ("allennlp", "torch", "numpy", "h5py")

    def __init__(self) -> None:
        import allennlp_modules

        allennlp_modules.install()
        import allennlp.modules.elmo
        import torch
        from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper
        from allennlp.nn.util import remove_sentence_boundaries

        self._torch = torch
        self._module = allennlp.modules.elmo.Elmo
        self._mapper = ELMoCharacterMapper()
        self._without_boundaries = remove_sentence_boundaries

    def load(self, model: Path, threads: int, batch_size: int) -> None:
        """Load the weights; the batch size does not matter."""
        cnn = json.loads((model / "options.json").read_text())["char_cnn"]
        if cnn["max_characters_per_token"] != self._mapper.max_word_length:
            raise ValueError("AllenNLP reads words of 50 characters; this model has another length")
        (weights,) = model.glob("*.hdf5")
        self._torch.set_num_threads(threads)
        options = str(model / "options.json")
        self._elmo = self._module(options, str(weights), num_output_representations=1, dropout=0.0)
        self._elmo.eval()

    def reset(self) -> None:
        """Clear the states of all rows."""
        self._elmo._elmo_lstm._elmo_lstm.reset_states()

    def embed(self, sentences: Sentences, batch_size: int, layers: str) -> list[Floats]:
        """Embed consecutive batches."""
        run = {"all": self._all_layers, "average": self._average}[layers]
        with self._torch.inference_mode():
            return [
                run(self._ids(sentences[first : first + batch_size]))
                for first in range(0, len(sentences), batch_size)
            ]

    def _all_layers(self, ids: Any) -> Floats:
        """Return (B, L+1, T, D), like the ElmoEmbedder of AllenNLP 0.9."""
        output = self._elmo._elmo_lstm(ids)
        layers = [
            self._without_boundaries(layer, output["mask"])[0] for layer in output["activations"]
        ]
        stacked: Floats = self._torch.stack(layers, dim=1).numpy()
        return stacked

    def _average(self, ids: Any) -> Floats:
        """Return (B, T, D) of its ScalarMix as initialized: equal weights and gamma 1."""
        mixed: Floats = self._elmo(ids)["elmo_representations"][0].numpy()
        return mixed

    def _ids(self, batch: Sentences) -> Any:
        words = max(map(len, batch))
        ids = self._torch.zeros(len(batch), words, self._mapper.max_word_length, dtype=int)
        for row, sentence in enumerate(batch):
            if sentence:
                ids[row, : len(sentence)] = self._torch.tensor(
                    [self._mapper.convert_word_to_char_ids(word) for word in sentence]
                )
        return ids

    def state(self) -> tuple[Floats, Floats]:
        """Return the carried states, which it stores as (L, B, forward | backward)."""
        hidden, cell = (
            self._torch.stack(state.chunk(2, dim=-1), dim=1).numpy()
            for state in self._elmo._elmo_lstm._elmo_lstm._states
        )
        return hidden, cell

    def characters(self, words: Sequence[str]) -> NDArray[np.integer[Any]]:
        """Return what `batch_to_ids` returns for these words as one sentence."""
        ids: NDArray[np.integer[Any]] = self._ids([words])[0].numpy()
        return ids


if __name__ == "__main__":
    serve(AllenNlp)
