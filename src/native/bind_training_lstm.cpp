// The functions of `elmokit._native` that train an LSTM layer; see bind_training.cpp.
#include <nanobind/stl/string.h>

#include <stdexcept>

#include "arrays.h"
#include "cpu.h"
#include "train_lstm.h"

namespace nb = nanobind;
using namespace elmokit;

namespace {

using Alive = Array<const std::int64_t, 1>;
using Out = Array<float, 2>;

TrainingLayer make_layer(const Alive& alive, std::ptrdiff_t words, std::ptrdiff_t sentences,
                         const Table& projection, float cell_clip, float projection_clip) {
    const auto steps = static_cast<std::ptrdiff_t>(alive.shape(0));
    std::ptrdiff_t rows = 0;
    for (std::ptrdiff_t step = 0; step < steps; ++step) {
        const std::int64_t limit = step ? alive.data()[step - 1] : sentences;
        if (alive.data()[step] < 1 || alive.data()[step] > limit)
            throw std::invalid_argument("`alive` must be positive and must not increase");
        rows += alive.data()[step];
    }
    if (steps < 1 || alive.data()[0] != sentences || rows != words)
        throw std::invalid_argument("`alive` does not add up to the number of words of the batch");
    const auto units = static_cast<int>(projection.shape(0));
    if (units % 16) throw std::invalid_argument("the number of cells must be a multiple of 16");
    return {alive.data(), steps,     static_cast<int>(projection.shape(1)),
            units,        cell_clip, projection_clip};
}

void lstm_forward(const std::string& isa, const Alive& alive, const Table& recurrent,
                  const Table& projection, float cell_clip, float projection_clip,
                  const Table& initial_hidden, const Table& initial_cell, const Out& gates,
                  const Out& cells, const Out& cell_outputs, const Out& outputs) {
    const auto n = static_cast<std::ptrdiff_t>(gates.shape(0));
    const auto b = static_cast<std::ptrdiff_t>(initial_hidden.shape(0));
    const TrainingLayer layer = make_layer(alive, n, b, projection, cell_clip, projection_clip);
    check_shape("recurrent", recurrent, {layer.width, 4 * layer.units});
    check_shape("initial_hidden", initial_hidden, {b, layer.width});
    check_shape("initial_cell", initial_cell, {b, layer.units});
    check_shape("gates", gates, {n, 4 * layer.units});
    check_shape("cells", cells, {n, layer.units});
    check_shape("cell_outputs", cell_outputs, {n, layer.units});
    check_shape("outputs", outputs, {n, layer.width});
    const nb::gil_scoped_release released;
    run_forward(
        find_kernels(isa, false), layer,
        ForwardPass{recurrent.data(), projection.data(), initial_hidden.data(), initial_cell.data(),
                    gates.data(), cells.data(), cell_outputs.data(), outputs.data()});
}

void lstm_backward(const std::string& isa, const Alive& alive, const Table& recurrent,
                   const Table& projection, float cell_clip, float projection_clip,
                   const Table& initial_cell, const Table& gates, const Table& cells,
                   const Table& outputs, const Table& d_outputs, const Out& d_hidden,
                   const Out& d_cell, const Out& d_gates, const Out& d_projected) {
    const auto n = static_cast<std::ptrdiff_t>(gates.shape(0));
    const auto b = static_cast<std::ptrdiff_t>(initial_cell.shape(0));
    const TrainingLayer layer = make_layer(alive, n, b, projection, cell_clip, projection_clip);
    check_shape("recurrent", recurrent, {layer.width, 4 * layer.units});
    check_shape("initial_cell", initial_cell, {b, layer.units});
    check_shape("gates", gates, {n, 4 * layer.units});
    check_shape("cells", cells, {n, layer.units});
    check_shape("outputs", outputs, {n, layer.width});
    check_shape("d_outputs", d_outputs, {n, layer.width});
    check_shape("d_hidden", d_hidden, {b, layer.width});
    check_shape("d_cell", d_cell, {b, layer.units});
    check_shape("d_gates", d_gates, {n, 4 * layer.units});
    check_shape("d_projected", d_projected, {n, layer.width});
    const nb::gil_scoped_release released;
    run_backward(find_kernels(isa, false), layer,
                 BackwardPass{recurrent.data(), projection.data(), initial_cell.data(),
                              gates.data(), cells.data(), outputs.data(), d_outputs.data(),
                              d_hidden.data(), d_cell.data(), d_gates.data(), d_projected.data()});
}

}  // namespace

void bind_training_lstm(nb::module_& m) {
    m.def("lstm_forward", &lstm_forward);
    m.def("lstm_backward", &lstm_backward);
}
