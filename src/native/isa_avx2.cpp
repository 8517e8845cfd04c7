// The kernels for x86-64 with AVX2 and FMA (Intel since 2013, AMD since 2017).
#include "isa.h"
#include "vector_avx2.h"

namespace elmokit {

const Kernels* avx2_kernels() {
    static constexpr Kernels kernels = kernels_for<avx2::Vector>("avx2");
    return &kernels;
}

}  // namespace elmokit
