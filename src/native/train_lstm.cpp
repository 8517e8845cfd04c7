#include "train_lstm.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "interrupts.h"

namespace elmokit {

namespace {

Rows rows_of(const float* values, std::ptrdiff_t stride) {
    return {values, stride, nullptr, 0, nullptr, nullptr};
}

/// Weights in panels, as `Matrix` packs them, but in memory of malloc: they are packed anew at every
/// step, and for memory that the system has to map and clear each time, that takes longer than
/// copying the weights. (train/malloc.py keeps malloc from returning it.)
class PackedWeights {
  public:
    /// Packs a row-major matrix of `depth` rows: 1 or 4 groups of `units` columns each.
    static PackedWeights from_rows(const Kernels& kernels, const float* weight, int depth,
                                   int units, int groups) {
        PackedWeights packed(kernels, depth, units, groups);
        const std::ptrdiff_t stride = std::ptrdiff_t{groups} * units;
        const int lanes = kernels.lanes;
        for (int panel = 0; panel < packed.panels_; ++panel) {
            for (int v = 0; v < kPanelVectors; ++v) {
                const auto [group, unit] = packed.vector_at(panel, v);
                const int count = std::clamp(units - unit, 0, lanes);
                const float* from = weight + std::ptrdiff_t{group} * units + unit;
                float* to = packed.panel(panel) + v * lanes;
                for (int k = 0; k < depth; ++k, from += stride, to += kPanelVectors * lanes)
                    for (int i = 0; i < count; ++i) to[i] = from[i];
            }
        }
        return packed;
    }

    /// Packs the transpose of a row-major matrix of `units` rows and `depth` columns.
    static PackedWeights from_columns(const Kernels& kernels, const float* weight, int depth,
                                      int units) {
        constexpr int line = 16;  // floats of a cache line: it is read once
        PackedWeights packed(kernels, depth, units, 1);
        const int width = kPanelVectors * kernels.lanes;
        for (int panel = 0; panel < packed.panels_; ++panel) {
            const int first = panel * width, count = std::min(units - first, width);
            for (int k0 = 0; k0 < depth; k0 += line) {
                const int end = std::min(depth, k0 + line);
                for (int c = 0; c < count; ++c) {
                    const float* from = weight + std::ptrdiff_t{first + c} * depth;
                    float* to = packed.panel(panel) + c;
                    for (int k = k0; k < end; ++k) to[std::ptrdiff_t{k} * width] = from[k];
                }
            }
        }
        return packed;
    }

    int panels() const { return panels_; }
    Panels view() const {
        return {values_.get(), nullptr, nullptr, bias_.data(), depth_};
    }

  private:
    struct Free {
        void operator()(float* p) const { std::free(p); }
    };

    PackedWeights(const Kernels& kernels, int depth, int units, int groups)
        : depth_(depth),
          groups_(groups),
          lanes_(kernels.lanes),
          panels_((units + units_per_panel() - 1) / units_per_panel()),
          bias_(std::size_t(panels_) * kPanelVectors * lanes_) {
        const std::size_t bytes = bias_.size() * depth * sizeof(float);
        values_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) /
                                                                             kAlignment *
                                                                             kAlignment)));
        if (!values_) throw std::bad_alloc();
        if (panels_ * units_per_panel() != units)  // the padding of the last panel
            std::memset(panel(panels_ - 1), 0, bytes / panels_);
    }

    static constexpr std::size_t kAlignment = 64;

    int units_per_panel() const { return kPanelVectors * lanes_ / groups_; }
    float* panel(int p) { return values_.get() + std::ptrdiff_t{p} * depth_ * kPanelVectors * lanes_; }
    /// The group and the first unit of a vector of a panel.
    std::pair<int, int> vector_at(int panel, int v) const {
        const int per_group = kPanelVectors / groups_;
        return {v / per_group, (panel * per_group + v % per_group) * lanes_};
    }

    int depth_, groups_, lanes_, panels_;
    std::vector<float> bias_;  // zeros
    std::unique_ptr<float, Free> values_;
};

}  // namespace

void run_forward(const Kernels& kernels, const TrainingLayer& layer, const ForwardPass& pass) {
    const std::ptrdiff_t width = layer.width, units = layer.units;
    const auto recurrent =
        PackedWeights::from_rows(kernels, pass.recurrent, layer.width, layer.units, 4);
    const auto projection =
        PackedWeights::from_rows(kernels, pass.projection, layer.units, layer.width, 1);
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
    const auto recurrent =
        PackedWeights::from_columns(kernels, pass.recurrent, 4 * layer.units, layer.width);
    const auto projection =
        PackedWeights::from_columns(kernels, pass.projection, layer.width, layer.units);
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
