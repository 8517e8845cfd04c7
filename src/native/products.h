// Products of activation rows with packed panels: the register tiles, where nearly all time is
// spent.
//
// `multiply` computes tiles of a few rows by one panel and passes each finished row to a function
// that does the rest (bias, gates, …) while it is in the cache. Every sum runs over k in order,
// piece by piece, in a lane of its own, so the result of a row does not depend on other rows. Knows
// nothing about the meaning of the products.
//
// Everything is a template over an instruction set's `Vector` (vector_*.h), so that the symbols of
// different instruction sets differ: see the warning in kernels.h.
#pragma once

#include "kernels.h"
#include "pairs.h"
#include "products_i8mm.h"
#include "products_tiled.h"

namespace elmokit {

template <class V>
constexpr int panel_width = kPanelVectors * V::lanes;

/// How weights are prefetched into the cache. A panel that is multiplied with few rows is streamed
/// from memory: each load prefetches the weights kStreamDistance bytes ahead. A panel that is
/// multiplied with many rows leaves time to prefetch a part of the next panel with each tile: in each
/// step in k, or in each round of the inner loop if it needs no more than one cache line.
enum class Fetch { stream, each_step, each_round };
constexpr int kStreamDistance = 4096;

/// Steps in k of a round of the inner loop. Where a step has few products, the other instructions of a
/// loop count (measured on a busy machine; see docs/decisions.md).
template <class V>
constexpr int unroll = V::rows < kPanelVectors ? 4 : 1;

/// The part of the next panel that a tile prefetches: where it starts, and the bytes per step in k.
struct Prefetch {
    const char* start;
    std::ptrdiff_t step;
};

/// Calls `step(k)` for k from 0 to steps - 1, in rounds of `size` steps, and prefetches meanwhile.
template <class V, Fetch fetch, int size, class Step>
[[gnu::always_inline]] inline void in_rounds(int steps, Prefetch prefetch, const Step& step) {
    const char* next = prefetch.start;
    const auto prefetch_and_step = [&](int k) __attribute__((always_inline)) {
        if constexpr (fetch == Fetch::each_step) {
            V::prefetch(next);
            next += prefetch.step;
        }
        step(k);
    };
    int k = 0;
    for (; k + size <= steps; k += size) {
        if constexpr (fetch == Fetch::each_round) {
            V::prefetch(next);
            next += size * prefetch.step;
        }
#pragma GCC unroll 4
        for (int i = 0; i < size; ++i) prefetch_and_step(k + i);
    }
#pragma GCC unroll 1
    for (; k < steps; ++k) prefetch_and_step(k);
}

/// Prefetches the weights of a step that is kStreamDistance ahead, if they are streamed.
template <class V, Fetch fetch, int bytes>
[[gnu::always_inline]] inline void prefetch_stream(const void* w) {
    if constexpr (fetch == Fetch::stream)
#pragma GCC unroll 4
        for (int line = 0; line < bytes; line += kCacheLine)
            V::prefetch(static_cast<const char*>(w) + kStreamDistance + line);
}

/// Number of products that are summed in one chain; longer sums add up such pieces, in order. A
/// single chain of thousands would lose a digit. The pieces depend on k only, never on the rows.
constexpr int kPiece = 256;

/// Adds the products of one step in k to the sums: a[r] * w[column]. The factors of which there are
/// fewer are held in registers, the others are loaded one by one.
template <class V, int R>
[[gnu::always_inline]] inline void add_products(typename V::F (&sums)[R][kPanelVectors],
                                                const float* a, std::ptrdiff_t stride,
                                                const float* w) {
    if constexpr (R < kPanelVectors) {
        typename V::F activations[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) activations[r] = V::set(a[r * stride]);
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v) {
            const typename V::F weight = V::load(w + v * V::lanes);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) sums[r][v] = V::fma(activations[r], weight, sums[r][v]);
        }
    } else {
        typename V::F weights[kPanelVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v) weights[v] = V::load(w + v * V::lanes);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const typename V::F activation = V::set(a[r * stride]);
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v)
                sums[r][v] = V::fma(activation, weights[v], sums[r][v]);
        }
    }
}

/// Adds the products of consecutive steps.
template <class V, int R, Fetch fetch>
[[gnu::always_inline]] inline void add_all_products(typename V::F (&sums)[R][kPanelVectors],
                                                    const float* a, std::ptrdiff_t stride,
                                                    const float* w, int steps, Prefetch prefetch) {
    in_rounds<V, fetch, unroll<V>>(steps, prefetch, [&](int k) __attribute__((always_inline)) {
        prefetch_stream<V, fetch, panel_width<V> * sizeof(float)>(w);
        add_products<V, R>(sums, a + k, stride, w);
        w += panel_width<V>;
    });
}

/// float32: tile[r][column] = sum over k of a[r][k] * w[k][column].
template <class V, int R, Fetch fetch>
void tile_products(const float* a, std::ptrdiff_t stride, const float* w, int depth,
                   Prefetch prefetch, float* tile) {
    for (int begin = 0; begin < depth; begin += kPiece) {
        const int end = depth - begin < kPiece ? depth : begin + kPiece;
        typename V::F sums[R][kPanelVectors];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = V::set(0.0f);

        add_all_products<V, R, fetch>(sums, a + begin, stride, w, end - begin,
                                      {prefetch.start + begin * prefetch.step, prefetch.step});
        w += std::ptrdiff_t{end - begin} * panel_width<V>;
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v) {
                float* target = tile + r * panel_width<V> + v * V::lanes;
                V::store(target, begin == 0 ? sums[r][v] : V::add(V::load(target), sums[r][v]));
            }
        }
    }
}

/// Vectors of a panel whose int8 products are summed at a time. Where weights are widened to 16 bits,
/// the sums of a whole panel, its weights and a product do not fit into 16 registers.
template <class V>
constexpr int kCodeVectors = V::code_group == 2 && V::rows == 3 ? 2 : kPanelVectors;

/// int8: the same in integers, exactly; then scaled back to floats.
template <class V, int R, Fetch fetch>
void tile_products(const Rows& rows, int first, const std::uint8_t* w, const float* w_scales,
                   int depth, Prefetch prefetch, float* tile) {
    if constexpr (V::code_group == 8)
        return row_pair_products<V, R, fetch == Fetch::stream>(
            rows, first, w, w_scales, depth, prefetch.start, prefetch.step, tile);
    using Activation = typename V::Activation;
    const auto* a = static_cast<const char*>(rows.codes) + first * rows.code_stride;
    constexpr int vector_bytes = V::lanes * V::code_group;
    constexpr int bytes = kPanelVectors * vector_bytes;
    constexpr int N = kCodeVectors<V>;
    // Compilers add the integers of several steps in an order of their own: of four, the sums would not
    // fit into the registers.
    constexpr int size = fetch != Fetch::stream && unroll<V> > 2 ? 2 : unroll<V>;
    const int groups = (depth + V::code_group - 1) / V::code_group;
    for (int part = 0; part < kPanelVectors; part += N) {
        typename V::I sums[R][N];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const std::int32_t excess = V::code_bias * rows.sums[first + r];
#pragma GCC unroll 4
            for (int v = 0; v < N; ++v) sums[r][v] = V::set(-excess);
        }
        const std::uint8_t* p = w + part * vector_bytes;
        in_rounds<V, fetch, size>(groups, prefetch, [&](int k) __attribute__((always_inline)) {
            // The first part prefetches for all of them.
            if (N == kPanelVectors || part == 0) prefetch_stream<V, fetch, bytes>(p);
            typename V::Codes weights[N];
#pragma GCC unroll 4
            for (int v = 0; v < N; ++v) weights[v] = V::load_codes(p + v * vector_bytes);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                const auto* row = reinterpret_cast<const Activation*>(a + r * rows.code_stride);
#pragma GCC unroll 4
                for (int v = 0; v < N; ++v)
                    V::dot(sums[r][v], weights[v], row + k * V::code_group);
            }
            p += bytes;
        });
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const typename V::F scale = V::set(rows.scales[first + r]);
#pragma GCC unroll 4
            for (int v = 0; v < N; ++v) {
                const int column = (part + v) * V::lanes;
                const typename V::F scales = V::mul(scale, V::load(w_scales + column));
                V::store(tile + r * panel_width<V> + column,
                         V::mul(V::to_float(sums[r][v]), scales));
            }
        }
    }
}

/// bfloat16: products of R rows with P adjacent panels, tile[r][p][column]. Without instructions for
/// bfloat16 the sums have the order of float32, and so its bits for the same (rounded) weights.
template <class V, int R, int P, Fetch fetch>
void pair_products(const Rows& rows, int first, const std::uint16_t* w, int depth,
                   Prefetch prefetch, float* tile) {
    constexpr int step = 2 * panel_width<V>;  // values of a panel for two consecutive k
    const std::ptrdiff_t panel = std::ptrdiff_t{(depth + 1) / 2} * step;
    const float* a = rows.values + first * rows.stride;
    const auto* codes = static_cast<const char*>(rows.codes) + first * rows.code_stride;
    for (int begin = 0; begin < depth; begin += kPiece) {
        const int end = depth - begin < kPiece ? depth : begin + kPiece;
        typename V::F sums[R][P * kPanelVectors];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < P * kPanelVectors; ++v) sums[r][v] = V::set(0.0f);

        const Prefetch next{prefetch.start + begin / 2 * prefetch.step, prefetch.step};
        const int pairs = (end - begin + 1) / 2;
        in_rounds<V, fetch, unroll<V>>(pairs, next, [&](int pair) __attribute__((always_inline)) {
            const int k = begin + 2 * pair;
#pragma GCC unroll 2
            for (int p = 0; p < P; ++p)
                prefetch_stream<V, fetch, step * sizeof(std::uint16_t)>(w + p * panel);
            const auto weights = [&](int v) {
                return w + v / kPanelVectors * panel + v % kPanelVectors * 2 * V::lanes;
            };
            if constexpr (PairProducts<V>::exist) {
#pragma GCC unroll 8
                for (int v = 0; v < P * kPanelVectors; ++v) {
                    const auto pairs = Pairs<V>::load(weights(v));
#pragma GCC unroll 8
                    for (int r = 0; r < R; ++r)
                        PairProducts<V>::dot(
                            sums[r][v], pairs,
                            reinterpret_cast<const std::uint16_t*>(codes + r * rows.code_stride) +
                                k);
                }
            } else {
                typename V::F activations[R];
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) activations[r] = V::set(a[r * rows.stride + k]);
#pragma GCC unroll 8
                for (int v = 0; v < P * kPanelVectors; ++v) {
                    const typename V::F weight = Pairs<V>::load_first(weights(v));
#pragma GCC unroll 8
                    for (int r = 0; r < R; ++r)
                        sums[r][v] = V::fma(activations[r], weight, sums[r][v]);
                }
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) activations[r] = V::set(a[r * rows.stride + k + 1]);
#pragma GCC unroll 8
                for (int v = 0; v < P * kPanelVectors; ++v) {
                    const typename V::F weight = Pairs<V>::load_second(weights(v));
#pragma GCC unroll 8
                    for (int r = 0; r < R; ++r)
                        sums[r][v] = V::fma(activations[r], weight, sums[r][v]);
                }
            }
            w += step;
        });
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
            for (int v = 0; v < P * kPanelVectors; ++v) {
                float* target = tile + (r * P * kPanelVectors + v) * V::lanes;
                V::store(target, begin == 0 ? sums[r][v] : V::add(V::load(target), sums[r][v]));
            }
        }
    }
}

/// Computes a tile of `count` rows, 1 to R.
template <class V, int R, Fetch fetch>
void tile_of(int count, const Rows& rows, int first, const Panels& w, int panel, Prefetch prefetch,
             float* tile) {
    if constexpr (R > 1) {
        if (count < R)
            return tile_of<V, R - 1, fetch>(count, rows, first, w, panel, prefetch, tile);
    }
    const std::ptrdiff_t width = panel_width<V>;
    if (w.codes) {
        const std::ptrdiff_t groups = (w.depth + V::code_group - 1) / V::code_group;
        const std::ptrdiff_t bytes = groups * V::code_group * width;
        tile_products<V, R, fetch>(rows, first, w.codes + panel * bytes, w.scales + panel * width,
                                   w.depth, prefetch, tile);
    } else if (w.pairs) {
        const std::ptrdiff_t values = std::ptrdiff_t{(w.depth + 1) / 2} * 2 * width;
        pair_products<V, R, 1, fetch>(rows, first, w.pairs + panel * values, w.depth, prefetch,
                                      tile);
    } else {
        tile_products<V, R, fetch>(rows.values + first * rows.stride, rows.stride,
                                   w.values + std::ptrdiff_t{panel} * w.depth * width, w.depth,
                                   prefetch, tile);
    }
}

/// bfloat16: multiplies a single row with two panels at a time, as long as there are two: the sums of
/// one panel would wait for each other. Returns the first panel that is left.
template <class V, class Finish>
int multiply_row(const Rows& a, const Panels& w, Span panels, int row, float* tile,
                 const Finish& finish) {
    static_assert(V::rows >= 2);
    const std::ptrdiff_t values = std::ptrdiff_t{(w.depth + 1) / 2} * 2 * panel_width<V>;
    int panel = panels.begin;
    for (; panel + 1 < panels.end; panel += 2) {
        pair_products<V, 1, 2, Fetch::stream>(a, row, w.pairs + panel * values, w.depth, {}, tile);
        finish_rows<V>(finish, panel, {row, row + 1}, tile);
        finish_rows<V>(finish, panel + 1, {row, row + 1}, tile + panel_width<V>);
    }
    return panel;
}

/// Tiles of rows whose products wait for finish_rows: few enough to stay in the first-level cache.
constexpr int kTilesPerFinish = 6;

/// Multiplies the rows with the panels, and passes the products to finish_rows.
template <class V, class Finish>
void multiply(const Rows& a, const Panels& w, Span panels, Span rows, const Finish& finish) {
    if constexpr (Tiles<V>::always) {
        if (w.pairs && w.depth % kTileDepth == 0)
            return multiply_panels<V>(a, w, panels, rows, finish);
    }
    alignas(kCacheLine) float products[kTilesPerFinish * V::rows * panel_width<V>];
    const int count = rows.end - rows.begin;
    // Widening bfloat16 takes a register: with 16 of them, the sums of three rows do not fit.
    const int most = w.pairs && !PairProducts<V>::exist && V::rows == 3 ? 2 : V::rows;
    const int tiles = (count + most - 1) / most;  // their sizes differ by at most one row
    if (tiles == 0) return;
    if (w.pairs && count == 1) {
        panels.begin = multiply_row<V>(a, w, panels, rows.begin, products, finish);
        if (panels.begin == panels.end) return;
    }

    const char* weights = w.codes   ? reinterpret_cast<const char*>(w.codes)
                          : w.pairs ? reinterpret_cast<const char*>(w.pairs)
                                    : reinterpret_cast<const char*>(w.values);
    const int group = w.codes ? V::code_group : w.pairs ? 2 : 1;
    const std::ptrdiff_t steps = (w.depth + group - 1) / group;
    const std::ptrdiff_t step_bytes = panel_width<V> * (w.codes ? group : sizeof(float));
    const std::ptrdiff_t prefetch_step = (step_bytes + tiles - 1) / tiles;
    auto compute = tile_of<V, V::rows, Fetch::each_step>;
    if (prefetch_step > kCacheLine) compute = tile_of<V, V::rows, Fetch::stream>;
    if constexpr (unroll<V> > 1) {
        if (unroll<V> * prefetch_step <= kCacheLine)
            compute = tile_of<V, V::rows, Fetch::each_round>;
    }

    for (int panel = panels.begin; panel < panels.end; ++panel) {
        const int next = panel + 1 < panels.end ? panel + 1 : panels.begin;
        int finished = rows.begin;
        for (int t = 0; t < tiles; ++t) {
            const int first = rows.begin + static_cast<int>(std::ptrdiff_t{count} * t / tiles);
            const int last = rows.begin + static_cast<int>(std::ptrdiff_t{count} * (t + 1) / tiles);
            const Prefetch prefetch{weights + (next * step_bytes + t * prefetch_step) * steps,
                                    prefetch_step};
            float* const tile = products + (first - finished) * panel_width<V>;
            compute(last - first, a, first, w, panel, prefetch, tile);
            if ((t + 1) % kTilesPerFinish == 0 || t + 1 == tiles) {
                finish_rows<V>(finish, panel, {finished, last}, products);
                finished = last;
            }
        }
    }
}

}  // namespace elmokit
