// Products of activation rows with packed panels: the register tiles where nearly all time goes.
//
// `multiply` computes tiles of a few rows by one panel and hands each finished row to a function
// that does the rest (bias, gates, …) while it is in the cache. Every sum runs over k in order,
// piece by piece, in its own lane, so a row's result does not depend on the rows beside it. Knows nothing about what
// the products mean.
//
// Templates over an instruction set's `Vector` (vector_*.h), so that each instance carries the
// name of its instruction set: see the warning in kernels.h.
#pragma once

#include "kernels.h"

namespace elmokit {

template <class V>
constexpr int panel_width = kPanelVectors * V::lanes;

constexpr int kCacheLine = 64;

/// Weights are fetched into the cache before they are needed, in one of two ways. A panel that
/// meets few rows is read as fast as memory gives it (`Stream`): fetch what comes so many bytes
/// later. One that meets many rows leaves time to fetch a part of the next panel beside each tile.
constexpr int kStreamDistance = 4096;

/// The part of the next panel that a tile fetches: where it starts, and the bytes per step in k.
struct Ahead {
    const char* start;
    std::ptrdiff_t step;
};

/// Products that are summed one after another; longer sums are made of such pieces, in order. One
/// chain of thousands would lose a digit, and the pieces do not depend on the rows any more than k
/// does.
constexpr int kPiece = 256;

/// float32: tile[r][column] = sum over k of a[r][k] * w[k][column].
template <class V, int R, bool Stream>
void tile_products(const float* a, std::ptrdiff_t stride, const float* w, int depth, Ahead ahead,
                   float* tile) {
    for (int begin = 0; begin < depth; begin += kPiece) {
        const int end = depth - begin < kPiece ? depth : begin + kPiece;
        typename V::F sums[R][kPanelVectors];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = V::set(0.0f);

        for (int k = begin; k < end; ++k, w += panel_width<V>) {
            if constexpr (Stream) {
                constexpr int bytes = panel_width<V> * sizeof(float);
#pragma GCC unroll 4
                for (int line = 0; line < bytes; line += kCacheLine)
                    V::prefetch(reinterpret_cast<const char*>(w) + kStreamDistance + line);
            } else {
                V::prefetch(ahead.start + k * ahead.step);
            }
            typename V::F weights[kPanelVectors];
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v) weights[v] = V::load(w + v * V::lanes);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const typename V::F activation = V::set(a[r * stride + k]);
#pragma GCC unroll 4
                for (int v = 0; v < kPanelVectors; ++v)
                    sums[r][v] = V::fma(activation, weights[v], sums[r][v]);
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v) {
                float* there = tile + r * panel_width<V> + v * V::lanes;
                V::store(there, begin == 0 ? sums[r][v] : V::add(V::load(there), sums[r][v]));
            }
        }
    }
}

/// int8: the same in whole numbers, exact; then scaled back to floats.
template <class V, int R, bool Stream>
void tile_products(const Rows& rows, int first, const std::uint8_t* w, const float* w_scales,
                   int depth, Ahead ahead, float* tile) {
    using Activation = typename V::Activation;
    const auto* a = static_cast<const char*>(rows.codes) + first * rows.code_stride;
    typename V::I sums[R][kPanelVectors];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        const std::int32_t excess = V::code_bias * rows.sums[first + r];
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = V::set(-excess);
    }

    constexpr int vector_bytes = V::lanes * V::code_group;
    constexpr int bytes = kPanelVectors * vector_bytes;
    const int groups = (depth + V::code_group - 1) / V::code_group;
    for (int k = 0; k < groups; ++k, w += bytes) {
        if constexpr (Stream) {
#pragma GCC unroll 4
            for (int line = 0; line < bytes; line += kCacheLine)
                V::prefetch(w + kStreamDistance + line);
        } else {
            V::prefetch(ahead.start + k * ahead.step);
        }
        typename V::Codes weights[kPanelVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v) weights[v] = V::load_codes(w + v * vector_bytes);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const auto* row = reinterpret_cast<const Activation*>(a + r * rows.code_stride);
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v)
                V::dot(sums[r][v], weights[v], row + k * V::code_group);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        const typename V::F scale = V::set(rows.scales[first + r]);
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v) {
            const typename V::F scales = V::mul(scale, V::load(w_scales + v * V::lanes));
            V::store(tile + r * panel_width<V> + v * V::lanes,
                     V::mul(V::to_float(sums[r][v]), scales));
        }
    }
}

/// Calls the tile for `count` rows, 1 … R.
template <class V, int R, bool Stream>
void tile_of(int count, const Rows& rows, int first, const Panels& w, int panel, Ahead ahead,
             float* tile) {
    if constexpr (R > 1) {
        if (count < R) return tile_of<V, R - 1, Stream>(count, rows, first, w, panel, ahead, tile);
    }
    const std::ptrdiff_t width = panel_width<V>;
    if (w.codes) {
        const std::ptrdiff_t groups = (w.depth + V::code_group - 1) / V::code_group;
        const std::ptrdiff_t bytes = groups * V::code_group * width;
        tile_products<V, R, Stream>(rows, first, w.codes + panel * bytes,
                                    w.scales + panel * width, w.depth, ahead, tile);
    } else {
        tile_products<V, R, Stream>(rows.values + first * rows.stride, rows.stride,
                                    w.values + panel * w.depth * width, w.depth, ahead, tile);
    }
}

/// Multiplies the rows with the panels; calls finish(panel, row, products of the row).
template <class V, class Finish>
void multiply(const Rows& a, const Panels& w, Span panels, Span rows, const Finish& finish) {
    alignas(kCacheLine) float tile[V::rows * panel_width<V>];
    const int count = rows.end - rows.begin;
    const int tiles = (count + V::rows - 1) / V::rows;  // of equal size, give or take a row
    if (tiles == 0) return;

    const char* weights = w.codes ? reinterpret_cast<const char*>(w.codes)
                                  : reinterpret_cast<const char*>(w.values);
    const int group = w.codes ? V::code_group : 1;
    const std::ptrdiff_t steps = (w.depth + group - 1) / group;
    const std::ptrdiff_t step_bytes = panel_width<V> * (w.codes ? group : sizeof(float));
    const std::ptrdiff_t ahead_step = (step_bytes + tiles - 1) / tiles;
    const bool stream = ahead_step > kCacheLine;

    for (int panel = panels.begin; panel < panels.end; ++panel) {
        const int next = panel + 1 < panels.end ? panel + 1 : panels.begin;
        for (int t = 0; t < tiles; ++t) {
            const int first = rows.begin + count * t / tiles;
            const int last = rows.begin + count * (t + 1) / tiles;
            const Ahead ahead{weights + (next * step_bytes + t * ahead_step) * steps, ahead_step};
            if (stream)
                tile_of<V, V::rows, true>(last - first, a, first, w, panel, ahead, tile);
            else
                tile_of<V, V::rows, false>(last - first, a, first, w, panel, ahead, tile);
            for (int row = first; row < last; ++row)
                finish(panel, row, tile + (row - first) * panel_width<V>);
        }
    }
}

}  // namespace elmokit
