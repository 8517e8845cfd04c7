// The part of the Python module that measures the machine, and shows how a batch is divided. Only
// `engine/limits.py` calls these functions.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "checks.h"
#include "cpu.h"
#include "interrupts.h"
#include "memory.h"
#include "plan.h"
#include "python.h"
#include "team.h"

namespace nb = nanobind;
using namespace elmokit;

Dtype parse_dtype(const std::string& name);  // bind.cpp

namespace {

constexpr int kMostThreads = 4096;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
constexpr int kRounds = 10'000;  // some dozen microseconds

using Clock = std::chrono::steady_clock;

void check_seconds(double seconds) {
    if (!(seconds > 0 && seconds <= 60))
        refuse("seconds is " + std::to_string(seconds) + "; expected a number above 0, up to 60");
}

/// Calls `work` on every thread again and again for some seconds, and returns the sum of what the
/// calls returned, per second. `prepare` is called once before, on every thread.
template <class Prepare, class Work>
double per_second(int threads, double seconds, const Prepare& prepare, const Work& work) {
    Team team(threads);
    const Team::Turn turn(team);
    std::mutex mutex;
    double total = 0;
    Clock::time_point start;
    team.run([&](const Member& member) {
        prepare(member);
        work(member);
        member.synchronize();
        if (member.index == 0) start = Clock::now();
        member.synchronize();
        const auto end = start + std::chrono::duration<double>(seconds);
        double done = 0;
        do {
            check_interrupts();
            done += work(member);
        } while (Clock::now() < end);
        const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
        const std::lock_guard<std::mutex> lock(mutex);
        total += done / elapsed;
    });
    return total;
}

double measure_products(const std::string& isa, const std::string& dtype_, int threads,
                        double seconds) {
    const Dtype dtype = parse_dtype(dtype_);
    const Kernels& kernels = find_kernels(isa, dtype);
    check_size("threads", threads, 1, kMostThreads);
    check_seconds(seconds);
    double result = 0;
    without_gil([&] {
        result = per_second(
            threads, seconds, [](const Member&) {},
            [&](const Member&) {
                alignas(64) float scratch[kScratch] = {};
                return kernels.multiply_add(dtype, kRounds, scratch);
            });
    });
    return result;
}

double measure_reads(const std::string& isa, std::int64_t bytes, int threads, double seconds) {
    const Kernels& kernels = find_kernels(isa, Dtype::float32);
    constexpr std::int64_t block = kScratch * sizeof(float);
    check_size("threads", threads, 1, kMostThreads);
    check_size("bytes", bytes, block * threads, kMostBytes);
    check_seconds(seconds);
    double result = 0;
    without_gil([&] {
        const std::ptrdiff_t blocks = bytes / block;
        Buffer<float> memory(blocks * kScratch);
        std::atomic<float> sink{0};
        const auto mine = [&](const Member& member) { return member.share(blocks); };
        result = per_second(
            threads, seconds,
            [&](const Member& member) {
                // Every thread touches its own part first, as it does with weights.
                const Span part = mine(member);
                std::fill(memory.data() + std::ptrdiff_t{part.begin} * kScratch,
                          memory.data() + std::ptrdiff_t{part.end} * kScratch, 1.0f);
            },
            [&](const Member& member) {
                const Span part = mine(member);
                const std::ptrdiff_t count = std::ptrdiff_t{part.end - part.begin} * kScratch;
                // Small parts are read often enough that the clock does not matter.
                const std::ptrdiff_t times = std::max<std::ptrdiff_t>(1, (1 << 18) / count);
                for (std::ptrdiff_t i = 0; i < times; ++i)
                    sink.store(kernels.read(memory.data() + std::ptrdiff_t{part.begin} * kScratch,
                                            count),
                               std::memory_order_relaxed);
                return double(times) * count * sizeof(float);
            });
    });
    return result;
}

std::tuple<int, int, int> plan(int threads, std::int64_t sentences, std::int64_t step_products,
                               std::int64_t step_bytes) {
    check_size("threads", threads, 1, kMostThreads);
    check_size("sentences", sentences, 1, kMaxRows);
    check_size("step_products", step_products, 1, kMaxSize * kMaxSize);
    check_size("step_bytes", step_bytes, 1, kMaxSize * kMaxSize);
    const Plan plan = make_plan(threads, sentences, step_products, step_bytes);
    return {plan.subteams, plan.members, plan.blocks};
}

}  // namespace

void bind_limits(nb::module_& m) {
    m.def("measure_products", &measure_products, nb::kw_only(), nb::arg("instruction_set"),
          nb::arg("dtype"), nb::arg("threads"), nb::arg("seconds"));
    m.def("measure_reads", &measure_reads, nb::kw_only(), nb::arg("instruction_set"),
          nb::arg("bytes"), nb::arg("threads"), nb::arg("seconds"));
    m.def("plan", &plan, nb::kw_only(), nb::arg("threads"), nb::arg("sentences"),
          nb::arg("step_products"), nb::arg("step_bytes"));
}
