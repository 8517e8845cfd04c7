#include "cpu.h"

#include <stdexcept>

namespace elmokit {

namespace {

std::vector<const Kernels*> runnable([[maybe_unused]] bool int8) {
    std::vector<const Kernels*> all;
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (avx512 && (!int8 || __builtin_cpu_supports("avx512vnni"))) all.push_back(avx512_kernels());
    if (avx2) all.push_back(avx2_kernels());
#endif
    all.push_back(portable_kernels());
    return all;
}

}  // namespace

std::vector<std::string> instruction_sets(bool int8) {
    std::vector<std::string> names;
    for (const Kernels* kernels : runnable(int8)) names.emplace_back(kernels->name);
    return names;
}

const Kernels& find_kernels(const std::string& name, bool int8) {
    for (const Kernels* kernels : runnable(int8))
        if (name == kernels->name) return *kernels;
    throw std::invalid_argument("the instruction set " + name + " is not supported by this CPU");
}

}  // namespace elmokit
