"""`ElmoVectorizer` with the real scikit-learn."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo
from elmokit.errors import InputError, InputTypeError, ModelNotFound

pytest.importorskip("sklearn", reason="needs scikit-learn: pip install 'elmokit[sklearn]'")

from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from elmokit.integrations.sklearn import ElmoVectorizer

PLAIN = GOLDEN / "models" / "plain"
TEXTS = ["A good film .", "A bad , bad film .", "", "Lovely .", "Don't go."]


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return Elmo.load(PLAIN).encode(TEXTS)


def containers() -> Iterator[object]:
    yield from (TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object))
    yield from ((text for text in TEXTS), np.array(TEXTS)[:, None])


@pytest.mark.parametrize("texts", list(containers()), ids=lambda texts: type(texts).__name__)
def test_transform_is_encode_with_or_without_fit(texts: object, expected: np.ndarray) -> None:
    vectors = ElmoVectorizer(PLAIN).transform(texts)
    assert vectors.dtype == np.float32 and (vectors == expected).all()


def test_fit_transform_reads_a_generator_once(expected: np.ndarray) -> None:
    assert (ElmoVectorizer(PLAIN).fit_transform(text for text in TEXTS) == expected).all()


@pytest.mark.parametrize("batch", [1, 2, 100, np.int64(3)])
def test_batches_change_nothing(batch: int, expected: np.ndarray) -> None:
    assert (ElmoVectorizer(PLAIN, batch=batch).transform(TEXTS) == expected).all()


def test_pandas_and_polars(expected: np.ndarray) -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    pl = pytest.importorskip("polars", reason="needs Polars: pip install polars")
    series = pd.Series(TEXTS, index=[10, 11, 12, 13, 14])
    for texts in (series, series.astype("string"), series.to_frame(), pl.Series(TEXTS)):
        assert (ElmoVectorizer(PLAIN).fit_transform(texts) == expected).all()
    frame = ElmoVectorizer(PLAIN).set_output(transform="pandas").fit_transform(series)
    assert list(frame.index) == [10, 11, 12, 13, 14]
    assert list(frame.columns) == list(ElmoVectorizer(PLAIN).get_feature_names_out())
    assert (frame.to_numpy() == expected).all()
    table = ElmoVectorizer(PLAIN).set_output(transform="polars").fit_transform(series)
    assert isinstance(table, pl.DataFrame) and (table.to_numpy() == expected).all()
    for missing in (None, float("nan"), pd.NA):
        with pytest.raises(InputTypeError, match=r"row 1 of X is .*fillna"):
            ElmoVectorizer(PLAIN).transform(pd.Series(["a", missing], dtype=object))
    with pytest.raises(InputError, match=r"shape \(5, 2\).*one column"):
        ElmoVectorizer(PLAIN).fit(pd.DataFrame({"a": TEXTS, "b": TEXTS}))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a text", r"X is str.*\[text\]"),
        ({"a": 1}, "X is dict"),
        (3, "X is int"),
        (["a", None], "row 1 of X is NoneType"),
        ([b"bytes"], "row 0 of X is bytes"),
        (["a", ["New", 3]], "word 1 is int"),
        (np.zeros((3, 2)), "shape"),
    ],
)
def test_what_is_not_text_is_refused(texts: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ElmoVectorizer(PLAIN).transform(texts)


@pytest.mark.parametrize(
    "options",
    [
        {"layers": 9},
        {"layers": "all"},
        {"layers": None},
        {"pooling": "sum"},
        {"dtype": "float64"},
        {"batch": 0},
        {"batch": 2.5},
        {"batch": True},
        {"threads": 0},
        {"model": 3},
        {"model": "no-such-model"},
    ],
    ids=str,
)
def test_parameters_are_checked_when_used(options: dict[str, object]) -> None:
    vectorizer = clone(ElmoVectorizer(**options))
    for use in (vectorizer.fit, vectorizer.transform):
        with pytest.raises((InputError, ModelNotFound)):
            use(["a"])


def test_lists_of_words_and_no_texts() -> None:
    vectorizer = ElmoVectorizer(PLAIN)
    elmo = Elmo.load(PLAIN)
    assert (vectorizer.transform([["New", "York"]]) == elmo.encode([["New", "York"]])).all()
    assert vectorizer.transform([]).shape == (0, elmo.dim)


def test_copies(expected: np.ndarray, tmp_path: Path) -> None:
    joblib = pytest.importorskip("joblib")
    vectorizer = ElmoVectorizer(PLAIN, layers="top", pooling="max")
    wanted = vectorizer.transform(TEXTS)
    joblib.dump(vectorizer, tmp_path / "v.joblib")
    stream = io.BytesIO(pickle.dumps(vectorizer))
    assert len(stream.getvalue()) < 1000  # the name of the model, not the model
    for copy in (clone(vectorizer), pickle.load(stream), joblib.load(tmp_path / "v.joblib")):
        assert copy.get_params() == vectorizer.get_params()
        assert (copy.transform(TEXTS) == wanted).all()
    whole = clone(ElmoVectorizer(Elmo.load(PLAIN)))
    assert (pickle.loads(pickle.dumps(whole)).transform(TEXTS) == expected).all()


def test_carried_state_is_refused() -> None:
    with pytest.raises(InputError, match="carries its state"):
        ElmoVectorizer(Elmo.load(PLAIN, state="carry")).transform(TEXTS)


def test_a_model_that_changed_on_disk_is_loaded_again(tmp_path: Path) -> None:
    Elmo.load(PLAIN).save(tmp_path / "model")
    vectorizer = ElmoVectorizer(tmp_path / "model")
    before = vectorizer.transform(TEXTS)
    other = Elmo.load(PLAIN)
    other.settle(["Other words to begin with ."])
    other.save(tmp_path / "model")
    assert not (vectorizer.transform(TEXTS) == before).all()


def test_scikit_learns_own_checks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most checks are for numbers, and are skipped
        results = check_estimator(ElmoVectorizer(PLAIN), on_skip=None)
    assert {result["status"] for result in results} == {"passed"}


def test_grid_search_over_layers_in_two_processes() -> None:
    texts = ["A good film .", "A bad film .", "What a lovely day !", "An awful thing ."] * 5
    labels = [1, 0, 1, 0] * 5
    search = GridSearchCV(
        make_pipeline(ElmoVectorizer(threads=1), LogisticRegression(max_iter=1000)),
        {"elmovectorizer__layers": [0, 1, 2, "mix"]},
        cv=2,
        n_jobs=2,
    ).fit(texts, labels)
    assert search.score(texts, labels) == 1
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    again = pickle.loads(pickle.dumps(search))
    assert (again.predict_proba(texts) == search.predict_proba(texts)).all()
    assert search.best_estimator_[:1].get_feature_names_out()[0] == "elmovectorizer0"
