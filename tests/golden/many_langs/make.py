"""Make the golden files of ELMoForManyLangs: tiny random models and the package's own vectors.

    ~/.cache/elmokit/peers/manylangs/bin/python tests/golden/many_langs/make.py
    ~/.cache/elmokit/peers/manylangs/bin/python tests/golden/many_langs/make.py --published DIR

The first command writes everything below models/ (in the environment of benchmarks/peers); the
second writes one model of the published size with its vectors, 800 MB, for `check.py`. Then, with
elmokit and torch:

    python tests/golden/many_langs/check.py --convert     # models/*/native, for tests without torch

vectors.npz contains the vectors of all words of sentences.json, one sentence after the other:

    all      (L+1, N, D)  sents2elmo(sentences, -2) of a fresh model, everything in one batch
    average  (N, D)       sents2elmo(sentences, -1), the same
    again    (L+1, N, D)  the call after `all`, from the state that its encoder carries

Does not use elmokit, on purpose.
"""

from __future__ import annotations

import argparse
import json
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from elmoformanylangs import Embedder

HERE = Path(__file__).parent
MARKS = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
LETTERS = "therivbank.,SYsnwoadGrüßeuMоскваlf潮水退了就知道誰沒穿褲子今天氣真好阿-1\u0301\u3000🙂<>"
WORDS = ["the", "bank", "river", ".", ",", "天氣", "知道", "Москва", "New York", "Donaud", "<S>"]

SENTENCES = [
    ["She", "went", "to", "the", "bank", "."],
    ["今", "天", "天氣", "真", "好", "阿"],
    ["潮水", "退", "了", "就", "知道", "誰", "沒", "穿", "褲子"],
    [],
    ["Grüße", "aus", "Москва", "naïve", "cafe\u0301", "🙂", "ﬁ", "\U0010ffff", "\ud800x"],
    ["Donaudampfschifffahrtsgesellschaft", "x" * 47, "x" * 48, "x" * 49, "天" * 60],
    ["<bos>", "is", "no", "word", ",", "nor", "<eos>", "<pad>", "<oov>", "<bow>", "<S>"],
    ["", " ", "\u3000", "\xa0", "\t", "New York", "a\nb", "New"],
    ["the"],
]


def config(
    words: int,
    characters: int,
    filters: list[list[int]],
    highways: int,
    cells: int,
    width: int,
    *,
    layers: int = 2,
    cell_clip: float | None = 3,
    projection_clip: float | None = 3,
    activation: str = "relu",
    longest: int = 50,
) -> dict[str, Any]:
    """Return the content of a cnn_*.json."""
    return {
        "encoder": {
            "name": "elmo",
            "projection_dim": width,
            "cell_clip": cell_clip,
            "proj_clip": projection_clip,
            "dim": cells,
            "n_layers": layers,
        },
        "token_embedder": {
            "name": "cnn",
            "activation": activation,
            "filters": filters,
            "n_highway": highways,
            "word_dim": words,
            "char_dim": characters,
            "max_characters_per_token": longest,
        },
        "classifier": {"name": "sampled_softmax", "n_samples": 8192},
        "dropout": 0.1,
    }


FILTERS = [[1, 3], [2, 4], [3, 6], [4, 3]]
MODELS = {
    "plain": config(5, 4, FILTERS, 2, 20, 8),
    "no_words": config(0, 4, FILTERS, 1, 18, 6, activation="tanh", cell_clip=0.6),
    "no_highway": config(
        3, 5, [[1, 2], [5, 7], [7, 4]], 0, 13, 7, layers=3, cell_clip=0, projection_clip=0.4
    ),
    "quirks": config(4, 3, FILTERS, 1, 9, 9, layers=1, cell_clip=None, longest=9),
    "words_only": config(6, 0, FILTERS, 2, 12, 8),
}
LEGACY = ("plain", "no_highway")
"""Models saved in the format that PyTorch used when the models were published."""


def dictionaries(name: str) -> dict[str, str]:
    """Return the contents of char.dic and word.dic."""
    letters = list(dict.fromkeys(LETTERS)) + MARKS
    words = ["<oov>", "<bos>", "<eos>", "<pad>", *WORDS]
    if name != "quirks":
        lines = {"char.dic": letters, "word.dic": words}
        return {
            file: "".join(f"{entry}\t{i}\n" for i, entry in enumerate(entries))
            for file, entries in lines.items()
        }
    # Numbers out of order, Windows line breaks, white space as an entry, duplicate entries, two
    # entries with one number, entries that nothing can match, a line broken by a form feed, and no
    # <bos> among the words. The package accepts all of it.
    numbered = list(zip(letters, reversed(range(len(letters))), strict=True))
    numbered.insert(3, ("t", 0))
    numbered[-1] = (numbered[-1][0], 7)
    characters = [f"{entry}\t{i}".replace("\u3000", "\xa0") for entry, i in numbered]
    known = ["bank", "<pad>", "<oov>", "the", "<eos>", " river ", "NewYork ", "New York", "天" * 7]
    listed = [f"{entry}\t {i}" for i, entry in enumerate(known)] + ["\u2003\t4"]
    return {
        "char.dic": "\r\n".join(characters) + "\r\n",
        "word.dic": "\f".join(listed[:3]) + "\x85" + "\n".join(listed[3:]),
    }


def draw(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Draw weights that keep activations of order one, gates half open and clips in reach."""
    scale, mean = 1 / sqrt(prod(shape[1:])), 0.0
    if "emb_layer" in name:
        scale = 0.6
    elif name.endswith("bias"):
        scale = 0.3
        mean = 0.5 if "state_linearity" in name else 0.0
    elif "state_projection" in name:
        scale *= 1.5
    numbers = rng.standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(numbers * np.float32(scale) + np.float32(mean))


def rows(dic: str) -> int:
    """Return the number of entries that the package reads from a dictionary."""
    stripped = (line.strip().split("\t") for line in dic.splitlines())
    return len({fields[0] if len(fields) == 2 else "\u3000" for fields in stripped})


def tensors(model: dict[str, Any], characters: int, words: int) -> dict[str, dict[str, tuple]]:
    """Return the names and shapes of the tensors of both .pkl files."""
    token, encoder = model["token_embedder"], model["encoder"]
    width, cells = encoder["projection_dim"], encoder["dim"]
    embedder: dict[str, tuple[int, ...]] = {}
    joined = token["word_dim"]
    if token["word_dim"]:
        embedder["word_emb_layer.embedding.weight"] = (words, token["word_dim"])
    if token["char_dim"]:
        embedder["char_emb_layer.embedding.weight"] = (characters, token["char_dim"])
        filters = sum(count for _, count in token["filters"])
        joined += filters
        for i, (span, count) in enumerate(token["filters"]):
            embedder[f"convolutions.{i}.weight"] = (count, token["char_dim"], span)
            embedder[f"convolutions.{i}.bias"] = (count,)
        for k in range(token["n_highway"]):
            embedder[f"highways._layers.{k}.weight"] = (2 * filters, filters)
            embedder[f"highways._layers.{k}.bias"] = (2 * filters,)
    embedder["projection.weight"] = (width, joined)
    embedder["projection.bias"] = (width,)
    lstms: dict[str, tuple[int, ...]] = {}
    for layer in range(encoder["n_layers"]):
        for direction in ("forward", "backward"):
            cell = f"{direction}_layer_{layer}"
            lstms[f"{cell}.input_linearity.weight"] = (4 * cells, width)
            lstms[f"{cell}.state_linearity.weight"] = (4 * cells, width)
            lstms[f"{cell}.state_linearity.bias"] = (4 * cells,)
            lstms[f"{cell}.state_projection.weight"] = (width, cells)
    return {"token_embedder.pkl": embedder, "encoder.pkl": lstms}


def write(folder: Path, model: dict[str, Any], dics: dict[str, str], seed: int) -> None:
    """Write a model directory of ELMoForManyLangs."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    settings = {"seed": 1, "config_path": "/users4/someone/word_elmo/cnn_tiny.json", "lr": 0.001}
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "cnn_tiny.json").write_text(json.dumps(model, indent=1) + "\n")
    for name, dim in (("char.dic", "char_dim"), ("word.dic", "word_dim")):
        if model["token_embedder"][dim] or name == "word.dic":  # training always writes word.dic
            (folder / name).write_bytes(dics[name].encode())
    shapes = tensors(model, rows(dics["char.dic"]), rows(dics["word.dic"]))
    for name, content in shapes.items():
        state = {key: draw(rng, key, shape) for key, shape in content.items()}
        torch.save(state, folder / name, _use_new_zipfile_serialization=folder.name not in LEGACY)


def vectors(folder: Path, sentences: list[list[str]]) -> dict[str, np.ndarray]:
    """Return the vectors that the package computes with a model."""
    embedder = Embedder(str(folder), batch_size=len(sentences))

    def embed(layer: int, fresh: bool = True) -> np.ndarray:
        if fresh:
            embedder.model.encoder.reset_states()
        # It fails to average an empty sentence, which is the last of its batch.
        some = [words for words in sentences if words] if layer == -1 else sentences
        return np.concatenate(embedder.sents2elmo(some, layer), axis=-2)

    # Without this it would compute gradients, too.
    with torch.no_grad():
        result = {"all": embed(-2), "again": embed(-2, fresh=False), "average": embed(-1)}
        for layer in range(len(result["all"])):
            if not np.array_equal(embed(layer), result["all"][layer]):
                raise SystemExit(
                    f"{folder}: layer {layer} differs from that layer among all layers"
                )
    return result


def published(folder: Path) -> None:
    """Write a model of the published size, with the configuration file of the package."""
    import elmoformanylangs

    file = Path(elmoformanylangs.__file__).parent / "configs/cnn_50_100_512_4096_sample.json"
    model = json.loads(file.read_text())
    letters = dict.fromkeys(LETTERS + "".join(map(chr, range(33, 6000))))
    letters = [c for c in letters if not c.isspace() and not 0xD800 <= ord(c) < 0xE000] + MARKS
    words = list(dict.fromkeys(["<oov>", "<bos>", "<eos>", "<pad>", *WORDS]))
    words += [f"word{i}" for i in range(60_000)]
    dics = {
        file: "".join(f"{entry}\t{i}\n" for i, entry in enumerate(entries))
        for file, entries in (("char.dic", letters), ("word.dic", words))
    }
    write(folder, model, dics, seed=0)
    (folder / "cnn_tiny.json").unlink()  # missing in most downloads: the package contains it
    (folder / "config.json").write_text(json.dumps({"config_path": f"/users4/{file.name}"}))
    np.savez(folder / "vectors.npz", **vectors(folder, SENTENCES))


def main() -> None:
    """Write the tiny models and their vectors, or one model of the published size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--published", type=Path, metavar="DIR", help="write one large model there instead"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.published:
        published(arguments.published)
        return
    for seed, (name, model) in enumerate(MODELS.items()):
        folder = HERE / "models" / name
        write(folder, model, dictionaries(name), seed)
        made = vectors(folder, SENTENCES)
        np.savez(folder / "vectors.npz", **made)
        print(name, made["all"].shape, float(np.abs(made["all"]).max()))
    # ASCII JSON, so that lone surrogates are preserved.
    (HERE / "sentences.json").write_text(json.dumps(SENTENCES) + "\n")


if __name__ == "__main__":
    main()
