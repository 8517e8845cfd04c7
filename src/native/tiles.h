// Products of bfloat16 for training, in tiles of 16 rows by 32 values; see `TileKernels`.
//
// Templates over an instruction set's `Vector`, like products.h.
#pragma once

#include "kernels.h"
#include "nonlinear.h"
#include "products.h"
#include "products_tiled.h"

namespace elmokit {

/// Conversions of floats to bfloat16, and of bfloat16 to pairs.
template <class V>
struct Halves {
    using U = typename Pairs<V>::Vector;

    /// Rounds to the nearest bfloat16, the even one of two equally near, in the upper halves of the
    /// lanes. NaN stays NaN, and infinity stays infinity.
    static U round(typename V::F x) {
        const U bits = (U)x;
        const U rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
        const U nan = (U)((bits & 0x7fffffffu) > 0x7f800000u);
        return ((rounded & ~nan) | (0x7fc00000u & nan)) & 0xffff0000u;
    }
    /// Rounds and stores.
    static void store(std::uint16_t* p, typename V::F x) {
        if constexpr (PairProducts<V>::exist) {
            PairProducts<V>::round(x, p);
        } else {
            const U upper = round(x);
            for (int lane = 0; lane < V::lanes; ++lane)
                p[lane] = static_cast<std::uint16_t>(upper[lane] >> 16);
        }
    }
    /// Stores pairs of one value of each row.
    static void interleave(const std::uint16_t* first, const std::uint16_t* second,
                           std::uint16_t* to) {
        for (int lane = 0; lane < V::lanes; ++lane) {
            const std::uint32_t pair = first[lane] | (std::uint32_t{second[lane]} << 16);
            __builtin_memcpy(to + 2 * lane, &pair, sizeof pair);
        }
    }
    static void store_pairs(std::uint16_t* p, U pairs) { __builtin_memcpy(p, &pairs, sizeof pairs); }
};

template <class V>
void begin_tiles() {
    Tiles<V>::begin();
}

template <class V>
void end_tiles() {
    V::fence();
    Tiles<V>::end();
}

/// Rounds rows of floats.
template <class V>
void round_to_tiles(const float* from, std::ptrdiff_t from_stride, int rows, int columns,
                    std::uint16_t* to, std::ptrdiff_t to_stride) {
    for (int row = 0; row < rows; ++row, from += from_stride, to += to_stride) {
        int i = 0;
        for (; i + V::lanes <= columns; i += V::lanes)
            Halves<V>::store(to + i, V::load(from + i));
        if (i < columns) {
            float values[V::lanes] = {};
            std::uint16_t codes[V::lanes];
            for (int k = 0; i + k < columns; ++k) values[k] = from[i + k];
            Halves<V>::store(codes, V::load(values));
            for (int k = 0; i + k < columns; ++k) to[i + k] = codes[k];
        }
    }
}

/// Packs a matrix of `rows` rows, which the product sums over.
template <class V>
void pack_tile_rows(const float* from, int rows, int columns, const TileLayout& layout,
                    std::uint16_t* to) {
    const int per_group = columns / layout.groups;
    const int tiles = layout.groups * ((per_group + kTileRows - 1) / kTileRows);
    for (int tile = 0; tile < tiles; ++tile) {
        const int group = tile % layout.groups, first = tile / layout.groups * kTileRows;
        const int count = per_group - first < kTileRows ? per_group - first : kTileRows;
        const float* source = from + group * per_group + first;
        std::uint16_t* out = to + (std::ptrdiff_t{tile} * layout.depth + layout.first) * kTileValues;
        for (int k = 0; k < rows; k += 2, out += 2 * kTileRows) {
            const float* row = source + std::ptrdiff_t{k} * columns;
            float pair[2][kTileRows];
            for (int n = 0; n < 2; ++n)
                for (int c = 0; c < kTileRows; ++c)
                    pair[n][c] =
                        c < count && k + n < rows ? row[n * std::ptrdiff_t{columns} + c] : 0.0f;
            for (int v = 0; v < kTileRows; v += V::lanes)
                Halves<V>::store_pairs(out + 2 * v,
                                       (Halves<V>::round(V::load(pair[0] + v)) >> 16) |
                                           Halves<V>::round(V::load(pair[1] + v)));
        }
    }
}

/// Packs the transpose of a matrix of `rows` rows; the product sums over its columns.
template <class V>
void pack_tile_columns(const float* from, int rows, int columns, const TileLayout& layout,
                       std::uint16_t* to) {
    const int per_group = columns / layout.groups;
    const int pieces = layout.groups * ((per_group + kTileRows - 1) / kTileRows);
    for (int row = 0; row < rows; ++row) {
        const float* source = from + std::ptrdiff_t{row} * columns;
        std::uint16_t* tile = to + std::ptrdiff_t{row / kTileRows} * layout.depth * kTileValues +
                              row % kTileRows * 2;
        for (int piece = 0; piece < pieces; ++piece) {
            const int group = piece % layout.groups, first = piece / layout.groups * kTileRows;
            const int count = per_group - first < kTileRows ? per_group - first : kTileRows;
            const float* values = source + group * per_group + first;
            std::uint16_t codes[kTileRows];
            round_to_tiles<V>(values, 0, 1, count, codes, 0);
            for (int c = count; c < kTileRows; ++c) codes[c] = 0;
            // A piece is half as deep as a tile.
            std::uint16_t* out = tile + (layout.first + piece / 2) * kTileValues +
                                 piece % 2 * (kTileValues / 2);
            for (int c = 0; c < kTileRows; c += 2)
                __builtin_memcpy(out + c * kTileRows, codes + c, 2 * sizeof(std::uint16_t));
        }
    }
}

/// Packs a panel of kTileGroup columns of tiles from rows of bfloat16, which the product sums over.
template <class V>
void pack_tile_panel(const std::uint16_t* from, std::ptrdiff_t stride, int depth,
                     std::uint16_t* to) {
    for (int tile = 0; tile < kTileGroup; ++tile, from += kTileRows) {
        const std::uint16_t* row = from;
        for (int k = 0; k < depth * kTileDepth; k += 2, row += 2 * stride, to += 2 * kTileRows)
            for (int v = 0; v < kTileRows; v += V::lanes)
                Halves<V>::interleave(row + v, row + stride + v, to + 2 * v);
    }
}

/// Transposes rows of bfloat16, and fills the rows of the result with zeros up to `padded`.
template <class V>
void transpose_tiles(const std::uint16_t* from, std::ptrdiff_t stride, int rows, int columns,
                     std::uint16_t* to, int padded) {
    constexpr int block = 32;  // values of a cache line
    for (int c0 = 0; c0 < columns; c0 += block) {
        const int count = columns - c0 < block ? columns - c0 : block;
        for (int r0 = 0; r0 < padded; r0 += block) {
            alignas(64) std::uint16_t values[block][block];
            for (int r = 0; r < block; ++r) {
                const bool inside = r0 + r < rows;
                const std::uint16_t* source = from + (r0 + r) * stride + c0;
                for (int c = 0; c < count; ++c) values[c][r] = inside ? source[c] : 0;
            }
            for (int c = 0; c < count; ++c)
                __builtin_memcpy(to + std::ptrdiff_t{c0 + c} * padded + r0, values[c],
                                 sizeof values[c]);
        }
    }
}

/// Multiplies rows with packed weights; calls finish(row, count, tile, products) for every group of
/// results: `count` rows by the kTileGroup columns of tiles that begin with `tile`; kGroupColumns
/// products per row.
template <class V, class Finish>
void multiply_tiles(const TileRows& a, int rows, const TileWeights& w, const Finish& finish) {
    alignas(kCacheLine) float c[2 * kTileRows * kGroupColumns];
    const std::ptrdiff_t column = w.depth * kTileValues;
    for (int tile = 0; tile < w.tiles; tile += kTileGroup) {
        for (int row = 0; row < rows; row += 2 * kTileRows) {
            const int left = rows - row, count = left < 2 * kTileRows ? left : 2 * kTileRows;
            Tiles<V>::multiply(a.values + row * a.stride, a.stride, count,
                               {w.values + tile * column, 2 * kTileRows, column, w.depth, nullptr}, c);
            finish(row, count, tile, c);
        }
    }
}

/// Writes, or adds, clip(a · w + bias).
template <class V>
void tile_product(const TileRows& a, int rows, const TileWeights& w, const TileOut& out) {
    multiply_tiles<V>(a, rows, w, [&](int row, int count, int tile, const float* c) {
        for (int t = 0; t < kTileGroup; ++t) {
            const int left = out.columns - (tile + t) * kTileRows;
            if (left <= 0) return;
            const float* bias = out.bias ? out.bias + (tile + t) * kTileRows : nullptr;
            for (int r = 0; r < count; ++r) {
                const float* from = c + r * kGroupColumns + t * kTileRows;
                float* to = out.values + (row + r) * out.row_stride + (tile + t) * out.tile_stride;
                if (left >= kTileRows) {
                    for (int v = 0; v < kTileRows; v += V::lanes) {
                        typename V::F x = V::load(from + v);
                        if (bias) x = V::add(x, V::load(bias + v));
                        if (out.add) x = V::add(x, V::load(to + v));
                        V::store(to + v, clamp<V>(x, out.clip));
                    }
                } else {
                    for (int i = 0; i < left; ++i) {
                        float x = from[i];
                        if (bias) x += bias[i];
                        if (out.add) x += to[i];
                        to[i] = x > out.clip ? out.clip : x < -out.clip ? -out.clip : x;
                    }
                }
            }
        }
    });
}

/// The values of the gates of an LSTM.
template <class V>
struct GateValues {
    typename V::F i, j, f, o;
};

/// Returns sigmoid(i), tanh(j), sigmoid(f) and sigmoid(o) with one division. The denominators are at
/// most 1 + e^20, so that the product of all four is finite.
template <class V>
GateValues<V> activate(typename V::F i, typename V::F j, typename V::F f, typename V::F o) {
    using F = typename V::F;
    const F one = V::set(1.0f);
    const auto exp_minus = [](F x, float factor) {
        return exponential<V>(clamp<V>(x, 20.0f / factor), -factor);
    };
    const F ej = exp_minus(j, 2);
    const F di = V::add(one, exp_minus(i, 1)), dj = V::add(one, ej);
    const F df = V::add(one, exp_minus(f, 1)), d_o = V::add(one, exp_minus(o, 1));
    const F ij = V::mul(di, dj), fo = V::mul(df, d_o), inverse = V::div(one, V::mul(ij, fo));
    const F by_ij = V::mul(inverse, fo), by_fo = V::mul(inverse, ij);  // 1 / ij, 1 / fo
    return {V::mul(by_ij, dj), V::mul(V::sub(one, ej), V::mul(by_ij, di)), V::mul(by_fo, d_o),
            V::mul(by_fo, df)};
}

/// Forward pass of a step of an LSTM. A group of four tiles has the gates i, j, f, o of 16 units.
template <class V>
void tile_cells(const TileRows& a, int rows, const TileWeights& w, const TileCells& step) {
    using F = typename V::F;
    // The gates are not read before the backward pass: they need no place in the cache.
    const bool aligned = reinterpret_cast<std::uintptr_t>(step.gates) % kCacheLine == 0;
    const auto store_once = [aligned](float* p, F x) { aligned ? V::stream(p, x) : V::store(p, x); };
    multiply_tiles<V>(a, rows, w, [&](int row, int count, int tile, const float* c) {
        const std::ptrdiff_t unit = tile / kTileGroup * kTileRows;
        if (unit >= step.units) return;
        for (int v = 0; v < kTileRows; v += V::lanes) {
            const float* bias = step.bias + tile * kTileRows + v;
            const F bi = V::load(bias), bj = V::load(bias + kTileRows);
            const F bf = V::add(V::load(bias + 2 * kTileRows), V::set(kForgetBias));
            const F bo = V::load(bias + 3 * kTileRows);
            for (int r = 0; r < count; ++r) {
                const auto sum = [&](int gate, F bias) {
                    return V::add(V::load(c + r * kGroupColumns + gate * kTileRows + v), bias);
                };
                const std::ptrdiff_t at = (row + r) * std::ptrdiff_t{step.units} + unit + v;
                float* gates = step.gates + unit * 4 * rows +
                               (row + r) * std::ptrdiff_t{kTileGroup} * kTileRows + v;
                const auto [i, j, f, o] = activate<V>(sum(0, bi), sum(1, bj), sum(2, bf), sum(3, bo));
                store_once(gates, i);
                store_once(gates + kTileRows, j);
                store_once(gates + 2 * kTileRows, f);
                store_once(gates + 3 * kTileRows, o);
                const F cell =
                    clamp<V>(V::fma(f, V::load(step.before + at), V::mul(i, j)), step.clip);
                V::store(step.cells + at, cell);
                Halves<V>::store(step.outputs + (row + r) * step.output_stride + unit + v,
                                 V::mul(o, hyperbolic_tangent<V>(cell)));
            }
        }
    });
}

/// Backward pass of such a step: the products are the gradients of its outputs.
template <class V>
void tile_backward_cells(const TileRows& a, int rows, const TileWeights& w,
                         const TileBackwardCells& step) {
    using F = typename V::F;
    multiply_tiles<V>(a, rows, w, [&](int row, int count, int tile, const float* c) {
        const F one = V::set(1.0f), zero = V::set(0.0f), clip = V::set(step.clip);
        for (int t = 0; t < kTileGroup; ++t) {
            const std::ptrdiff_t unit = std::ptrdiff_t{tile + t} * kTileRows;
            if (unit >= step.units) return;
            for (int v = 0; v < kTileRows; v += V::lanes) {
                float* d_bias = step.d_bias + unit * 4 + v;
                F si = V::load(d_bias), sj = V::load(d_bias + kTileRows);
                F sf = V::load(d_bias + 2 * kTileRows), so = V::load(d_bias + 3 * kTileRows);
                for (int r = 0; r < count; ++r) {
                    const std::ptrdiff_t at = (row + r) * std::ptrdiff_t{step.units} + unit + v;
                    const float* gates = step.gates + unit * 4 * rows +
                                         (row + r) * std::ptrdiff_t{kTileGroup} * kTileRows + v;
                    const F i = V::load(gates), j = V::load(gates + kTileRows);
                    const F f = V::load(gates + 2 * kTileRows), o = V::load(gates + 3 * kTileRows);
                    const F cell = V::load(step.cells + at), before = V::load(step.before + at);
                    const F m = V::load(c + r * kGroupColumns + t * kTileRows + v);
                    const F th = hyperbolic_tangent<V>(cell);
                    const F through = V::mul(V::mul(m, o), V::sub(one, V::mul(th, th)));
                    const F d =
                        V::where_less(V::abs(cell), clip,
                                      V::add(through, V::load(step.d_cells + at)), zero);
                    const F di = V::mul(V::mul(d, j), V::mul(i, V::sub(one, i)));
                    const F dj = V::mul(V::mul(d, i), V::sub(one, V::mul(j, j)));
                    const F df = V::mul(V::mul(d, before), V::mul(f, V::sub(one, f)));
                    const F d_o = V::mul(V::mul(m, th), V::mul(o, V::sub(one, o)));
                    std::uint16_t* out =
                        step.d_gates + (row + r) * step.d_gate_stride + unit * 4 + v;
                    Halves<V>::store(out, di);
                    Halves<V>::store(out + kTileRows, dj);
                    Halves<V>::store(out + 2 * kTileRows, df);
                    Halves<V>::store(out + 3 * kTileRows, d_o);
                    V::store(step.d_cells + at, V::mul(d, f));
                    si = V::add(si, di);
                    sj = V::add(sj, dj);
                    sf = V::add(sf, df);
                    so = V::add(so, d_o);
                }
                V::store(d_bias, si);
                V::store(d_bias + kTileRows, sj);
                V::store(d_bias + 2 * kTileRows, sf);
                V::store(d_bias + 3 * kTileRows, so);
            }
        }
    });
}

/// d = d_outputs + d_hidden where the outputs were not clipped, else 0; rounded.
template <class V>
void tile_backward_clip(const float* outputs, const float* d_outputs, const float* d_hidden,
                        int rows, int columns, float clip, std::uint16_t* to,
                        std::ptrdiff_t to_stride) {
    const typename V::F bound = V::set(clip), zero = V::set(0.0f);
    for (int row = 0; row < rows; ++row, to += to_stride) {
        const std::ptrdiff_t start = row * std::ptrdiff_t{columns};
        int i = 0;
        for (; i + V::lanes <= columns; i += V::lanes) {
            const std::ptrdiff_t at = start + i;
            const typename V::F d = V::add(V::load(d_outputs + at), V::load(d_hidden + at));
            Halves<V>::store(to + i, V::where_less(
                                         V::abs(V::load(outputs + at)), bound, d, zero));
        }
        for (; i < columns; ++i) {
            const std::ptrdiff_t at = start + i;
            const float y = outputs[at];
            const float d = y < clip && -y < clip ? d_outputs[at] + d_hidden[at] : 0.0f;
            round_to_tiles<V>(&d, 0, 1, 1, to + i, 0);
        }
    }
}

}  // namespace elmokit
