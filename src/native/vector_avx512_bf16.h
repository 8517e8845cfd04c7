// AVX-512 with products of bfloat16: sixteen sums of two products each. Knows nothing about the
// network.
//
// The instruction rounds to nearest even, and treats numbers below 2^-126 as zero, whatever the mode
// of the CPU.
#pragma once

#include "isa.h"
#include "vector_avx512.h"

namespace elmokit {

namespace avx512_bf16 {

/// A type of its own, so that the kernels have symbols of their own.
struct Vector : avx512::Vector {};

}  // namespace avx512_bf16

template <>
struct PairProducts<avx512_bf16::Vector> {
    static constexpr bool exist = true;
    using V = avx512_bf16::Vector;

    /// sums += weights · the two activations at p, in every lane. In assembly, as the dot product of
    /// vector_avx512.h; so the file needs no other options of the compiler than AVX-512.
    static void dot(V::F& sums, Pairs<V>::Vector weights, const std::uint16_t* p) {
        std::int32_t two;
        __builtin_memcpy(&two, p, sizeof two);
        asm("vdpbf16ps %2, %1, %0" : "+v"(sums) : "v"(weights), "v"(_mm512_set1_epi32(two)));
    }

    static void round(V::F x, std::uint16_t* out) {
        __m256i codes;
        asm("vcvtneps2bf16 %1, %0" : "=v"(codes) : "v"(x));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), codes);
    }
};

/// Products of tiles, pair by pair: every sum is of float32, in another order than that of AMX.
template <>
struct Tiles<avx512_bf16::Vector> {
    using V = avx512_bf16::Vector;
    static constexpr bool always = false;

    static void begin() {}
    static void end() {}

    static void multiply(const std::uint16_t* a, std::ptrdiff_t a_stride, int count,
                         const TileColumns& b, float* c) {
        // Blocks of nearly the same number of rows: a block of few rows waits for its sums.
        for (int blocks = (count + kMostRows - 1) / kMostRows, row = 0; blocks > 0; --blocks) {
            const int rows = (count - row) / blocks;
            multiply_block(a + row * a_stride, a_stride, rows, b, c + row * kGroupColumns);
            row += rows;
        }
    }

  private:
    /// With four sums per row, the weights and an activation, all registers but three.
    static constexpr int kMostRows = 6;

    static void multiply_block(const std::uint16_t* a, std::ptrdiff_t a_stride, int rows,
                               const TileColumns& b, float* c) {
        switch (rows) {
            case 1: return multiply_rows<1>(a, a_stride, b, c);
            case 2: return multiply_rows<2>(a, a_stride, b, c);
            case 3: return multiply_rows<3>(a, a_stride, b, c);
            case 4: return multiply_rows<4>(a, a_stride, b, c);
            case 5: return multiply_rows<5>(a, a_stride, b, c);
            default: return multiply_rows<6>(a, a_stride, b, c);
        }
    }

    template <int Rows>
    static void multiply_rows(const std::uint16_t* a, std::ptrdiff_t a_stride, const TileColumns& b,
                              float* c) {
        // All loops over the sums are unrolled: one that is not would keep them in memory.
        V::F sums[Rows][kTileGroup];
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
            for (int tile = 0; tile < kTileGroup; ++tile) sums[row][tile] = V::set(0.0f);
        const std::uint16_t* weights = b.values;
        for (int k = 0; k < b.depth * kTileDepth; k += 2, weights += b.row) {
            Pairs<V>::Vector columns[kTileGroup];
#pragma GCC unroll 4
            for (int tile = 0; tile < kTileGroup; ++tile)
                columns[tile] = Pairs<V>::load(weights + tile * b.column);
#pragma GCC unroll 8
            for (int row = 0; row < Rows; ++row) {
                std::int32_t pair;
                __builtin_memcpy(&pair, a + row * a_stride + k, sizeof pair);
                const __m512i activations = _mm512_set1_epi32(pair);
#pragma GCC unroll 4
                for (int tile = 0; tile < kTileGroup; ++tile)
                    asm("vdpbf16ps %2, %1, %0"
                        : "+v"(sums[row][tile])
                        : "v"(columns[tile]), "v"(activations));
            }
        }
#pragma GCC unroll 8
        for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
            for (int tile = 0; tile < kTileGroup; ++tile)
                V::store(c + row * kGroupColumns + tile * kTileRows, sums[row][tile]);
    }
};

}  // namespace elmokit
