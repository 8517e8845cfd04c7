// The character network: computes the context-free vectors of words from their characters, with a
// table convolution, highways and a projection. Knows nothing about sentences.
// Shape letters: U words, C characters, F filters, P width.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "activations.h"
#include "architecture.h"
#include "matrix.h"
#include "team.h"

namespace elmokit {

class CharCNN {
  public:
    CharCNN(const Architecture& architecture, const Kernels& kernels, Team& team, Dtype dtype);

    void load_embedding(const float* embedding);
    void load_filters(int index, const float* weight, const float* bias);
    void load_highway(int index, const Columns& carry, const Columns& transform);
    void load_projection(const Columns& columns);

    /// Returns the name of weights that were not loaded; empty if all were.
    std::string missing() const;

    /// Size in bytes of the memory that is reused from call to call.
    std::size_t buffer_bytes() const;

    /// Writes the vectors (U, P) of words, given valid ids (U, C) and lengths (U,).
    void word_vectors(const std::int16_t* ids, const std::int64_t* lengths, std::ptrdiff_t words,
                      float* out);

  private:
    /// Returns the characters of these words that have no table rows yet.
    std::vector<int> new_characters(const std::int16_t* ids, std::ptrdiff_t words) const;
    /// Intermediate results; the memory is reused from call to call.
    struct Buffers {
        Activations x, y;
    };
    /// One member's part of the vectors of a block of words.
    void compute_block(const Member& member, Buffers& buffers, const std::int16_t* ids,
                       const std::int64_t* lengths, int words, float* out);

    const Architecture architecture_;
    const Kernels& kernels_;
    Team& team_;
    const Dtype dtype_;
    const bool coded_;  // whether products read codes of the activations

    std::vector<Filters> filters_;
    std::vector<Buffer<float>> filter_weights_;
    std::vector<Buffer<float>> filter_biases_;
    Buffer<float> embedding_;
    Buffer<float> table_{Pages::small};
    Convolution convolution_{};
    std::vector<char> tabulated_;  // whether each character has its table rows
    bool embedding_loaded_ = false;
    std::vector<char> filters_loaded_;
    std::vector<Matrix> highways_;
    Matrix projection_;
    std::vector<Buffers> buffers_;  // one for each block that is computed at the same time
};

}  // namespace elmokit
