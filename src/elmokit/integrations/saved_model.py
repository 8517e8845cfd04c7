"""A model as a part of something that another library saves: its name, or its files.

A pipeline that was trained on a model is useless with another one. So a saved pipeline knows the
fingerprint of its model, and contains the whole model if that is known by a path only.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from elmokit.elmo import BUILTIN, Elmo
from elmokit.errors import FormatError, WeightsError
from elmokit.formats.tar_archive import LARGEST_RATIO
from elmokit.integrations.loaded_models import load_shared
from elmokit.json_text import parse_json

INDEX = "elmokit.json"
_SMALL_BYTES = 1 << 26
"""Size in bytes of an unpacked model that may have any compression ratio."""


class SavedModel:
    """A model that is loaded at first use, and saved by name, or with its files if it has none."""

    def __init__(self, model: str | Path | Elmo, dtype: str, threads: int | None) -> None:
        """Remember what to load; see `Elmo.load` for the arguments."""
        self.model = model
        self.dtype = dtype
        self.threads = threads
        self._elmo: Elmo | None = None
        self._fingerprint: str | None = None

    @property
    def elmo(self) -> Elmo:
        """The model, loaded."""
        if self._elmo is None:
            elmo = load_shared(self.model, self.dtype, self.threads)
            if self._fingerprint not in (None, elmo.bilm.fingerprint):
                raise WeightsError(
                    f"the model {self.model!r} is not the one that this was saved with: its "
                    f"fingerprint is {elmo.bilm.fingerprint[:12]}, expected "
                    f"{self._fingerprint[:12] if self._fingerprint else None}; train again with it"
                )
            self._elmo = elmo
        return self._elmo

    def to_bytes(self) -> bytes:
        """Return a zip archive with the model's name, or with the model."""
        named = isinstance(self.model, str) and (
            self.model == BUILTIN or not os.path.exists(os.path.expanduser(self.model))
        )
        index = {"model": self.model if named else None, "fingerprint": self.elmo.bilm.fingerprint}
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive, TemporaryDirectory() as directory:
            archive.writestr(zipfile.ZipInfo(INDEX), json.dumps(index))
            if not named:
                for path in sorted(self.elmo.save(Path(directory) / "model")):
                    archive.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
        return buffer.getvalue()

    def from_bytes(self, data: bytes) -> None:
        """Use the model that `to_bytes` has returned."""
        try:
            archive = zipfile.ZipFile(io.BytesIO(data))
            index = parse_json(archive.read(INDEX))
            model, self._fingerprint = index["model"], index["fingerprint"]
            if not isinstance(model, str | None) or not isinstance(self._fingerprint, str):
                raise TypeError(f"its name is {model!r:.60}")
            size = sum(entry.file_size for entry in archive.infolist())
            if size > LARGEST_RATIO * len(data) + _SMALL_BYTES:
                raise ValueError(f"it would unpack to {size:,} bytes")
        except Exception as error:  # a damaged archive can raise nearly anything inside zipfile
            raise FormatError(
                f"the saved ELMo model is damaged ({error!r:.100}); save the pipeline again"
            ) from None
        if model is not None:
            self.model, self._elmo = model, None
            return
        with archive, TemporaryDirectory() as directory:
            try:
                archive.extractall(directory)
            except Exception as error:
                raise FormatError(
                    f"the saved ELMo model is damaged ({error!r:.100}); save the pipeline again"
                ) from None
            os.remove(Path(directory) / INDEX)
            self.model = self._elmo = Elmo.load(directory, dtype=self.dtype, threads=self.threads)
