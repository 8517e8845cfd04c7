// Which instruction sets this machine has, and which of them runs.
#pragma once

#include <string>
#include <vector>

#include "kernels.h"

namespace elmokit {

/// The names of all that can run here, the fastest first. int8 asks more of AVX-512 than float32.
std::vector<std::string> instruction_sets(bool int8);

/// The kernels of an instruction set that `instruction_sets` names.
const Kernels& kernels_of(const std::string& name, bool int8);

}  // namespace elmokit
