// What a CPU can do at best: products in registers, and reads of memory. Knows nothing about the
// network; `elmo bench --limits` compares the network with these.
#pragma once

#include "kernels.h"
#include "products.h"

namespace elmokit {

/// Multiplies and adds `rounds` times as many values as fill the registers, which hold the sums, and
/// returns the number of products. `scratch` has kScratch floats, all zero. All loops over the sums are
/// unrolled: one that is not would keep them in memory. Each sum begins with another zero and is
/// stored at last: the compiler may not know that they are equal, or that nobody needs them.
template <class V>
double multiply_add(Dtype dtype, int rounds, void* scratch) {
    constexpr int R = 4 * V::rows < 12 ? 3 : V::rows;
    static_assert(R * kPanelVectors * V::lanes <= kScratch);
    auto* const floats = static_cast<float*>(scratch);
    if constexpr (Tiles<V>::always) {
        if (dtype == Dtype::bfloat16) {
            Tiles<V>::begin();
            const double products = Tiles<V>::multiply_add(rounds, scratch);
            Tiles<V>::end();
            return products;
        }
    }
    if (dtype == Dtype::int8) {
        using Activation = typename V::Activation;
        const auto* const zeros = static_cast<const std::int32_t*>(scratch);
        typename V::I sums[R][kPanelVectors];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = V::set(zeros[r * kPanelVectors + v]);
        for (int round = 0; round < rounds; ++round) {
            asm volatile("" : "+r"(scratch));  // nothing may be computed only once
            const auto* const weights = static_cast<const std::uint8_t*>(scratch);
            const auto* const activations = static_cast<const Activation*>(scratch);
            typename V::Codes codes[kPanelVectors];
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v)
                codes[v] = V::load_codes(weights + v * V::lanes * V::code_group);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
                for (int v = 0; v < kPanelVectors; ++v)
                    V::dot(sums[r][v], codes[v], activations + r * V::code_group);
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v)
                V::store(floats + (r * kPanelVectors + v) * V::lanes, V::to_float(sums[r][v]));
        return double(rounds) * R * kPanelVectors * V::lanes * V::code_group;
    }
    typename V::F sums[R][kPanelVectors];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v)
            sums[r][v] = V::load(floats + (r * kPanelVectors + v) * V::lanes);
    double products = double(rounds) * R * kPanelVectors * V::lanes;
    if constexpr (PairProducts<V>::exist) {
        if (dtype == Dtype::bfloat16) {
            for (int round = 0; round < rounds; ++round) {
                asm volatile("" : "+r"(scratch));
                const auto* const codes = static_cast<const std::uint16_t*>(scratch);
                typename Pairs<V>::Vector pairs[kPanelVectors];
#pragma GCC unroll 4
                for (int v = 0; v < kPanelVectors; ++v)
                    pairs[v] = Pairs<V>::load(codes + v * 2 * V::lanes);
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
                    for (int v = 0; v < kPanelVectors; ++v)
                        PairProducts<V>::dot(sums[r][v], pairs[v], codes + 2 * r);
            }
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
                for (int v = 0; v < kPanelVectors; ++v)
                    V::store(floats + (r * kPanelVectors + v) * V::lanes, sums[r][v]);
            return 2 * products;
        }
    }
    const typename V::F one = V::load(floats), two = V::load(floats + V::lanes);
    for (int round = 0; round < rounds; ++round)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = V::fma(one, two, sums[r][v]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < kPanelVectors; ++v)
            V::store(floats + (r * kPanelVectors + v) * V::lanes, sums[r][v]);
    return products;
}

/// Adds up `count` floats, a multiple of kScratch.
template <class V>
float read(const float* values, std::ptrdiff_t count) {
    constexpr int n = 8;
    static_assert(kScratch % (n * V::lanes) == 0);
    typename V::F sums[n];
    for (auto& sum : sums) sum = V::set(0.0f);
    for (std::ptrdiff_t i = 0; i < count; i += n * V::lanes) {
#pragma GCC unroll 8
        for (int j = 0; j < n; j += 1) {
            // What a single row of a product does to its weights.
            if (j * V::lanes * sizeof(float) % kCacheLine == 0)
                V::prefetch(values + i + j * V::lanes + kStreamDistance / sizeof(float));
            sums[j] = V::add(sums[j], V::load(values + i + j * V::lanes));
        }
    }
    for (int j = 1; j < n; ++j) sums[0] = V::add(sums[0], sums[j]);
    return V::total(sums[0]);
}

}  // namespace elmokit
