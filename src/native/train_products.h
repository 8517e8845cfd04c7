// A product of two large float32 matrices, in training.
//
// Runs in the calling thread. Only where this is faster than the caller's own library, which on a
// CPU with AVX-512 that is not Intel's multiplies by AVX2 (nn/products.py).
#pragma once

#include <cstddef>

#include "kernels.h"

namespace elmokit {

/// out = a·b + bias, or out += a·b + bias. All matrices are row-major, also those that are stored
/// transposed: a as (depth, rows), b as (columns, depth).
struct MatrixProduct {
    int rows, depth, columns;
    const float* a;
    bool a_transposed;
    const float* b;
    bool b_transposed;
    const float* bias;  // [columns], or null
    float* out;         // (rows, columns)
    bool add;
};

void run_product(const Kernels& kernels, const MatrixProduct& product);

}  // namespace elmokit
