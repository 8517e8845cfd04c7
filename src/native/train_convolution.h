// The convolution of convolution.h in training: the forward pass stores the position of the largest
// window, and the backward pass goes from there to the table. The caller computes the table of the
// characters that occur, and the gradients of embedding and weights from that of the table.
//
// The outer loop is over filters, the inner one over words: the columns of the table that a group
// of filters uses stay in the cache for all words.
#pragma once

#include "kernels.h"
#include "nonlinear.h"

namespace elmokit {

/// Returns how many windows of a word can differ: one per character, and one for all padding.
template <class V>
int count_distinct_windows(const Convolution& c, const Filters& filters, std::int64_t length) {
    const int last = c.max_characters - filters.width;
    return static_cast<int>(length < last ? length : last) + 1;
}

/// Sums the window at `ids` for N vectors of filters, whose columns begin at `table`.
template <class V, int N>
inline void sum_window(const Convolution& c, const Filters& filters, const float* table,
                       const std::int16_t* ids, typename V::F (&sums)[N]) {
    const float* row = table + ids[0] * c.table_stride;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums[n] = V::load(row + n * V::lanes);
    for (int k = 1; k < filters.width; ++k) {
        row = table + ids[k] * c.table_stride + std::ptrdiff_t{k} * filters.padded;
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) sums[n] = V::add(sums[n], V::load(row + n * V::lanes));
    }
}

/// Writes the outputs of N vectors of filters, starting at filter f, and the positions of the
/// largest windows; of equal windows the first.
template <class V, int N>
void largest_windows_with_positions(const Convolution& c, const Filters& filters, int f,
                                    const std::int16_t* ids, int windows, float* out,
                                    std::int16_t* positions) {
    using F = typename V::F;
    const float* table = c.table + filters.table + f;
    F maxima[N], position[N], sums[N];
    sum_window<V, N>(c, filters, table, ids, maxima);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) position[n] = V::set(0.0f);
    for (int p = 1; p < windows; ++p) {
        sum_window<V, N>(c, filters, table, ids + p, sums);
        const F here = V::set(static_cast<float>(p));
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) {
            position[n] = V::where_less(maxima[n], sums[n], here, position[n]);
            maxima[n] = V::where_less(maxima[n], sums[n], sums[n], maxima[n]);
        }
    }
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
        const int at = f + n * V::lanes, left = filters.count - at;
        F y = V::add(maxima[n], V::load(filters.bias + at));
        y = c.tanh ? hyperbolic_tangent<V>(y) : relu<V>(y);
        V::store_int16(positions + n * V::lanes, position[n]);
        if (left >= V::lanes) {
            V::store(out + n * V::lanes, y);
        } else if (left > 0) {
            V::store_first(out + n * V::lanes, y, left);
        }
    }
}

template <class V, int N>
void convolve_filters(const Convolution& c, const Filters& filters, int f, const TrainingWords& w,
                      std::ptrdiff_t all_filters, float* out, std::int16_t* positions) {
    for (int u = 0; u < w.words; ++u, out += all_filters, positions += w.positions_stride)
        largest_windows_with_positions<V, N>(c, filters, f, w.ids + u * w.ids_stride,
                                             count_distinct_windows<V>(c, filters, w.lengths[u]),
                                             out + f, positions + f);
}

template <class V>
std::ptrdiff_t count_filters(const Convolution& c) {
    std::ptrdiff_t count = 0;
    for (int i = 0; i < c.widths; ++i) count += c.filters[i].count;
    return count;
}

template <class V>
void training_convolution(const Convolution& c, const TrainingWords& w) {
    const std::ptrdiff_t all_filters = count_filters<V>(c);
    float* out = w.outputs;
    std::int16_t* positions = w.positions;
    for (int i = 0; i < c.widths; ++i) {
        const Filters& filters = c.filters[i];
        int f = 0;
        for (; f + 4 * V::lanes <= filters.padded; f += 4 * V::lanes)
            convolve_filters<V, 4>(c, filters, f, w, all_filters, out, positions);
        for (; f < filters.padded; f += V::lanes)
            convolve_filters<V, 1>(c, filters, f, w, all_filters, out, positions);
        out += filters.count;
        positions += filters.padded;
    }
}

/// Number of filters that the backward pass processes together.
constexpr int kFiltersPerBackwardBlock = 64;

/// Adds the gradients of biases and table, given those of a word's outputs, for `count` filters.
template <class V>
void backward_word(const Convolution& c, const Filters& filters, const std::int16_t* ids, int count,
                   const float* gradient, const float* out, const std::int16_t* positions,
                   float* biases, float* table) {
    float slope[kFiltersPerBackwardBlock];
    if (c.tanh) {
        for (int f = 0; f < count; ++f) slope[f] = gradient[f] * (1.0f - out[f] * out[f]);
    } else {
        for (int f = 0; f < count; ++f) slope[f] = out[f] > 0.0f ? gradient[f] : 0.0f;
    }
    // A relu passes about half of the gradients, unpredictably: collect them without branches.
    int passing[kFiltersPerBackwardBlock], passed = 0;
    for (int f = 0; f < count; ++f) {
        biases[f] += slope[f];
        passing[passed] = f;
        passed += slope[f] != 0.0f;
    }
    for (int i = 0; i < passed; ++i) {
        const int f = passing[i];
        const std::int16_t* window = ids + positions[f];
        float* row = table + f;
        for (int k = 0; k < filters.width; ++k, row += filters.padded)
            row[window[k] * c.table_stride] += slope[f];
    }
}

template <class V>
void backward_convolution(const Convolution& c, const TrainingWords& w, const float* gradients,
                          float* biases, float* table) {
    const std::ptrdiff_t all_filters = count_filters<V>(c);
    std::ptrdiff_t first = 0, first_position = 0;
    for (int i = 0; i < c.widths; ++i) {
        const Filters& filters = c.filters[i];
        for (int f = 0; f < filters.count; f += kFiltersPerBackwardBlock) {
            const int left = filters.count - f;
            const int count = left < kFiltersPerBackwardBlock ? left : kFiltersPerBackwardBlock;
            for (int u = 0; u < w.words; ++u) {
                const std::ptrdiff_t at = u * all_filters + first + f;
                backward_word<V>(c, filters, w.ids + u * w.ids_stride, count, gradients + at,
                                 w.outputs + at,
                                 w.positions + u * w.positions_stride + first_position + f,
                                 biases + first + f, table + filters.table + f);
            }
        }
        first += filters.count;
        first_position += filters.padded;
    }
}

}  // namespace elmokit
