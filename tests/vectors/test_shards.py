"""Sharded jobs: every line exactly once, the same bytes always, whatever dies in between."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import GOLDEN

from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo
from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.json_text import seal
from elmokit.vectors import (
    Reduction,
    ShardFile,
    load_plan,
    merge_shards,
    plan_shards,
    reduce_forms,
    run_shard,
    run_shards,
    verify_shards,
)
from elmokit.vectors.shard_files import write_shard_file
from elmokit.vectors.shard_input import divide_input, find_inputs, read_sentences

MODEL = GOLDEN / "models" / "plain"
WORDS = "ant bee cat dog elk fox gnu hen ibex jay kite lynx".split()
REDUCTIONS = {
    "vectors": Reduction(),
    "float16": Reduction(store="float16", normalize=True),
    "int8": Reduction(store="int8"),
    "kmeans": Reduction(store="kmeans", clusters=8, parts=2),
    "sentence": Reduction("sentence", "int8"),
    "forms": Reduction("forms"),
    "uses": Reduction("uses", targets=("cat", "Dog=elk,fox"), max_uses=15),
}


@pytest.fixture(scope="module")
def model() -> Elmo:
    return Elmo.load(MODEL, threads=1)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    source = random.Random(0)
    path = tmp_path / "text.txt"
    lines = [
        "" if source.random() < 0.1 else " ".join(source.choices(WORDS, k=source.randint(1, 8)))
        for _ in range(200)
    ]
    path.write_text("\n".join([*lines[1:], "the last cat"]))
    return path


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "shards").iterdir()}


# -- dividing --------------------------------------------------------------------------------------

LINES = st.lists(st.sampled_from(["", "a b", "ä€ x.", " \t", "one two three", "x" * 40, "\r"]))


@given(
    texts=st.lists(st.tuples(LINES, st.sampled_from(["", "\n", "\n\n"])), min_size=1, max_size=4),
    shards=st.integers(1, 12),
    form=st.sampled_from(["lines", "tokenized", "split"]),
    compressed=st.integers(0, 4),
)
def test_shards_are_the_input_each_line_once(texts, shards, form, compressed) -> None:
    with tempfile.TemporaryDirectory() as name:
        for k, (lines, end) in enumerate(texts):
            plain = "\n".join(lines) + end
            data = ("\ufeff" * (k == 1 and bool(plain)) + plain).encode()
            path = Path(name, f"{k}.txt")
            path.write_bytes(gzip.compress(data) if k == compressed else data)
        files = find_inputs([name])
        divided = divide_input(files, shards, form)
        whole = divide_input(files, 1, form)
        assert len(divided) <= shards

        def read(pieces):
            return list(read_sentences(files, pieces, form))

        together = [item for pieces in divided for item in read(pieces)]
        assert together == [item for pieces in whole for item in read(pieces)]
        places = [item.location for item in together if item.sentence is not None]
        assert places == sorted(set(places)), "locations grow"
        if form == "lines":
            plain = [line.rstrip("\r") for lines, end in texts for line in split(lines, end)]
            assert [item.sentence for item in together if item.sentence is not None] == plain


def split(lines: list[str], end: str) -> list[str]:
    pieces = ("\n".join(lines) + end).split("\n")
    return pieces[:-1] if not pieces[-1] else pieces


def test_row_groups(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'elmokit[parquet]'")
    import pyarrow.parquet as pq

    rows = [None if k % 7 == 0 else f"row {k}\n\nmore. And more." for k in range(100)]
    pq.write_table(pa.table({"n": range(100), "text": rows}), tmp_path / "t.parquet", 9)
    files = find_inputs([str(tmp_path)])
    for form in ("lines", "split"):
        divided = divide_input(files, 5, form)
        assert len(divided) == 5
        found = [item for pieces in divided for item in read_sentences(files, pieces, form)]
        (pieces,) = divide_input(files, 1, form)
        assert found == list(read_sentences(files, pieces, form))
        assert {item.offset for item in found} == set(range(100))


def test_a_line_that_is_too_long_is_cut_in_the_same_places(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("elmokit.vectors.shard_input.LONGEST_LINE", 20)
    (tmp_path / "t.txt").write_text("\n".join(["a bb ccc " * 20, "ä" * 33, "short"] * 5))
    files = find_inputs([str(tmp_path)])
    found = [
        [
            item
            for pieces in divide_input(files, n)
            for item in read_sentences(files, pieces, "lines")
        ]
        for n in (1, 4)
    ]
    assert found[0] == found[1]
    assert all(len(i.sentence.encode()) <= 20 for i in found[0] if i.sentence is not None)


# -- jobs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("layers", ["mix", "all"])
def test_a_merged_file_does_not_depend_on_the_shards(
    model: Elmo, text: Path, tmp_path: Path, name: str, layers
) -> None:
    if not model.engine.startswith("kernel"):
        pytest.skip("only the compiled kernel gives a sentence the same bits in every batch")
    merged = []
    for shards in (1, 7):
        directory = tmp_path / f"job-{shards}"
        plan = plan_shards(
            model, text, directory, shards=shards, reduction=REDUCTIONS[name], layers=layers
        )
        assert len(plan.shards) == shards
        for number in reversed(range(shards)):
            run_shard(plan, number, model)
        report = verify_shards(plan)
        assert report.is_complete and report.sentences == 200
        merged.append(merge_shards(plan).read_bytes())
    assert merged[0] == merged[1]


def test_all_vectors_are_those_of_the_model(model: Elmo, text: Path, tmp_path: Path) -> None:
    plan = plan_shards(model, text, tmp_path / "job", shards=3)
    run_shards(plan)
    with ShardFile(merge_shards(plan)) as file:
        vectors, lengths = file.array("vectors"), file.array("lengths")
        forms = [line.decode() for line in file.lines("forms")]
        words = [forms[k] for k in file.array("form_numbers")]
    lines = text.read_text().split("\n")
    assert words == " ".join(lines).split() and lengths.tolist() == [len(x.split()) for x in lines]
    assert np.array_equal(vectors, np.concatenate(model.embed(lines)))


def test_means_of_forms(model: Elmo, text: Path, tmp_path: Path, monkeypatch) -> None:
    job = {"reduction": Reduction("forms"), "shards": 2}
    plan = plan_shards(model, text, tmp_path / "job", **job)
    run_shards(plan)
    before = merge_shards(plan).read_bytes()
    with ShardFile(plan.directory / "merged.npz") as file:
        forms = [line.decode() for line in file.lines("forms")]
        counts, means = file.array("counts"), file.array("vectors")
    words = text.read_text().split()
    assert forms == sorted(set(words)) and counts.tolist() == [words.count(f) for f in forms]
    lines = text.read_text().split("\n")
    every = np.concatenate(model.embed(lines)).astype(np.float64)
    mean = every[[word == "cat" for word in words]].mean(axis=0)
    assert np.abs(means[forms.index("cat")] - mean).max() < 1e-7
    # A table that does not fit in memory goes to the disk, and nothing changes.
    monkeypatch.setattr(reduce_forms, "TABLE_BYTES", 0)
    monkeypatch.setattr(reduce_forms, "_BUFFER_WORDS", 50)
    again = plan_shards(model, text, tmp_path / "again", **job)
    run_shards(again)
    assert contents(again.directory) == contents(plan.directory)
    assert merge_shards(again).read_bytes() == before


def test_the_sample_of_uses(model: Elmo, text: Path, tmp_path: Path) -> None:
    reduction = Reduction("uses", targets=("cat", "dog"), max_uses=10)
    plan = plan_shards(model, text, tmp_path / "job", shards=4, reduction=reduction, layers="all")
    run_shards(plan)
    with ShardFile(merge_shards(plan)) as file:
        words = text.read_text().split()
        assert file.header["counts"] == [words.count("cat"), words.count("dog")]
        documents = [part for part in text.read_text().split("\n\n") if part.strip()]
        assert file.header["documents"] == len(documents)
        assert np.bincount(file.array("target")).tolist() == [10, 10]
        import json

        for row, line in enumerate(file.lines("sentences")):
            sentence, position = json.loads(line), int(file.array("position")[row])
            assert sentence[position] == ("cat", "dog")[file.array("target")[row]]
            vector = model.embed([sentence], "all")[0][:, position]
            assert np.array_equal(file.array("vectors")[row], vector)
            offset = int(file.array("location")[row][1])
            assert text.read_bytes()[offset:].startswith(" ".join(sentence).encode())


def test_finished_shards_are_skipped_and_damaged_ones_redone(
    model: Elmo, text: Path, tmp_path: Path
) -> None:
    plan = plan_shards(model, text, tmp_path / "job", shards=3)
    assert not run_shard(plan, 1, model).was_finished
    assert run_shard(plan, 1, model).was_finished
    assert verify_shards(plan).missing == [0, 2]
    run_shards(plan)
    wanted = contents(plan.directory)
    path = plan.path_of(plan.shards[1])
    path.write_bytes(wanted[path.name][:-100] + bytes(100))
    stray = plan.directory / "shards" / f"000009-{'0' * 16}.npz"
    stray.write_bytes(b"x")
    mine = plan.directory / "shards" / "notes.txt"
    mine.write_text("not ours to remove")
    report = verify_shards(plan)
    assert report.missing == [1] and len(report.damaged) == 1 and stray.exists()
    run_shards(plan)
    assert verify_shards(plan).strays == [stray.name] and not stray.exists() and mine.exists()
    mine.unlink()
    assert contents(plan.directory) == wanted


def test_a_directory_in_the_place_of_a_shard(model: Elmo, text: Path, tmp_path: Path) -> None:
    plan = plan_shards(model, text, tmp_path / "job", shards=3)
    path = plan.path_of(plan.shards[1])
    path.mkdir(parents=True)
    report = verify_shards(plan)
    assert report.missing == [0, 1, 2] and len(report.damaged) == 1 and path.is_dir()
    with pytest.raises(ElmoError, match=path.name):
        run_shard(plan, 1, model)


def test_what_does_not_fit_is_an_error(model: Elmo, text: Path, tmp_path: Path) -> None:
    plan = plan_shards(model, text, tmp_path / "job", shards=3)
    again = plan_shards(model, text, tmp_path / "job", shards=3)
    assert again == plan == load_plan(tmp_path / "job")
    with pytest.raises(InputError, match="planned with shards 3, not 4"):
        plan_shards(model, text, tmp_path / "job", shards=4)
    with pytest.raises(InputError, match="shard 3 does not exist"):
        run_shard(plan, 3)
    with pytest.raises(InputError, match=r"shard 0 of .* is not finished"):
        merge_shards(plan)
    with pytest.raises(InputError, match="no sharded job"):
        load_plan(tmp_path)
    with pytest.raises(InputError, match="not a sharded job"):
        plan_shards(model, text, tmp_path, shards=3)
    text.write_text(text.read_text().replace("cat", "dog"))
    with pytest.raises(InputError, match="has changed since the job was planned"):
        run_shards(plan)
    with pytest.raises(InputError, match="needs the words to sample"):
        Reduction("uses")
    with pytest.raises(ElmoError, match="another model"):
        run_shard(plan, 0, Elmo.load(threads=1))


# -- workers that die ------------------------------------------------------------------------------


def change_id(plan: dict[str, Any]) -> None:
    plan["shards"][0]["id"] = "../../outside"


def change_file(plan: dict[str, Any]) -> None:
    plan["shards"][0]["pieces"][0]["file"] = 9


def change_start(plan: dict[str, Any]) -> None:
    plan["shards"][0]["pieces"][0]["start"] = "0"


def change_path(plan: dict[str, Any]) -> None:
    plan["files"][0]["path"] = None


def remove_setting(plan: dict[str, Any]) -> None:
    del plan["settings"]["form"]


def change_settings(plan: dict[str, Any]) -> None:
    plan["settings"] = []


@pytest.mark.parametrize(
    "change",
    [change_id, change_file, change_start, change_path, remove_setting, change_settings],
)
def test_a_plan_that_lies_is_refused(
    change: Callable[[dict[str, Any]], None], model: Elmo, text: Path, tmp_path: Path
) -> None:
    path = plan_shards(model, text, tmp_path / "job", shards=2).directory / "plan.json"
    plan = json.loads(path.read_text())
    load_plan(path.parent)
    change(plan)
    del plan["checksum"]  # as earlier versions wrote it
    for content in (seal(plan), plan):
        path.write_text(json.dumps(content))
        with pytest.raises(FormatError, match="is damaged"):
            load_plan(path.parent)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes in directories")
def test_pipes_in_a_job_are_refused(tmp_path: Path) -> None:
    for name in ("plan.json", "shard.npz"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(FormatError):  # reading them would wait for ever
        load_plan(tmp_path)
    with pytest.raises(FormatError):
        ShardFile(tmp_path / "shard.npz")


def test_a_shard_of_objects_does_not_crash(tmp_path: Path) -> None:
    header = np.frombuffer(b'{"format": "elmokit shard", "version": 1}', np.uint8)
    with zipfile.ZipFile(tmp_path / "shard.npz", "w") as archive:
        for name, array in {"header": header, "vectors": np.zeros(10)}.items():
            data = io.BytesIO()
            np.save(data, array)
            content = data.getvalue()
            archive.writestr(f"{name}.npy", content.replace(b"'<f8'", b"'|O' "))
    with ShardFile(tmp_path / "shard.npz") as file, pytest.raises(FormatError, match="objects"):
        file.array("vectors")


def test_a_shard_that_is_truncated_while_it_is_open_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "shard.npz"
    write_shard_file(path, {}, {"vectors": np.arange(1 << 16, dtype="<f4").reshape(-1, 16)})
    with ShardFile(path) as file:
        rows = file.rows("vectors")
        assert rows[7].tolist() == file.array("vectors")[7].tolist() == list(range(112, 128))
        assert rows[np.array([3, 1])][:, 0].tolist() == [48, 16]
        os.truncate(path, 1 << 12)  # a mapped file would kill the process
        with pytest.raises(FormatError, match="was changed after it was opened"):
            rows[4000]
        with pytest.raises(FormatError):
            file.array("vectors")


@pytest.mark.parametrize("header", [b"[]", b"3", b'{"format": "elmokit shard", "version": "1"}'])
def test_a_shard_with_another_header_is_refused(header: bytes, tmp_path: Path) -> None:
    np.savez(tmp_path / "shard.npz", header=np.frombuffer(header, np.uint8))
    with pytest.raises(FormatError, match="not a file of a sharded job"):
        ShardFile(tmp_path / "shard.npz")


def test_without_the_kernel_a_shard_does_not_depend_on_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLAS rounds a word that is computed alone differently: the word cache must not show."""
    monkeypatch.setenv("ELMOKIT_ENGINE", "reference")
    elmo = Elmo(random_bilm("small"), threads=1)
    elmo.save(tmp_path / "model")
    source = random.Random(1)
    known = ["".join(source.choices("abcdefgh", k=6)) for _ in range(40)]
    lines = [" ".join([*known, f"new{n}"]) for n in range(4)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        elmo = Elmo.load(tmp_path / "model", threads=1)
        plan = plan_shards(elmo, tmp_path / "text.txt", tmp_path / f"job{order[0]}", shards=4)
        assert len(plan.shards) == 4
        for number in order:
            run_shard(plan, number, elmo)
        found.append([plan.path_of(shard).read_bytes() for shard in plan.shards])
    assert found[0] == found[1]


def test_a_job_is_run_by_one_kind_of_engine(
    model: Elmo, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_shards(model, text, tmp_path / "job", shards=2)
    monkeypatch.setattr("elmokit.vectors.shards._engine_kind", lambda elmo: "another")
    with pytest.raises(InputError, match="planned with another engine"):
        run_shard(tmp_path / "job", 0, model)


def test_killed_workers(model: Elmo, text: Path, tmp_path: Path) -> None:
    """Workers of one command are killed at random moments; the files are those of a calm run."""
    text.write_text("\n".join([text.read_text()] * 10))
    calm = plan_shards(model, text, tmp_path / "calm", shards=8)
    run_shards(calm)
    plan = plan_shards(model, text, tmp_path / "job", shards=8)
    deaths: list[int] = []
    killed: set[int] = set()
    over = threading.Event()

    def kill() -> None:
        while not over.is_set() and len(killed) < 3:
            for path in (plan.directory / "shards").glob(".work.*.tmp"):
                process = int(path.name.split("-")[-2])
                if process not in killed and process != os.getpid():
                    killed.add(process)
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.001)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        run_shards(plan, workers=2, threads=1, on_death=lambda number, _: deaths.append(number))
    finally:
        over.set()
        killer.join()
    assert len(deaths) == len(killed) == 3
    report = verify_shards(plan)
    assert report.is_complete
    assert contents(plan.directory) == contents(calm.directory)


def test_sigterm_leaves_nothing_behind(text: Path, tmp_path: Path) -> None:
    """A task of an array is stopped in the middle, and continued."""
    text.write_text("\n".join([text.read_text()] * 3000))  # far from done when it is stopped
    command = [sys.executable, "-m", "elmokit", "embed", "-m", str(MODEL), "--threads", "1"]
    command += ["--file", str(text), "--out", str(tmp_path / "job"), "--shard", "0/1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as task:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "job").glob("shards/.work.*")):
            assert time.monotonic() < deadline and task.poll() is None
            time.sleep(0.005)
        task.terminate()
        _, printed = task.communicate()
    assert task.returncode == 143 and "the same command continues" in printed
    assert list((tmp_path / "job" / "shards").iterdir()) == []
