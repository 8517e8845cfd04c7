// The kernels for any machine that GCC or Clang compiles for.
#include "isa.h"
#include "vector_portable.h"

namespace elmokit {

const Kernels* portable_kernels() {
    static constexpr Kernels kernels = kernels_for<portable::Vector>("portable");
    return &kernels;
}

}  // namespace elmokit
