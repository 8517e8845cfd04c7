// AVX2 and FMA: eight floats. Knows nothing about the network.
//
// int8: weights are widened to 16 bits as they are loaded and multiplied in pairs. The instruction
// that multiplies bytes directly saturates at 16 bits, so its sums would not be exact.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace elmokit::avx2 {

struct Vector {
    using F = __m256;
    using I = __m256i;
    using Codes = __m256i;
    using Activation = std::int16_t;

    static constexpr int lanes = 8;
    static constexpr int rows = 3;  // 3 x 4 sums leave 4 of the 16 registers for weights
    static constexpr int code_group = 2;
    static constexpr int code_bias = 0;

    static F set(float x) { return _mm256_set1_ps(x); }
    static F load(const float* p) { return _mm256_loadu_ps(p); }
    static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
    /// Stores to an aligned address, past the cache. `fence` makes it visible to other threads.
    static void stream(float* p, F x) { _mm256_stream_ps(p, x); }
    static void fence() { _mm_sfence(); }
    static void store_first(float* p, F x, int count) {
        const I lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane), x);
    }
    static F add(F a, F b) { return _mm256_add_ps(a, b); }
    static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
    static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
    static F div(F a, F b) { return _mm256_div_ps(a, b); }
    static F min(F a, F b) { return _mm256_min_ps(a, b); }
    static F max(F a, F b) { return _mm256_max_ps(a, b); }
    static F abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
    static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
    static float largest(F a) {
        __m128 x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        x = _mm_max_ps(x, _mm_movehl_ps(x, x));
        return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
    }
    static float total(F a) {
        __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        x = _mm_add_ps(x, _mm_movehl_ps(x, x));
        return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
    }
    /// x where a < b, y elsewhere.
    static F where_less(F a, F b, F x, F y) {
        return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
    }
    /// Stores values that are integers of at most 16 bits.
    static void store_int16(std::int16_t* p, F x) { store_codes(p, x); }

    /// x * 2^n, where the lowest bits of `bits` are those of n.
    static F add_to_exponent(F x, F bits) {
        const I n = _mm256_slli_epi32(_mm256_castps_si256(bits), 23);
        return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), n));
    }

    static I zero() { return _mm256_setzero_si256(); }
    static I set(std::int32_t x) { return _mm256_set1_epi32(x); }
    static I bits(F a) { return _mm256_castps_si256(a); }
    static I max(I a, I b) { return _mm256_max_epi32(a, b); }
    static std::int32_t largest(I a) {
        __m128i x = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
        x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 0b01'00'11'10));
        return _mm_cvtsi128_si32(_mm_max_epi32(x, _mm_shuffle_epi32(x, 0b10'11'00'01)));
    }
    static I add(I a, I b) { return _mm256_add_epi32(a, b); }
    static F to_float(I a) { return _mm256_cvtepi32_ps(a); }
    static std::int32_t total(I a) {
        __m128i x = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
        x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0b01'00'11'10));
        return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0b10'11'00'01)));
    }
    static Codes load_codes(const std::uint8_t* p) {
        return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }

    /// sums += weights · the code_group activations at p, in every lane.
    static void dot(I& sums, Codes weights, const Activation* p) {
        std::int32_t pair;
        std::memcpy(&pair, p, sizeof pair);
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(weights, _mm256_set1_epi32(pair)));
    }

    /// Rounds to integers, stores them as codes and returns them.
    static I store_codes(Activation* p, F x) {
        const I codes = _mm256_cvtps_epi32(x);
        const __m128i low = _mm256_castsi256_si128(codes);
        const __m128i high = _mm256_extracti128_si256(codes, 1);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packs_epi32(low, high));
        return codes;
    }

    [[gnu::always_inline]] static void prefetch(const void* p) {
        _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
    }
};

}  // namespace elmokit::avx2
