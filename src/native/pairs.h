// Pairs of bfloat16, the upper halves of floats: how weights of this type are stored and read.
//
// Templates over an instruction set's `Vector`, like products.h.
#pragma once

#include "kernels.h"

namespace elmokit {

/// Products of bfloat16 by bfloat16, specialized where an instruction set has them.
template <class V>
struct PairProducts {
    static constexpr bool exist = false;
};

/// Weights in bfloat16, which are the upper halves of floats: a vector of pairs of consecutive k,
/// from which a shift and a mask make two vectors of floats.
template <class V>
struct Pairs {
    typedef std::uint32_t Vector __attribute__((vector_size(V::lanes * sizeof(float))));

    static Vector load(const std::uint16_t* p) {
        Vector x;
        __builtin_memcpy(&x, p, sizeof x);
        return x;
    }
    static typename V::F first(Vector x) { return (typename V::F)(x << 16); }
    static typename V::F second(Vector x) { return (typename V::F)(x & 0xffff0000u); }

    /// The first or the second of the pairs at p. For AVX2 in assembly: the compiler would keep the
    /// mask and the next pairs in registers, and move sums of a tile to memory for that.
    static typename V::F load_first(const std::uint16_t* p) {
#if defined(__AVX2__) && !defined(__AVX512F__)
        typename V::F x;
        asm("vmovdqu %1, %0\n\tvpslld $16, %0, %0" : "=x"(x) : "m"(*(const Memory*)p));
        return x;
#else
        return first(load(p));
#endif
    }
    static typename V::F load_second(const std::uint16_t* p) {
#if defined(__AVX2__) && !defined(__AVX512F__)
        alignas(32) static constexpr std::uint32_t mask[8] = {
            0xffff0000u, 0xffff0000u, 0xffff0000u, 0xffff0000u,
            0xffff0000u, 0xffff0000u, 0xffff0000u, 0xffff0000u};
        typename V::F x;
        asm("vmovdqu %1, %0\n\tvpand %2, %0, %0"
            : "=x"(x)
            : "m"(*(const Memory*)p), "m"(*(const Memory*)mask));
        return x;
#else
        return second(load(p));
#endif
    }

  private:
    struct Memory {
        char bytes[V::lanes * sizeof(float)];
    };
};

}  // namespace elmokit
