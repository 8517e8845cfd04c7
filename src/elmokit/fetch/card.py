"""The model card: the README.md of a model on the Hugging Face hub.

The front matter is YAML; JSON strings and lists are valid YAML, so every value is written as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import elmokit
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX
from elmokit.errors import InputError

TAGS = ("elmo", "bilm", "contextual-word-vectors", "word-embeddings")


def make_model_card(
    bilm: BiLM,
    repo_id: str,
    *,
    language: str | Sequence[str] | None = None,
    license: str | None = None,
) -> str:
    """Return the text of a card that says what the model is and how to use it.

    Args:
        bilm: The model.
        repo_id: `owner/name` of the model on the hub.
        language: One or several ISO 639 codes; left out if None.
        license: Identifier on the hub, such as `"apache-2.0"`; left out if None.
    """
    languages = [language] if isinstance(language, str) else list(language or ())
    for name, values in (("language", languages), ("license", [license] if license else [])):
        for value in values:
            if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", value):
                raise InputError(
                    f"{name} is {value!r}; expected a short code such as "
                    + ("'en' or 'pt'" if name == "language" else "'apache-2.0' or 'cc-by-4.0'")
                )
    title = repo_id.rpartition("/")[2]
    front_matter = {
        "library_name": "elmokit",
        "pipeline_tag": "feature-extraction",
        "tags": list(TAGS),
        **({"language": languages} if languages else {}),
        **({"license": license} if license else {}),
    }
    front = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front_matter.items())
    rows = "\n".join(f"| {name} | {value} |" for name, value in _properties(bilm))
    return f"""---
{front}
---

# {title}

An ELMo: a bidirectional language model that reads characters and computes one vector per word,
which depends on the whole sentence.

```python
from elmokit import Elmo  # pip install 'elmokit[hub]'

elmo = Elmo.load({json.dumps(repo_id)})
vectors = elmo.embed("She went to the bank .")  # one vector of {bilm.config.dim} numbers per word
```

| | |
|---|---|
{rows}

Written by elmokit {elmokit.__version__}.
"""


def _properties(bilm: BiLM) -> list[tuple[str, str]]:
    cnn, lstm = bilm.config.char_cnn, bilm.config.lstm
    skip = (
        ", with a residual connection from the second layer on"
        if lstm.skip and lstm.layers > 1
        else ""
    )
    vocabulary = bilm.vocabulary
    return [
        ("architecture", f"`{architecture_name(bilm.config)}`"),
        ("parameters", f"{bilm.parameters:,}"),
        ("vectors", f"{bilm.config.layers} layers of {bilm.config.dim}"),
        (
            "characters",
            f"{cnn.n_filters} filters of {len(cnn.filters)} widths, {cnn.highways} highway layers, "
            f"at most {cnn.max_characters} characters per word",
        ),
        ("LSTM", f"{lstm.layers} × {lstm.cells} cells, width {lstm.width}{skip}"),
        ("vocabulary", "none" if vocabulary is None else f"{len(vocabulary):,} words"),
        (
            "softmax",
            "yes"
            if SOFTMAX[0] in bilm.weights
            else "no: the model embeds text but does not predict words",
        ),
        ("fingerprint", f"`{bilm.fingerprint}`"),
    ]


def architecture_name(config: BiLMConfig) -> str:
    """Return the name in the style of the published models: 2x4096_512_2048cnn_2xhighway."""
    cnn, lstm = config.char_cnn, config.lstm
    return f"{lstm.layers}x{lstm.cells}_{lstm.width}_{cnn.n_filters}cnn_{cnn.highways}xhighway"
