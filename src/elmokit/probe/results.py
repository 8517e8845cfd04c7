"""What was measured of a model, as a file: the numbers, and what determined them.

A measurement is a JSON object with its `kind`, its `signature` and the numbers of that kind. Its
tables and its pictures are made of that object alone, so that a file shows the same at any time:
in a terminal, in a report, in a document.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import elmokit
from elmokit.elmo import Elmo
from elmokit.errors import FormatError, InputError
from elmokit.fetch.cache import models_root
from elmokit.probe.tables import Table
from elmokit.text.files import checksum, write_text

Json = dict[str, Any]

FORMAT, VERSION = "elmokit-measurement", 1
PASSING = ("elmokit", "command")
"""What a signature says that does not tell one measurement from another."""

KINDS = {
    "training": "elmokit.probe.training",
    "pos": "elmokit.probe.tags.render",
    "wsd": "elmokit.probe.senses.render",
    "similarity": "elmokit.probe.similarity.render",
    "geometry": "elmokit.probe.geometry.render",
    "neighbors": "elmokit.probe.neighbors.render",
    "change": "elmokit.probe.change.render",
    "weights": "elmokit.probe.tasks.weights",
    "layers": "elmokit.probe.tasks.choices",
    "place": "elmokit.probe.tasks.choices",
    "efficiency": "elmokit.probe.tasks.efficiency",
}
"""The module that shows a kind: `tables(found)`, `pictures(found)`, perhaps `headline(found)`."""


class Picture(NamedTuple):
    """A figure of a measurement."""

    name: str
    """Of its file, without the end; `""` for the only one."""
    svg: str


def signature(elmo: Elmo, data: Mapping[str, str | Path], **more: Any) -> Json:
    """What determines a measurement: the model, the data, and whatever else does.

    Args:
        elmo: the model.
        data: files or directories that were read, by what they are for.
        more: seeds, settings, …; values that JSON can hold.
    """
    return {
        "model": elmo.bilm.fingerprint,
        "state": elmo.state,
        "dtype": elmo.dtype,
        "data": {name: checksum(path) for name, path in data.items()},
        **more,
        "elmokit": elmokit.__version__,
    }


def measurement(kind: str, signature: Json, **numbers: Any) -> Json:
    """The object, as JSON would give it back."""
    if kind not in KINDS:
        raise InputError(f"there is no measurement {kind!r}; expected one of {', '.join(KINDS)}")
    whole = {"format": FORMAT, "version": VERSION, "kind": kind, "signature": signature, **numbers}
    found: Json = json.loads(json.dumps(whole))
    return found


def tables(found: Json) -> list[Table]:
    """A measurement for readers."""
    made: list[Table] = import_module(KINDS[found["kind"]]).tables(found)
    return made


def pictures(found: Json) -> list[Picture]:
    """A measurement for people who would rather look."""
    made: list[Picture] = import_module(KINDS[found["kind"]]).pictures(found)
    return made


def headline(found: Json) -> tuple[str, str] | None:
    """The number to remember, and what it is; not every measurement has one."""
    module = import_module(KINDS[found["kind"]])
    made: tuple[str, str] | None = module.headline(found) if hasattr(module, "headline") else None
    return made


# -- files ---------------------------------------------------------------------------------------


def store(fingerprint: str) -> Path:
    """Where the measurements of a model are kept if nobody says where: in the cache directory."""
    return models_root().parent / "measured" / fingerprint[:16]


def keep(found: Json, out: str | Path | None = None, name: str | None = None) -> list[Path]:
    """Write a measurement and its pictures; the first of the files is the JSON.

    A file of the same name that holds another measurement stays: the new one gets a longer name.

    Args:
        found: the measurement.
        out: the directory; `store` of its model by default.
        name: of the file, without the end; its kind by default.
    """
    place = store(found["signature"]["model"]) if out is None else Path(out).expanduser()
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the directory {place}: {error.strerror}") from None
    stem = name or found["kind"]
    if out is None or _holds_another(place / f"{stem}.json", found):
        stem = f"{stem}-{identity(found)[:8]}"
    written = [place / f"{stem}.json"]
    for picture in pictures(found):
        written.append(place / f"{'-'.join(filter(None, (stem, picture.name)))}.svg")
        write_text(written[-1], picture.svg)
    write_text(written[0], _text(found))
    return written


def _text(found: Json) -> str:
    """JSON with a line for each number or list of them at the top."""
    lines = (f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(path: str | Path) -> Json:
    """A measurement's file."""
    place = Path(path).expanduser()
    try:
        found: Json = json.loads(place.read_text(encoding="utf-8"))
        known = (found["format"], found["kind"] in KINDS, found["signature"]["model"])
        if known[:2] != (FORMAT, True):
            raise KeyError(FORMAT)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise FormatError(
            f"{path} is no measurement; expected a file that `elmo probe`, `analyze`, `neighbors` "
            "or `change` wrote"
        ) from None
    if found["version"] > VERSION:
        raise FormatError(f"{path} was written by a newer elmokit: update this one")
    return found


def collect(fingerprint: str, places: Iterable[str | Path]) -> list[Json]:
    """The measurements of a model in directories, in the order of `KINDS`; each only once.

    Other files are passed over: a directory may hold anything.
    """
    found: dict[str, Json] = {}
    for place in places:
        for path in sorted(Path(place).expanduser().glob("*.json")):
            try:
                one = read(path)
            except (FormatError, InputError):
                continue
            if one["signature"]["model"] == fingerprint:
                found.setdefault(identity(one), one)
    order = list(KINDS)
    return sorted(found.values(), key=lambda one: order.index(one["kind"]))


def identity(found: Json) -> str:
    """Equal for measurements of the same thing."""
    told = {k: v for k, v in found["signature"].items() if k not in PASSING}
    whole = json.dumps([found["kind"], told], sort_keys=True)
    return hashlib.sha256(whole.encode("utf-8")).hexdigest()


def _holds_another(path: Path, found: Json) -> bool:
    if not path.exists():
        return False
    try:
        return identity(read(path)) != identity(found)
    except (FormatError, InputError):
        return True


# -- what the probes have in common --------------------------------------------------------------


def layer_name(layer: int | str) -> str:
    """For people: which layer of a biLM."""
    names = {"0": "characters", "all": "all layers"}
    return names.get(str(layer), f"LSTM {layer}")


def network_layer_name(network: str, layer: int | str) -> str:
    """The same; the trained network is what a reader expects."""
    return layer_name(layer) if network == "trained" else f"{network}: {layer_name(layer)}"


def percent(share: float | None) -> str:
    """Of 1; a dash for what was not measured."""
    return "–" if share is None else f"{100 * share:.1f}"


def best(values: Sequence[float]) -> int:
    """Where the largest is."""
    return max(range(len(values)), key=lambda i: values[i])
