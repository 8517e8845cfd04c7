"""What a measurement was made with, in one line: how much data, and which.

Two measurements of one kind may differ by a factor of a thousand in size. The label tells them
apart in a report, from the measurement alone.
"""

from __future__ import annotations

from collections.abc import Callable

from elmokit.probe.results import Measurement

SHOWN_DIGITS = 8
"""Digits of a checksum that are shown."""


def data_label(measurement: Measurement) -> str:
    """Return the size and the checksums of a measurement's data, such as `2,000 pairs; data: …`."""
    sizes = _SIZES[measurement["kind"]](measurement)
    data = measurement["signature"].get("data", {})
    names = [
        f"{name} {checksum[:SHOWN_DIGITS]}"
        for name, checksum in data.items()
        if isinstance(checksum, str)
    ]
    if len(names) > 4:
        names = [*names[:3], f"and {len(names) - 3} more files"]
    return f"{sizes}; data: {', '.join(names)}" if names else sizes


def _training(measured: Measurement) -> str:
    words = measured["noted"][-1]["tokens"] if measured["noted"] else 0
    return f"trained on {words:,.0f} words"


def _pos(measured: Measurement) -> str:
    tests = ", ".join(f"{test['words']:,} of {test['name']}" for test in measured["tests"])
    return f"{measured['train']['words']:,} training words, {tests}"


def _wsd(measured: Measurement) -> str:
    uses, instances = measured["corpus"]["uses"], measured["instances"]["all"]
    return f"{uses:,} labeled uses, {instances:,} test instances"


def _similarity(measured: Measurement) -> str:
    return f"{measured['pairs']:,} pairs"


def _geometry(measured: Measurement) -> str:
    return f"{measured['words']:,} words in {measured['sentences']:,} sentences"


def _neighbors(measured: Measurement) -> str:
    return f"corpus of {measured['corpus']['words']:,} words"


def _change(measured: Measurement) -> str:
    label = f"{len(measured['words']):,} words compared"
    if "texts" not in measured:  # written by 0.1.0
        return label
    sizes = [f"{text['sentences']:,} sentences {name}" for name, text in measured["texts"].items()]
    return f"{label}, {' and '.join(sizes)}"


def _weights(measured: Measurement) -> str:
    models = sum(len(system["seeds"]) for system in measured["systems"])
    return f"{models:,} task models"


def _variants(measured: Measurement) -> str:
    return _runs(measured["choices"][0]["examples"], len(measured["signature"]["seeds"]))


def _efficiency(measured: Measurement) -> str:
    return _runs(max(size["examples"] for size in measured["sizes"]), len(measured["seeds"]))


def _runs(examples: int, seeds: int) -> str:
    return f"{examples:,} training examples, {seeds} seed{'s' if seeds != 1 else ''}"


_SIZES: dict[str, Callable[[Measurement], str]] = {
    "training": _training,
    "pos": _pos,
    "wsd": _wsd,
    "similarity": _similarity,
    "geometry": _geometry,
    "neighbors": _neighbors,
    "change": _change,
    "weights": _weights,
    "layers": _variants,
    "place": _variants,
    "efficiency": _efficiency,
}
"""What says how large a measurement of each kind is."""
