"""Pairs of sentences from files and from the command line, and answers back."""

import io
import json
from pathlib import Path

import pytest

from elmokit.errors import FormatError, InputError
from elmokit.tasks.nli.data import (
    Example,
    Prediction,
    label_set,
    labels,
    parse,
    read,
    render,
    to_record,
    write,
)

GOOD = {"gold_label": "entailment", "sentence1": "It didn't rain.", "sentence2": "Dry!"}
SURE = Prediction("entailment", {"contradiction": 0.25, "entailment": 0.75})


def file(path: Path, *lines: object) -> Path:
    path = path / "pairs.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_a_pair_is_tokenized_and_keeps_its_name_and_place(tmp_path: Path) -> None:
    parsed = {"sentence1_binary_parse": "( ( wrong ) )", "pairID": "7e", "genre": "x"}
    path = file(tmp_path, GOOD, "", {**GOOD, **parsed})
    first, second = read(path).items
    assert first.texts == (("It", "did", "n't", "rain", "."), ("Dry", "!"))
    assert (first.label, first.pair, first.where) == ("entailment", None, f"{path}:1")
    assert (second.texts, second.pair, second.where) == (first.texts, "7e", f"{path}:3")
    assert list(labels(first)) == ["entailment"]


def test_pairs_without_consensus_are_left_out_and_counted(tmp_path: Path) -> None:
    undecided = {"gold_label": "-", "sentence1": "", "sentence2": "n/a"}
    found = read(file(tmp_path, undecided, GOOD, undecided))
    assert len(found) == 1
    assert found.skipped == {"annotators did not agree": 2}
    with pytest.raises(FormatError, match=r"no pair of sentences \(2 are labeled '-'\)"):
        read(file(tmp_path, undecided, undecided))


def without(key: str) -> dict[str, str]:
    return {name: value for name, value in GOOD.items() if name != key}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"gold_label": "neutral", ', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1, 2]", "list found"),
        (without("sentence1"), "no 'sentence1'; found 'gold_label', 'sentence2'"),
        (without("sentence2"), "no 'sentence2'"),
        ({**GOOD, "sentence1": " \u200b "}, "sentence1 is empty"),
        ({**GOOD, "sentence2": ""}, "sentence2 is empty"),
        ({**GOOD, "sentence2": None}, "sentence2 is null; expected a sentence"),
        ({**GOOD, "gold_label": 1}, "gold_label is 1"),
        ({**GOOD, "gold_label": " "}, 'gold_label is " "'),
        ({**GOOD, "gold_label": None}, "gold_label is null"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: object, message: str) -> None:
    path = file(tmp_path, GOOD, line)
    with pytest.raises(FormatError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:2: {message}")


def test_empty_missing_and_foreign_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no pair of sentences; expected"):
        read(file(tmp_path, ""))
    with pytest.raises(FormatError, match="cannot be read"):
        read(tmp_path / "nothing.jsonl")
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(json.dumps(GOOD).encode() + b'\n{"sentence1": "caf\xe9"}\n')
    with pytest.raises(InputError, match=r"latin\.jsonl, line 2 is not UTF-8 \(byte 0xe9 at 18\)"):
        read(latin)


def test_a_pair_without_a_label_can_be_read_but_not_learned_from(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD, without("gold_label"))
    items = read(path).items
    assert items[1].label is None
    assert list(labels(items[1])) == []
    with pytest.raises(FormatError, match=r"pairs\.jsonl:2: no 'gold_label'"):
        label_set(items)


def test_the_labels_are_those_of_the_training_set_in_a_fixed_order(tmp_path: Path) -> None:
    two = [{**GOOD, "gold_label": label} for label in ("not_entailment", "entailment")]
    assert label_set(read(file(tmp_path, *two)).items) == {
        "labels": ["entailment", "not_entailment"]
    }
    assert label_set(read(file(tmp_path, *two[::-1], *two)).items) == label_set(
        read(file(tmp_path, *two)).items
    )
    with pytest.raises(FormatError, match=r"pairs\.jsonl: every pair is labeled 'entailment'"):
        label_set(read(file(tmp_path, GOOD, GOOD)).items)


def test_raw_texts_become_a_pair_without_a_label() -> None:
    assert parse(["Don't.", "Do"]) == Example(("Do", "n't", "."), ("Do",))
    with pytest.raises(InputError, match="1 texts; expected 2: premise, hypothesis"):
        parse(["alone"])
    with pytest.raises(InputError, match="the hypothesis has no words"):
        parse(["Yes.", "  "])


def test_answers_are_written_a_line_a_pair() -> None:
    pairs = [Example(("a",), ("b",), "neutral", "1n"), Example(("é",), ("b",))]
    out = io.StringIO()
    write(out, pairs, [SURE, SURE])
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first == {"pairID": "1n", "gold_label": "neutral", "prediction": "entailment"}
    assert second == {"pairID": None, "gold_label": None, "prediction": "entailment"}
    with pytest.raises(ValueError, match="zip"):
        write(out, pairs, [SURE])


def test_an_answer_for_machines_and_for_people() -> None:
    pair = Example(("It", "rains"), ("Wet",), "contradiction", "1c")
    assert json.loads(json.dumps(to_record(pair, SURE))) == {
        "pairID": "1c",
        "premise": ["It", "rains"],
        "hypothesis": ["Wet"],
        "gold_label": "contradiction",
        "prediction": "entailment",
        "confidence": 0.75,
        "probabilities": {"contradiction": 0.25, "entailment": 0.75},
    }
    lines = render(pair, SURE).plain.splitlines()
    assert lines[0] == "premise     It rains"
    assert lines[2] == "  contradiction  " + "█" * 6 + "·" * 18 + "  25.0 %"
    assert lines[3] == "  entailment     " + "█" * 18 + "·" * 6 + "  75.0 %"
    assert lines[4] == "  gold: contradiction"
    unknown = Example(pair.premise, pair.hypothesis)
    assert "gold" not in render(unknown, SURE).plain
    assert "gold_label" not in to_record(unknown, SURE)
