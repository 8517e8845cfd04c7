"""`elmo inspect`: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from elmokit.bilm.config import BiLMConfig


def inspect(model: str | Path) -> dict[str, Any]:
    """All that can be said about a model without running it, ready for JSON."""
    from elmokit import formats
    from elmokit.bilm.weights import SOFTMAX
    from elmokit.elmo import locate

    place = locate(model)
    found = formats.detect(place)
    bilm = formats.read(place)
    config = bilm.config
    return {
        "path": str(found.source.path),
        "format": found.kind,
        "title": found.title,
        "architecture": short_name(config),
        "parameters": bilm.parameters,
        "layers": config.layers,
        "dim": config.dim,
        "config": config.to_dict(),
        "vocabulary": None if bilm.vocabulary is None else len(bilm.vocabulary),
        "softmax": SOFTMAX[0] in bilm.weights,
        "settled": bilm.settled is not None,
        "mix": None
        if bilm.mix is None
        else {"weights": list(bilm.mix.weights), "gamma": bilm.mix.gamma},
        "fingerprint": bilm.fingerprint,
        "files": {name: found.source.size(name) for name in found.files},
    }


def short_name(config: BiLMConfig) -> str:
    """The name in the style of the published models: 2x4096_512_2048cnn_2xhighway."""
    lstm, cnn = config.lstm, config.char_cnn
    return f"{lstm.layers}x{lstm.cells}_{lstm.width}_{cnn.n_filters}cnn_{cnn.highways}xhighway"


@click.command("inspect", short_help="Say what a model is: format, sizes, parameters, checksum.")
@click.argument("model")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(model: str, as_json: bool) -> None:
    """Say what MODEL is: its format, architecture, sizes, vocabulary and checksum.

    MODEL is a directory, one file of a model, a zip archive, or a name. Reading it checks it: every
    array must be there, of its shape, finite, and (in our own format) have its checksum.

    \b
    elmo inspect path/to/model
    elmo inspect elmo_2x1024_128_2048cnn_1xhighway_weights.hdf5
    elmo inspect 144.zip --json
    """
    facts = inspect(model)
    if as_json:
        import json

        click.echo(json.dumps(facts))
        return

    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts_of(facts):
        table.add_row(name, value)
    Console(soft_wrap=False, highlight=False).print(table)


def facts_of(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The same in lines of a name and a value, for people."""
    cnn, lstm = facts["config"]["char_cnn"], facts["config"]["lstm"]
    filters = " ".join(f"{width}:{count}" for width, count in cnn["filters"])
    words = facts["vocabulary"]
    mix = facts["mix"]
    clips = f"cell {lstm['cell_clip'] or 'none'}, projection {lstm['projection_clip'] or 'none'}"
    return [
        ("model", facts["path"]),
        ("format", facts["title"]),
        ("architecture", facts["architecture"]),
        ("parameters", f"{facts['parameters']:,}"),
        ("vectors", f"{facts['layers']} layers of {facts['dim']}: words, {_lstms(lstm['layers'])}"),
        (
            "characters",
            f"{cnn['characters']}{_scheme(cnn)} of {cnn['embedding_dim']}, at most "
            f"{cnn['max_characters']} a word",
        ),
        *_known_words(facts["config"].get("words")),
        ("filters", f"width:number {filters}; {cnn['activation']}"),
        ("highways", str(cnn["highways"]) + (", then a projection" if cnn["projection"] else "")),
        (
            "LSTM",
            f"{lstm['cells']} cells"
            + (f", projected to {lstm['width']}" if lstm["projection"] else "")
            + (", skip connection" if lstm["skip"] else ", no skip connection"),
        ),
        ("clips", clips),
        ("vocabulary", "none" if words is None else f"{words:,} words"),
        ("softmax", "yes" if facts["softmax"] else "no: it can embed, not predict words"),
        ("settled state", "stored" if facts["settled"] else "computed when it is first needed"),
        (
            "mix",
            "uniform"
            if mix is None
            else " ".join(f"{w:.3f}" for w in mix["weights"]) + f", γ {mix['gamma']:.3f}",
        ),
        ("fingerprint", facts["fingerprint"]),
        *(
            ("files" if i == 0 else "", f"{name}  {size:,} bytes")
            for i, (name, size) in enumerate(facts["files"].items())
        ),
    ]


def _lstms(layers: int) -> str:
    return "1 LSTM" if layers == 1 else f"{layers} LSTMs"


def _scheme(cnn: dict[str, Any]) -> str:
    return " code points" if cnn.get("scheme") == "code_points" else ""


def _known_words(words: dict[str, int] | None) -> list[tuple[str, str]]:
    if words is None:
        return []
    return [("known words", f"{words['entries']:,} of {words['dim']}, beside their characters")]
