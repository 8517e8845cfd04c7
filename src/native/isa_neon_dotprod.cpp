// The kernels for AArch64 with the dot product of bytes (Armv8.2: most CPUs since 2018).
#include "isa.h"
#include "vector_neon.h"

namespace elmokit {

const Kernels* neon_dotprod_kernels() {
    static constexpr Kernels kernels = kernels_for<neon::Vector<neon::DotProduct>>("neon-dotprod");
    return &kernels;
}

}  // namespace elmokit
