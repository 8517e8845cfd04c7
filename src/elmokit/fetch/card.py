"""The model card: README.md of a repository on the hub, in the hub's own form.

The front matter is YAML, of which JSON strings and lists are a part: so every value is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import elmokit
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX
from elmokit.errors import InputError

TAGS = ("elmo", "bilm", "contextual-word-vectors", "word-embeddings")


def make_card(
    bilm: BiLM,
    repo_id: str,
    *,
    language: str | Sequence[str] | None = None,
    license: str | None = None,
) -> str:
    """A card that says what the model is and how to use it.

    `language` is a code of ISO 639 or several, `license` an identifier of the hub (`"apache-2.0"`,
    `"cc-by-4.0"`); what is not known is not claimed.
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
    matter = {
        "library_name": "elmokit",
        "pipeline_tag": "feature-extraction",
        "tags": list(TAGS),
        **({"language": languages} if languages else {}),
        **({"license": license} if license else {}),
    }
    front = "\n".join(f"{key}: {json.dumps(value)}" for key, value in matter.items())
    rows = "\n".join(f"| {name} | {value} |" for name, value in _facts(bilm))
    return f"""---
{front}
---

# {title}

An ELMo: a bidirectional language model that reads characters and gives every word of a sentence a
vector that depends on the whole sentence.

```python
from elmokit import Elmo  # pip install 'elmokit[hub]'

elmo = Elmo.load({json.dumps(repo_id)})
vectors = elmo.embed("She went to the bank .")  # one vector of {bilm.config.dim} numbers a word
```

| | |
|---|---|
{rows}

Written by elmokit {elmokit.__version__}.
"""


def _facts(bilm: BiLM) -> list[tuple[str, str]]:
    cnn, lstm = bilm.config.char_cnn, bilm.config.lstm
    skip = ", each but the first added to its input" if lstm.skip and lstm.layers > 1 else ""
    words = bilm.vocabulary
    return [
        ("architecture", f"`{_short_name(bilm)}`"),
        ("parameters", f"{bilm.parameters:,}"),
        ("vectors", f"{bilm.config.layers} layers of {bilm.config.dim}"),
        (
            "characters",
            f"{cnn.n_filters} filters of {len(cnn.filters)} widths, {cnn.highways} highway layers, "
            f"at most {cnn.max_characters} characters a word",
        ),
        ("LSTM", f"{lstm.layers} × {lstm.cells} cells, width {lstm.width}{skip}"),
        ("vocabulary", "none" if words is None else f"{len(words):,} words"),
        (
            "softmax",
            "yes" if SOFTMAX[0] in bilm.weights else "no: it embeds, and predicts no words",
        ),
        ("fingerprint", f"`{bilm.fingerprint}`"),
    ]


def _short_name(bilm: BiLM) -> str:
    cnn, lstm = bilm.config.char_cnn, bilm.config.lstm
    return f"{lstm.layers}x{lstm.cells}_{lstm.width}_{cnn.n_filters}cnn_{cnn.highways}xhighway"
