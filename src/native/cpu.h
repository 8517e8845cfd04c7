// Detection of the instruction sets that this machine supports.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"

namespace elmokit {

/// Returns the names of the supported instruction sets, the fastest first. With int8, AVX-512 needs
/// VNNI as well. The last one for bfloat16 emulates products of bfloat16, for tests.
std::vector<std::string> instruction_sets(Dtype dtype);

/// Returns the kernels of an instruction set; throws std::invalid_argument if it is not supported.
const Kernels& find_kernels(const std::string& name, Dtype dtype);

/// Whether Intel made this CPU, for which its library MKL, that PyTorch multiplies by, uses
/// AVX-512.
bool made_by_intel();

}  // namespace elmokit
