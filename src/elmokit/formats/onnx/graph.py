"""The network as an ONNX graph: character ids and lengths in, all layers out.

The graph does what `Elmo.embed` does with a batch of sentences: it adds the sentence marks,
computes the vector of each distinct word once, runs both LSTM stacks from the settled state, and
removes the marks again. An LSTM layer is a `Scan`, since ONNX's own LSTM has no projection; the
backward model reads every sentence reversed within its length. Built with `onnx.helper`; needs no
torch.

Knows nothing about files. Shape letters: B sentences, T words of the longest sentence, S = T + 2
steps (the words and both sentence marks), C characters, U distinct words, P width, H cells, D = 2P,
L LSTM layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import DIRECTIONS, FORGET_BIAS
from elmokit.errors import InputError
from elmokit.text.characters import NAMED_UNKNOWN
from elmokit.text.dictionary import Dictionary

OPSET, IR_VERSION = 17, 8
"""Versions of ONNX that the graph is written for: old ones, which all current runtimes read."""
CHARACTER_IDS, WORD_IDS, LENGTHS = "character_ids", "word_ids", "lengths"
"""Names of the inputs; only models with whole-word embeddings have `word_ids`."""
LAYERS, MIX = "layers", "mix"
"""Names of the outputs."""
SHIFT = 1
"""Added to all character ids, so that 0 means "no word"; as AllenNLP's `batch_to_ids` does."""

StoredDtype = Literal["float32", "float16"]
"""How the matrices are stored in the file; the graph always computes in float32."""
Array = npt.NDArray[Any]


class OnnxGraph:
    """The nodes and weights of a graph, while it is built."""

    def __init__(self, helper: Any) -> None:
        """Start an empty graph; `helper` is the module `onnx.helper`."""
        self.helper = helper
        self.nodes: list[Any] = []
        self.arrays: dict[str, Array] = {}
        """The constants by name: weights, and small numbers such as shapes and clips."""
        self._count = 0

    def add(self, operator: str, inputs: Sequence[str], name: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return the name of that output."""
        return self.add_many(operator, inputs, [name or self._new_name(operator)], **attributes)[0]

    def add_many(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> list[str]:
        """Add a node with these outputs, and return their names."""
        self.nodes.append(
            self.helper.make_node(operator, list(inputs), list(outputs), **attributes)
        )
        return list(outputs)

    def constant(self, value: Array, name: str = "") -> str:
        """Add a constant, and return its name."""
        name = name or self._new_name("constant")
        self.arrays[name] = value
        return name

    def integers(self, *values: int) -> str:
        """Add a constant vector of integers, and return its name."""
        return self.constant(np.array(values, np.int64))

    def take_nodes(self) -> list[Any]:
        """Return the nodes so far and forget them; used for the body of a loop."""
        nodes, self.nodes = self.nodes, []
        return nodes

    def _new_name(self, operator: str) -> str:
        self._count += 1
        return f"{operator.lower()}_{self._count}"


def build_graph(
    helper: Any, bilm: BiLM, settled: State, dtype: StoredDtype | None
) -> tuple[Any, dict[str, Array]]:
    """Return the graph without its weights, and the weights by name.

    Args:
        helper: The module `onnx.helper`.
        bilm: The model.
        settled: The state that every sentence starts from, one row.
        dtype: How matrices are stored; None for the type that they have in the model.
    """
    graph = OnnxGraph(helper)
    _Exporter(graph, bilm, settled, dtype).add_network()
    float_type, integer = helper.TensorProto.FLOAT, helper.TensorProto.INT64
    config = bilm.config

    def value(name: str, kind: int, *shape: int | str) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    inputs = [
        value(CHARACTER_IDS, integer, "batch", "words", config.char_cnn.max_characters),
        *([value(WORD_IDS, integer, "batch", "words")] if bilm.lexicon is not None else []),
        value(LENGTHS, integer, "batch"),
    ]
    outputs = [
        value(LAYERS, float_type, config.layers, "batch", "words", config.dim),
        value(MIX, float_type, "batch", "words", config.dim),
    ]
    return helper.make_graph(graph.take_nodes(), "elmo", inputs, outputs), graph.arrays


class _Exporter:
    """Adds the network of one model to a graph."""

    def __init__(
        self, graph: OnnxGraph, bilm: BiLM, settled: State, dtype: StoredDtype | None
    ) -> None:
        self._graph = graph
        self._bilm = bilm
        self._config = bilm.config
        self._settled = settled
        self._dtype = dtype

    def add_network(self) -> None:
        """Add all nodes, from the inputs to the outputs."""
        add, integers = self._graph.add, self._graph.integers
        shape = add("Shape", [CHARACTER_IDS])
        batch = add("Gather", [shape, integers(0)])
        words = add("Gather", [shape, integers(1)])
        steps = add("Add", [words, integers(2)])
        # Every sentence begins with a mark at step 0, and ends with one at step length + 1.
        end_B = add("Add", [LENGTHS, integers(1)])
        length_B = add("Add", [LENGTHS, integers(2)])
        is_end_SB = add("Equal", [self._range(steps), end_B])

        x_SBP = self._word_vectors(batch, words, is_end_SB)
        layers_SBD = [add("Concat", [x_SBP, x_SBP], axis=2)]
        halves = {"forward": x_SBP, "backward": self._reverse(x_SBP, length_B)}
        for depth in range(self._config.lstm.layers):
            for side, direction in enumerate(DIRECTIONS):
                out = self._lstm(halves[direction], depth, side, batch)
                if depth > 0 and self._config.lstm.skip:
                    out = add("Add", [out, halves[direction]])
                halves[direction] = out
            backward = self._reverse(halves["backward"], length_B)
            layers_SBD.append(add("Concat", [halves["forward"], backward], axis=2))

        mask_TB = add("Less", [self._range(words), LENGTHS])
        mask_BT = add("Transpose", [mask_TB], perm=[1, 0])
        mask_BT1 = add("Unsqueeze", [mask_BT, integers(2)])
        zero = self._graph.constant(np.zeros((), np.float32), "zero")
        layers_LSBD = add("Concat", [self._unsqueeze(layer) for layer in layers_SBD], axis=0)
        layers_LTBD = add("Slice", [layers_LSBD, integers(1), integers(-1), integers(1)])
        layers_LBTD = add("Transpose", [layers_LTBD], perm=[0, 2, 1, 3])
        add("Where", [mask_BT1, layers_LBTD, zero], LAYERS)
        mix = self._bilm.mix or Mix.uniform(self._config.layers)
        shares = np.array([mix.gamma * share for share in mix.weights], np.float32)
        shares_L111 = self._graph.constant(shares.reshape(-1, 1, 1, 1), "mix.shares")
        weighted_LBTD = add("Mul", [LAYERS, shares_L111])
        add("ReduceSum", [weighted_LBTD, integers(0)], MIX, keepdims=0)

    # -- characters to word vectors ----------------------------------------------------------------

    def _word_vectors(self, batch: str, words: str, is_end_SB: str) -> str:
        """Return the context-free vectors (S, B, P), with those of the sentence marks in place."""
        add, integers = self._graph.add, self._graph.integers
        cnn = self._config.char_cnn
        marks_2C, _ = self._bilm.characters.encode(self._bilm.characters.marks)
        marks = self._graph.constant(marks_2C.astype(np.int64) + SHIFT, "characters.marks")
        ids_TBC = add("Transpose", [CHARACTER_IDS], perm=[1, 0, 2])
        ids_NC = add("Reshape", [ids_TBC, integers(-1, cnn.max_characters)])
        ids_NC = add("Concat", [ids_NC, marks], axis=0)
        # Frequent words, and the padding after short sentences, are computed once.
        ids_UC, _, row_N, _ = self._graph.add_many(
            "Unique", [ids_NC], ["distinct", "first", "row", "count"], axis=0, sorted=1
        )
        begin = add("Gather", [row_N, integers(-2)])
        end = add("Gather", [row_N, integers(-1)])
        rows = add("Slice", [row_N, integers(0), integers(-2), integers(0)])
        row_SB = self._add_marks(rows, begin, end, batch, words, is_end_SB)
        x_SBP = add("Gather", [self._convolve(ids_UC), row_SB], axis=0)
        if self._bilm.lexicon is None:
            return x_SBP
        lexicon = self._bilm.lexicon
        unknown = unknown_row(lexicon)
        known = [lexicon.index_of(mark, unknown) for mark in self._bilm.characters.marks]
        entry_TB = add("Transpose", [WORD_IDS], perm=[1, 0])
        entry_N = add("Reshape", [entry_TB, integers(-1)])
        entry_SB = self._add_marks(
            entry_N, integers(known[0]), integers(known[1]), batch, words, is_end_SB
        )
        e_SBE = add("Gather", [self._weight("words.embedding"), entry_SB], axis=0)
        part_SBP = add("MatMul", [e_SBE, self._weight("words.projection")])
        return add("Add", [x_SBP, part_SBP])

    def _add_marks(
        self, rows_N: str, begin: str, end: str, batch: str, words: str, is_end_SB: str
    ) -> str:
        """Return rows (S, B) of a table: those of the words (T·B,), and those of the marks."""
        add, integers = self._graph.add, self._graph.integers
        rows_TB = add("Reshape", [rows_N, add("Concat", [words, batch], axis=0)], allowzero=1)
        first_1B = add("Expand", [begin, add("Concat", [integers(1), batch], axis=0)])
        rows_SB = add("Concat", [first_1B, rows_TB, first_1B], axis=0)
        return add("Where", [is_end_SB, end, rows_SB])

    def _convolve(self, ids_UC: str) -> str:
        """Return the vectors (U, P) of words given as characters."""
        add, cnn = self._graph.add, self._config.char_cnn
        table = self._bilm.weights["characters.embedding"]
        no_word = np.zeros((SHIFT, table.shape[1]), table.dtype)
        embedding = self._weight("characters.embedding", np.concatenate([no_word, table]))
        x_UCE = add("Gather", [embedding, ids_UC], axis=0)
        x_UEC = add("Transpose", [x_UCE], perm=[0, 2, 1])
        pooled = []
        for i in range(len(cnn.filters)):
            name = f"characters.convolution.{i}"
            kernel = self._bilm.weights[f"{name}.weight"].transpose(2, 1, 0)
            weights = [self._weight(f"{name}.weight", kernel), self._weight(f"{name}.bias")]
            scores_UFC = add("Conv", [x_UEC, *weights])
            pooled.append(add("ReduceMax", [scores_UFC], axes=[2], keepdims=0))
        x_UF = add("Concat", pooled, axis=1)
        x_UF = add("Relu" if cnn.activation == "relu" else "Tanh", [x_UF])
        for k in range(cnn.highways):
            name = f"characters.highway.{k}"
            one = self._graph.constant(np.ones((), np.float32), "one")
            gate_UF = add("Sigmoid", [self._linear(x_UF, f"{name}.carry")])
            new_UF = add("Relu", [self._linear(x_UF, f"{name}.transform")])
            kept_UF = add("Mul", [add("Sub", [one, gate_UF]), x_UF])
            x_UF = add("Add", [add("Mul", [gate_UF, new_UF]), kept_UF])
        return self._linear(x_UF, "characters.projection") if cnn.projection else x_UF

    def _linear(self, x: str, name: str) -> str:
        product = self._graph.add("MatMul", [x, self._weight(f"{name}.weight")])
        return self._graph.add("Add", [product, self._weight(f"{name}.bias")])

    # -- word vectors to contextual vectors --------------------------------------------------------

    def _lstm(self, x_SBP: str, depth: int, side: int, batch: str) -> str:
        """Return the outputs (S, B, P) of one layer in one direction, without the residual."""
        graph, lstm = self._graph, self._config.lstm
        add, integers, name = graph.add, graph.integers, f"{DIRECTIONS[side]}.{depth}"
        bias = self._bilm.weights[f"{name}.bias"].astype(np.float32)
        bias[2 * lstm.cells : 3 * lstm.cells] += np.float32(FORGET_BIAS)
        product = add("MatMul", [x_SBP, self._weight(f"{name}.input.weight")])
        gates_SBG = add("Add", [product, self._weight(f"{name}.bias", bias)])
        start = []
        for part, array in (("hidden", self._settled.hidden), ("cell", self._settled.cell)):
            row = graph.constant(array[depth, side, :1].copy(), f"{name}.{part}.settled")
            width = array.shape[-1]
            start.append(add("Expand", [row, add("Concat", [batch, integers(width)], axis=0)]))
        weights = [self._weight(f"{name}.recurrent.weight")]
        if lstm.projection:
            weights.append(self._weight(f"{name}.projection.weight"))
        outer = graph.take_nodes()
        body = self._lstm_step(name, *weights)
        graph.nodes = outer
        outputs = [f"{name}.hidden.last", f"{name}.cell.last", f"{name}.output"]
        return graph.add_many("Scan", [*start, gates_SBG], outputs, body=body, num_scan_inputs=1)[2]

    def _lstm_step(self, name: str, recurrent: str, projection: str | None = None) -> Any:
        """Return one step of an LSTM layer as a graph; it uses the weights of the outer graph."""
        graph, lstm = self._graph, self._config.lstm
        add, helper = graph.add, graph.helper
        product = add("MatMul", [f"{name}.h", recurrent])
        gates = add("Add", [f"{name}.gates", product])
        i, j, f, o = graph.add_many("Split", [gates], [f"{name}.{g}" for g in "ijfo"], axis=1)
        kept = add("Mul", [add("Sigmoid", [f]), f"{name}.c"])
        new = add("Mul", [add("Sigmoid", [i]), add("Tanh", [j])])
        cell = self._clip(add("Add", [kept, new]), lstm.cell_clip)
        cell = add("Identity", [cell], f"{name}.c.next")
        hidden = add("Mul", [add("Sigmoid", [o]), add("Tanh", [cell])])
        if projection is not None:
            hidden = add("MatMul", [hidden, projection])
            hidden = self._clip(hidden, lstm.projection_clip)
        hidden = add("Identity", [hidden], f"{name}.h.next")
        output = add("Identity", [hidden], f"{name}.h.output")

        def value(variable: str, width: int) -> Any:
            float_type = helper.TensorProto.FLOAT
            return helper.make_tensor_value_info(variable, float_type, ("batch", width))

        h, c = value(f"{name}.h", lstm.width), value(f"{name}.c", lstm.cells)
        inputs = [h, c, value(f"{name}.gates", 4 * lstm.cells)]
        outputs = [value(hidden, lstm.width), value(cell, lstm.cells), value(output, lstm.width)]
        return helper.make_graph(graph.take_nodes(), f"{name}.step", inputs, outputs)

    def _clip(self, x: str, bound: float | None) -> str:
        if bound is None:
            return x
        limits = [self._graph.constant(np.array(v, np.float32)) for v in (-bound, bound)]
        return self._graph.add("Clip", [x, *limits])

    # -- small parts -------------------------------------------------------------------------------

    def _reverse(self, x_SBP: str, length_B: str) -> str:
        """Return every sentence reversed within its length."""
        return self._graph.add("ReverseSequence", [x_SBP, length_B], batch_axis=1, time_axis=0)

    def _unsqueeze(self, x: str) -> str:
        return self._graph.add("Unsqueeze", [x, self._graph.integers(0)])

    def _range(self, count: str) -> str:
        """Return 0, 1, …, count - 1 as a column."""
        add, integers = self._graph.add, self._graph.integers
        scalar = add("Squeeze", [count])
        zero, one = (self._graph.constant(np.array(v, np.int64)) for v in (0, 1))
        return add("Unsqueeze", [add("Range", [zero, scalar, one]), integers(1)])

    def _weight(self, name: str, array: Array | None = None) -> str:
        """Add an array as it is to be stored, and return the name of its float32 form.

        Args:
            name: Name of the array in the graph.
            array: Its values; by default those of the model's array of this name.
        """
        if array is None:
            array = self._bilm.weights[name]
        half = array.dtype == np.float16 if self._dtype is None else self._dtype == "float16"
        if not half or array.ndim < 2:  # a bias is small, and sums are sensitive to it
            return self._graph.constant(np.ascontiguousarray(array, np.float32), name)
        with np.errstate(over="ignore"):
            stored = array.astype(np.float16)
        if not np.isfinite(stored).all():
            raise InputError(
                f"{name} has values up to {np.abs(array).max():g}, but float16 ends at 65504; "
                "write the file with dtype='float32' (--dtype float32)"
            )
        half_name = self._graph.constant(np.ascontiguousarray(stored), f"{name}.float16")
        float_type = self._graph.helper.TensorProto.FLOAT
        return self._graph.add("Cast", [half_name], name, to=float_type)


def unknown_row(lexicon: Dictionary) -> int:
    """Return the row of the embedding that all unknown words share."""
    return lexicon.index_of(NAMED_UNKNOWN)
