// The Python module `elmokit._native`. Checks all arguments, and computes without the GIL. Only
// `engine/native.py` calls the functions of this file; only `nn/` calls those of
// bind_training*.cpp.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "checks.h"
#include "network.h"
#include "python.h"

namespace nb = nanobind;
using namespace elmokit;

void bind_limits(nb::module_& m);         // bind_limits.cpp
void bind_training(nb::module_& m);       // bind_training.cpp
void bind_training_lstm(nb::module_& m);  // bind_training_lstm.cpp
void bind_training_tiles(nb::module_& m);  // bind_training_tiles.cpp

Dtype parse_dtype(const std::string& name) {
    if (name == "float32") return Dtype::float32;
    if (name == "bfloat16") return Dtype::bfloat16;
    if (name == "int8") return Dtype::int8;
    refuse("dtype is '" + name + "'; expected 'float32', 'bfloat16' or 'int8'");
}

namespace {

/// Upper bounds that only a mistake exceeds.
constexpr int kMaxThreads = 4096;
constexpr int kMaxLayers = 4096;

void check_architecture(const Architecture& a) {
    check_size("characters", a.characters, 1, kMaxSize);
    check_size("embedding_dim", a.embedding_dim, 1, kMaxSize);
    check_size("max_characters", a.max_characters, 1, kMaxSize);
    check_size("highways", a.highways, 0, kMaxLayers);
    check_size("cells", a.cells, 1, kMaxSize);
    check_size("width", a.width, 1, kMaxSize);
    check_size("layers", a.layers, 1, kMaxLayers);
    check_clip("cell_clip", a.cell_clip);
    check_clip("projection_clip", a.projection_clip);
    std::int64_t all_filters = 0;
    for (const auto& [width, count] : a.filters) {
        check_size("filters: a width", width, 1, a.max_characters);
        check_size("filters: a number of filters", count, 1, kMaxSize);
        all_filters += count;
    }
    check_size("filters: the number of all filters", all_filters, 1, kMaxSize);
    if (!a.character_projection && a.width != all_filters)
        refuse("width is " + std::to_string(a.width) + ", and there are " +
               std::to_string(all_filters) +
               " filters; without a projection of the characters, expected the same number");
    if (!a.projection && a.cells != a.width)
        refuse("cells is " + std::to_string(a.cells) + ", and width is " + std::to_string(a.width) +
               "; without a projection, expected the same number");
}

void load_embedding(Network& network, nb::handle embedding_) {
    const Table embedding("embedding", embedding_);
    embedding.check_shape({network.architecture.characters, network.architecture.embedding_dim});
    without_gil([&] {
        check_finite(embedding);
        network.load([&] { network.characters.load_embedding(embedding.data()); });
    });
}

void load_filters(Network& network, int index, nb::handle weight_, nb::handle bias_) {
    const auto& filters = network.architecture.filters;
    check_size("index", index, 0, static_cast<std::int64_t>(filters.size()) - 1);
    const Array<const float, 3> weight("weight", weight_);
    const Vector bias("bias", bias_);
    const auto [width, count] = filters[index];
    weight.check_shape({width, network.architecture.embedding_dim, count});
    bias.check_shape({count});
    without_gil([&] {
        check_finite(weight);
        check_finite(bias);
        network.load([&] { network.characters.load_filters(index, weight.data(), bias.data()); });
    });
}

void load_highway(Network& network, int index, nb::handle carry_, nb::handle carry_bias_,
                  nb::handle transform_, nb::handle transform_bias_) {
    if (network.architecture.highways == 0) refuse("the architecture has no highways");
    check_size("index", index, 0, network.architecture.highways - 1);
    const Table carry("carry", carry_), transform("transform", transform_);
    const Vector carry_bias("carry_bias", carry_bias_);
    const Vector transform_bias("transform_bias", transform_bias_);
    const int n = network.architecture.n_filters();
    carry.check_shape({n, n});
    carry_bias.check_shape({n});
    transform.check_shape({n, n});
    transform_bias.check_shape({n});
    without_gil([&] {
        check_finite(carry);
        check_finite(carry_bias);
        check_finite(transform);
        check_finite(transform_bias);
        network.load([&] {
            network.characters.load_highway(index, {carry.data(), n, carry_bias.data()},
                                            {transform.data(), n, transform_bias.data()});
        });
    });
}

void load_projection(Network& network, nb::handle weight_, nb::handle bias_) {
    if (!network.architecture.character_projection)
        refuse("the architecture has no projection of the characters");
    const Table weight("weight", weight_);
    const Vector bias("bias", bias_);
    const int width = network.architecture.width;
    weight.check_shape({network.architecture.n_filters(), width});
    bias.check_shape({width});
    without_gil([&] {
        check_finite(weight);
        check_finite(bias);
        network.load([&] {
            network.characters.load_projection({weight.data(), width, bias.data()});
        });
    });
}

void load_lstm(Network& network, int layer, int direction, nb::handle input_, nb::handle recurrent_,
               nb::handle bias_, nb::handle projection_) {
    const auto& a = network.architecture;
    check_size("layer", layer, 0, a.layers - 1);
    check_size("direction", direction, 0, 1);
    if (projection_.is_none() == a.projection)
        refuse(a.projection ? "the architecture has a projection, but none was passed"
                            : "the architecture has no projection, but one was passed");
    const Table input("input", input_), recurrent("recurrent", recurrent_);
    const Vector bias("bias", bias_);
    std::optional<Table> projection;
    if (a.projection) projection.emplace("projection", projection_);
    input.check_shape({a.width, 4 * a.cells});
    recurrent.check_shape({a.width, 4 * a.cells});
    bias.check_shape({4 * a.cells});
    if (projection) projection->check_shape({a.cells, a.width});
    without_gil([&] {
        check_finite(input);
        check_finite(recurrent);
        check_finite(bias);
        if (projection) check_finite(*projection);
        network.load([&] {
            network.lstm.load(layer, direction, input.data(), recurrent.data(), bias.data(),
                              projection ? projection->data() : nullptr);
        });
    });
}

void word_vectors(Network& network, nb::handle ids_, nb::handle lengths_, nb::handle out_) {
    const auto& a = network.architecture;
    const Array<const std::int16_t, 2> ids("ids", ids_);
    const Indices lengths("lengths", lengths_);
    const Array<float, 2> out("out", out_);
    const std::ptrdiff_t words = ids.shape(0);
    check_size("the number of words", words, 0, kMaxRows);
    ids.check_shape({words, a.max_characters});
    lengths.check_shape({words});
    out.check_shape({words, a.width});
    check_disjoint({ids, lengths, out});
    without_gil([&] {
        const auto ids_copy = copy_of(ids);
        const auto lengths_copy = copy_of(lengths);
        check_range("ids", ids_copy.data(), ids.size(), a.characters);
        check_range("lengths", lengths_copy.data(), words, a.max_characters + 1);
        network.word_vectors(ids_copy.data(), lengths_copy.data(), words, out.data());
    });
}

void contextualize(Network& network, nb::handle words_, nb::handle alive_, nb::handle mirror_,
                   nb::handle hidden_, nb::handle cell_, nb::handle layers_) {
    const auto& a = network.architecture;
    const Table words("words", words_);
    const Indices alive("alive", alive_), mirror("mirror", mirror_);
    const Array<float, 4> hidden("hidden", hidden_), cell("cell", cell_);
    const Array<float, 3> layers("layers", layers_);
    const std::ptrdiff_t n = words.shape(0), sentences = hidden.shape(2);
    check_size("the number of words", n, 0, kMaxRows);
    check_size("the number of sentences", sentences, 0, kMaxRows);
    words.check_shape({n, a.width});
    mirror.check_shape({n});
    hidden.check_shape({a.layers, 2, sentences, a.width});
    cell.check_shape({a.layers, 2, sentences, a.cells});
    layers.check_shape({a.layers + 1, n, 2 * a.width});
    check_disjoint({words, alive, mirror, hidden, cell, layers});
    without_gil([&] {
        const auto alive_copy = copy_of(alive);
        const auto mirror_copy = copy_of(mirror);
        check_packing(alive_copy, n, sentences);
        check_permutation("mirror", mirror_copy);
        check_finite(words);
        check_finite(hidden);
        check_finite(cell);
        network.contextualize({words.data(), alive_copy.data(), mirror_copy.data(), n,
                               alive.shape(0), sentences, hidden.data(), cell.data(),
                               layers.data()});
    });
}

}  // namespace

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // a model may live until the process ends
    m.doc() = "The compiled kernel of elmokit. Use it through elmokit.engine.native.";
    find_main_thread();
    m.def(
        "instruction_sets",
        [](const std::string& dtype) { return instruction_sets(parse_dtype(dtype)); },
        nb::kw_only(), nb::arg("dtype"));

    nb::class_<Network>(m, "Network")
        .def(
            "__init__",
            [](Network* self, std::vector<std::pair<int, int>> filters, int characters,
               int embedding_dim, int max_characters, bool tanh, int highways,
               bool character_projection, int cells, int width, int layers, bool projection,
               bool skip, float cell_clip, float projection_clip, const std::string& dtype,
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
                check_architecture(architecture);
                check_size("threads", threads, 1, kMaxThreads);
                new (self) Network(architecture, parse_dtype(dtype), instruction_set, threads);
            },
            nb::kw_only(), nb::arg("filters"), nb::arg("characters"), nb::arg("embedding_dim"),
            nb::arg("max_characters"), nb::arg("tanh"), nb::arg("highways"),
            nb::arg("character_projection"), nb::arg("cells"), nb::arg("width"), nb::arg("layers"),
            nb::arg("projection"), nb::arg("skip"), nb::arg("cell_clip"),
            nb::arg("projection_clip"), nb::arg("dtype"), nb::arg("instruction_set"),
            nb::arg("threads"))
        .def("load_embedding", &load_embedding)
        .def("load_filters", &load_filters)
        .def("load_highway", &load_highway)
        .def("load_projection", &load_projection)
        .def("load_lstm", &load_lstm, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none() = nb::none())
        .def("buffer_bytes",
             [](Network& network) {
                 return without_gil([&] { return network.buffer_bytes(); });
             })
        .def("word_vectors", &word_vectors)
        .def("contextualize", &contextualize);
    m.def(
        "inject_failure",
        [](bool worker, int after) {
            check_size("after", after, -1, 1 << 30);
            inject_failure(worker, after);
        },
        nb::kw_only(), nb::arg("worker"), nb::arg("after"));

    bind_limits(m);
    bind_training(m);
    bind_training_lstm(m);
    bind_training_tiles(m);
}
