// The kernels for AArch64 with the matrix product of bytes (Armv8.6: most CPUs since 2021).
#include "isa.h"
#include "vector_neon.h"

namespace elmokit {

const Kernels* neon_i8mm_kernels() {
    static constexpr Kernels kernels = kernels_for<neon::Vector<neon::MatrixMultiply>>("neon-i8mm");
    return &kernels;
}

}  // namespace elmokit
