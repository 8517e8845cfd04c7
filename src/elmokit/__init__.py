"""elmokit: contextual word vectors from ELMo models.

    from elmokit import Elmo

    elmo = Elmo.load()                                      # the built-in English model
    vectors = elmo.embed(["She went to the bank .", "The river bank was muddy ."])

The subpackages are `elmokit.lm` (predicting words), `elmokit.vectors` (files of vectors),
`elmokit.nn` (PyTorch modules), `elmokit.train` (training), `elmokit.tasks` (the tasks of the paper)
and `elmokit.probe` (analyses). Names are imported at first use, so that `import elmokit` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

__version__ = "0.2.0"

if TYPE_CHECKING:
    from elmokit.bench import benchmark, roofline
    from elmokit.bilm.config import BiLMConfig
    from elmokit.bilm.mix import Mix
    from elmokit.bilm.model import BiLM
    from elmokit.convert import convert_model
    from elmokit.elmo import Elmo, EmbeddedSentence
    from elmokit.engine.limits import Limits, measure_limits
    from elmokit.errors import (
        ConfigError,
        ElmoError,
        FormatError,
        InputError,
        InputTypeError,
        MissingExtra,
        ModelNotFound,
        TrainingError,
        WeightsError,
        WriteError,
    )
    from elmokit.fetch.published import list_models
    from elmokit.inspect import inspect_model
    from elmokit.settle import settle_model
    from elmokit.text.fasta import read_fasta
    from elmokit.vectors.embed import embed_fasta_to_file, embed_to_file
    from elmokit.vectors.reader import load_vectors

__all__ = [
    "BiLM",
    "BiLMConfig",
    "ConfigError",
    "Elmo",
    "ElmoError",
    "EmbeddedSentence",
    "FormatError",
    "InputError",
    "InputTypeError",
    "Limits",
    "MissingExtra",
    "Mix",
    "ModelNotFound",
    "TrainingError",
    "WeightsError",
    "WriteError",
    "__version__",
    "benchmark",
    "convert_model",
    "embed_fasta_to_file",
    "embed_to_file",
    "inspect_model",
    "list_models",
    "load_vectors",
    "measure_limits",
    "read_fasta",
    "roofline",
    "settle_model",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "BiLM": "elmokit.bilm.model",
        "BiLMConfig": "elmokit.bilm.config",
        "ConfigError": "elmokit.errors",
        "Elmo": "elmokit.elmo",
        "ElmoError": "elmokit.errors",
        "EmbeddedSentence": "elmokit.elmo",
        "FormatError": "elmokit.errors",
        "InputError": "elmokit.errors",
        "InputTypeError": "elmokit.errors",
        "Limits": "elmokit.engine.limits",
        "MissingExtra": "elmokit.errors",
        "Mix": "elmokit.bilm.mix",
        "ModelNotFound": "elmokit.errors",
        "TrainingError": "elmokit.errors",
        "WeightsError": "elmokit.errors",
        "WriteError": "elmokit.errors",
        "benchmark": "elmokit.bench",
        "convert_model": "elmokit.convert",
        "embed_fasta_to_file": "elmokit.vectors.embed",
        "embed_to_file": "elmokit.vectors.embed",
        "inspect_model": "elmokit.inspect",
        "list_models": "elmokit.fetch.published",
        "load_vectors": "elmokit.vectors.reader",
        "measure_limits": "elmokit.engine.limits",
        "read_fasta": "elmokit.text.fasta",
        "roofline": "elmokit.bench",
        "settle_model": "elmokit.settle",
    },
)
