// The LSTM cell in training: the forward pass, which keeps what the backward pass needs, and the
// backward pass.
//
// Templates over an instruction set's `Vector`, like layers.h.
#pragma once

#include "kernels.h"
#include "nonlinear.h"
#include "products.h"

namespace elmokit {

/// Forward: c = clip(f·c + i·j), m = o·tanh(c) with i, f, o = sigmoid(…), j = tanh(…), all stored.
template <class V>
void training_cells(const Rows& a, const Panels& w, Span panels, Span rows,
                    const TrainingCells& step) {
    using F = typename V::F;
    const auto unit = [](int panel) { return static_cast<std::ptrdiff_t>(panel) * V::lanes; };
    const auto gates_of = [&](int panel, int row) {
        return step.gates + row * 4 * std::ptrdiff_t{step.units} + unit(panel);
    };
    const auto next_cells = [&](int panel, int row, const float* products) {
        const std::ptrdiff_t at = row * std::ptrdiff_t{step.units} + unit(panel);
        float* const gates = gates_of(panel, row);
        const auto sum = [&](int g) {
            return V::add(V::load(products + g * V::lanes), V::load(gates + g * step.units));
        };
        const F i = sigmoid<V>(sum(0)), j = hyperbolic_tangent<V>(sum(1));
        const F f = sigmoid<V>(V::add(sum(2), V::set(kForgetBias))), o = sigmoid<V>(sum(3));
        V::store(gates, i);
        V::store(gates + step.units, j);
        V::store(gates + 2 * step.units, f);
        V::store(gates + 3 * step.units, o);
        V::store(step.cells + at,
                 clamp<V>(V::fma(f, V::load(step.before + at), V::mul(i, j)), step.clip));
    };
    const auto outputs = [&](int panel, int row, const float*) {
        const std::ptrdiff_t at = row * std::ptrdiff_t{step.units} + unit(panel);
        const F o = V::load(gates_of(panel, row) + 3 * step.units);
        V::store(step.outputs + at, V::mul(o, hyperbolic_tangent<V>(V::load(step.cells + at))));
    };
    multiply<V>(a, w, panels, rows, InTwoParts{next_cells, outputs});
}

/// Backward: from the gradient of m to those of the gates before their nonlinearities and of the
/// previous cells. Where c was clipped, no gradient passes.
template <class V>
void backward_cells(const Rows& a, const Panels& w, Span panels, Span rows,
                    const BackwardCells& step) {
    using F = typename V::F;
    multiply<V>(a, w, panels, rows, [&](int panel, int row, const float* products) {
        const F one = V::set(1.0f);
        for (int v = 0; v < kPanelVectors; ++v) {
            const std::ptrdiff_t unit =
                static_cast<std::ptrdiff_t>(panel) * panel_width<V> + v * V::lanes;
            if (unit >= step.units) return;
            const std::ptrdiff_t at = row * std::ptrdiff_t{step.units} + unit;
            const std::ptrdiff_t gate = row * 4 * std::ptrdiff_t{step.units} + unit;
            const float* gates = step.gates + gate;
            const F i = V::load(gates), j = V::load(gates + step.units);
            const F f = V::load(gates + 2 * step.units), o = V::load(gates + 3 * step.units);
            const F c = V::load(step.cells + at), before = V::load(step.before + at);
            const F m = V::load(products + v * V::lanes);
            const F t = hyperbolic_tangent<V>(c);
            const F through = V::mul(V::mul(m, o), V::sub(one, V::mul(t, t)));
            const F d = V::where_less(V::abs(c), V::set(step.clip),
                                      V::add(through, V::load(step.d_cells + at)), V::set(0.0f));
            float* out = step.d_gates + gate;
            V::store(out, V::mul(V::mul(d, j), V::mul(i, V::sub(one, i))));
            V::store(out + step.units, V::mul(V::mul(d, i), V::sub(one, V::mul(j, j))));
            V::store(out + 2 * step.units, V::mul(V::mul(d, before), V::mul(f, V::sub(one, f))));
            V::store(out + 3 * step.units, V::mul(V::mul(m, t), V::mul(o, V::sub(one, o))));
            V::store(step.d_cells + at, V::mul(d, f));
        }
    });
}

}  // namespace elmokit
