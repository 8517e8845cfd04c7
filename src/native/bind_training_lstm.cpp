// The functions of `elmokit._native` that train an LSTM layer; see bind_training.cpp.
#include <nanobind/stl/string.h>

#include "checks.h"
#include "cpu.h"
#include "python.h"
#include "train_checks.h"

namespace nb = nanobind;
using namespace elmokit;

namespace {

using Out = Array<float, 2>;

void lstm_forward(const std::string& isa, nb::handle alive_, nb::handle recurrent_,
                  nb::handle projection_, float cell_clip, float projection_clip,
                  nb::handle initial_hidden_, nb::handle initial_cell_, nb::handle gates_,
                  nb::handle cells_, nb::handle cell_outputs_, nb::handle outputs_) {
    const Kernels& kernels = find_kernels(isa, Dtype::float32);
    const Indices alive("alive", alive_);
    const Table recurrent("recurrent", recurrent_), projection("projection", projection_);
    const Table initial_hidden("initial_hidden", initial_hidden_);
    const Table initial_cell("initial_cell", initial_cell_);
    const Out gates("gates", gates_), cells("cells", cells_);
    const Out cell_outputs("cell_outputs", cell_outputs_), outputs("outputs", outputs_);
    const std::ptrdiff_t n = gates.shape(0), b = initial_hidden.shape(0);
    const std::vector<std::int64_t> copied_alive = copy_of(alive);
    const TrainingLayer layer =
        make_layer(copied_alive, n, b, projection, cell_clip, projection_clip);
    recurrent.check_shape({layer.width, 4 * layer.units});
    initial_hidden.check_shape({b, layer.width});
    initial_cell.check_shape({b, layer.units});
    gates.check_shape({n, 4 * layer.units});
    cells.check_shape({n, layer.units});
    cell_outputs.check_shape({n, layer.units});
    outputs.check_shape({n, layer.width});
    check_disjoint({alive, recurrent, projection, initial_hidden, initial_cell, gates, cells,
                    cell_outputs, outputs});
    without_gil([&] {
        run_forward(kernels, layer,
                    ForwardPass{recurrent.data(), projection.data(), initial_hidden.data(),
                                initial_cell.data(), gates.data(), cells.data(),
                                cell_outputs.data(), outputs.data()});
    });
}

void lstm_backward(const std::string& isa, nb::handle alive_, nb::handle recurrent_,
                   nb::handle projection_, float cell_clip, float projection_clip,
                   nb::handle initial_cell_, nb::handle gates_, nb::handle cells_,
                   nb::handle outputs_, nb::handle d_outputs_, nb::handle d_hidden_,
                   nb::handle d_cell_, nb::handle d_gates_, nb::handle d_projected_) {
    const Kernels& kernels = find_kernels(isa, Dtype::float32);
    const Indices alive("alive", alive_);
    const Table recurrent("recurrent", recurrent_), projection("projection", projection_);
    const Table initial_cell("initial_cell", initial_cell_);
    const Table gates("gates", gates_), cells("cells", cells_);
    const Table outputs("outputs", outputs_), d_outputs("d_outputs", d_outputs_);
    const Out d_hidden("d_hidden", d_hidden_), d_cell("d_cell", d_cell_);
    const Out d_gates("d_gates", d_gates_), d_projected("d_projected", d_projected_);
    const std::ptrdiff_t n = gates.shape(0), b = initial_cell.shape(0);
    const std::vector<std::int64_t> copied_alive = copy_of(alive);
    const TrainingLayer layer =
        make_layer(copied_alive, n, b, projection, cell_clip, projection_clip);
    recurrent.check_shape({layer.width, 4 * layer.units});
    initial_cell.check_shape({b, layer.units});
    gates.check_shape({n, 4 * layer.units});
    cells.check_shape({n, layer.units});
    outputs.check_shape({n, layer.width});
    d_outputs.check_shape({n, layer.width});
    d_hidden.check_shape({b, layer.width});
    d_cell.check_shape({b, layer.units});
    d_gates.check_shape({n, 4 * layer.units});
    d_projected.check_shape({n, layer.width});
    check_disjoint({alive, recurrent, projection, initial_cell, gates, cells, outputs, d_outputs,
                    d_hidden, d_cell, d_gates, d_projected});
    without_gil([&] {
        run_backward(
            kernels, layer,
            BackwardPass{recurrent.data(), projection.data(), initial_cell.data(), gates.data(),
                         cells.data(), outputs.data(), d_outputs.data(), d_hidden.data(),
                         d_cell.data(), d_gates.data(), d_projected.data()});
    });
}

}  // namespace

void bind_training_lstm(nb::module_& m) {
    m.def("lstm_forward", &lstm_forward);
    m.def("lstm_backward", &lstm_backward);
}
