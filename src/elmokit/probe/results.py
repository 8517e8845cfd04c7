"""Measurements: the numbers that a probe found, what determined them, and their files.

A measurement is a JSON object with its `kind`, its `signature` and the numbers of that kind. Its
tables and figures are rendered from that object alone, so that a file shows the same at any time:
in a terminal, in a report, in a document.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import elmokit
from elmokit.elmo import Elmo
from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.fetch.cache import models_root
from elmokit.json_text import SEAL, check_seal, parse_json, seal
from elmokit.probe.tables import Table, table_to_csv, table_to_latex
from elmokit.storage import check_regular, checksum, explain_write_errors, write_text

Measurement = dict[str, Any]
"""A measurement as a JSON object, with the keys `format`, `version`, `kind` and `signature`."""
ResultRow = dict[str, Any]
"""One row of numbers within a measurement, such as the scores of one layer."""
ModelOrName = Elmo | str | Path
"""A loaded model, or the name or path that `Elmo.load` takes."""

FORMAT, VERSION = "elmokit-measurement", 2
"""Name and version of the format; files of version 1 have no checksum."""
UNIDENTIFYING = ("elmokit", "command")
"""Keys of a signature that may differ between two runs of the same measurement."""

KINDS = {
    "training": "elmokit.probe.training",
    "pos": "elmokit.probe.tags.render",
    "wsd": "elmokit.probe.senses.render",
    "similarity": "elmokit.probe.similarity.render",
    "geometry": "elmokit.probe.geometry.render",
    "neighbors": "elmokit.probe.neighbors.render",
    "change": "elmokit.probe.change.render",
    "weights": "elmokit.probe.tasks.weights",
    "layers": "elmokit.probe.tasks.variants",
    "place": "elmokit.probe.tasks.variants",
    "efficiency": "elmokit.probe.tasks.efficiency",
}
"""The module that renders each kind: it has the functions `render_tables(measurement)` and
`render_figures(measurement)`, and may have `headline(measurement)`."""


class Figure(NamedTuple):
    """A rendered figure of a measurement."""

    name: str
    """What is appended to the measurement's file name; `""` for the main or only figure."""
    svg: str
    """The SVG document."""


def as_elmo(model: ModelOrName) -> Elmo:
    """Return the model itself if it is loaded already, else load it."""
    return model if isinstance(model, Elmo) else Elmo.load(model)


def make_signature(elmo: Elmo, data: Mapping[str, str | Path], **settings: Any) -> dict[str, Any]:
    """Return what determines a measurement: the model, checksums of the data, and settings.

    Args:
        elmo: The model that is measured.
        data: Files or directories that were read, by their role.
        settings: Seeds and other settings; values that JSON can hold.
    """
    return {
        "model": elmo.bilm.fingerprint,
        "state": elmo.state,
        "dtype": elmo.dtype,
        "data": {name: checksum(path) for name, path in data.items()},
        **settings,
        "elmokit": elmokit.__version__,
    }


def make_measurement(kind: str, signature: Mapping[str, Any], **numbers: Any) -> Measurement:
    """Return a measurement of this kind, exactly as it would come back from a JSON file.

    Args:
        kind: One of `KINDS`.
        signature: What determined the numbers; see `make_signature`.
        numbers: The results; values that JSON can hold.
    """
    if kind not in KINDS:
        raise InputError(
            f"unknown kind of measurement {kind!r}; expected one of {', '.join(KINDS)}"
        )
    content = {"format": FORMAT, "version": VERSION, "kind": kind, "signature": signature}
    measurement: Measurement = json.loads(json.dumps(content | numbers))
    return measurement


def render_tables(measurement: Measurement) -> list[Table]:
    """Return the tables of a measurement."""
    with _explain_damage(measurement):
        tables: list[Table] = import_module(KINDS[measurement["kind"]]).render_tables(measurement)
        return tables


def render_figures(measurement: Measurement) -> list[Figure]:
    """Return the figures of a measurement as SVG."""
    with _explain_damage(measurement):
        module = import_module(KINDS[measurement["kind"]])
        figures: list[Figure] = module.render_figures(measurement)
        return figures


def headline(measurement: Measurement) -> tuple[str, str] | None:
    """Return the most important number of a measurement and its description, if it has one."""
    with _explain_damage(measurement):
        module = import_module(KINDS[measurement["kind"]])
        found: tuple[str, str] | None = (
            module.headline(measurement) if hasattr(module, "headline") else None
        )
        return found


@contextmanager
def _explain_damage(measurement: Measurement) -> Iterator[None]:
    """Turn the errors that a measurement of a damaged or foreign file causes into `FormatError`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        if isinstance(error, ElmoError):
            raise
        raise FormatError(
            f"a measurement of the kind {measurement['kind']!r} has other content than expected "
            f"({error!r:.200}); measure again"
        ) from error


# -- files ---------------------------------------------------------------------------------------


def measurements_directory(fingerprint: str) -> Path:
    """Return the default directory for the measurements of a model, within the cache directory."""
    return models_root().parent / "measured" / fingerprint[:16]


def save_measurement(
    measurement: Measurement, out: str | Path | None = None, name: str | None = None
) -> list[Path]:
    """Write a measurement as JSON, its tables and its figures; returns the files, JSON first.

    Beside NAME.json are the tables for a paper, NAME.tex (LaTeX with booktabs), the tables for
    other programs, NAME.csv, NAME-2.csv, …, and the figures as SVG. A file of the same name that
    holds a different measurement is never overwritten: the new one gets a longer name.

    Args:
        measurement: The measurement.
        out: Directory to write to; by default the model's directory in the cache, where
            `elmo report` looks.
        name: File name without its extension; the kind of the measurement by default. A
            measurement with context="sentence" gets `-sentence` appended, one with state="carry"
            `-carry`.
    """
    if out is None:
        directory = measurements_directory(measurement["signature"]["model"])
        advice = (
            "set ELMOKIT_CACHE to a directory that can be written, or name one: out=DIR (--out)"
        )
    else:
        directory = Path(out).expanduser()
        advice = "make room, or give another directory"
    with explain_write_errors(directory, kept=advice):
        return _write_files(measurement, directory, name, in_cache=out is None)


def _write_files(
    measurement: Measurement, directory: Path, name: str | None, in_cache: bool
) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    stem = name or measurement["kind"]
    if pools_sentence(measurement):
        stem += "-sentence"
    if reads_running_text(measurement):
        stem += "-carry"
    if in_cache or _holds_another(directory / f"{stem}.json", measurement):
        stem = f"{stem}-{measurement_id(measurement)[:8]}"
    tables = render_tables(measurement)
    texts = {f"{stem}.tex": measurement_to_latex(measurement, stem)}
    for number, table in enumerate(tables, start=1):
        texts[f"{stem}.csv" if number == 1 else f"{stem}-{number}.csv"] = table_to_csv(table)
    for figure in render_figures(measurement):
        texts[f"{'-'.join(filter(None, (stem, figure.name)))}.svg"] = figure.svg
    for file, text in texts.items():
        write_text(directory / file, text)
    write_text(directory / f"{stem}.json", _to_json(measurement))
    return [directory / f"{stem}.json", *(directory / file for file in texts)]


def measurement_to_latex(measurement: Measurement, name: str | None = None) -> str:
    """Return all tables of a measurement as LaTeX, with its signature in comments.

    Args:
        measurement: The measurement.
        name: What the labels begin with: `tab:NAME` is the first table, `tab:NAME-2` the second;
            the kind of the measurement by default.
    """
    stem = name or measurement["kind"]
    lines = [
        f"% Tables of {stem}.json, a measurement by elmokit; they need \\usepackage{{booktabs}}.",
        "% What determined the numbers:",
        *(
            f"% {key}: {json.dumps(value, ensure_ascii=False)}"
            for key, value in measurement["signature"].items()
        ),
        "",
    ]
    tables = [
        table_to_latex(table, f"tab:{stem}" if number == 1 else f"tab:{stem}-{number}")
        for number, table in enumerate(render_tables(measurement), start=1)
    ]
    return "\n".join([*lines, *tables])


def _to_json(measurement: Measurement) -> str:
    """Return JSON with one line per top-level key."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in (
            measurement if measurement.get("version", 1) == 1 else seal(measurement)
        ).items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load_measurement(path: str | Path) -> Measurement:
    """Read the JSON file of a measurement."""
    check_regular(Path(path).expanduser())
    try:
        measurement: Measurement = parse_json(Path(path).expanduser().read_text(encoding="utf-8"))
        known = measurement["format"] == FORMAT and measurement["kind"] in KINDS
        if not known or not isinstance(measurement["signature"]["model"], str):
            raise KeyError(FORMAT)
        version = int(measurement["version"])
        if 1 < version <= VERSION:
            check_seal(measurement)
        measurement.pop(SEAL, None)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise FormatError(
            f"{path} is damaged or not a measurement ({error!r:.100}); expected a JSON file that "
            "`elmo probe`, `elmo analyze`, `elmo neighbors` or `elmo change` wrote"
        ) from None
    if not 1 <= version <= VERSION:
        raise FormatError(f"{path} was written by a newer elmokit; update elmokit to read it")
    return measurement


def find_measurements(fingerprint: str, directories: Iterable[str | Path]) -> list[Measurement]:
    """Return the measurements of a model in directories, in the order of `KINDS`, each only once.

    Files that are not measurements of this model are ignored, and directories may be missing.
    """
    by_id: dict[str, Measurement] = {}
    for directory in directories:
        for path in sorted(Path(directory).expanduser().glob("*.json")):
            try:
                measurement = load_measurement(path)
            except (FormatError, InputError):
                continue
            if measurement["signature"]["model"] == fingerprint:
                by_id.setdefault(measurement_id(measurement), measurement)
    order = list(KINDS)
    return sorted(by_id.values(), key=lambda measurement: order.index(measurement["kind"]))


def measurement_id(measurement: Measurement) -> str:
    """Return a hash of what was measured: equal for two runs of the same measurement."""
    signature = {k: v for k, v in measurement["signature"].items() if k not in UNIDENTIFYING}
    text = json.dumps([measurement["kind"], signature], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _holds_another(path: Path, measurement: Measurement) -> bool:
    """Return whether there is a file that holds something else than this measurement."""
    if not path.exists():
        return False
    try:
        return measurement_id(load_measurement(path)) != measurement_id(measurement)
    except (FormatError, InputError):
        return True


# -- shared by the renderers ---------------------------------------------------------------------


def pools_sentence(measurement: Measurement) -> bool:
    """Return whether vectors of words were compared together with the mean of their sentence."""
    return bool(measurement["signature"].get("context") == "sentence")


def reads_running_text(measurement: Measurement) -> bool:
    """Return whether every sentence was read after those before it."""
    return bool(measurement["signature"].get("state") == "carry")


def with_context(title: str, measurement: Measurement) -> str:
    """Return a title that says what was compared and read besides the word and its sentence."""
    context = [
        *(["word and sentence"] if pools_sentence(measurement) else []),
        *(["running text"] if reads_running_text(measurement) else []),
    ]
    return f"{title} ({', '.join(context)})" if context else title


def layer_name(layer: int | str) -> str:
    """Return the name of a biLM's layer in tables and figures: characters, LSTM 1, all layers."""
    names = {"0": "characters", "all": "all layers"}
    return names.get(str(layer), f"LSTM {layer}")


def network_layer_name(network: str, layer: int | str) -> str:
    """Return the name of a layer, with that of its network unless it is the trained one."""
    return layer_name(layer) if network == "trained" else f"{network}: {layer_name(layer)}"


def percent(fraction: float | None) -> str:
    """Format a fraction of 1 as a percentage without its sign; a dash if it was not measured."""
    return "–" if fraction is None else f"{100 * fraction:.1f}"


def argmax(values: Sequence[float]) -> int:
    """Return the index of the largest value, the first one if several are equal."""
    return max(range(len(values)), key=lambda i: values[i])
