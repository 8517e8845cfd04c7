// Any machine: four floats, with the vector extensions that GCC and Clang compile to SSE, NEON or
// scalar code. Knows nothing about the network.
//
// Multiplications and additions are fused everywhere or nowhere (the build does not let the
// compiler choose), so that results do not depend on the batch.
#pragma once

#include <cstdint>
#include <cstring>

namespace elmokit::portable {

struct Vector {
    typedef float F __attribute__((vector_size(16)));
    typedef std::int32_t I __attribute__((vector_size(16)));
    typedef std::uint32_t U __attribute__((vector_size(16)));
    typedef std::int16_t Codes __attribute__((vector_size(16)));
    using Activation = std::int16_t;

    static constexpr int lanes = 4;
#if defined(__aarch64__)
    static constexpr int rows = 6;  // for 32 registers
#else
    static constexpr int rows = 2;  // for 16 registers
#endif
    static constexpr int code_group = 2;
    static constexpr int code_bias = 0;

    static F set(float x) { return F{x, x, x, x}; }
    static F load(const float* p) {
        F x;
        std::memcpy(&x, p, sizeof x);
        return x;
    }
    static void store(float* p, F x) { std::memcpy(p, &x, sizeof x); }
    /// Like `store`; elsewhere past the cache, which `fence` makes visible to other threads.
    static void stream(float* p, F x) { store(p, x); }
    static void fence() {}
    static void store_first(float* p, F x, int count) {
        std::memcpy(p, &x, static_cast<unsigned>(count) * sizeof(float));
    }
    static F add(F a, F b) { return a + b; }
    static F sub(F a, F b) { return a - b; }
    static F mul(F a, F b) { return a * b; }
    static F div(F a, F b) { return a / b; }
    static F min(F a, F b) { return a < b ? a : b; }
    static F max(F a, F b) { return a > b ? a : b; }
    static F abs(F a) { return (F)((U)a & 0x7fffffffu); }
    static F fma(F a, F b, F c) {
#ifdef __FP_FAST_FMAF
        for (int lane = 0; lane < lanes; ++lane)
            c[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
        return c;
#else
        return a * b + c;
#endif
    }
    static float largest(F a) {
        float result = a[0];
        for (int lane = 1; lane < lanes; ++lane) result = a[lane] > result ? a[lane] : result;
        return result;
    }
    static float total(F a) { return (a[0] + a[2]) + (a[1] + a[3]); }
    /// x where a < b, y elsewhere.
    static F where_less(F a, F b, F x, F y) { return a < b ? x : y; }
    /// Stores values that are integers of at most 16 bits.
    static void store_int16(std::int16_t* p, F x) { store_codes(p, x); }

    /// x * 2^n, where the lowest bits of `bits` are those of n.
    static F add_to_exponent(F x, F bits) { return (F)((U)x + ((U)bits << 23)); }

    static I zero() { return I{}; }
    static I set(std::int32_t x) { return I{x, x, x, x}; }
    static I bits(F a) { return (I)a; }
    static I max(I a, I b) { return a > b ? a : b; }
    static std::int32_t largest(I a) {
        std::int32_t result = a[0];
        for (int lane = 1; lane < lanes; ++lane) result = a[lane] > result ? a[lane] : result;
        return result;
    }
    static I add(I a, I b) { return a + b; }
    static F to_float(I a) { return __builtin_convertvector(a, F); }
    static std::int32_t total(I a) { return a[0] + a[1] + a[2] + a[3]; }
    static Codes load_codes(const std::uint8_t* p) {
        typedef std::int8_t Bytes __attribute__((vector_size(8)));
        Bytes codes;
        std::memcpy(&codes, p, sizeof codes);
        return __builtin_convertvector(codes, Codes);
    }

    /// sums += weights · the code_group activations at p, in every lane. A product of two codes
    /// fits into 16 bits; a lane contains two of them, which are separated and added.
    static void dot(I& sums, Codes weights, const Activation* p) {
        std::int32_t pair;
        std::memcpy(&pair, p, sizeof pair);
        const I products = (I)(weights * (Codes)set(pair));
        sums += (products >> 16) + ((I)((U)products << 16) >> 16);
    }

    /// Rounds to integers, stores them as codes and returns them.
    static I store_codes(Activation* p, F x) {
        const F magic = set(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
        const I codes = __builtin_convertvector(x + magic - magic, I);
        for (int lane = 0; lane < lanes; ++lane) p[lane] = static_cast<Activation>(codes[lane]);
        return codes;
    }

    [[gnu::always_inline]] static void prefetch(const void* p) { __builtin_prefetch(p); }
};

}  // namespace elmokit::portable
