"""ELMoForManyLangs 0.0.4.post2 as a peer: `Embedder.sents2elmo`.

Format: it has a model format of its own. So that all peers run the same weights, `load` converts an
options.json + hdf5 to a temporary directory in that format (without word embeddings, and with a
char.dic of the 128 ASCII characters). On ASCII text its vectors then equal those of the others. A
directory with a config.json is loaded as it is.

State: carried like AllenNLP's, from which its encoder was copied. But `sents2elmo` sorts all
sentences by length, splits them into batches and runs the batches in *random* order, so that row i
is another sentence every time. Two calls differ unless everything fits into one batch from the zero
state. It computes gradients while it embeds (it never uses `no_grad`).

    ~/.cache/elmokit/peers/manylangs/bin/python benchmarks/peers/peer_manylangs.py   (see worker.py)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worker import Sentences, serve

if TYPE_CHECKING:
    import h5py
    import numpy as np
    from numpy.typing import NDArray

    from worker import Floats

OUTPUT_LAYER = {"all": -2, "average": -1}

# Rows of char_embed for the entries of char.dic that are not characters. It uses the id of <eow>
# for the beginning of a word and that of <bow> for its end, so the two are swapped here.
MARKS = {"<bos>": 256, "<eos>": 257, "<eow>": 258, "<bow>": 259, "<pad>": 260, "<oov>": 260}


class ManyLangs:
    """Runs `elmoformanylangs.Embedder`."""

    packages: tuple[str, ...] = ("elmoformanylangs", "torch", "numpy", "h5py", "overrides")

    def __init__(self) -> None:
        import elmoformanylangs
        import torch

        self._torch = torch
        self._embedder_class = elmoformanylangs.Embedder

    def load(self, model: Path, threads: int, batch_size: int) -> None:
        """Load a model. The time includes a conversion; convert first if load time matters."""
        self._torch.set_num_threads(threads)
        if (model / "config.json").is_file():
            self._embedder = self._embedder_class(str(model), batch_size)
            return
        with tempfile.TemporaryDirectory() as folder:
            convert(model, Path(folder))
            self._embedder = self._embedder_class(folder, batch_size)

    def reset(self) -> None:
        """Clear the states of all rows."""
        self._embedder.model.encoder.reset_states()

    def embed(self, sentences: Sentences, batch_size: int, layers: str) -> list[Floats]:
        """Call `sents2elmo`, which makes its own batches and removes the padding."""
        self._embedder.batch_size = batch_size
        vectors = self._embedder.sents2elmo(sentences, output_layer=OUTPUT_LAYER[layers])
        return [sentence[None] for sentence in vectors]

    def state(self) -> tuple[Floats, Floats]:
        """Return the carried states; rows are in its own order, by length."""
        hidden, cell = (
            self._torch.stack(state.chunk(2, dim=-1), dim=1).numpy()
            for state in self._embedder.model.encoder._states
        )
        return hidden, cell

    def characters(self, words: Sequence[str]) -> NDArray[np.integer[Any]]:
        """Return its character ids: line numbers of char.dic, specific to this model."""
        from elmoformanylangs.elmo import create_one_batch, read_list

        config = self._embedder.config
        sentence, _ = read_list([words], config["token_embedder"]["max_characters_per_token"])
        lexicons = self._embedder.word_lexicon, self._embedder.char_lexicon
        ids: NDArray[np.integer[Any]]
        ids = create_one_batch(sentence, *lexicons, config)[1][0, 1:-1].numpy()
        return ids


def convert(model: Path, directory: Path) -> None:
    """Write an options.json + hdf5 model in the format of ELMoForManyLangs."""
    import h5py
    import torch

    options = json.loads((model / "options.json").read_text())
    cnn, lstm = options["char_cnn"], options["lstm"]
    if not lstm["use_skip_connections"]:
        raise ValueError("ELMoForManyLangs always has skip connections; this model has none")
    encoder_keys = ("projection_dim", "cell_clip", "proj_clip", "dim", "n_layers")
    cnn_keys = ("activation", "filters", "n_highway", "max_characters_per_token")
    dims = {"word_dim": 0, "char_dim": cnn["embedding"]["dim"]}
    config = {
        "encoder": {"name": "elmo", **{key: lstm[key] for key in encoder_keys}},
        "token_embedder": {"name": "cnn", **dims, **{key: cnn[key] for key in cnn_keys}},
        "dropout": 0.0,
    }
    # Its reader strips lines, so char.dic has no white space; words contain none either.
    rows = {chr(i): i for i in range(128) if not chr(i).isspace()} | MARKS
    (directory / "config.json").write_text(json.dumps({"config_path": "cnn.json"}))
    (directory / "cnn.json").write_text(json.dumps(config))
    lines = "".join(f"{entry}\t{i}\n" for i, entry in enumerate(rows))
    (directory / "char.dic").write_text(lines, encoding="utf-8")
    (weights,) = model.glob("*.hdf5")
    with h5py.File(weights) as file:
        token_embedder = _token_embedder(file, cnn, list(rows.values()))
        encoder = _encoder(file, lstm)
    for name, arrays in (("token_embedder", token_embedder), ("encoder", encoder)):
        tensors = {key: torch.from_numpy(array.copy()) for key, array in arrays.items()}
        torch.save(tensors, directory / f"{name}.pkl")


def _token_embedder(file: h5py.File, cnn: dict[str, Any], rows: list[int]) -> dict[str, Floats]:
    import numpy as np

    arrays = {"char_emb_layer.embedding.weight": file["char_embed"][...][rows]}
    for i in range(len(cnn["filters"])):
        # (1, width, in, out) to (out, in, width)
        arrays[f"convolutions.{i}.weight"] = file[f"CNN/W_cnn_{i}"][0].T
        arrays[f"convolutions.{i}.bias"] = file[f"CNN/b_cnn_{i}"][...]
    for k in range(cnn["n_highway"]):
        # Its gate keeps the input where bilm-tf's takes the new value: the sign changes.
        high = file[f"CNN_high_{k}"]
        weight = [high["W_transform"][...].T, -high["W_carry"][...].T]
        bias = [high["b_transform"][...], -high["b_carry"][...]]
        arrays[f"highways._layers.{k}.weight"] = np.concatenate(weight)
        arrays[f"highways._layers.{k}.bias"] = np.concatenate(bias)
    arrays["projection.weight"] = file["CNN_proj/W_proj"][...].T
    arrays["projection.bias"] = file["CNN_proj/b_proj"][...]
    return arrays


def _encoder(file: h5py.File, lstm: dict[str, Any]) -> dict[str, Floats]:
    import numpy as np

    arrays = {}
    for direction, name in enumerate(("forward", "backward")):
        for layer in range(lstm["n_layers"]):
            cell = file[f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"]
            # Gates i, j, f, o become i, f, j, o; the 1 of the forget gate is added to the bias.
            i, j, f, o = np.split(cell["W_0"][...].T, 4)
            i_bias, j_bias, f_bias, o_bias = np.split(cell["B"][...], 4)
            weight = np.concatenate([i, f, j, o])
            bias = np.concatenate([i_bias, f_bias + 1, j_bias, o_bias])
            prefix = f"{name}_layer_{layer}"
            arrays[f"{prefix}.input_linearity.weight"] = weight[:, : lstm["projection_dim"]]
            arrays[f"{prefix}.state_linearity.weight"] = weight[:, lstm["projection_dim"] :]
            arrays[f"{prefix}.state_linearity.bias"] = bias
            arrays[f"{prefix}.state_projection.weight"] = cell["W_P_0"][...].T
    return arrays


if __name__ == "__main__":
    serve(ManyLangs)
