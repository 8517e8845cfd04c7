"""spaCy: the component `elmo`, which sets vectors, and `elmokit.Tok2Vec.v1`, to train on them.

    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    doc = nlp("She sat by the river bank.")
    doc.tensor                                              # (7, D), equal to Elmo.embed
    doc[5].vector, doc[4:6].vector, doc.vector, doc[5].similarity(doc[4])

spaCy finds both by entry points, so that nobody has to import this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import InputError, ModelNotFound
from elmokit.extras import require
from elmokit.integrations.saved_model import SavedModel
from elmokit.storage import atomic_write

require("spacy", "components for spaCy")

from spacy.language import Language  # noqa: E402
from spacy.ml.models.tok2vec import MaxoutWindowEncoder  # noqa: E402
from spacy.pipeline import Pipe  # noqa: E402
from spacy.tokens import Doc, Span, Token  # noqa: E402
from spacy.util import minibatch, registry  # noqa: E402
from thinc.api import Maxout, Model, chain, with_array  # noqa: E402
from thinc.model import deserialize_attr, serialize_attr  # noqa: E402

LayerOption = Literal["mix", "top"] | int


def embed_docs(
    elmo: Elmo, docs: Sequence[Doc | Span], layers: LayerOption | Literal["all"]
) -> list[FloatArray]:
    """Return an array per document, (T, D) or (L+1, T, D), as `Elmo.embed` for its words.

    A sentence is embedded alone where the document has sentence boundaries. White space is no
    word: it has zeros, and the words around it do not see it.
    """
    sentences: list[list[str]] = []
    places: list[list[list[int]]] = []
    for doc in docs:
        places.append([])
        for i, token in enumerate(doc):
            if not places[-1] or token.is_sent_start:
                sentences.append([])
                places[-1].append([])
            if not token.is_space:
                sentences[-1].append(token.text)
                places[-1][-1].append(i)
    vectors = iter(elmo.embed(sentences, layers))
    shape = (elmo.layers,) if layers == "all" else ()
    arrays = []
    for doc, rows in zip(docs, places, strict=True):
        array = np.zeros((*shape, len(doc), elmo.dim), np.float32)
        for sentence in rows:
            array[..., sentence, :] = next(vectors)
        arrays.append(array)
    return arrays


# -- vectors of documents, spans and tokens --------------------------------------------------------


class ElmoPipe(Pipe):
    """Component that sets `doc.tensor`, and takes all vectors and similarities from it."""

    def __init__(
        self, name: str, model: str, layers: LayerOption, dtype: str, threads: int | None
    ) -> None:
        """Prepare the component; the model is loaded when it is needed first."""
        self.name = name
        self.layers = layers
        self.source = SavedModel(model, dtype, threads)

    def __call__(self, doc: Doc) -> Doc:
        """Set the vectors of one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the vectors of a stream of documents, many at a time."""
        for docs in minibatch(stream, size=batch_size):
            docs = list(docs)
            try:
                for doc, array in zip(
                    docs, embed_docs(self.source.elmo, docs, self.layers), strict=True
                ):
                    doc.tensor = array
                    use_tensor(doc)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the model's name, or the whole model if it is known by its path only."""
        return self.source.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> ElmoPipe:
        """Use the model that `to_bytes` has returned."""
        self.source.from_bytes(data)
        return self

    def to_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> None:
        """Write what `to_bytes` returns to a file."""
        with atomic_write(Path(path)) as temporary:
            temporary.write_bytes(self.to_bytes())

    def from_disk(self, path: Any, *, exclude: Iterable[str] = ()) -> ElmoPipe:
        """Use the model that `to_disk` has written."""
        return self.from_bytes(Path(path).read_bytes())


@Language.factory(
    "elmo",
    assigns=["doc.tensor", "doc.vector", "token.vector"],
    default_config={"model": "builtin", "layers": "mix", "dtype": "float32", "threads": None},
)
def make_elmo(
    nlp: Language, name: str, model: str, layers: LayerOption, dtype: str, threads: int | None
) -> ElmoPipe:
    """Make the component `elmo`.

    Args:
        nlp: The pipeline.
        name: Name of the component in it.
        model: Name or path of a model; see `Elmo.load`.
        layers: `"mix"`, `"top"` or the number of a layer.
        dtype: `"float32"`, or `"bfloat16"` or `"int8"`, which are faster and less exact.
        threads: Number of threads; by default as many as the process may use.
    """
    # What worker processes send back has no hooks.
    nlp._multiprocessing_pipe = partial(_pipe_in_processes, nlp)
    component = ElmoPipe(name, model, layers, dtype, threads)
    # A saved pipeline brings its model along; the path in its config need not exist any more.
    with suppress(ModelNotFound):
        component.source.elmo.layer_selector(layers)  # raises for a wrong choice
    return component


def _pipe_in_processes(
    nlp: Language, texts: Any, pipes: Any, n_process: int, batch_size: int
) -> Iterator[Doc]:
    """`Language._multiprocessing_pipe`, for documents that have the hooks of `use_tensor`."""
    run = type(nlp)._multiprocessing_pipe
    if not any(isinstance(component, ElmoPipe) for _, component in nlp.pipeline):
        yield from run(nlp, texts, pipes, n_process, batch_size)
        return
    for doc in run(nlp, texts, [*pipes, _remove_hooks], n_process, batch_size):
        yield use_tensor(doc)


def _remove_hooks(docs: Iterable[Doc]) -> Iterator[Doc]:
    """Take the hooks off before a worker sends a document; spaCy would warn about each."""
    for doc in docs:
        for target in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
            for name in [name for name, hook in target.items() if hook in HOOKS.values()]:
                del target[name]
        yield doc


def use_tensor(doc: Doc) -> Doc:
    """Let a document, its spans and tokens take vectors and similarities from `doc.tensor`.

    The component does it; do it again for a document that was read by `Doc.from_bytes` or
    `from_disk`, because spaCy does not store this. Without it, vectors of the vocabulary take
    precedence, and two tokens with the same text have a similarity of 1.
    """
    for target in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
        target.update(HOOKS)
    return doc


def _vector(item: Doc | Span | Token) -> FloatArray:
    if isinstance(item, Token):
        row: FloatArray = item.doc.tensor[item.i]
        return row
    tensor = item.tensor[[not token.is_space for token in item]] if len(item) else item.tensor
    mean: FloatArray = tensor.mean(axis=0) if len(tensor) else np.zeros(tensor.shape[-1], "f")
    return mean


def _has_vector(item: Doc | Span | Token) -> bool:
    return bool(_vector(item).any())


def _similarity(item: Doc | Span | Token, other: Any) -> float:
    """Return the cosine of two vectors, or 0 if one of them is zeros."""
    a, b = _vector(item).astype(np.float64), np.asarray(other.vector, np.float64)
    if a.shape != b.shape:
        raise InputError(
            f"the vectors have {len(a)} and {len(b)} dimensions; expected two items whose vectors "
            "come from the same model"
        )
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms else 0.0


HOOKS: dict[str, Callable[..., Any]] = {
    "vector": _vector,
    "has_vector": _has_vector,
    "similarity": _similarity,
}


# -- training --------------------------------------------------------------------------------------


@registry.architectures("elmokit.Tok2Vec.v1")
def make_tok2vec(
    model: str = "builtin",
    width: int | None = 96,
    depth: int = 4,
    window_size: int = 1,
    maxout_pieces: int = 3,
    dtype: str = "float32",
    threads: int | None = None,
) -> Model[list[Doc], list[Any]]:
    """Make a tok2vec layer: `HashEmbedCNN` with ELMo in place of the hash embeddings.

    The layers of ELMo are frozen; the weights that mix them are learned, and so is all behind.

    Args:
        model: Name or path of a model; see `Elmo.load`.
        width: Size of the vectors after a learned projection; None for the mix alone.
        depth: Number of convolutional layers behind the projection; may be 0.
        window_size: Number of words on either side that a convolution sees.
        maxout_pieces: Number of pieces of the maxout units.
        dtype: `"float32"`, or `"bfloat16"` or `"int8"`, which are faster and less exact.
        threads: Number of threads; by default as many as the process may use.
    """
    mix: Model[list[Doc], list[Any]] = Model(
        "elmo_mix",
        _mix_forward,
        init=_mix_init,
        dims={"nO": None},
        params={"scalars": None, "gamma": None},
        attrs={"source": SavedModel(model, dtype, threads)},
    )
    with suppress(ModelNotFound):  # as in `make_elmo`
        mix.set_dim("nO", mix.attrs["source"].elmo.dim)
    if width is None:
        return mix
    layers = [mix, with_array(Maxout(nO=width, nP=maxout_pieces, dropout=0.0, normalize=True))]
    if depth:
        layers.append(MaxoutWindowEncoder(width, window_size, maxout_pieces, depth))
    tok2vec = chain(*layers)
    tok2vec.set_dim("nO", width)
    return tok2vec


def _mix_init(model: Model[list[Doc], list[Any]], X: object = None, Y: object = None) -> None:
    elmo: Elmo = model.attrs["source"].elmo
    model.set_dim("nO", elmo.dim)
    model.set_param("scalars", model.ops.alloc1f(elmo.layers))
    model.set_param("gamma", model.ops.alloc1f(1) + 1)


def _mix_forward(
    model: Model[list[Doc], list[Any]], docs: Sequence[Doc], is_train: bool
) -> tuple[list[Any], Callable[[list[Any]], list[Doc]]]:
    """γ · Σ_j softmax(s)_j · h_j for each document, and the gradient of s and γ."""
    scalars, gamma = model.get_param("scalars"), model.get_param("gamma")
    weights = model.ops.softmax(scalars, axis=-1)
    embedded = [
        model.ops.asarray(layers) for layers in embed_docs(model.attrs["source"].elmo, docs, "all")
    ]
    mixed = [model.ops.xp.tensordot(gamma * weights, layers, 1) for layers in embedded]

    def backprop(d_mixed: list[Any]) -> list[Doc]:
        # d_weights_j = Σ dY · h_j, without γ
        d_weights = sum(
            (
                (layers * d_doc).sum(axis=(1, 2))
                for layers, d_doc in zip(embedded, d_mixed, strict=True)
            ),
            start=model.ops.alloc1f(len(weights)),
        )
        total = (weights * d_weights).sum()
        model.inc_grad("gamma", model.ops.asarray1f([total]))
        model.inc_grad("scalars", gamma * weights * (d_weights - total))
        return []

    return mixed, backprop


@serialize_attr.register(SavedModel)
def _save_attribute(_: SavedModel, value: SavedModel, name: str, model: object) -> bytes:
    return value.to_bytes()


@deserialize_attr.register(SavedModel)
def _load_attribute(default: SavedModel, value: bytes, name: str, model: object) -> SavedModel:
    default.from_bytes(value)
    return default
