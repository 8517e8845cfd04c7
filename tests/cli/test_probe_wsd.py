"""`elmo probe wsd` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.conftest import random_bilm, small_config

from elmokit.cli.probe.wsd import command
from elmokit.elmo import Elmo
from elmokit.errors import InputError

SEMCOR = """\
<contextfile concordance=brown>
<context filename=br-a01 paras=yes>
<p pnum=1>
<s snum=1>
<wf cmd=ignore pos=DT>The</wf>
<wf cmd=done pos=NN lemma=bank wnsn=2 lexsn=1:14:00::>bank</wf>
<wf cmd=done pos=VB lemma=pay wnsn=1 lexsn=2:40:00::>paid</wf>
</s>
<s snum=2>
<wf cmd=ignore pos=JJ>Muddy</wf>
<wf cmd=done pos=NN lemma=bank wnsn=1 lexsn=1:17:01::>bank</wf>
</s>
</p>
</context>
</contextfile>
"""
WORDNET = """\
bank%1:14:00:: 00000100 2 20
bank%1:17:01:: 00000200 1 25
pay%2:40:00:: 00000500 1 0
"""
SET = """\
<corpus lang="en" source="x"><text id="d0"><sentence id="s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="t0" lemma="bank" pos="NOUN">bank</instance>
<instance id="t1" lemma="pay" pos="VERB">paid</instance>
</sentence></text></corpus>
"""
GOLD = "t0 bank%1:14:00::\nt1 pay%2:40:00::\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in {
        "semcor/br-a01": SEMCOR,
        "wordnet/index.sense": WORDNET,
        "sets/a.data.xml": SET,
        "sets/a.gold.key.txt": GOLD,
        "sets/b.data.xml": SET,
        "sets/b.gold.key.txt": GOLD,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    Elmo(random_bilm(small_config())).save(tmp_path / "model")
    return tmp_path


def run(place: Path, *more: str, test: str = "sets", semcor: str = "semcor") -> Result:
    words = ["--semcor", semcor, "--wordnet", "wordnet", "--test", test, "-m", "model"]
    words = [str(place / word) if (place / word).exists() else word for word in words]
    options = ["--threads", "1", "--out", str(place / "out"), *more]
    return CliRunner().invoke(command, [*words, *options], catch_exceptions=False)


def test_running_text(place: Path) -> None:
    alone, running = run(place, "--json"), run(place, "--json", "--state", "carry")
    assert running.exit_code == 0, running.output
    found = json.loads((place / "out" / "wsd-carry.json").read_text())
    assert found["signature"]["state"] == "carry"
    assert json.loads((place / "out" / "wsd.json").read_text())["signature"]["state"] == "settled"
    assert alone.exit_code == 0


def test_numbers_tables_and_pictures(place: Path) -> None:
    result = run(place)
    assert result.exit_code == 0, result.output
    assert "WordNet's first sense" in result.output and "untrained: LSTM 2" in result.output
    assert {path.name for path in (place / "out").iterdir()} == {
        *("wsd.json", "wsd.tex", "wsd.csv", "wsd-2.csv", "wsd-3.csv"),
        "wsd.svg",
        "wsd-parts.svg",
        *("wsd.tex", "wsd.csv", "wsd-2.csv", "wsd-3.csv"),
    }
    found = json.loads((place / "out" / "wsd.json").read_text())
    assert found["instances"]["sets"] == {"a": 2, "b": 2}
    by_name = {(row["network"], row["layer"]): row["f1"] for row in found["rows"]}
    assert by_name["", "first"] == 0.5
    # The very sentence was in the corpus, so the contextual layers know it again.
    assert by_name["trained", "1"] == by_name["trained", "2"] == 1.0
    assert set(found["signature"]["data"]) == {
        "semcor",
        "wordnet index.sense",
        "test a",
        "gold a",
        "test b",
        "gold b",
    }


def test_json(place: Path) -> None:
    result = run(place, "--json")
    assert json.loads(result.stdout)["kind"] == "wsd"


def test_the_same_numbers_every_time(place: Path) -> None:
    first, second = (json.loads(run(place, "--json").stdout) for _ in range(2))
    assert first == second


def test_the_corpus_may_be_in_the_form_of_the_sets(place: Path) -> None:
    for corpus in ("sets/a.data.xml", "xml"):
        (place / "xml").mkdir(exist_ok=True)
        for name in ("a.data.xml", "a.gold.key.txt"):
            (place / "xml" / name).write_text((place / "sets" / name).read_text())
        found = json.loads(run(place, "--json", semcor=corpus, test="sets/b.data.xml").stdout)
        assert found["corpus"]["uses"] == 2
        assert found["instances"]["choice"] == 0, "the only sense there is"
        assert found["rows"][-1]["choice"] is None
    assert "–" in run(place, semcor="xml", test="sets/b.data.xml").output


def test_gold_is_given_for_each_set(place: Path) -> None:
    gold = str((place / "sets" / "a.gold.key.txt").rename(place / "keys"))
    with pytest.raises(InputError, match="--gold FILE"):
        run(place)
    assert run(place, "--gold", gold, test="sets/a.data.xml").exit_code == 0
    with pytest.raises(InputError, match="1 files of gold keys for 2 test sets"):
        run(place, "--gold", gold)


def test_no_torch_is_needed(place: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from elmokit.cli.probe.wsd import command; command()"
    )
    paths = ["--semcor", "semcor", "--wordnet", "wordnet", "--test", "sets", "-m", "model"]
    done = subprocess.run(
        [sys.executable, "-c", program, *paths, "--out", "out", "--threads", "1"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "untrained: LSTM 2" in done.stdout


def test_help() -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert "elmo probe wsd --semcor semcor3.0 --test Evaluation_Datasets" in result.output
