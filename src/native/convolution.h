// The character convolution without multiplications: with fixed weights, what a character
// contributes at position k of a filter is a constant, so a window is a sum of table rows. This is
// exact: windows after the end of the word contain padding only and are all equal, so one of them
// is enough.
#pragma once

#include <cmath>

#include "kernels.h"
#include "nonlinear.h"

namespace elmokit {

/// Fills the table of a character: table[position][filter] = embedding · weight[position][:,
/// filter].
template <class V>
void tabulate(const Convolution& c, int character) {
    const float* embedding = c.embedding + static_cast<std::ptrdiff_t>(character) * c.embedding_dim;
    for (int i = 0; i < c.widths; ++i) {
        const Filters& filters = c.filters[i];
        float* row = c.table + character * c.table_stride + filters.table;
        const float* weight = filters.weight;
        for (int k = 0; k < filters.width; ++k, row += filters.padded) {
            for (int f = 0; f < filters.padded; f += V::lanes) V::store(row + f, V::set(0.0f));
            for (int e = 0; e < c.embedding_dim; ++e, weight += filters.count) {
                const typename V::F x = V::set(embedding[e]);
                int f = 0;
                for (; f + V::lanes <= filters.count; f += V::lanes)
                    V::store(row + f, V::fma(x, V::load(weight + f), V::load(row + f)));
                for (; f < filters.count; ++f) row[f] += embedding[e] * weight[f];
            }
        }
    }
}

/// Writes the outputs of N vectors of filters, starting at filter f: the largest window sums with
/// bias and activation.
template <class V, int N>
void largest_windows(const Convolution& c, const Filters& filters, int f, const std::int16_t* ids,
                     int windows, float* out) {
    using F = typename V::F;
    F maxima[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) maxima[n] = V::set(-INFINITY);
    for (int p = 0; p < windows; ++p) {
        F sums[N];
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) sums[n] = V::set(0.0f);
        for (int k = 0; k < filters.width; ++k) {
            const float* row = c.table + ids[p + k] * c.table_stride + filters.table +
                               std::ptrdiff_t{k} * filters.padded + f;
#pragma GCC unroll 4
            for (int n = 0; n < N; ++n) sums[n] = V::add(sums[n], V::load(row + n * V::lanes));
        }
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) maxima[n] = V::max(maxima[n], sums[n]);
    }
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
        const F y = V::add(maxima[n], V::load(filters.bias + f + n * V::lanes));
        V::store(out + n * V::lanes, c.tanh ? hyperbolic_tangent<V>(y) : relu<V>(y));
    }
}

/// Writes the outputs of all filters for one word.
template <class V>
void convolve(const Convolution& c, const std::int16_t* ids, int length, float* out) {
    for (int i = 0; i < c.widths; ++i) {
        const Filters& filters = c.filters[i];
        const int last = c.max_characters - filters.width;
        const int windows = (length < last ? length : last) + 1;
        int f = 0;
        for (; f + 4 * V::lanes <= filters.padded; f += 4 * V::lanes)
            largest_windows<V, 4>(c, filters, f, ids, windows, out + f);
        for (; f < filters.padded; f += V::lanes)
            largest_windows<V, 1>(c, filters, f, ids, windows, out + f);
        out += filters.count;  // the next width overwrites the padding, which is zero
    }
}

}  // namespace elmokit
