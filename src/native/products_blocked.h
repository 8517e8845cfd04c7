// float32 products of many rows with deep panels, in blocks of k that stay in the first-level cache.
//
// `multiply` of products.h reads a whole panel for every tile of rows: from the second-level cache, if
// the sum is longer than about 250 products. Here, a block of the panel is multiplied with all tiles
// of a chunk of rows before the next block is touched, and the sums wait in a buffer meanwhile. The
// order of every sum, and so its bits, are those of products.h.
#pragma once

#include "kernels.h"
#include "products.h"

namespace elmokit {

/// Bytes of a block of weights: half of a first-level cache.
constexpr int kBlockBytes = 16384;

/// Tiles of rows that are multiplied with a block.
constexpr int kTilesPerChunk = 16;

/// Number of k in a block; divides kPiece.
template <class V>
constexpr int block_depth = kBlockBytes / (panel_width<V> * static_cast<int>(sizeof(float)));

/// Continues the sums of R rows over k from begin to end, within one piece. `sums` holds the sums of
/// the piece so far, `totals` those of the pieces before it.
template <class V, int R, Fetch fetch>
void tile_block(int count, const float* a, std::ptrdiff_t stride, const float* w, int begin, int end,
                bool ends_piece, Prefetch next, float* sums, float* totals) {
    if constexpr (R > 1) {
        if (count < R)
            return tile_block<V, R - 1, fetch>(count, a, stride, w, begin, end, ends_piece, next,
                                               sums, totals);
    }
    typename V::F s[R][kPanelVectors];
    const bool starts_piece = begin % kPiece == 0;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v)
            s[r][v] =
                starts_piece ? V::set(0.0f) : V::load(sums + r * panel_width<V> + v * V::lanes);
    add_all_products<V, R, fetch>(s, a + begin, stride, w, end - begin, next);
    const bool first_piece = begin < kPiece;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v) {
            const int at = r * panel_width<V> + v * V::lanes;
            if (!ends_piece)
                V::store(sums + at, s[r][v]);
            else
                V::store(totals + at,
                         first_piece ? s[r][v] : V::add(V::load(totals + at), s[r][v]));
        }
    }
}

/// Whether `multiply_blocked` is worth its buffers.
template <class V>
bool deep(const Panels& w, Span rows) {
    return w.values && w.depth > 2 * block_depth<V> && rows.end - rows.begin > 2 * V::rows;
}

/// Like `multiply`, for float32 weights.
template <class V, class Finish>
void multiply_blocked(const Rows& a, const Panels& w, Span panels, Span rows,
                      const Finish& finish) {
    static_assert(kPiece % block_depth<V> == 0);
    constexpr int chunk_rows = kTilesPerChunk * V::rows;
    alignas(kCacheLine) float sums[chunk_rows * panel_width<V>];
    alignas(kCacheLine) float totals[chunk_rows * panel_width<V>];
    for (int panel = panels.begin; panel < panels.end; ++panel) {
        const float* weights = w.values + std::ptrdiff_t{panel} * w.depth * panel_width<V>;
        for (int chunk = rows.begin; chunk < rows.end; chunk += chunk_rows) {
            const int count = rows.end - chunk < chunk_rows ? rows.end - chunk : chunk_rows;
            const int tiles = (count + V::rows - 1) / V::rows;
            const std::ptrdiff_t step = (panel_width<V> * sizeof(float) + tiles - 1) / tiles;
            auto compute = tile_block<V, V::rows, Fetch::each_step>;
            if constexpr (unroll<V> > 1) {
                if (unroll<V> * step <= kCacheLine)
                    compute = tile_block<V, V::rows, Fetch::each_round>;
            }
            for (int begin = 0; begin < w.depth; begin += block_depth<V>) {
                const int left = w.depth - begin;
                const int end = left < block_depth<V> ? w.depth : begin + block_depth<V>;
                const bool ends_piece = end == w.depth || end % kPiece == 0;
                const float* block = weights + std::ptrdiff_t{begin} * panel_width<V>;
                const char* next = reinterpret_cast<const char*>(
                    weights + std::ptrdiff_t{end} * panel_width<V>);
                for (int t = 0; t < tiles; ++t) {
                    const int first = count * t / tiles, last = count * (t + 1) / tiles;
                    compute(last - first, a.values + (chunk + first) * a.stride, a.stride, block,
                            begin, end, ends_piece, {next + t * step * block_depth<V>, step},
                            sums + first * panel_width<V>, totals + first * panel_width<V>);
                }
            }
            finish_rows<V>(finish, panel, {chunk, chunk + count}, totals);
        }
    }
}

/// Multiplies in blocks where that is faster. (Not for the gates of an LSTM: no gain was measured.)
template <class V, class Finish>
void multiply_any(const Rows& a, const Panels& w, Span panels, Span rows, const Finish& finish) {
    if (deep<V>(w, rows))
        multiply_blocked<V>(a, w, panels, rows, finish);
    else
        multiply<V>(a, w, panels, rows, finish);
}

}  // namespace elmokit
