"""`ElmoModule` with the real sentence-transformers and MTEB."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo
from elmokit.errors import InputError, InputTypeError

pytest.importorskip(
    "sentence_transformers",
    reason="needs sentence-transformers: pip install 'elmokit[sentence-transformers]'",
)

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

from elmokit.integrations.sentence_transformers import ElmoModule

PLAIN = GOLDEN / "models" / "plain"
TEXTS = ["She went to the bank .", "", "A longer sentence, about nothing much.", "x"] * 12


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.load(PLAIN)


@pytest.mark.parametrize("pooling", ["mean", "max"])
@pytest.mark.parametrize("layers", ["mix", "top", 1])
def test_encode_is_that_of_elmo(elmo: Elmo, pooling: str, layers: str | int) -> None:
    model = SentenceTransformer(modules=[ElmoModule(PLAIN, layers=layers, pooling=pooling)])
    expected = elmo.encode(TEXTS, pooling, layers)
    for batch_size in (3, 32):
        assert (model.encode(TEXTS, batch_size=batch_size) == expected).all()
    assert (model.encode(TEXTS[0]) == expected[0]).all()
    assert model.get_embedding_dimension() == elmo.dim


def test_what_a_model_of_sentence_transformers_can_do(elmo: Elmo) -> None:
    model = SentenceTransformer(modules=[ElmoModule(PLAIN)])
    vectors = model.encode(TEXTS[:3:2])
    cosine = vectors[0] @ vectors[1] / np.linalg.norm(vectors[0]) / np.linalg.norm(vectors[1])
    assert model.similarity(vectors[:1], vectors[1:]).item() == pytest.approx(cosine, abs=1e-5)
    lengths = np.linalg.norm(model.encode(TEXTS[:1], normalize_embeddings=True), axis=1)
    assert lengths == pytest.approx([1], abs=1e-5)
    words = model.encode(TEXTS[:2], output_value="token_embeddings")
    assert (words[0].numpy() == elmo.embed(TEXTS[0])).all()
    assert (model.encode(["bank"], prompt="query: ") == elmo.encode(["query: bank"])).all()
    assert (pickle.loads(pickle.dumps(model)).encode(TEXTS) == elmo.encode(TEXTS)).all()
    model.max_seq_length = 2
    assert (model.encode(["a b c d"]) == elmo.encode(["a b"])).all()
    with pytest.raises(InputTypeError, match="text 0 is int"):
        model.encode([1])


@pytest.mark.parametrize("options", [{"layers": "all"}, {"pooling": "sum"}, {"dtype": "x"}])
def test_wrong_choices_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(InputError):
        ElmoModule(PLAIN, **options)


def test_other_modules_saved_and_loaded_in_a_fresh_process(elmo: Elmo, tmp_path: Path) -> None:
    model = SentenceTransformer(
        modules=[ElmoModule(PLAIN, layers="top"), Pooling(elmo.dim, "mean"), Normalize()]
    )
    expected = elmo.encode(TEXTS[:1], layers="top")
    expected /= np.linalg.norm(expected)
    assert np.allclose(model.encode(TEXTS[:1]), expected, atol=1e-6)
    alone = SentenceTransformer(modules=[ElmoModule(PLAIN, layers=1, pooling="max")])
    alone.save(str(tmp_path / "alone"))
    model.save(str(tmp_path / "stack"))
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(tmp_path / "alone"))
    code = (
        "import sys\n"
        "from sentence_transformers import SentenceTransformer\n"
        "for path in sys.argv[1:3]:\n"
        "    model = SentenceTransformer(path, trust_remote_code=True)\n"
        "    print(model.encode(sys.argv[3]).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "alone"), str(tmp_path / "stack"), TEXTS[0]],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, second = (np.array(eval(line), np.float32) for line in done.stdout.splitlines())
    assert (first == elmo.encode(TEXTS[0], "max", 1)).all()
    assert (second == model.encode(TEXTS[0])).all()


TEXT_TASKS = """Classification STS Retrieval Reranking PairClassification Summarization
MultilingualSTS""".split()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TEXT_TASKS)
def test_tasks_of_mteb(name: str) -> None:
    pytest.importorskip("mteb", reason="needs MTEB: pip install mteb")
    import mteb
    import mteb.mocks

    model = SentenceTransformer(modules=[ElmoModule(PLAIN)])
    task = getattr(mteb.mocks, f"Mock{name}Task")()
    result = mteb.evaluate(model, [task], cache=None, show_progress_bar=False)
    scores = [rows[0]["main_score"] for rows in result.task_results[0].scores.values()]
    assert scores and all(np.isfinite(score) for score in scores)
