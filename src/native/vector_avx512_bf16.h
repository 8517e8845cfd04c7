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
        struct Two {
            std::uint16_t codes[2];
        };
        asm("vdpbf16ps %2%{1to16%}, %1, %0"
            : "+v"(sums)
            : "v"(weights), "m"(*reinterpret_cast<const Two*>(p)));
    }

    static void round(V::F x, std::uint16_t* out) {
        __m256i codes;
        asm("vcvtneps2bf16 %1, %0" : "=v"(codes) : "v"(x));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), codes);
    }
};

}  // namespace elmokit
