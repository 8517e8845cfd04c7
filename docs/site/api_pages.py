"""The API reference: one page per public package, with every name that it exports."""

from __future__ import annotations

import importlib
from pathlib import Path

PACKAGES = {
    "elmokit": "Load, embed, save. `Elmo` is the class that most people need.",
    "elmokit.lm": "What a biLM predicts: perplexity and substitutes. Needs no torch.",
    "elmokit.vectors": "Files of vectors (HDF5, npz, Parquet), and sharded jobs.",
    "elmokit.nn": "ELMo inside a PyTorch model. Needs `pip install 'elmokit[train]'`.",
    "elmokit.train": "Training and adapting biLMs. Needs `pip install 'elmokit[train]'`.",
    "elmokit.tasks": "The six tasks of the paper. Needs `pip install 'elmokit[train]'`.",
    "elmokit.probe": "Analyses of a model.",
    "elmokit.serve": "Models over HTTP, and the page. Needs `pip install 'elmokit[serve]'`.",
}
INTEGRATIONS = {
    "sklearn": ["ElmoVectorizer"],
    "spacy": ["ElmoPipe", "make_elmo", "make_tok2vec", "use_tensor"],
    "sentence_transformers": ["ElmoModule"],
    "flair": ["ElmoTokenEmbeddings"],
    "ray": ["embed_shards", "plan_dataset", "embed_texts"],
}
COMPAT = ("allennlp", "simple_elmo", "many_langs", "bilm")


def write_api_pages(directory: Path) -> None:
    """Write a page per package; mkdocstrings fills it from the docstrings, without importing."""
    directory.mkdir(parents=True)
    for package, sentence in PACKAGES.items():
        names = [n for n in importlib.import_module(package).__all__ if not n.startswith("_")]
        names.sort(key=lambda name: (name.endswith("Error"), not name[0].isupper(), name.lower()))
        if package == "elmokit":
            names.remove("Elmo")
            names.insert(0, "Elmo")
        text = f"# {package}\n\n{sentence} [All names on one page](../api.md).\n\n"
        text += "".join(f"::: {package}.{name}\n\n" for name in names)
        (directory / f"{package.partition('.')[2] or package}.md").write_text(
            text, encoding="utf-8"
        )
    text = (
        "# elmokit.compat\n\nThe classes and functions of the libraries that offered ELMo before, "
        "under their own names. [What to change in old code](../migration.md).\n\n"
    )
    for name in COMPAT:
        text += f"::: elmokit.compat.{name}\n    options:\n      show_root_full_path: true\n"
        text += "      show_if_no_docstring: false\n\n"
    (directory / "compat.md").write_text(text, encoding="utf-8")
    text = (
        "# elmokit.integrations\n\nELMo inside other libraries: a module and an extra per library. "
        "[How to use them](../integrations.md).\n\n"
    )
    for module, names in INTEGRATIONS.items():
        for name in names:
            text += f"::: elmokit.integrations.{module}.{name}\n    options:\n"
            text += "      show_root_full_path: true\n\n"
    (directory / "integrations.md").write_text(text, encoding="utf-8")
