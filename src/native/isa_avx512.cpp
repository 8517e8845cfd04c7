// The kernels for x86-64 with AVX-512 (F, BW, DQ, VL; VNNI for int8 only).
#include "isa.h"
#include "vector_avx512.h"

namespace elmokit {

const Kernels* avx512_kernels() {
    static constexpr Kernels kernels = kernels_for<avx512::Vector>("avx512");
    return &kernels;
}

}  // namespace elmokit
