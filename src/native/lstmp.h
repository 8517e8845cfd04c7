// From word vectors to contextual ones: LSTM layers with projection, in both directions.
//
// Works on packed batches: the rows of a step lie together, longest sentence first, so that a
// sentence keeps its rank from step to step and the living ones come first (engine/batching.py).
// Knows nothing about characters. Shape letters: N words of a batch, B sentences, T steps, P width,
// D = 2P, H cells, L layers.
#pragma once

#include <cstdint>
#include <vector>

#include "activations.h"
#include "architecture.h"
#include "matrix.h"
#include "team.h"

namespace elmokit {

/// A batch in packed order, and where its results go.
struct Batch {
    const float* words;          // (N, P)
    const std::int64_t* alive;   // (T,)
    const std::int64_t* mirror;  // (N,)
    std::ptrdiff_t n_words;      // N
    std::ptrdiff_t steps;        // T
    std::ptrdiff_t sentences;    // B, the rows of the state
    float* hidden;               // (L, 2, B, P), the state before and after
    float* cell;                 // (L, 2, B, H)
    float* layers;               // (L + 1, N, D)
};

class BiLSTM {
  public:
    BiLSTM(const Architecture& architecture, const Kernels& kernels, Team& team, bool int8);

    /// Weights as in the file, gates i, j, f, o side by side; `projection` is null for none.
    void load(int layer, int side, const float* input, const float* recurrent, const float* bias,
              const float* projection);

    /// Throws std::invalid_argument if the packing contradicts itself.
    void contextualize(const Batch& batch);

  private:
    /// The weights of one layer in one direction.
    struct Layer {
        Matrix input;
        Matrix recurrent;
        Matrix projection;

        /// What a step multiplies with: how many weights, and how many bytes they are.
        std::ptrdiff_t step_products() const { return recurrent.size() + projection.size(); }
        std::ptrdiff_t step_bytes() const {
            return step_products() * static_cast<std::ptrdiff_t>(recurrent.int8() ? 1 : sizeof(float));
        }
    };
    /// What a pass needs beside its results; kept from call to call.
    struct Buffers {
        Activations input;    // x of the words of a chunk
        Activations hidden;   // h, the last output
        Activations output;   // m, what the cells say before the projection
        Buffer<float> gates;  // x·W_x + bias of a chunk
        Buffer<float> cells;  // c
    };
    struct Pass;

    int squads(int sentences) const;
    int squad_size(int sentences, int squads) const;
    void copy_words(const Member& member, const Batch& batch, int side) const;
    void check(const Batch& batch) const;
    void reserve(Buffers& buffers, int sentences) const;

    const Architecture architecture_;
    const Kernels& kernels_;
    Team& team_;
    const bool int8_;
    std::vector<Layer> layers_;  // [layer][side]
    Buffers buffers_[2];         // one for each direction, if both are read at once
};

}  // namespace elmokit
