#include "train_lstm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "interrupts.h"
#include "matrix.h"
#include "team.h"

namespace elmokit {

namespace {

Rows rows_of(const float* values, std::ptrdiff_t stride) {
    return {values, stride, nullptr, 0, nullptr, nullptr};
}

/// Returns the transpose of a row-major matrix, computed in squares that fit into the cache.
std::vector<float> transposed(const float* values, int rows, int columns) {
    constexpr int square = 32;
    std::vector<float> out(static_cast<std::size_t>(rows) * columns);
    for (int r0 = 0; r0 < rows; r0 += square)
        for (int c0 = 0; c0 < columns; c0 += square)
            for (int c = c0; c < std::min(c0 + square, columns); ++c)
                for (int r = r0; r < std::min(r0 + square, rows); ++r)
                    out[static_cast<std::size_t>(c) * rows + r] =
                        values[static_cast<std::size_t>(r) * columns + c];
    return out;
}

Matrix pack(const Kernels& kernels, const float* weight, int depth, int units, int groups = 1) {
    Team alone(1);
    std::vector<Columns> columns;
    for (int g = 0; g < groups; ++g)
        columns.push_back({weight + g * units, std::ptrdiff_t{groups} * units, nullptr});
    return Matrix(kernels, alone, Dtype::float32, columns, depth, units);
}

}  // namespace

void run_forward(const Kernels& kernels, const TrainingLayer& layer, const ForwardPass& pass) {
    const std::ptrdiff_t width = layer.width, units = layer.units;
    const Matrix recurrent = pack(kernels, pass.recurrent, layer.width, layer.units, 4);
    const Matrix projection = pack(kernels, pass.projection, layer.units, layer.width);
    const float* hidden = pass.initial_hidden;
    const float* before = pass.initial_cell;
    std::ptrdiff_t row = 0;
    for (std::ptrdiff_t step = 0; step < layer.steps; ++step) {
        check_interrupts();
        const Span active{0, static_cast<int>(layer.alive[step])};
        kernels.training_cells(rows_of(hidden, width), recurrent.view(), {0, recurrent.panels()},
                               active,
                               {pass.gates + row * 4 * units, before, pass.cells + row * units,
                                pass.cell_outputs + row * units, layer.units, layer.cell_clip});
        kernels.linear(rows_of(pass.cell_outputs + row * units, units), projection.view(),
                       {0, projection.panels()}, active,
                       {pass.outputs + row * width, kPanelVectors * kernels.lanes, width,
                        layer.width, layer.projection_clip});
        hidden = pass.outputs + row * width;
        before = pass.cells + row * units;
        row += active.end;
    }
}

void run_backward(const Kernels& kernels, const TrainingLayer& layer, const BackwardPass& pass) {
    const std::ptrdiff_t width = layer.width, units = layer.units;
    const Matrix recurrent =
        pack(kernels, transposed(pass.recurrent, layer.width, 4 * layer.units).data(),
             4 * layer.units, layer.width);
    const Matrix projection =
        pack(kernels, transposed(pass.projection, layer.units, layer.width).data(), layer.width,
             layer.units);
    std::fill_n(pass.d_hidden, layer.alive[0] * width, 0.0f);
    std::ptrdiff_t row = 0;
    for (std::ptrdiff_t step = 0; step < layer.steps; ++step) row += layer.alive[step];
    for (std::ptrdiff_t step = layer.steps - 1; step >= 0; --step) {
        check_interrupts();
        const Span active{0, static_cast<int>(layer.alive[step])};
        row -= active.end;
        float* projected = pass.d_projected + row * width;
        const float* outputs = pass.outputs + row * width;
        const float* d_outputs = pass.d_outputs + row * width;
        for (std::ptrdiff_t i = 0; i < active.end * width; ++i) {
            const float d = d_outputs[i] + pass.d_hidden[i];
            projected[i] = std::fabs(outputs[i]) < layer.projection_clip ? d : 0.0f;
        }
        const float* before =
            step ? pass.cells + (row - layer.alive[step - 1]) * units : pass.initial_cell;
        float* d_gates = pass.d_gates + row * 4 * units;
        kernels.backward_cells(rows_of(projected, width), projection.view(),
                               {0, projection.panels()}, active,
                               {pass.gates + row * 4 * units, before, pass.cells + row * units,
                                d_gates, pass.d_cell, layer.units, layer.cell_clip});
        kernels.linear(
            rows_of(d_gates, 4 * units), recurrent.view(), {0, recurrent.panels()}, active,
            {pass.d_hidden, kPanelVectors * kernels.lanes, width, layer.width, INFINITY});
    }
}

}  // namespace elmokit
