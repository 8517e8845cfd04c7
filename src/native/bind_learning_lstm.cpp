// The LSTM that learns, as functions of `elmokit._native`: see bind_learning.cpp.
#include <nanobind/stl/string.h>

#include <stdexcept>

#include "arrays.h"
#include "cpu.h"
#include "learn_lstm.h"

namespace nb = nanobind;
using namespace elmokit;

namespace {

using Alive = Array<const std::int64_t, 1>;
using Out = Array<float, 2>;

LearningLayer layer_of(const Alive& alive, std::ptrdiff_t words, std::ptrdiff_t sentences,
                       const Table& projection, float cell_clip, float projection_clip) {
    const auto steps = static_cast<std::ptrdiff_t>(alive.shape(0));
    std::ptrdiff_t rows = 0;
    for (std::ptrdiff_t step = 0; step < steps; ++step) {
        const std::int64_t most = step ? alive.data()[step - 1] : sentences;
        if (alive.data()[step] < 1 || alive.data()[step] > most)
            throw std::invalid_argument("`alive` has to be positive and never to rise");
        rows += alive.data()[step];
    }
    if (steps < 1 || alive.data()[0] != sentences || rows != words)
        throw std::invalid_argument("`alive` does not add up to the words of the batch");
    const auto units = static_cast<int>(projection.shape(0));
    if (units % 16) throw std::invalid_argument("the units have to be a multiple of 16");
    return {alive.data(), steps, static_cast<int>(projection.shape(1)), units, cell_clip,
            projection_clip};
}

void lstm_forward(const std::string& isa, const Alive& alive, const Table& recurrent,
                  const Table& projection, float cell_clip, float projection_clip,
                  const Table& hidden, const Table& cell, const Out& gates, const Out& cells,
                  const Out& outputs, const Out& said) {
    const auto n = static_cast<std::ptrdiff_t>(gates.shape(0));
    const auto b = static_cast<std::ptrdiff_t>(hidden.shape(0));
    const LearningLayer layer =
        layer_of(alive, n, b, projection, cell_clip, projection_clip);
    expect("recurrent", recurrent, {layer.width, 4 * layer.units});
    expect("hidden", hidden, {b, layer.width});
    expect("cell", cell, {b, layer.units});
    expect("gates", gates, {n, 4 * layer.units});
    expect("cells", cells, {n, layer.units});
    expect("outputs", outputs, {n, layer.units});
    expect("said", said, {n, layer.width});
    const nb::gil_scoped_release released;
    run(kernels_of(isa, false), layer,
        LearningForward{recurrent.data(), projection.data(), hidden.data(), cell.data(),
                        gates.data(), cells.data(), outputs.data(), said.data()});
}

void lstm_backward(const std::string& isa, const Alive& alive, const Table& recurrent,
                   const Table& projection, float cell_clip, float projection_clip,
                   const Table& cell, const Table& gates, const Table& cells, const Table& said,
                   const Table& d_said, const Out& d_hidden, const Out& d_cell, const Out& d_gates,
                   const Out& d_projected) {
    const auto n = static_cast<std::ptrdiff_t>(gates.shape(0));
    const auto b = static_cast<std::ptrdiff_t>(cell.shape(0));
    const LearningLayer layer =
        layer_of(alive, n, b, projection, cell_clip, projection_clip);
    expect("recurrent", recurrent, {layer.width, 4 * layer.units});
    expect("cell", cell, {b, layer.units});
    expect("gates", gates, {n, 4 * layer.units});
    expect("cells", cells, {n, layer.units});
    expect("said", said, {n, layer.width});
    expect("d_said", d_said, {n, layer.width});
    expect("d_hidden", d_hidden, {b, layer.width});
    expect("d_cell", d_cell, {b, layer.units});
    expect("d_gates", d_gates, {n, 4 * layer.units});
    expect("d_projected", d_projected, {n, layer.width});
    const nb::gil_scoped_release released;
    run(kernels_of(isa, false), layer,
        LearningBackward{recurrent.data(), projection.data(), cell.data(), gates.data(),
                         cells.data(), said.data(), d_said.data(), d_hidden.data(), d_cell.data(),
                         d_gates.data(), d_projected.data()});
}

}  // namespace

void bind_learning_lstm(nb::module_& m) {
    m.def("lstm_forward", &lstm_forward);
    m.def("lstm_backward", &lstm_backward);
}
