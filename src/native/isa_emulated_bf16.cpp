// What AVX512_BF16 computes, on any machine, to test the code that uses it and to measure its
// precision. Slower than widening the weights, so never the default.
#include "isa.h"
#include "vector_portable.h"

namespace elmokit {

namespace emulated_bf16 {

/// A type of its own, so that the kernels have symbols of their own.
struct Vector : portable::Vector {};

}  // namespace emulated_bf16

template <>
struct PairProducts<emulated_bf16::Vector> {
    static constexpr bool exist = true;
    using V = emulated_bf16::Vector;

    /// sums += weights · the two activations at p, in every lane: the second product first.
    static void dot(V::F& sums, Pairs<V>::Vector weights, const std::uint16_t* p) {
        std::uint32_t pair;
        std::memcpy(&pair, p, sizeof pair);
        const auto pairs = Pairs<V>::Vector{} + pair;
        sums = V::fma(Pairs<V>::second(weights), Pairs<V>::second(pairs), sums);
        sums = V::fma(Pairs<V>::first(weights), Pairs<V>::first(pairs), sums);
    }

    /// Rounds to the nearest bfloat16, the even one of two equally near. A NaN stays one.
    static void round(V::F x, std::uint16_t* out) {
        for (int lane = 0; lane < V::lanes; ++lane) {
            const float value = x[lane];
            std::uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            out[lane] = value != value
                            ? 0x7fc0
                            : static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
        }
    }
};

const Kernels* emulated_bf16_kernels() {
    static constexpr Kernels kernels = kernels_for<emulated_bf16::Vector>("emulated_bf16");
    return &kernels;
}

}  // namespace elmokit
