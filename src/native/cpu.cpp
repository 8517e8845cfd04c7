#include "cpu.h"

#include <stdexcept>

namespace elmokit {

namespace {

std::vector<const Kernels*> runnable([[maybe_unused]] Dtype dtype) {
    [[maybe_unused]] const bool int8 = dtype == Dtype::int8;
    std::vector<const Kernels*> all;
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (avx512 && dtype == Dtype::bfloat16 && __builtin_cpu_supports("avx512bf16"))
        all.push_back(avx512_bf16_kernels());
    if (avx512 && (!int8 || __builtin_cpu_supports("avx512vnni"))) all.push_back(avx512_kernels());
    if (avx2) all.push_back(avx2_kernels());
#endif
    all.push_back(portable_kernels());
    if (dtype == Dtype::bfloat16) all.push_back(emulated_bf16_kernels());
    return all;
}

}  // namespace

std::vector<std::string> instruction_sets(Dtype dtype) {
    std::vector<std::string> names;
    for (const Kernels* kernels : runnable(dtype)) names.emplace_back(kernels->name);
    return names;
}

const Kernels& find_kernels(const std::string& name, Dtype dtype) {
    for (const Kernels* kernels : runnable(dtype))
        if (name == kernels->name) return *kernels;
    throw std::invalid_argument("the instruction set " + name + " is not supported by this CPU");
}

}  // namespace elmokit
