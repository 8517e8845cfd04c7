// The Python module `elmokit._native`. Checks the shapes of arrays and releases the GIL during
// computations. Only `engine/native.py` calls the functions of this file; only `nn/` calls those of
// bind_training*.cpp.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "network.h"

namespace nb = nanobind;
using namespace elmokit;

void bind_training(nb::module_& m);       // bind_training.cpp
void bind_training_lstm(nb::module_& m);  // bind_training_lstm.cpp

namespace {

void load_filters(Network& network, int index, const Array<const float, 3>& weight,
                  const Vector& bias) {
    const auto [width, count] = network.architecture.filters.at(index);
    check_shape("weight", weight, {width, network.architecture.embedding_dim, count});
    check_shape("bias", bias, {count});
    network.characters.load_filters(index, weight.data(), bias.data());
}

void load_embedding(Network& network, const Table& embedding) {
    check_shape("embedding", embedding,
                {network.architecture.characters, network.architecture.embedding_dim});
    network.characters.load_embedding(embedding.data());
}

void load_highway(Network& network, int index, const Table& carry, const Vector& carry_bias,
                  const Table& transform, const Vector& transform_bias) {
    const int n = network.architecture.n_filters();
    check_shape("carry", carry, {n, n});
    check_shape("carry_bias", carry_bias, {n});
    check_shape("transform", transform, {n, n});
    check_shape("transform_bias", transform_bias, {n});
    const nb::gil_scoped_release released;
    network.characters.load_highway(index, {carry.data(), n, carry_bias.data()},
                                    {transform.data(), n, transform_bias.data()});
}

void load_projection(Network& network, const Table& weight, const Vector& bias) {
    const int width = network.architecture.width;
    check_shape("weight", weight, {network.architecture.n_filters(), width});
    check_shape("bias", bias, {width});
    const nb::gil_scoped_release released;
    network.characters.load_projection({weight.data(), width, bias.data()});
}

void load_lstm(Network& network, int layer, int direction, const Table& input,
               const Table& recurrent, const Vector& bias, const std::optional<Table>& projection) {
    const auto& a = network.architecture;
    check_shape("input", input, {a.width, 4 * a.cells});
    check_shape("recurrent", recurrent, {a.width, 4 * a.cells});
    check_shape("bias", bias, {4 * a.cells});
    if (projection) check_shape("projection", *projection, {a.cells, a.width});
    if (projection.has_value() != a.projection)
        throw nb::value_error(a.projection
                                  ? "the architecture has a projection, but none was passed"
                                  : "the architecture has no projection, but one was passed");
    const nb::gil_scoped_release released;
    network.lstm.load(layer, direction, input.data(), recurrent.data(), bias.data(),
                      projection ? projection->data() : nullptr);
}

void word_vectors(Network& network, const Array<const std::int16_t, 2>& ids,
                  const Array<const std::int64_t, 1>& lengths, const Array<float, 2>& out) {
    const auto words = static_cast<std::ptrdiff_t>(ids.shape(0));
    check_shape("ids", ids, {words, network.architecture.max_characters});
    check_shape("lengths", lengths, {words});
    check_shape("out", out, {words, network.architecture.width});
    const nb::gil_scoped_release released;
    network.word_vectors(ids.data(), lengths.data(), words, out.data());
}

void contextualize(Network& network, const Table& words, const Array<const std::int64_t, 1>& alive,
                   const Array<const std::int64_t, 1>& mirror, const Array<float, 4>& hidden,
                   const Array<float, 4>& cell, const Array<float, 3>& layers) {
    const auto& a = network.architecture;
    const auto n = static_cast<std::ptrdiff_t>(words.shape(0));
    const auto sentences = static_cast<std::ptrdiff_t>(hidden.shape(2));
    check_shape("words", words, {n, a.width});
    check_shape("mirror", mirror, {n});
    check_shape("hidden", hidden, {a.layers, 2, sentences, a.width});
    check_shape("cell", cell, {a.layers, 2, sentences, a.cells});
    check_shape("layers", layers, {a.layers + 1, n, 2 * a.width});
    const nb::gil_scoped_release released;
    network.contextualize({words.data(), alive.data(), mirror.data(), n,
                           static_cast<std::ptrdiff_t>(alive.shape(0)), sentences, hidden.data(),
                           cell.data(), layers.data()});
}

}  // namespace

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // a model may live until the process ends
    m.doc() = "The compiled kernel of elmokit. Use it through elmokit.engine.native.";
    m.def("instruction_sets", &instruction_sets, nb::kw_only(), nb::arg("int8"));

    nb::class_<Network>(m, "Network")
        .def(
            "__init__",
            [](Network* self, std::vector<std::pair<int, int>> filters, int characters,
               int embedding_dim, int max_characters, bool tanh, int highways,
               bool character_projection, int cells, int width, int layers, bool projection,
               bool skip, float cell_clip, float projection_clip, bool int8,
               const std::string& instruction_set, int threads) {
                const Architecture architecture{std::move(filters),
                                                characters,
                                                embedding_dim,
                                                max_characters,
                                                tanh,
                                                highways,
                                                character_projection,
                                                cells,
                                                width,
                                                layers,
                                                projection,
                                                skip,
                                                cell_clip,
                                                projection_clip};
                new (self) Network(architecture, int8, instruction_set, threads);
            },
            nb::kw_only(), nb::arg("filters"), nb::arg("characters"), nb::arg("embedding_dim"),
            nb::arg("max_characters"), nb::arg("tanh"), nb::arg("highways"),
            nb::arg("character_projection"), nb::arg("cells"), nb::arg("width"), nb::arg("layers"),
            nb::arg("projection"), nb::arg("skip"), nb::arg("cell_clip"),
            nb::arg("projection_clip"), nb::arg("int8"), nb::arg("instruction_set"),
            nb::arg("threads"))
        .def("load_embedding", &load_embedding)
        .def("load_filters", &load_filters)
        .def("load_highway", &load_highway)
        .def("load_projection", &load_projection)
        .def("load_lstm", &load_lstm, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg() = nb::none())
        .def("word_vectors", &word_vectors)
        .def("contextualize", &contextualize);

    bind_training(m);
    bind_training_lstm(m);
}
