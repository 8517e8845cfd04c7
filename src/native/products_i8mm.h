// int8 products with instructions that multiply two rows by two columns (SMMLA of AArch64), for
// `Vector`s with a code_group of 8. Like `tile_products` of products.h, which calls it; the sums are
// the same integers.
//
// A vector of weights holds two columns of eight codes, so a panel is as many pairs of columns as it
// has 2 x kPanelVectors vectors. A sum holds [row 0 column 0, row 0 column 1, row 1 column 0, row 1
// column 1].
#pragma once

#include "kernels.h"

namespace elmokit {

template <class V, int R, bool Stream>
void row_pair_products(const Rows& rows, int first, const std::uint8_t* w, const float* w_scales,
                       int depth, const char* prefetch_start, std::ptrdiff_t prefetch_step,
                       float* tile) {
    static_assert(V::lanes == 4 && V::code_group == 8);
    constexpr int width = kPanelVectors * V::lanes, pairs = width / 2, row_pairs = (R + 1) / 2;
    constexpr int bytes = width * V::code_group, cache_line = 64, stream_distance = 4096;
    const auto* a = static_cast<const std::int8_t*>(rows.codes) + first * rows.code_stride;
    typename V::I sums[row_pairs][pairs];
#pragma GCC unroll 4
    for (int r = 0; r < row_pairs; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < pairs; ++c) sums[r][c] = V::zero();

    const int groups = (depth + V::code_group - 1) / V::code_group;
    for (int k = 0; k < groups; ++k, w += bytes) {
        if constexpr (Stream) {
#pragma GCC unroll 4
            for (int line = 0; line < bytes; line += cache_line)
                V::prefetch(w + stream_distance + line);
        } else {
            V::prefetch(prefetch_start + k * prefetch_step);
        }
        typename V::Codes activations[row_pairs];
#pragma GCC unroll 4
        for (int r = 0; r < row_pairs; ++r) {
            const std::int8_t* upper = a + 2 * r * rows.code_stride + k * V::code_group;
            // Without a second row, the first counts twice, and its second result is ignored.
            const std::int8_t* lower = 2 * r + 1 < R ? upper + rows.code_stride : upper;
            activations[r] = V::join_codes(upper, lower);
        }
#pragma GCC unroll 8
        for (int c = 0; c < pairs; ++c) {
            const typename V::Codes weights = V::load_codes(w + c * 2 * V::code_group);
#pragma GCC unroll 4
            for (int r = 0; r < row_pairs; ++r) V::dot_pair(sums[r][c], activations[r], weights);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        const typename V::F scale = V::set(rows.scales[first + r]);
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v) {
            const typename V::I row =
                V::row_of_pair(sums[r / 2][2 * v], sums[r / 2][2 * v + 1], r % 2);
            const typename V::F scales = V::mul(scale, V::load(w_scales + v * V::lanes));
            V::store(tile + r * width + v * V::lanes, V::mul(V::to_float(row), scales));
        }
    }
}

}  // namespace elmokit
