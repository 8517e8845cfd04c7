// How a batch is divided among threads: into tasks that do not depend on each other, which subteams
// of threads take one after another. A subteam that is slowed down takes fewer of them. Plain
// arithmetic, so that it can be tested for any number of threads.
#pragma once

#include <algorithm>
#include <cstddef>

namespace elmokit {

/// Most sentences of a task: bounds the memory.
constexpr int kSentencesPerBlock = 128;

// Thresholds; measured, not critical.
constexpr int kFewSentences = 16;  // with fewer rows, reading the weights takes the time
constexpr int kRowsPerRead = 48;   // so many rows are worth reading weights from memory
constexpr std::ptrdiff_t kCacheBytes = std::ptrdiff_t{32} << 20;
constexpr std::ptrdiff_t kMinProductsPerThread = 200'000;
constexpr int kTasksPerSubteam = 4;

/// A task is a block of sentences in one direction.
struct Plan {
    int subteams;  // that run at the same time
    int members;   // threads of a subteam
    int blocks;    // of sentences, in each direction
};

/// Divides a batch of sentences. A step of a sentence takes `step_products` products with weights of
/// `step_bytes`.
///
/// Threads that share a step wait for each other after every product; so as many subteams as
/// possible run tasks of their own, as long as a task has rows enough to be worth reading the
/// weights. But a few sentences with weights of both directions that do not fit into the cache are
/// limited by memory: then the whole team runs one direction after the other, which finds more of
/// its weights in the cache.
inline Plan make_plan(int threads, std::ptrdiff_t sentences, std::ptrdiff_t step_products,
                      std::ptrdiff_t step_bytes) {
    const bool large = 2 * step_bytes > kCacheBytes;
    const std::ptrdiff_t rows = large ? kRowsPerRead : kFewSentences;
    const std::ptrdiff_t least = (sentences + kSentencesPerBlock - 1) / kSentencesPerBlock;
    const std::ptrdiff_t most = std::max(least, sentences / rows);
    // As many subteams as there are tasks for, unless that leaves threads without a subteam.
    std::ptrdiff_t subteams = 1;
    if (most > 1 || (threads % 2 == 0 && !(large && sentences < kFewSentences))) {
        double busy = 0;
        for (auto n = std::min<std::ptrdiff_t>(threads, 2 * most); n >= 1; --n) {
            if (n > 1 && n % 2 && most < n) continue;  // two directions cannot be shared equally
            const double used = double(threads / n * n);
            if (used > 1.1 * busy) {
                busy = used;
                subteams = n;
            }
        }
    }
    // Every subteam has the same number of tasks, if possible; a single one needs no more than one.
    const std::ptrdiff_t unit = subteams % 2 ? subteams : subteams / 2;
    const std::ptrdiff_t wanted = subteams == 1 ? 1 : (kTasksPerSubteam * subteams + 1) / 2;
    const std::ptrdiff_t blocks =
        std::max<std::ptrdiff_t>({1, least, std::min(wanted, most) / unit * unit});
    // With fewer products per step, a member spends more time on synchronization than on its share.
    const std::ptrdiff_t products = (sentences + blocks - 1) / blocks * step_products;
    const std::ptrdiff_t members = std::clamp<std::ptrdiff_t>(
        products / kMinProductsPerThread, 1, std::max<std::ptrdiff_t>(1, threads / subteams));
    return {static_cast<int>(subteams), static_cast<int>(members), static_cast<int>(blocks)};
}

}  // namespace elmokit
