// A frozen biLM: its packed weights and the threads that run it. Concurrent calls wait for each
// other.
#pragma once

#include <stdexcept>
#include <string>

#include "architecture.h"
#include "char_cnn.h"
#include "cpu.h"
#include "lstmp.h"
#include "team.h"

namespace elmokit {

struct Network {
    Network(const Architecture& architecture, Dtype dtype, const std::string& instruction_set,
            int threads)
        : architecture(architecture),
          kernels(find_kernels(instruction_set, dtype)),
          team(threads),
          characters(architecture, kernels, team, dtype),
          lstm(architecture, kernels, team, dtype) {}

    /// Calls a function that loads weights, when no other call runs.
    template <class Function>
    void load(const Function& function) {
        const Team::Turn turn(team);
        function();
    }

    /// Size in bytes of the memory that is reused from call to call.
    std::size_t buffer_bytes() {
        const Team::Turn turn(team);
        return characters.buffer_bytes() + lstm.buffer_bytes();
    }

    void word_vectors(const std::int16_t* ids, const std::int64_t* lengths, std::ptrdiff_t words,
                      float* out) {
        const Team::Turn turn(team);
        require(characters.missing());
        characters.word_vectors(ids, lengths, words, out);
    }

    void contextualize(const Batch& batch) {
        const Team::Turn turn(team);
        require(lstm.missing());
        lstm.contextualize(batch);
    }

    static void require(const std::string& missing) {
        if (!missing.empty())
            throw std::invalid_argument("weights are missing: " + missing +
                                        " was not loaded; load all weights first");
    }

    const Architecture architecture;
    const Kernels& kernels;
    Team team;
    CharCNN characters;
    BiLSTM lstm;
};

}  // namespace elmokit
