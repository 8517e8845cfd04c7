// Products of bfloat16 by tiles of 16 rows, as Intel's AMX computes them.
//
// `Tiles<V>` multiplies tiles by ordinary instructions, in the order of AMX, to the same bits (where
// multiplications and additions are fused); vector_amx.h has the instructions themselves.
#pragma once

#include "kernels.h"
#include "pairs.h"

namespace elmokit {

/// Columns of a group of tiles.
constexpr int kGroupColumns = kTileGroup * kTileRows;

/// With few rows, weights are fetched so many bytes ahead.
constexpr int kTileStreamDistance = 16384;

/// Columns of tiles of weights, whose pairs of consecutive k are adjacent.
struct TileColumns {
    const std::uint16_t* values;
    std::ptrdiff_t row;     // from two k to the next two, in values
    std::ptrdiff_t column;  // from a column of tiles to the next one
    int depth;              // in tiles
    const char* next = nullptr;  // weights to fetch from memory meanwhile: one group as deep as this
};

/// Per tile, the products of the even k and those of the odd k are summed separately, then added to
/// the result.
template <class V>
struct Tiles {
    /// Whether the network in use, not only in training, multiplies by tiles.
    static constexpr bool always = false;

    /// Prepares the tiles of this thread, and frees them.
    static void begin() {}
    static void end() {}

    /// c[count][kGroupColumns] = a · a group of columns of tiles, for 1 to 2 * kTileRows rows.
    static void multiply(const std::uint16_t* a, std::ptrdiff_t a_stride, int count,
                         const TileColumns& b, float* c) {
        constexpr int parts = kTileRows / V::lanes;
        for (int row = 0; row < count; ++row) {
            for (int tile = 0; tile < kTileGroup; ++tile) {
                const std::uint16_t* weights = b.values + tile * b.column;
                typename V::F sums[parts];
                for (int v = 0; v < parts; ++v) sums[v] = V::set(0.0f);
                for (int d = 0; d < b.depth; ++d) {
                    const std::uint16_t* activations = a + row * a_stride + d * kTileDepth;
                    typename V::F even[parts], odd[parts];
                    for (int v = 0; v < parts; ++v) even[v] = odd[v] = V::set(0.0f);
                    for (int k = 0; k < kTileDepth; k += 2, weights += b.row) {
                        const typename V::F first = V::set(widened(activations[k]));
                        const typename V::F second = V::set(widened(activations[k + 1]));
                        for (int v = 0; v < parts; ++v) {
                            const auto pairs = Pairs<V>::load(weights + v * 2 * V::lanes);
                            even[v] = V::fma(first, Pairs<V>::first(pairs), even[v]);
                            odd[v] = V::fma(second, Pairs<V>::second(pairs), odd[v]);
                        }
                    }
                    for (int v = 0; v < parts; ++v)
                        sums[v] = V::add(sums[v], V::add(even[v], odd[v]));
                }
                for (int v = 0; v < parts; ++v)
                    V::store(c + row * kGroupColumns + tile * kTileRows + v * V::lanes, sums[v]);
            }
        }
    }

  private:
    static float widened(std::uint16_t code) {
        const std::uint32_t bits = std::uint32_t{code} << 16;
        float x;
        __builtin_memcpy(&x, &bits, sizeof x);
        return x;
    }
};

/// What to do with each row of products, in two parts: the second one begins when the first one is
/// done for several rows. In one part, each row would wait for its own intermediate results, and the
/// CPU does not look far enough ahead to compute the next rows meanwhile.
template <class First, class Second>
struct InTwoParts {
    First first;
    Second second;
};
template <class First, class Second>
InTwoParts(First, Second) -> InTwoParts<First, Second>;

/// Calls finish(panel, row, products of the row) for rows of products that are adjacent.
template <class V, class Finish>
void finish_rows(const Finish& finish, int panel, Span rows, const float* products) {
    constexpr int width = kPanelVectors * V::lanes;
    for (int row = rows.begin; row < rows.end; ++row)
        finish(panel, row, products + (row - rows.begin) * width);
}
template <class V, class First, class Second>
void finish_rows(const InTwoParts<First, Second>& finish, int panel, Span rows,
                 const float* products) {
    finish_rows<V>(finish.first, panel, rows, products);
    finish_rows<V>(finish.second, panel, rows, products);
}

/// Multiplies rows of bfloat16 with panels of bfloat16, and passes the products to finish_rows. The
/// depth is a multiple of kTileDepth.
template <class V, class Finish>
void multiply_panels(const Rows& a, const Panels& w, Span panels, Span rows,
                     const Finish& finish) {
    static_assert(kPanelVectors * V::lanes == kGroupColumns || !Tiles<V>::always);
    alignas(kCacheLine) float c[2 * kTileRows * kGroupColumns];
    const std::ptrdiff_t stride = a.code_stride / static_cast<std::ptrdiff_t>(sizeof(std::uint16_t));
    const auto* codes = static_cast<const std::uint16_t*>(a.codes);
    Tiles<V>::begin();
    for (int panel = panels.begin; panel < panels.end; ++panel) {
        const std::uint16_t* const values = w.pairs + std::ptrdiff_t{panel} * w.depth * kGroupColumns;
        TileColumns weights{values, 2 * kGroupColumns, 2 * kTileRows, w.depth / kTileDepth, nullptr};
        if (rows.end - rows.begin <= kTileRows)  // they take no time: fetch what follows soon
            weights.next = reinterpret_cast<const char*>(values) + kTileStreamDistance;
        else if (panel + 1 < panels.end)
            weights.next = reinterpret_cast<const char*>(values + w.depth * kGroupColumns);
        for (int first = rows.begin; first < rows.end; first += 2 * kTileRows) {
            const int left = rows.end - first;
            const int count = left < 2 * kTileRows ? left : 2 * kTileRows;
            Tiles<V>::multiply(codes + first * stride, stride, count, weights, c);
            weights.next = nullptr;  // once is enough
            finish_rows<V>(finish, panel, {first, first + count}, c);
        }
    }
    Tiles<V>::end();
}

}  // namespace elmokit
