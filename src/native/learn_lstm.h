// One layer of an LSTM that learns, in one direction: forward and back through a packed batch.
//
// Runs in the thread that calls it. The products that are not sequential (inputs, gradients of the
// weights) are the caller's: they are ordinary large ones. Units fill whole vectors of 16.
//
// Shape letters: N words of the batch, B sentences, P width, H units, G = 4H gates.
#pragma once

#include <cstdint>

#include "kernels.h"

namespace elmokit {

/// How the words of a batch lie, and what the layer is.
struct LearningLayer {
    const std::int64_t* alive;  // how many sentences have a word at each step, never rising
    std::ptrdiff_t steps;
    int width;  // P
    int units;  // H
    float cell_clip;
    float projection_clip;
};

struct LearningForward {
    const float* recurrent;   // (P, G)
    const float* projection;  // (H, P)
    const float* hidden;      // (B, P), before the first word
    const float* cell;        // (B, H)
    float* gates;             // (N, G): x·W_x + bias before, the gates' values after
    float* cells;             // (N, H)
    float* outputs;           // (N, H): before the projection
    float* said;              // (N, P)
};

struct LearningBackward {
    const float* recurrent;   // (P, G)
    const float* projection;  // (H, P)
    const float* cell;        // (B, H), before the first word
    const float* gates;       // what the forward pass kept
    const float* cells;
    const float* said;
    const float* d_said;      // (N, P)
    float* d_hidden;          // (B, P): written
    float* d_cell;            // (B, H): of the last cells before, of the first cells after
    float* d_gates;           // (N, G)
    float* d_projected;       // (N, P): gradients before the projection's clip
};

void run(const Kernels& kernels, const LearningLayer& layer, const LearningForward& pass);
void run(const Kernels& kernels, const LearningLayer& layer, const LearningBackward& pass);

}  // namespace elmokit
