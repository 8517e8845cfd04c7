// AVX-512: sixteen floats, and VNNI's dot product of bytes. Knows nothing about the network.
//
// int8: VNNI multiplies unsigned by signed bytes and reads only the signed factor directly from
// memory, so weights are stored unsigned (code + 128), and 128 times the sum of a row's codes is
// subtracted from the result.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace elmokit::avx512 {

struct Vector {
    using F = __m512;
    using I = __m512i;
    using Codes = __m512i;
    using Activation = std::int8_t;

    static constexpr int lanes = 16;
    static constexpr int rows = 6;  // 6 x 4 sums leave registers for 6 activations or 4 weights
    static constexpr int code_group = 4;
    static constexpr int code_bias = 128;

    static F set(float x) { return _mm512_set1_ps(x); }
    static F load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
    /// Stores to an aligned address, past the cache. `fence` makes it visible to other threads.
    static void stream(float* p, F x) { _mm512_stream_ps(p, x); }
    static void fence() { _mm_sfence(); }
    static void store_first(float* p, F x, int count) {
        _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), x);
    }
    static F add(F a, F b) { return _mm512_add_ps(a, b); }
    static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
    static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
    static F div(F a, F b) { return _mm512_div_ps(a, b); }
    static F min(F a, F b) { return _mm512_min_ps(a, b); }
    static F max(F a, F b) { return _mm512_max_ps(a, b); }
    static F abs(F a) { return _mm512_abs_ps(a); }
    static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
    static float largest(F a) { return _mm512_reduce_max_ps(a); }
    static float total(F a) { return _mm512_reduce_add_ps(a); }
    /// x where a < b, y elsewhere.
    static F where_less(F a, F b, F x, F y) {
        return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
    }
    /// Stores values that are integers of at most 16 bits.
    static void store_int16(std::int16_t* p, F x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                            _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(x)));
    }

    /// x * 2^n, where the lowest bits of `bits` are those of n.
    static F add_to_exponent(F x, F bits) {
        const I n = _mm512_slli_epi32(_mm512_castps_si512(bits), 23);
        return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), n));
    }

    static I zero() { return _mm512_setzero_si512(); }
    static I set(std::int32_t x) { return _mm512_set1_epi32(x); }
    static I bits(F a) { return _mm512_castps_si512(a); }
    static I max(I a, I b) { return _mm512_max_epi32(a, b); }
    static std::int32_t largest(I a) { return _mm512_reduce_max_epi32(a); }
    static I add(I a, I b) { return _mm512_add_epi32(a, b); }
    static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
    static std::int32_t total(I a) { return _mm512_reduce_add_epi32(a); }
    static Codes load_codes(const std::uint8_t* p) { return _mm512_loadu_si512(p); }

    /// sums += weights · the code_group activations at p, in every lane. Written in assembly,
    /// because GCC 12 moves the sums to memory and back around the intrinsic. The activations come from
    /// a register, into which the compiler loads them once for all weights: if each instruction read
    /// them from memory, a core that starts two of them per cycle would wait for its two loads.
    static void dot(I& sums, Codes weights, const Activation* p) {
        std::int32_t four;
        __builtin_memcpy(&four, p, sizeof four);
        asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(weights), "v"(_mm512_set1_epi32(four)));
    }

    /// Rounds to integers, stores them as codes and returns them.
    static I store_codes(Activation* p, F x) {
        const I codes = _mm512_cvtps_epi32(x);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(codes));
        return codes;
    }

    [[gnu::always_inline]] static void prefetch(const void* p) {
        _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
    }
};

}  // namespace elmokit::avx512
