// One LSTM layer in training, in one direction: forward and backward pass over a packed batch.
//
// Runs in the calling thread. The caller computes the products that are not sequential (inputs,
// gradients of the weights), which are ordinary large matrix products. H must be a multiple of 16.
//
// Shape letters: N words of the batch, B sentences, P width, H units (cells), G = 4H gates.
#pragma once

#include <cstdint>

#include "kernels.h"

namespace elmokit {

/// The packing of the batch, and the architecture of the layer.
struct TrainingLayer {
    const std::int64_t* alive;  // sentences that have a word at each step; never increases
    std::ptrdiff_t steps;
    int width;  // P
    int units;  // H
    float cell_clip;
    float projection_clip;
};

struct ForwardPass {
    const float* recurrent;       // (P, G)
    const float* projection;      // (H, P)
    const float* initial_hidden;  // (B, P): before the first word
    const float* initial_cell;    // (B, H): before the first word
    float* gates;                 // (N, G): in: x·W_x + bias; out: the gates' values
    float* cells;                 // (N, H): out
    float* cell_outputs;          // (N, H): out: before the projection
    float* outputs;               // (N, P): out
};

struct BackwardPass {
    const float* recurrent;     // (P, G)
    const float* projection;    // (H, P)
    const float* initial_cell;  // (B, H): before the first word
    const float* gates;         // results of the forward pass
    const float* cells;
    const float* outputs;
    const float* d_outputs;  // (N, P)
    float* d_hidden;         // (B, P): out: gradient of the initial hidden state
    float* d_cell;           // (B, H): in: gradient of the last cells; out: of the initial cells
    float* d_gates;          // (N, G): out
    float* d_projected;      // (N, P): out: gradient before the clip of the projection
};

void run_forward(const Kernels& kernels, const TrainingLayer& layer, const ForwardPass& pass);
void run_backward(const Kernels& kernels, const TrainingLayer& layer, const BackwardPass& pass);

}  // namespace elmokit
