// The kernels for AArch64 with NEON, which every such CPU has.
#include "isa.h"
#include "vector_neon.h"

namespace elmokit {

const Kernels* neon_kernels() {
    static constexpr Kernels kernels = kernels_for<neon::Vector<neon::Basic>>("neon");
    return &kernels;
}

}  // namespace elmokit
