// LSTM layers with projection (LSTMP) in both directions: word vectors to contextual vectors.
//
// Works on packed batches: the rows of a step are adjacent, longest sentence first. So a sentence
// keeps its rank from step to step, and the sentences that still have words come first
// (engine/batching.py). Knows nothing about characters.
// Shape letters: N words of a batch, B sentences, T steps, P width, D = 2P, H cells, L layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "activations.h"
#include "architecture.h"
#include "matrix.h"
#include "team.h"

namespace elmokit {

/// A batch in packed order, and where its results go.
struct Batch {
    const float* words;          // (N, P)
    const std::int64_t* alive;   // (T,): number of sentences that have a word at each step
    const std::int64_t* mirror;  // (N,): row of the word that the backward direction reads
    std::ptrdiff_t n_words;      // N
    std::ptrdiff_t steps;        // T
    std::ptrdiff_t sentences;    // B, the rows of the state
    float* hidden;               // (L, 2, B, P): in: the state before; out: the state after
    float* cell;                 // (L, 2, B, H): likewise
    float* layers;               // (L + 1, N, D)
};

class BiLSTM {
  public:
    BiLSTM(const Architecture& architecture, const Kernels& kernels, Team& team, Dtype dtype);

    /// Packs weights as in the weight files, with the columns of the gates i, j, f, o one after the
    /// other; `projection` may be null.
    void load(int layer, int direction, const float* input, const float* recurrent,
              const float* bias, const float* projection);

    /// Returns the name of weights that were not loaded; empty if all were.
    std::string missing() const;

    /// Size in bytes of the memory that is reused from call to call.
    std::size_t buffer_bytes() const;

    /// Computes all layers of a valid batch.
    void contextualize(const Batch& batch);

  private:
    /// The weights of one layer in one direction.
    struct Layer {
        Matrix input;
        Matrix recurrent;
        Matrix projection;

        /// Number of weights that a step multiplies with, and their size in bytes.
        std::ptrdiff_t step_products() const { return recurrent.size() + projection.size(); }
        std::ptrdiff_t step_bytes() const {
            return step_products() * recurrent.weight_bytes();
        }
    };
    /// Intermediate results of a pass; the memory is reused from call to call.
    struct Buffers {
        int words = 0;        // most words of a chunk
        Activations input;    // x of the words of a chunk
        Activations hidden;   // h, the last output
        Activations output;   // m, the output of the cells before the projection
        Buffer<float> gates;  // x·W_x + bias of a chunk
        Buffer<float> cells;  // c
    };
    struct Pass;

    /// One member's part of all layers of a block of sentences in one direction.
    void run_task(const Member& member, Buffers& buffers, const Batch& batch, int direction,
                  Span ranks);
    void copy_words(const Member& member, const Batch& batch, int direction, Span ranks) const;
    void reserve(Buffers& buffers, int sentences) const;

    const Architecture architecture_;
    const Kernels& kernels_;
    Team& team_;
    const Dtype dtype_;
    const bool coded_;  // whether products read codes of the activations
    std::vector<Layer> layers_;  // [layer][direction]
    std::vector<Buffers> buffers_;  // one for each subteam
};

}  // namespace elmokit
