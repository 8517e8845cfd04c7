// The kernels for x86-64 with AVX512_BF16 (Intel since Cooper Lake, AMD since Zen 4), for bfloat16.
#include "vector_avx512_bf16.h"

namespace elmokit {

const Kernels* avx512_bf16_kernels() {
    static constexpr Kernels kernels = kernels_for<avx512_bf16::Vector>("avx512_bf16");
    return &kernels;
}

}  // namespace elmokit
