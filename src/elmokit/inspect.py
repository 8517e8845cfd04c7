"""Describing a model without running it, as `elmo inspect` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

from elmokit import formats
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import PROTEINS
from elmokit.bilm.weights import SOFTMAX, parameter_count
from elmokit.elmo import locate_model
from elmokit.fetch.card import architecture_name


class ModelInfo(TypedDict):
    """What `inspect_model` returns; all values can be written as JSON."""

    path: str
    """Where the model is."""
    format: str
    """`"native"`, `"allennlp"`, `"tf_checkpoint"`, `"tf_hub"`, `"many_langs"` or `"onnx"`."""
    title: str
    """The format in words."""
    architecture: str
    """The name in the style of the published models, such as `2x4096_512_2048cnn_2xhighway`."""
    parameters: int
    """Number of parameters, without the softmax."""
    layers: int
    """Number of layers of vectors, including the context-free one."""
    dim: int
    """Size of a vector."""
    config: dict[str, Any]
    """The complete configuration."""
    vocabulary: int | None
    """Number of words of the vocabulary; None without one."""
    softmax: bool
    """Whether the model has a softmax, so that it can predict words."""
    proteins: bool
    """Whether it is a model of proteins, whose words are residues."""
    settled: bool
    """Whether the settled state is stored with the model."""
    starts_from_zeros: bool
    """Whether the stored settled state is all zeros, as in models trained on single sentences."""
    mix: dict[str, Any] | None
    """Weights of the layers and γ; None for a uniform mix."""
    fingerprint: str
    """Checksum of the configuration and the weights."""
    files: dict[str, int]
    """Size of each file in bytes."""


def inspect_model(model: str | Path) -> ModelInfo:
    """Return everything about a model that is known without running it.

    Reading the model checks it: every array must be present, finite and of the right shape. The
    command `elmo inspect` does this.

    Args:
        model: A directory, one file of a model, a zip archive, or a name.
    """
    path = locate_model(model)
    detected = formats.detect_format(path)
    if detected.kind == "onnx":
        return _inspect_onnx(detected)
    bilm = formats.read(path)
    config = bilm.config
    return {
        "path": str(path),
        "format": detected.kind,
        "title": detected.title,
        "architecture": architecture_name(config),
        "parameters": bilm.parameters,
        "layers": config.layers,
        "dim": config.dim,
        "config": config.to_dict(),
        "vocabulary": None if bilm.vocabulary is None else len(bilm.vocabulary),
        "softmax": SOFTMAX[0] in bilm.weights,
        "proteins": bilm.reads_residues,
        "settled": bilm.settled is not None,
        "starts_from_zeros": bilm.settled is not None and bilm.settled.is_zero,
        "mix": None
        if bilm.mix is None
        else {"weights": list(bilm.mix.weights), "gamma": bilm.mix.gamma},
        "fingerprint": bilm.fingerprint,
        "files": {name: detected.source.size(name) for name in detected.files},
    }


def _inspect_onnx(detected: formats.DetectedModel) -> ModelInfo:
    """Return what the metadata of an ONNX file say; its weights are not read."""
    from elmokit.formats.onnx.metadata import read_metadata

    with detected.source.open(detected.weights) as file:
        metadata = read_metadata(file, detected.source.describe(detected.weights))
    config = BiLMConfig.from_dict(metadata["config"])
    return {
        "path": detected.source.describe(detected.weights),
        "format": detected.kind,
        "title": detected.title,
        "architecture": architecture_name(config),
        "parameters": parameter_count(config),
        "layers": config.layers,
        "dim": config.dim,
        "config": config.to_dict(),
        "vocabulary": None,
        "softmax": False,
        "proteins": bool(config.extra.get(PROTEINS)),
        "settled": True,
        "starts_from_zeros": metadata["starts_from_zeros"],
        "mix": metadata["mix"],
        "fingerprint": metadata["fingerprint"],
        "files": {name: detected.source.size(name) for name in detected.files},
    }


def describe_model(info: ModelInfo) -> list[tuple[str, str]]:
    """Return the properties of a model as pairs of a name and a readable value."""
    cnn, lstm = info["config"]["char_cnn"], info["config"]["lstm"]
    filters = ", ".join(f"{count} of width {width}" for width, count in cnn["filters"])
    vocabulary, mix, lexicon = info["vocabulary"], info["mix"], info["config"].get("words")
    kind = "code points" if cnn.get("scheme") == "code_points" else "bytes and marks"
    layers = "1 LSTM layer" if lstm["layers"] == 1 else f"{lstm['layers']} LSTM layers"
    return [
        ("model", info["path"]),
        ("format", info["title"]),
        ("architecture", info["architecture"]),
        ("parameters", f"{info['parameters']:,}"),
        *([("text", "proteins: a word is a residue")] if info["proteins"] else []),
        *(_describe_onnx(info) if info["format"] == "onnx" else []),
        ("vectors", f"{info['layers']} of size {info['dim']} per word: context-free, {layers}"),
        (
            "characters",
            f"{cnn['characters']} {kind}, embeddings of size {cnn['embedding_dim']}, at most "
            f"{cnn['max_characters']} characters per word",
        ),
        *(
            [("known words", f"{lexicon['entries']:,}, embeddings of size {lexicon['dim']}")]
            if lexicon is not None
            else []
        ),
        ("filters", f"{filters}; {cnn['activation']}"),
        (
            "highway layers",
            str(cnn["highways"]) + (", then a projection" if cnn["projection"] else ""),
        ),
        (
            "LSTM",
            f"{lstm['cells']} cells"
            + (f", projected to {lstm['width']}" if lstm["projection"] else "")
            + (", skip connection" if lstm["skip"] else ", no skip connection"),
        ),
        (
            "clipping",
            f"cell {lstm['cell_clip'] or 'none'}, projection {lstm['projection_clip'] or 'none'}",
        ),
        ("vocabulary", "none" if vocabulary is None else f"{vocabulary:,} words"),
        ("softmax", "yes" if info["softmax"] else "no: it can embed text but not predict words"),
        ("settled state", _describe_settled(info)),
        (
            "mix",
            "uniform"
            if mix is None
            else " ".join(f"{w:.3f}" for w in mix["weights"]) + f", γ {mix['gamma']:.3f}",
        ),
        ("fingerprint", info["fingerprint"]),
        *(
            ("files" if i == 0 else "", f"{name}  {size:,} bytes")
            for i, (name, size) in enumerate(info["files"].items())
        ),
    ]


def _describe_onnx(info: ModelInfo) -> list[tuple[str, str]]:
    """Return the inputs and outputs of an ONNX file."""
    cnn, words = info["config"]["char_cnn"], info["config"].get("words")
    return [
        (
            "inputs",
            f"character_ids (batch, words, {cnn['max_characters']}), "
            + ("" if words is None else "word_ids (batch, words), ")
            + "lengths (batch)",
        ),
        (
            "outputs",
            f"layers ({info['layers']}, batch, words, {info['dim']}), "
            f"mix (batch, words, {info['dim']})",
        ),
    ]


def _describe_settled(info: ModelInfo) -> str:
    if info["starts_from_zeros"]:
        return "stored: zeros, every sentence starts anew"
    text = "proteins" if info["proteins"] else "English text"
    return "stored" if info["settled"] else f"computed from {text} when it is first needed"
