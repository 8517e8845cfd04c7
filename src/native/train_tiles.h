// Training with products of bfloat16: an LSTM layer in one direction, a softmax, and an affine map.
//
// Weights, activations and gradients are float32; the factors of matrix products are rounded to
// bfloat16, and their sums are float32. All runs in the calling thread, the large products too.
//
// Shape letters: N words of the batch, B sentences, P width, H units (cells), G = 4H gates, and, for
// the softmax, R words, the first S of which are candidates. P' is P rounded up to whole tiles.
#pragma once

#include <cstdint>

#include "kernels.h"
#include "train_lstm.h"

namespace elmokit {

/// Returns a number of columns, rounded up to whole tiles.
constexpr std::ptrdiff_t padded_depth(std::ptrdiff_t columns) {
    return (columns + kTileDepth - 1) / kTileDepth * kTileDepth;
}

/// Rows that follow the N of arrays of bfloat16: a tile of the last step reaches into them.
constexpr std::ptrdiff_t kTileMargin = 2 * kTileRows;

/// The weights of a layer, with gates in the order of the files: [4][H].
struct TileLSTMWeights {
    const float* input;       // (P, G)
    const float* recurrent;   // (P, G)
    const float* bias;        // (G)
    const float* projection;  // (H, P)
};

/// The forward pass. The gates of each step are written in the order of `TileCells`.
struct TileForwardPass {
    const float* inputs;           // (N, P)
    const float* initial_hidden;   // (B, P)
    const float* initial_cell;     // (B, H)
    float* gates;                  // (N, G): out
    float* cells;                  // (N, H): out
    std::uint16_t* factors;        // (N + margin, 2P'): out: input and previous output of each word
    std::uint16_t* cell_outputs;   // (N + margin, H'): out: before the projection
    float* outputs;                // (N, P): out
};

struct TileBackwardPass {
    const float* initial_cell;  // (B, H)
    const float* gates;         // results of the forward pass
    const float* cells;
    const std::uint16_t* factors;
    const std::uint16_t* cell_outputs;
    const float* outputs;
    const float* d_outputs;  // (N, P)
    float* d_inputs;         // (N, P): out, or null
    float* d_hidden;         // (B, P): out: gradient of the initial hidden state
    float* d_cell;           // (B, H): in: gradient of the last cells; out: of the initial cells
    float* d_input;          // (P, G): out
    float* d_recurrent;      // (P, G): out
    float* d_bias;           // (G): out
    float* d_projection;     // (H, P): out
};

void run_forward(const Kernels& kernels, const TrainingLayer& layer,
                 const TileLSTMWeights& weights, const TileForwardPass& pass);
void run_backward(const Kernels& kernels, const TrainingLayer& layer,
                  const TileLSTMWeights& weights, const TileBackwardPass& pass);

/// A softmax over candidates, with the gradients of the loss; see `SoftmaxRows`.
struct TileSoftmax {
    std::ptrdiff_t rows;  // N
    int candidates;       // S
    int width;            // P
    std::ptrdiff_t words;  // R
    const float* bias;    // [columns]: S, padded to whole groups of kSoftmaxColumns
    const float* hidden;  // (N, P)
    const float* weights;  // (R, P)
    const std::int64_t* targets;
    const float* target_bias;
    float* hidden_gradient;  // (N, P) or null: out
    float* weight_gradient;  // (R, P) or null: added to
    float* bias_gradient;    // [max(R, columns)] or null: added to
};

/// Returns the sum of the losses.
double run_softmax(const Kernels& kernels, const TileSoftmax& softmax);

/// An affine map x·W + bias of N rows, from `inputs` to `outputs` columns.
struct TileAffine {
    std::ptrdiff_t rows;
    int inputs;
    int outputs;
};

void run_affine(const Kernels& kernels, const TileAffine& map, const float* x, const float* weight,
                const float* bias, float* y);
/// Any of the gradients may be null.
void run_affine_backward(const Kernels& kernels, const TileAffine& map, const float* x,
                         const float* weight, const float* d_y, float* d_x, float* d_weight,
                         float* d_bias);

}  // namespace elmokit
