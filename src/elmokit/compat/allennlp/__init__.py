"""Drop-in replacements for the parts of AllenNLP that compute ELMo.

    from elmokit.compat.allennlp import Elmo, batch_to_ids   # was: allennlp.modules.elmo

Arguments, shapes, values and state-dict names are those of AllenNLP 2.10.1, and of 0.9 for
`ElmoEmbedder`, which later versions removed. As in AllenNLP, the LSTM's state is carried from call
to call, in training too, so that a sentence's vectors depend on what was embedded before. The
differences are listed in docs/migration.md. For new code, `elmokit.Elmo` and
`elmokit.nn.ElmoEmbedding` are better: their vectors depend on the sentence alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.compat.allennlp.bilm import _ElmoBiLm
    from elmokit.compat.allennlp.boundaries import (
        add_sentence_boundary_token_ids,
        remove_sentence_boundaries,
    )
    from elmokit.compat.allennlp.character_encoder import Highway, _ElmoCharacterEncoder
    from elmokit.compat.allennlp.elmo import Elmo, ElmoTokenEmbedder, ScalarMix
    from elmokit.compat.allennlp.elmo_lstm import ElmoLstm
    from elmokit.compat.allennlp.embedder import DEFAULT_BATCH_SIZE, ElmoEmbedder
    from elmokit.compat.allennlp.files import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE
    from elmokit.compat.allennlp.indexer import (
        ELMoCharacterMapper,
        ELMoTokenCharactersIndexer,
        batch_to_ids,
    )
    from elmokit.compat.allennlp.lstm_cell import LstmCellWithProjection

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "DEFAULT_OPTIONS_FILE",
    "DEFAULT_WEIGHT_FILE",
    "ELMoCharacterMapper",
    "ELMoTokenCharactersIndexer",
    "Elmo",
    "ElmoEmbedder",
    "ElmoLstm",
    "ElmoTokenEmbedder",
    "Highway",
    "LstmCellWithProjection",
    "ScalarMix",
    "_ElmoBiLm",  # private in AllenNLP too, but widely used
    "_ElmoCharacterEncoder",
    "add_sentence_boundary_token_ids",
    "batch_to_ids",
    "remove_sentence_boundaries",
]

_load_name, __dir__ = lazy_exports(
    __name__,
    {
        "DEFAULT_BATCH_SIZE": "elmokit.compat.allennlp.embedder",
        "DEFAULT_OPTIONS_FILE": "elmokit.compat.allennlp.files",
        "DEFAULT_WEIGHT_FILE": "elmokit.compat.allennlp.files",
        "ELMoCharacterMapper": "elmokit.compat.allennlp.indexer",
        "ELMoTokenCharactersIndexer": "elmokit.compat.allennlp.indexer",
        "Elmo": "elmokit.compat.allennlp.elmo",
        "ElmoEmbedder": "elmokit.compat.allennlp.embedder",
        "ElmoLstm": "elmokit.compat.allennlp.elmo_lstm",
        "ElmoTokenEmbedder": "elmokit.compat.allennlp.elmo",
        "Highway": "elmokit.compat.allennlp.character_encoder",
        "LstmCellWithProjection": "elmokit.compat.allennlp.lstm_cell",
        "ScalarMix": "elmokit.compat.allennlp.elmo",
        "_ElmoBiLm": "elmokit.compat.allennlp.bilm",
        "_ElmoCharacterEncoder": "elmokit.compat.allennlp.character_encoder",
        "add_sentence_boundary_token_ids": "elmokit.compat.allennlp.boundaries",
        "batch_to_ids": "elmokit.compat.allennlp.indexer",
        "remove_sentence_boundaries": "elmokit.compat.allennlp.boundaries",
    },
)

_INSTEAD = {
    "BasicTextFieldEmbedder": "call the ElmoTokenEmbedder itself, with ids of batch_to_ids",
    "Batch": "batch_to_ids(sentences) makes character ids of lists of words",
    "Dataset": "batch_to_ids(sentences) makes character ids of lists of words",
    "Instance": "batch_to_ids(sentences) makes character ids of lists of words",
    "Params": "from_params takes a plain dictionary",
    "TextField": "batch_to_ids(sentences) makes character ids of lists of words",
    "Token": "ELMoTokenCharactersIndexer takes plain strings instead of tokens",
    "Vocabulary": "ELMo has no vocabulary: give None where AllenNLP wants one",
    "cached_path": "options_file and weight_file may be addresses; files are downloaded once",
    "lazy_groups_of": "ElmoEmbedder.embed_sentences takes any number of sentences",
}
"""Parts of AllenNLP that its ELMo is often used with, and what to write without AllenNLP."""


def __getattr__(name: str) -> Any:
    if name in _INSTEAD:
        raise ImportError(
            f"AllenNLP's {name} is not part of elmokit: {_INSTEAD[name]}. "
            f"If AllenNLP is installed, keep importing {name} from it"
        )
    return _load_name(name)
