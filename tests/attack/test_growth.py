"""Small files that took hours or all memory: each is read or refused in a moment, in little."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

resource = pytest.importorskip("resource", reason="limits memory and time as Unix does")
pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")

MEMORY = 512 << 20
"""Memory in bytes that reading a file of a megabyte may map."""
SECONDS = 10
"""CPU time that it may take."""

Read = Callable[[], object]


def written(directory: Path, name: str, text: str) -> Path:
    (directory / name).write_text(text)
    return directory / name


def clusters_and_blank_lines(directory: Path) -> Read:
    from elmokit.tasks.coref import data

    mentions = "".join(f"x 0 0 w ({k}\nx 0 0 w {k})\n" for k in range(8000))
    text = f"#begin document (x); part 000\n{mentions}{chr(10) * 300_000}#end document\n"
    path = written(directory, "x.conll", text)
    return lambda: data.read(path)


def questions_about_a_long_title(directory: Path) -> Read:
    from elmokit.tasks.qa import data

    questions = [{"id": str(k), "question": "Why?"} for k in range(10_000)]
    article = {"title": "t" * 300_000, "paragraphs": [{"context": "A cat.", "qas": questions}]}
    path = written(directory, "x.json", json.dumps({"data": [article]}))
    return lambda: data.read(path)


def predicates_of_a_long_sentence(directory: Path) -> Read:
    from elmokit.tasks.srl import data

    sentence = {"words": ["a"] * 50_000, "preds": [{"i": 0}] * 20_000}
    path = written(directory, "x.jsonl", json.dumps(sentence))
    return lambda: data.read(path)


def predicates_of_a_long_text(directory: Path) -> Read:
    from elmokit.tasks.srl import data

    return lambda: data.parse(["[a] " * 50_000])


def phrases_of_a_long_sentence(directory: Path) -> Read:
    from elmokit.tasks.sentiment import data

    path = written(directory, "x.txt", "(2 (2 a) " * 20_000 + "(2 b)" + ")" * 20_000)
    sizes = SimpleNamespace(classes=5, phrases=2)
    return lambda: data.prepare(data.read(path), sizes, training=True)


def attribute_without_a_value(directory: Path) -> Read:
    from elmokit.probe.senses.semcor import read_semcor

    text = f"<contextfile>\n<s>\n<wf lexsn {'a' * 300_000}>x</wf>\n</s>"
    path = written(directory, "x", text)
    return lambda: read_semcor(path)


def senses_of_a_long_lemma(directory: Path) -> Read:
    from elmokit.probe.senses.semcor import read_semcor

    senses = ";".join(f"1:{k}:::" for k in range(20_000))
    word = f"<wf lemma={'a' * 300_000} lexsn={senses}>x</wf>"
    path = written(directory, "x", f"<contextfile>\n<s>\n{word}\n</s>")
    return lambda: read_semcor(path)


def one_long_line(directory: Path) -> Read:
    from elmokit.probe.senses.semcor import read_semcor

    written(directory, "x", "a" * (12 << 20))
    return lambda: read_semcor(directory)


def satellites_of_a_long_word(directory: Path) -> Read:
    from elmokit.probe.senses.wordnet import read_wordnet

    for name in ("noun", "verb", "adj", "adv"):
        written(directory, f"index.{name}", "")
        written(directory, f"data.{name}", "")
    head = f"1 00 a 1 {'h' * 300_000} 0 000\n"
    others = "".join(f"{k} 00 s 1 w{k} 0 001 & 1 a 0000\n" for k in range(2, 10_000))
    written(directory, "data.adj", head + others)
    return lambda: read_wordnet(directory)


def synset_of_a_long_number(directory: Path) -> Read:
    from elmokit.probe.senses.wordnet import read_wordnet

    for name in ("noun", "verb", "adj", "adv"):
        written(directory, f"index.{name}", "")
        written(directory, f"data.{name}", "")
    words = "".join(f"w{k} 0 " for k in range(1 << 18))
    written(directory, "data.adj", f"1 {'1' * 4200} a {1 << 18:x} {words}000\n")
    return lambda: read_wordnet(directory)


def mark_that_does_not_end(directory: Path) -> Read:
    from elmokit.probe.similarity.pairs import read_pairs

    context = "<b>" + " " * 5000
    path = written(directory, "x.txt", f"1\ta\tn\tb\tn\t{context}\t<b>b</b>\t3.0\n")
    return lambda: read_pairs(path)


def layers_without_weights(directory: Path) -> Read:
    from elmokit.bilm.config import BiLMConfig
    from elmokit.formats.allennlp import hdf5_layout

    options = {
        "char_cnn": {"filters": [[1, 4]], "embedding": {"dim": 4}},
        "lstm": {"dim": 4, "projection_dim": 4, "n_layers": 1 << 20},
    }
    return lambda: hdf5_layout(BiLMConfig.from_options(options))


def many_highlighted_cells(directory: Path) -> Read:
    from elmokit.probe.tables import Table, table_to_markdown

    rows = [["a", "1"] for _ in range(40_000)]
    table = Table("title", ["name", "score"], rows, bold=[(k, 1) for k in range(len(rows))])
    return lambda: table_to_markdown(table)


def weights_of_many_layers(directory: Path) -> Read:
    from elmokit.probe.results import render_tables

    def place(layers: int) -> dict[str, object]:
        return {"place": "input", "shares": [1.0] * layers, "gamma": 1.0, "spread": 0.0}

    places = [place(100_000), *(place(1) for _ in range(2000))]
    system = {"name": "ner", "seeds": [0], "places": places}
    return lambda: render_tables({"kind": "weights", "signature": {}, "systems": [system]})


def measurement_that_is_a_pipe(directory: Path) -> Read:
    from elmokit.probe.results import load_measurement

    os.mkfifo(directory / "x.json")
    return lambda: load_measurement(directory / "x.json")


@pytest.mark.parametrize(
    "make",
    [
        many_highlighted_cells,
        measurement_that_is_a_pipe,
        weights_of_many_layers,
        attribute_without_a_value,
        clusters_and_blank_lines,
        layers_without_weights,
        mark_that_does_not_end,
        one_long_line,
        phrases_of_a_long_sentence,
        predicates_of_a_long_sentence,
        predicates_of_a_long_text,
        questions_about_a_long_title,
        satellites_of_a_long_word,
        senses_of_a_long_lemma,
        synset_of_a_long_number,
    ],
)
def test_it_takes_little(
    import_attack: Callable[[str], ModuleType], make: Callable[[Path], Read], tmp_path: Path
) -> None:
    sandbox = import_attack("sandbox")
    read = make(tmp_path)
    child = os.fork()
    if child == 0:
        found: str | None = "the child was stopped"
        try:
            sandbox.limit_memory(MEMORY)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            found = sandbox.outcome_of(read, Counter())
        finally:
            os._exit(0 if found is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
