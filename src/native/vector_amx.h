// AVX-512 with Intel's AMX: tiles of 16 by 32 bfloat16, multiplied by one instruction. Knows nothing
// about the network.
//
// The system grants the tiles to a process that asks (cpu.cpp); every thread has its own, which
// `begin` prepares and `end` frees. Written in assembly, like vector_avx512_bf16.h, with fixed tiles:
// 0 to 3 are sums, 4 and 5 activations, 6 and 7 weights (4 to 7 with one row of tiles).
#pragma once

#include "isa.h"
#include "vector_avx512_bf16.h"

namespace elmokit {

namespace amx {

/// A type of its own, so that the kernels have symbols of their own.
struct Vector : avx512_bf16::Vector {};

}  // namespace amx

template <>
struct PairProducts<amx::Vector> : PairProducts<avx512_bf16::Vector> {
    static void dot(amx::Vector::F& sums, Pairs<amx::Vector>::Vector weights,
                    const std::uint16_t* p) {
        PairProducts<avx512_bf16::Vector>::dot(sums, weights, p);
    }
};

template <>
struct Tiles<amx::Vector> {
    static constexpr bool always = true;

    static void begin() {
        struct alignas(64) {
            std::uint8_t palette = 1, start = 0, reserved[14] = {};
            std::uint16_t bytes_per_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } config;
        asm volatile("ldtilecfg %0" ::"m"(config));
    }
    static void end() { asm volatile("tilerelease"); }

    static void multiply(const std::uint16_t* a, std::ptrdiff_t a_stride, int count,
                         const TileColumns& b, float* c) {
        if (count <= kTileRows) {
            multiply_tiles<1, 4>(a, a_stride, b, c);
            return;
        }
        multiply_tiles<2, 2>(a, a_stride, b, c);
        multiply_tiles<2, 2>(a, a_stride,
                             {b.values + 2 * b.column, b.row, b.column, b.depth, nullptr},
                             c + 2 * kTileRows);
    }

    /// Multiplies tiles `rounds` times, all of which are zero, and returns the number of products.
    static double multiply_add(int rounds, const void* zeros) {
        constexpr std::ptrdiff_t row = 64;
        asm volatile(
            "tileloadd (%0,%1,1), %%tmm4\n\ttileloadd (%0,%1,1), %%tmm5\n\t"
            "tileloadd (%0,%1,1), %%tmm6\n\ttileloadd (%0,%1,1), %%tmm7\n\t"
            "tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::"r"(zeros),
            "r"(row)
            : "memory");
        for (int round = 0; round < rounds; ++round)
            asm volatile(
                "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\ttdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
                "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\ttdpbf16ps %%tmm7, %%tmm5, %%tmm3" ::);
        return double(rounds) * 4 * kTileRows * kTileValues;
    }

  private:
    /// c[RowTiles * 16][kGroupColumns] = a · the first ColumnTiles columns of tiles.
    template <int RowTiles, int ColumnTiles>
    static void multiply_tiles(const std::uint16_t* a, std::ptrdiff_t a_stride,
                               const TileColumns& tiles, float* c) {
        const std::uint16_t* b = tiles.values;
        const std::ptrdiff_t a_row = a_stride * 2, b_row = tiles.row * 2;  // bytes
        const std::ptrdiff_t column = tiles.column, deeper = kTileRows * tiles.row;
        asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::);
        if constexpr (RowTiles == 1) {
            static_assert(ColumnTiles == 4);
            for (int d = 0; d < tiles.depth; ++d, a += kTileDepth, b += deeper) {
                fetch<_MM_HINT_T0>(tiles.next, d);
                asm volatile(
                    "tileloadd (%0,%1,1), %%tmm4\n\t"
                    "tileloadd (%2,%6,1), %%tmm5\n\t"
                    "tdpbf16ps %%tmm5, %%tmm4, %%tmm0\n\t"
                    "tileloadd (%3,%6,1), %%tmm6\n\t"
                    "tdpbf16ps %%tmm6, %%tmm4, %%tmm1\n\t"
                    "tileloadd (%4,%6,1), %%tmm7\n\t"
                    "tdpbf16ps %%tmm7, %%tmm4, %%tmm2\n\t"
                    "tileloadd (%5,%6,1), %%tmm5\n\t"
                    "tdpbf16ps %%tmm5, %%tmm4, %%tmm3" ::"r"(a),
                    "r"(a_row), "r"(b), "r"(b + column), "r"(b + 2 * column), "r"(b + 3 * column),
                    "r"(b_row)
                    : "memory");
            }
            store<0>(c);
            store<1>(c + kTileRows);
            store<2>(c + 2 * kTileRows);
            store<3>(c + 3 * kTileRows);
        } else {
            static_assert(RowTiles == 2 && ColumnTiles == 2);
            for (int d = 0; d < tiles.depth; ++d, a += kTileDepth, b += deeper) {
                fetch<_MM_HINT_T1>(tiles.next, d);
                asm volatile(
                    "tileloadd (%0,%1,1), %%tmm4\n\t"
                    "tileloadd (%3,%5,1), %%tmm6\n\t"
                    "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
                    "tileloadd (%4,%5,1), %%tmm7\n\t"
                    "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
                    "tileloadd (%2,%1,1), %%tmm5\n\t"
                    "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
                    "tdpbf16ps %%tmm7, %%tmm5, %%tmm3" ::"r"(a),
                    "r"(a_row), "r"(a + kTileRows * a_stride), "r"(b), "r"(b + column), "r"(b_row)
                    : "memory");
            }
            store<0>(c);
            store<1>(c + kTileRows);
            store<2>(c + kTileRows * kGroupColumns);
            store<3>(c + kTileRows * kGroupColumns + kTileRows);
        }
    }

    /// Fetches what tile d of a group has, into the first or the second cache.
    template <_mm_hint Cache>
    static void fetch(const char* group, int d) {
        if (!group) return;
        constexpr int bytes = kTileGroup * kTileValues * sizeof(std::uint16_t);
        group += std::ptrdiff_t{d} * bytes;
        for (int line = 0; line < bytes; line += kCacheLine) _mm_prefetch(group + line, Cache);
    }

    template <int Tile>
    static void store(float* c) {
        constexpr std::ptrdiff_t stride = kGroupColumns * sizeof(float);
        asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(c), "r"(stride), "i"(Tile) : "memory");
    }
};

}  // namespace elmokit
