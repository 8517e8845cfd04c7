#include "cpu.h"

#include <stdexcept>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace elmokit {

namespace {

#if defined(__aarch64__)
/// Whether this CPU, and this system, has the dot product and the matrix product of bytes. On other
/// systems than these two, neither is assumed.
struct ByteProducts {
    bool dot = false;
    bool matrix = false;
};

ByteProducts byte_products() {
#if defined(__linux__)
    // HWCAP_ASIMDDP and HWCAP2_I8MM of <asm/hwcap.h>, which old headers do not have.
    return {(getauxval(AT_HWCAP) & 1ul << 20) != 0, (getauxval(AT_HWCAP2) & 1ul << 13) != 0};
#elif defined(__APPLE__)
    const auto has = [](const char* feature) {
        int value = 0;
        std::size_t size = sizeof value;
        return sysctlbyname(feature, &value, &size, nullptr, 0) == 0 && value == 1;
    };
    return {has("hw.optional.arm.FEAT_DotProd"), has("hw.optional.arm.FEAT_I8MM")};
#else
    return {};
#endif
}
#endif

#if defined(__x86_64__)
/// Whether this CPU has AMX with bfloat16, and the system lets this process and its threads use it.
bool amx_granted() {
#if defined(__linux__)
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
    constexpr unsigned tiles = 1u << 24, bfloat16 = 1u << 22;
    if (!(edx & tiles) || !(edx & bfloat16)) return false;
    constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return false;
#endif
}
#endif

std::vector<const Kernels*> runnable([[maybe_unused]] Dtype dtype) {
    [[maybe_unused]] const bool int8 = dtype == Dtype::int8;
    std::vector<const Kernels*> all;
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (avx512 && dtype == Dtype::bfloat16 && __builtin_cpu_supports("avx512bf16")) {
        static const bool amx = amx_granted();
        if (amx) all.push_back(amx_kernels());
        all.push_back(avx512_bf16_kernels());
    }
    if (avx512 && (!int8 || __builtin_cpu_supports("avx512vnni"))) all.push_back(avx512_kernels());
    if (avx2) all.push_back(avx2_kernels());
#elif defined(__aarch64__)
    const ByteProducts bytes = byte_products();
    if (bytes.matrix) all.push_back(neon_i8mm_kernels());
    if (bytes.dot) all.push_back(neon_dotprod_kernels());
    all.push_back(neon_kernels());
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

bool made_by_intel() {
#if defined(__x86_64__)
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}

}  // namespace elmokit
