// NEON (Advanced SIMD): four floats. Knows nothing about the network.
//
// Every AArch64 CPU has it; how int8 codes are multiplied depends on two extensions:
//   Basic           widened to 16 bits, multiplied, and added in pairs;
//   DotProduct      SDOT: four products per lane and instruction (Armv8.2 and later);
//   MatrixMultiply  SMMLA: two rows by two columns, eight products each (products_i8mm.h; Armv8.6).
// The arithmetic of floats is the same in all of them, and that of portable code with FMA; the sums
// of codes are exact. So on one machine all of them, and `portable`, give the same bits.
//
// A template over the extension: files that are compiled for different extensions must not share
// functions (see kernels.h).
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace elmokit::neon {

/// Widened to 16 bits. A product of two codes fits into 16 bits.
struct Basic {
    using Codes = int16x8_t;
    using Activation = std::int16_t;
    static constexpr int code_group = 2;
};

#if defined(__ARM_FEATURE_DOTPROD)
struct DotProduct {
    using Codes = int8x16_t;
    using Activation = std::int8_t;
    static constexpr int code_group = 4;
};
#endif

#if defined(__ARM_FEATURE_MATMUL_INT8)
struct MatrixMultiply {
    using Codes = int8x16_t;  // two columns of eight codes
    using Activation = std::int8_t;
    static constexpr int code_group = 8;
};
#endif

template <class Extension>
struct Vector {
    using F = float32x4_t;
    using I = int32x4_t;
    using Codes = typename Extension::Codes;
    using Activation = typename Extension::Activation;

    static constexpr int lanes = 4;
    static constexpr int rows = 6;  // 6 x 4 sums leave 8 of the 32 registers for both factors
    static constexpr int code_group = Extension::code_group;
    static constexpr int code_bias = 0;

    static F set(float x) { return vdupq_n_f32(x); }
    static F load(const float* p) { return vld1q_f32(p); }
    static void store(float* p, F x) { vst1q_f32(p, x); }
    /// Like `store`; elsewhere past the cache, which `fence` makes visible to other threads.
    static void stream(float* p, F x) { store(p, x); }
    static void fence() {}
    static void store_first(float* p, F x, int count) {
        std::memcpy(p, &x, static_cast<unsigned>(count) * sizeof(float));
    }
    static F add(F a, F b) { return vaddq_f32(a, b); }
    static F sub(F a, F b) { return vsubq_f32(a, b); }
    static F mul(F a, F b) { return vmulq_f32(a, b); }
    static F div(F a, F b) { return vdivq_f32(a, b); }
    // If one operand is NaN, so is the result: more than the callers need.
    static F min(F a, F b) { return vminq_f32(a, b); }
    static F max(F a, F b) { return vmaxq_f32(a, b); }
    static F abs(F a) { return vabsq_f32(a); }
    static F fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
    static float largest(F a) { return vmaxvq_f32(a); }
    /// (a0 + a2) + (a1 + a3), as in portable code.
    static float total(F a) {
        const float32x2_t pairs = vadd_f32(vget_low_f32(a), vget_high_f32(a));
        return vget_lane_f32(pairs, 0) + vget_lane_f32(pairs, 1);
    }
    /// x where a < b, y elsewhere.
    static F where_less(F a, F b, F x, F y) { return vbslq_f32(vcltq_f32(a, b), x, y); }
    /// Stores values that are integers of at most 16 bits.
    static void store_int16(std::int16_t* p, F x) { vst1_s16(p, vmovn_s32(vcvtnq_s32_f32(x))); }

    /// x * 2^n, where the lowest bits of `bits` are those of n.
    static F add_to_exponent(F x, F bits) {
        const I n = vshlq_n_s32(vreinterpretq_s32_f32(bits), 23);
        return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x), n));
    }

    static I zero() { return vdupq_n_s32(0); }
    static I set(std::int32_t x) { return vdupq_n_s32(x); }
    static I bits(F a) { return vreinterpretq_s32_f32(a); }
    static I max(I a, I b) { return vmaxq_s32(a, b); }
    static std::int32_t largest(I a) { return vmaxvq_s32(a); }
    static I add(I a, I b) { return vaddq_s32(a, b); }
    static F to_float(I a) { return vcvtq_f32_s32(a); }
    static std::int32_t total(I a) { return vaddvq_s32(a); }

    static Codes load_codes(const std::uint8_t* p) {
        const auto* codes = reinterpret_cast<const std::int8_t*>(p);
        if constexpr (code_group == 2)
            return vmovl_s8(vld1_s8(codes));
        else
            return vld1q_s8(codes);
    }

    /// sums += weights · the code_group activations at p, in every lane.
    static void dot(I& sums, Codes weights, const Activation* p) {
        if constexpr (code_group == 2) {
            std::int32_t pair;
            std::memcpy(&pair, p, sizeof pair);
            const int16x8_t pairs = vreinterpretq_s16_s32(vdupq_n_s32(pair));
            sums = vpadalq_s16(sums, vmulq_s16(weights, pairs));
        }
#if defined(__ARM_FEATURE_DOTPROD)
        // Loads eight activations, of which it uses four: rows are padded (activations.h).
        if constexpr (code_group == 4) sums = vdotq_lane_s32(sums, weights, vld1_s8(p), 0);
#endif
    }

#if defined(__ARM_FEATURE_MATMUL_INT8)
    /// Two rows of eight activations.
    static Codes join_codes(const Activation* upper, const Activation* lower) {
        return vcombine_s8(vld1_s8(upper), vld1_s8(lower));
    }
    /// sums += two rows of activations · two columns of weights.
    static void dot_pair(I& sums, Codes activations, Codes weights) {
        sums = vmmlaq_s32(sums, activations, weights);
    }
    /// The upper (0) or lower (1) row of the sums of four columns.
    static I row_of_pair(I left, I right, int row) {
        const int64x2_t a = vreinterpretq_s64_s32(left), b = vreinterpretq_s64_s32(right);
        return vreinterpretq_s32_s64(row ? vuzp2q_s64(a, b) : vuzp1q_s64(a, b));
    }
#endif

    /// Rounds to integers, stores them as codes and returns them.
    static I store_codes(Activation* p, F x) {
        const I codes = vcvtnq_s32_f32(x);
        const int16x4_t narrow = vmovn_s32(codes);
        if constexpr (sizeof(Activation) == 2) {
            vst1_s16(reinterpret_cast<std::int16_t*>(p), narrow);
        } else {
            const int8x8_t bytes = vmovn_s16(vcombine_s16(narrow, narrow));
            std::memcpy(p, &bytes, 4);
        }
        return codes;
    }

    [[gnu::always_inline]] static void prefetch(const void* p) { __builtin_prefetch(p); }
};

}  // namespace elmokit::neon
