// The convolution of `windows.h` while its weights learn: forward with the place of the largest
// window, and backward from there to the table. The caller makes the table of the characters that
// occur, and turns its gradient into those of embedding and weights. Knows no matrix products.
//
// Filters are the outer loop, words the inner one: the columns of the table that some filters use
// stay in the cache for all words.
#pragma once

#include "kernels.h"
#include "nonlinear.h"

namespace elmokit {

/// How many windows of a word can differ: one for each of its characters, one for all padding.
template <class V>
int distinct_windows(const Convolution& c, const Filters& filters, std::int64_t length) {
    const int last = c.max_characters - filters.width;
    return static_cast<int>(length < last ? length : last) + 1;
}

/// The window at `ids`, of the filters whose columns begin at `table`.
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

/// The largest windows of N vectors of filters, beginning with filter f; on a tie the first.
template <class V, int N>
void first_largest(const Convolution& c, const Filters& filters, int f, const std::int16_t* ids,
                   int windows, float* out, std::int16_t* places) {
    using F = typename V::F;
    const float* table = c.table + filters.table + f;
    F most[N], place[N], sums[N];
    sum_window<V, N>(c, filters, table, ids, most);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) place[n] = V::set(0.0f);
    for (int p = 1; p < windows; ++p) {
        sum_window<V, N>(c, filters, table, ids + p, sums);
        const F here = V::set(static_cast<float>(p));
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) {
            place[n] = V::where_less(most[n], sums[n], here, place[n]);
            most[n] = V::where_less(most[n], sums[n], sums[n], most[n]);
        }
    }
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
        const int at = f + n * V::lanes, left = filters.count - at;
        F y = V::add(most[n], V::load(filters.bias + at));
        y = c.tanh ? hyperbolic_tangent<V>(y) : V::max(y, V::set(0.0f));
        V::store_whole(places + n * V::lanes, place[n]);
        if (left >= V::lanes) {
            V::store(out + n * V::lanes, y);
        } else if (left > 0) {
            V::store_first(out + n * V::lanes, y, left);
        }
    }
}

template <class V, int N>
void learn_some_filters(const Convolution& c, const Filters& filters, int f, const LearningWords& w,
                        std::ptrdiff_t all_filters, float* out, std::int16_t* places) {
    for (int u = 0; u < w.words; ++u, out += all_filters, places += w.places_stride)
        first_largest<V, N>(c, filters, f, w.ids + u * w.ids_stride,
                            distinct_windows<V>(c, filters, w.lengths[u]), out + f, places + f);
}

template <class V>
std::ptrdiff_t count_filters(const Convolution& c) {
    std::ptrdiff_t count = 0;
    for (int i = 0; i < c.widths; ++i) count += c.filters[i].count;
    return count;
}

template <class V>
void learn_windows(const Convolution& c, const LearningWords& w) {
    const std::ptrdiff_t all_filters = count_filters<V>(c);
    float* out = w.outputs;
    std::int16_t* places = w.places;
    for (int i = 0; i < c.widths; ++i) {
        const Filters& filters = c.filters[i];
        int f = 0;
        for (; f + 4 * V::lanes <= filters.padded; f += 4 * V::lanes)
            learn_some_filters<V, 4>(c, filters, f, w, all_filters, out, places);
        for (; f < filters.padded; f += V::lanes)
            learn_some_filters<V, 1>(c, filters, f, w, all_filters, out, places);
        out += filters.count;
        places += filters.padded;
    }
}

/// The filters that go backward together.
constexpr int kBackwardFilters = 64;

/// From the gradients of a word's outputs to those of the biases and of the table, `count` filters.
template <class V>
void backward_word(const Convolution& c, const Filters& filters, const std::int16_t* ids, int count,
                   const float* gradient, const float* out, const std::int16_t* places,
                   float* biases, float* table) {
    float slope[kBackwardFilters];
    if (c.tanh) {
        for (int f = 0; f < count; ++f) slope[f] = gradient[f] * (1.0f - out[f] * out[f]);
    } else {
        for (int f = 0; f < count; ++f) slope[f] = out[f] > 0.0f ? gradient[f] : 0.0f;
    }
    // A rectifier lets half of the gradients pass, at random: no branch could guess which.
    int passing[kBackwardFilters], passed = 0;
    for (int f = 0; f < count; ++f) {
        biases[f] += slope[f];
        passing[passed] = f;
        passed += slope[f] != 0.0f;
    }
    for (int i = 0; i < passed; ++i) {
        const int f = passing[i];
        const std::int16_t* window = ids + places[f];
        float* row = table + f;
        for (int k = 0; k < filters.width; ++k, row += filters.padded)
            row[window[k] * c.table_stride] += slope[f];
    }
}

template <class V>
void backward_windows(const Convolution& c, const LearningWords& w, const float* gradients,
                      float* biases, float* table) {
    const std::ptrdiff_t all_filters = count_filters<V>(c);
    std::ptrdiff_t first = 0, first_place = 0;
    for (int i = 0; i < c.widths; ++i) {
        const Filters& filters = c.filters[i];
        for (int f = 0; f < filters.count; f += kBackwardFilters) {
            const int left = filters.count - f;
            const int count = left < kBackwardFilters ? left : kBackwardFilters;
            for (int u = 0; u < w.words; ++u) {
                const std::ptrdiff_t at = u * all_filters + first + f;
                backward_word<V>(c, filters, w.ids + u * w.ids_stride, count, gradients + at,
                                 w.outputs + at, w.places + u * w.places_stride + first_place + f,
                                 biases + first + f, table + filters.table + f);
            }
        }
        first += filters.count;
        first_place += filters.padded;
    }
}

}  // namespace elmokit
