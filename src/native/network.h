// A frozen biLM: its packed weights and the threads that run it. Concurrent calls wait for each
// other.
#pragma once

#include <string>

#include "architecture.h"
#include "char_cnn.h"
#include "cpu.h"
#include "lstmp.h"
#include "team.h"

namespace elmokit {

struct Network {
    Network(const Architecture& architecture, bool int8, const std::string& instruction_set,
            int threads)
        : architecture(architecture),
          kernels(find_kernels(instruction_set, int8)),
          team(threads),
          characters(architecture, kernels, team, int8),
          lstm(architecture, kernels, team, int8) {}

    void word_vectors(const std::int16_t* ids, const std::int64_t* lengths, std::ptrdiff_t words,
                      float* out) {
        const auto lock = team.lock();
        characters.word_vectors(ids, lengths, words, out);
    }

    void contextualize(const Batch& batch) {
        const auto lock = team.lock();
        lstm.contextualize(batch);
    }

    const Architecture architecture;
    const Kernels& kernels;
    Team team;
    CharCNN characters;
    BiLSTM lstm;
};

}  // namespace elmokit
