// The kernels for x86-64 with AMX (Intel since Sapphire Rapids), for bfloat16.
#include "vector_amx.h"

namespace elmokit {

const Kernels* amx_kernels() {
    static constexpr Kernels kernels = kernels_for<amx::Vector>("amx");
    return &kernels;
}

}  // namespace elmokit
