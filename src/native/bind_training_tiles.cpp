// The functions of `elmokit._native` that train with products of bfloat16; see bind_training.cpp.
#include <nanobind/stl/string.h>

#include "checks.h"
#include "cpu.h"
#include "python.h"
#include "train_checks.h"
#include "train_tiles.h"

namespace nb = nanobind;
using namespace elmokit;

namespace {

using Out = Array<float, 2>;
using OutVector = Array<float, 1>;
using Halves = Array<const std::int16_t, 2>;
using OutHalves = Array<std::int16_t, 2>;

/// The weights of a layer, checked.
struct LayerArrays {
    LayerArrays(nb::handle input_, nb::handle recurrent_, nb::handle bias_, nb::handle projection_)
        : input("input", input_),
          recurrent("recurrent", recurrent_),
          bias("bias", bias_),
          projection("projection", projection_) {}

    void check(const TrainingLayer& layer) const {
        input.check_shape({layer.width, 4 * layer.units});
        recurrent.check_shape({layer.width, 4 * layer.units});
        bias.check_shape({4 * layer.units});
    }
    TileLSTMWeights weights() const {
        return {input.data(), recurrent.data(), bias.data(), projection.data()};
    }

    const Table input, recurrent;
    const Vector bias;
    const Table projection;
};

template <class Codes>
void check_codes(const Codes& factors, const Codes& cell_outputs, std::ptrdiff_t words,
                 const TrainingLayer& layer) {
    factors.check_shape({words + kTileMargin, 2 * padded_depth(layer.width)});
    cell_outputs.check_shape({words + kTileMargin, padded_depth(layer.units)});
}

void tile_lstm_forward(const std::string& isa, nb::handle alive_, nb::handle input_,
                       nb::handle recurrent_, nb::handle bias_, nb::handle projection_,
                       float cell_clip, float projection_clip, nb::handle inputs_,
                       nb::handle initial_hidden_, nb::handle initial_cell_, nb::handle gates_,
                       nb::handle cells_, nb::handle factors_, nb::handle cell_outputs_,
                       nb::handle outputs_) {
    const Kernels& kernels = find_kernels(isa, Dtype::bfloat16);
    const Indices alive("alive", alive_);
    const LayerArrays weights(input_, recurrent_, bias_, projection_);
    const Table inputs("inputs", inputs_);
    const Table initial_hidden("initial_hidden", initial_hidden_);
    const Table initial_cell("initial_cell", initial_cell_);
    const Out gates("gates", gates_), cells("cells", cells_), outputs("outputs", outputs_);
    const OutHalves factors("factors", factors_), cell_outputs("cell_outputs", cell_outputs_);
    const std::ptrdiff_t n = inputs.shape(0), b = initial_hidden.shape(0);
    const std::vector<std::int64_t> copied_alive = copy_of(alive);
    const TrainingLayer layer =
        make_layer(copied_alive, n, b, weights.projection, cell_clip, projection_clip);
    weights.check(layer);
    inputs.check_shape({n, layer.width});
    initial_hidden.check_shape({b, layer.width});
    initial_cell.check_shape({b, layer.units});
    gates.check_shape({n, 4 * layer.units});
    cells.check_shape({n, layer.units});
    outputs.check_shape({n, layer.width});
    check_codes(factors, cell_outputs, n, layer);
    check_disjoint({alive, weights.input, weights.recurrent, weights.bias, weights.projection,
                    inputs, initial_hidden, initial_cell, gates, cells, factors, cell_outputs,
                    outputs});
    without_gil([&] {
        run_forward(kernels, layer, weights.weights(),
                    TileForwardPass{inputs.data(), initial_hidden.data(), initial_cell.data(),
                                    gates.data(), cells.data(),
                                    reinterpret_cast<std::uint16_t*>(factors.data()),
                                    reinterpret_cast<std::uint16_t*>(cell_outputs.data()),
                                    outputs.data()});
    });
}

void tile_lstm_backward(const std::string& isa, nb::handle alive_, nb::handle input_,
                        nb::handle recurrent_, nb::handle bias_, nb::handle projection_,
                        float cell_clip, float projection_clip, nb::handle initial_cell_,
                        nb::handle gates_, nb::handle cells_, nb::handle factors_,
                        nb::handle cell_outputs_, nb::handle outputs_, nb::handle d_outputs_,
                        nb::handle d_inputs_, nb::handle d_hidden_, nb::handle d_cell_,
                        nb::handle d_input_, nb::handle d_recurrent_, nb::handle d_bias_,
                        nb::handle d_projection_) {
    const Kernels& kernels = find_kernels(isa, Dtype::bfloat16);
    const Indices alive("alive", alive_);
    const LayerArrays weights(input_, recurrent_, bias_, projection_);
    const Table initial_cell("initial_cell", initial_cell_);
    const Table gates("gates", gates_), cells("cells", cells_);
    const Halves factors("factors", factors_), cell_outputs("cell_outputs", cell_outputs_);
    const Table outputs("outputs", outputs_), d_outputs("d_outputs", d_outputs_);
    const Optional<float, 2> d_inputs("d_inputs", d_inputs_);
    const Out d_hidden("d_hidden", d_hidden_), d_cell("d_cell", d_cell_);
    const Out d_input("d_input", d_input_), d_recurrent("d_recurrent", d_recurrent_);
    const OutVector d_bias("d_bias", d_bias_);
    const Out d_projection("d_projection", d_projection_);
    const std::ptrdiff_t n = gates.shape(0), b = initial_cell.shape(0);
    const std::vector<std::int64_t> copied_alive = copy_of(alive);
    const TrainingLayer layer =
        make_layer(copied_alive, n, b, weights.projection, cell_clip, projection_clip);
    weights.check(layer);
    initial_cell.check_shape({b, layer.units});
    gates.check_shape({n, 4 * layer.units});
    cells.check_shape({n, layer.units});
    check_codes(factors, cell_outputs, n, layer);
    outputs.check_shape({n, layer.width});
    d_outputs.check_shape({n, layer.width});
    d_inputs.check_shape({n, layer.width});
    d_hidden.check_shape({b, layer.width});
    d_cell.check_shape({b, layer.units});
    d_input.check_shape({layer.width, 4 * layer.units});
    d_recurrent.check_shape({layer.width, 4 * layer.units});
    d_bias.check_shape({4 * layer.units});
    d_projection.check_shape({layer.units, layer.width});
    const std::initializer_list<Region> regions = {
        alive,   weights.input, weights.recurrent, weights.bias, weights.projection, initial_cell,
        gates,   cells,         factors,           cell_outputs, outputs,            d_outputs,
        d_hidden, d_cell,       d_input,           d_recurrent,  d_bias,             d_projection};
    check_disjoint(regions);
    d_inputs.check_disjoint_from(regions);
    without_gil([&] {
        run_backward(
            kernels, layer, weights.weights(),
            TileBackwardPass{initial_cell.data(), gates.data(), cells.data(),
                             reinterpret_cast<const std::uint16_t*>(factors.data()),
                             reinterpret_cast<const std::uint16_t*>(cell_outputs.data()),
                             outputs.data(), d_outputs.data(), d_inputs.data(), d_hidden.data(),
                             d_cell.data(), d_input.data(), d_recurrent.data(), d_bias.data(),
                             d_projection.data()});
    });
}

double tile_softmax(const std::string& isa, int candidates, nb::handle bias_, nb::handle hidden_,
                    nb::handle weights_, nb::handle targets_, nb::handle target_bias_,
                    nb::handle hidden_gradient_, nb::handle weight_gradient_,
                    nb::handle bias_gradient_) {
    const Kernels& kernels = find_kernels(isa, Dtype::bfloat16);
    const Vector bias("bias", bias_), target_bias("target_bias", target_bias_);
    const Table hidden("hidden", hidden_), weights("weights", weights_);
    const Indices targets("targets", targets_);
    const Optional<float, 2> hidden_gradient("hidden_gradient", hidden_gradient_);
    const Optional<float, 2> weight_gradient("weight_gradient", weight_gradient_);
    const Optional<float, 1> bias_gradient("bias_gradient", bias_gradient_);
    const std::ptrdiff_t rows = hidden.shape(0), width = hidden.shape(1);
    const std::ptrdiff_t words = weights.shape(0), columns = bias.shape(0);
    check_size("the number of rows", rows, 0, kMaxRows);
    check_size("the width", width, 1, kMaxSize);
    check_size("the number of words", words, 0, kMaxSize);
    check_size("candidates", candidates, 1, words);
    const std::ptrdiff_t padded =
        (candidates + kSoftmaxColumns - 1) / kSoftmaxColumns * kSoftmaxColumns;
    bias.check_shape({padded});
    weights.check_shape({words, width});
    targets.check_shape({rows});
    target_bias.check_shape({rows});
    hidden_gradient.check_shape({rows, width});
    weight_gradient.check_shape({words, width});
    bias_gradient.check_shape({std::max(words, columns)});
    const std::initializer_list<Region> inputs = {bias, hidden, weights, targets, target_bias};
    hidden_gradient.check_disjoint_from(inputs);
    weight_gradient.check_disjoint_from(inputs);
    bias_gradient.check_disjoint_from(inputs);
    return without_gil([&] {
        const auto copied_targets = copy_of(targets);
        check_range("targets", copied_targets.data(), rows, words);
        return run_softmax(kernels,
                           {rows, candidates, static_cast<int>(width), words, bias.data(),
                            hidden.data(), weights.data(), copied_targets.data(),
                            target_bias.data(), hidden_gradient.data(), weight_gradient.data(),
                            bias_gradient.data()});
    });
}

TileAffine make_map(const Table& x, const Table& weight) {
    check_size("the number of rows", x.shape(0), 0, kMaxRows);
    check_size("the number of inputs", weight.shape(0), 1, kMaxSize);
    check_size("the number of outputs", weight.shape(1), 1, kMaxSize);
    x.check_shape({x.shape(0), weight.shape(0)});
    return {x.shape(0), static_cast<int>(weight.shape(0)), static_cast<int>(weight.shape(1))};
}

void tile_affine_forward(const std::string& isa, nb::handle x_, nb::handle weight_,
                         nb::handle bias_, nb::handle y_) {
    const Kernels& kernels = find_kernels(isa, Dtype::bfloat16);
    const Table x("x", x_), weight("weight", weight_);
    const Vector bias("bias", bias_);
    const Out y("y", y_);
    const TileAffine map = make_map(x, weight);
    bias.check_shape({map.outputs});
    y.check_shape({map.rows, map.outputs});
    check_disjoint({x, weight, bias, y});
    without_gil(
        [&] { run_affine(kernels, map, x.data(), weight.data(), bias.data(), y.data()); });
}

void tile_affine_backward(const std::string& isa, nb::handle x_, nb::handle weight_,
                          nb::handle d_y_, nb::handle d_x_, nb::handle d_weight_,
                          nb::handle d_bias_) {
    const Kernels& kernels = find_kernels(isa, Dtype::bfloat16);
    const Table x("x", x_), weight("weight", weight_), d_y("d_y", d_y_);
    const Optional<float, 2> d_x("d_x", d_x_), d_weight("d_weight", d_weight_);
    const Optional<float, 1> d_bias("d_bias", d_bias_);
    const TileAffine map = make_map(x, weight);
    d_y.check_shape({map.rows, map.outputs});
    d_x.check_shape({map.rows, map.inputs});
    d_weight.check_shape({map.inputs, map.outputs});
    d_bias.check_shape({map.outputs});
    const std::initializer_list<Region> inputs = {x, weight, d_y};
    d_x.check_disjoint_from(inputs);
    d_weight.check_disjoint_from(inputs);
    d_bias.check_disjoint_from(inputs);
    without_gil([&] {
        run_affine_backward(kernels, map, x.data(), weight.data(), d_y.data(), d_x.data(),
                            d_weight.data(), d_bias.data());
    });
}

}  // namespace

void bind_training_tiles(nb::module_& m) {
    m.attr("TILE_DEPTH") = kTileDepth;
    m.attr("TILE_MARGIN") = kTileMargin;
    m.def("tile_lstm_forward", &tile_lstm_forward);
    m.def("tile_lstm_backward", &tile_lstm_backward, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
    m.def("tile_softmax", &tile_softmax, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none());
    m.def("tile_affine_forward", &tile_affine_forward);
    m.def("tile_affine_backward", &tile_affine_backward, nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg().none());
}
