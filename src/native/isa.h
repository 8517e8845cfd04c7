// Fills in the table of kernels for one instruction set.
#pragma once

#include "layers.h"
#include "learn_layers.h"
#include "learn_softmax.h"
#include "learn_windows.h"
#include "windows.h"

namespace elmokit {

template <class V>
constexpr Kernels kernels_for(const char* name) {
    return {name,
            V::lanes,
            V::rows,
            V::code_group,
            V::code_bias,
            sizeof(typename V::Activation),
            linear<V>,
            highway<V>,
            cells<V>,
            learning_cells<V>,
            backward_cells<V>,
            quantize<V>,
            tabulate<V>,
            convolve<V>,
            learn_windows<V>,
            backward_windows<V>,
            softmax<V>};
}

}  // namespace elmokit
