// The layers of the network on top of the products of products.h: linear map, highway and LSTM
// cell, computed on each row of products while it is in the cache. Also the quantization of
// activations.
#pragma once

#include <math.h>  // not <cmath>, whose inline functions would be shared (see kernels.h)

#include "kernels.h"
#include "nonlinear.h"
#include "products.h"
#include "products_blocked.h"

namespace elmokit {

/// `linear`, compiled with and without adding.
template <class V, bool add>
void write_linear(const Rows& a, const Panels& w, Span panels, Span rows, const LinearOut& out) {
    const auto finish = [&](int panel, int row, const float* products) {
        const float* bias = w.bias + static_cast<std::ptrdiff_t>(panel) * panel_width<V>;
        float* target = out.values + panel * out.panel_stride + row * out.row_stride;
        const int columns = out.columns - panel * panel_width<V>;
        for (int v = 0; v < panel_width<V> && v < columns; v += V::lanes) {
            const typename V::F sum = V::add(V::load(products + v), V::load(bias + v));
            const typename V::F y = clamp<V>(sum, out.clip);
            if (columns - v >= V::lanes) {
                V::store(target + v, add ? V::add(V::load(target + v), y) : y);
            } else {
                float before[V::lanes] = {};
                for (int c = 0; add && c < columns - v; ++c) before[c] = target[v + c];
                V::store_first(target + v, add ? V::add(V::load(before), y) : y, columns - v);
            }
        }
    };
    multiply_any<V>(a, w, panels, rows, finish);
}

/// Linear map: clip(x·W + bias), which may be added to what is there.
template <class V>
void linear(const Rows& a, const Panels& w, Span panels, Span rows, const LinearOut& out) {
    if (out.add)
        write_linear<V, true>(a, w, panels, rows, out);
    else
        write_linear<V, false>(a, w, panels, rows, out);
}

/// Highway: g·relu(x·W_t + b_t) + (1 - g)·x with g = sigmoid(x·W_c + b_c).
template <class V>
void highway(const Rows& a, const Panels& w, Span panels, Span rows, const HighwayOut& out) {
    constexpr int units = panel_width<V> / 2;
    multiply_any<V>(a, w, panels, rows, [&](int panel, int row, const float* products) {
        const float* bias = w.bias + static_cast<std::ptrdiff_t>(panel) * panel_width<V>;
        const std::ptrdiff_t column = static_cast<std::ptrdiff_t>(panel) * units;
        const float* x = a.values + row * a.stride + column;
        float* target = out.values + row * out.stride + column;
        for (int v = 0; v < units; v += V::lanes) {
            using F = typename V::F;
            const F gate = sigmoid<V>(V::add(V::load(products + v), V::load(bias + v)));
            const F transform = V::add(V::load(products + units + v), V::load(bias + units + v));
            const F y = relu<V>(transform);
            const F rest = V::sub(V::set(1.0f), gate);
            V::store(target + v, V::fma(gate, y, V::mul(rest, V::load(x + v))));
        }
    });
}

/// LSTM cell: c = clip(sigmoid(f)·c + sigmoid(i)·tanh(j)), m = sigmoid(o)·tanh(c).
template <class V>
void cells(const Rows& a, const Panels& w, Span panels, Span rows, const CellState& state) {
    const auto gate = [&](int panel, int row, const float* products, int g) {
        const float* inputs =
            state.inputs + panel * state.input_panel_stride + row * std::ptrdiff_t{panel_width<V>};
        return V::add(V::load(products + g * V::lanes), V::load(inputs + g * V::lanes));
    };
    const auto position = [&](int panel, int row) {
        return row * state.stride + static_cast<std::ptrdiff_t>(panel) * V::lanes;
    };
    const auto next_cells = [&](int panel, int row, const float* products) {
        float* const cell = state.cells + position(panel, row);
        const auto of = [&](int g) { return gate(panel, row, products, g); };
        V::store(cell, clamp<V>(next_cell<V>(of(0), of(1), of(2), V::load(cell)), state.clip));
    };
    const auto outputs = [&](int panel, int row, const float* products) {
        const std::ptrdiff_t at = position(panel, row);
        V::store(state.outputs + at, sigmoid_tanh<V>(gate(panel, row, products, 3),
                                                     V::load(state.cells + at)));
    };
    multiply<V>(a, w, panels, rows, InTwoParts{next_cells, outputs});
}

/// Quantizes a row: the largest absolute value gets the code ±127, zero the code 0. A row that is
/// not finite gets the codes 0 and the scale NaN, so that its products are NaN.
template <class V>
void quantize(const float* row, int depth, void* codes, float* scale, std::int32_t* sum) {
    using Activation = typename V::Activation;
    auto* target = static_cast<Activation*>(codes);
    // The maximum of the bits: unlike a maximum of floats, it keeps a NaN.
    typename V::I maxima = V::zero();
    for (int k = 0; k < depth; k += V::lanes)
        maxima = V::max(maxima, V::bits(V::abs(V::load(row + k))));
    const std::int32_t bits = V::largest(maxima);
    float largest;
    __builtin_memcpy(&largest, &bits, sizeof largest);
    if (!(largest < INFINITY)) {
        for (int k = 0; k < depth; ++k) target[k] = 0;
        *scale = NAN;
        *sum = 0;
        return;
    }
    const bool empty = largest < 1e-30f;  // its reciprocal would overflow
    *scale = empty ? 0.0f : largest / 127.0f;
    const typename V::F inverse = V::set(empty ? 0.0f : 127.0f / largest);
    typename V::I sums = V::zero();
    for (int k = 0; k < depth; k += V::lanes)
        sums = V::add(sums, V::store_codes(target + k, V::mul(V::load(row + k), inverse)));
    *sum = V::total(sums);
}

/// Rounds a row to bfloat16.
template <class V>
void round_row(const float* row, int depth, std::uint16_t* out) {
    if constexpr (PairProducts<V>::exist)
        for (int k = 0; k < depth; k += V::lanes) PairProducts<V>::round(V::load(row + k), out + k);
}

}  // namespace elmokit
