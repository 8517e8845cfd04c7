// Fills in the table of kernels for one instruction set.
#pragma once

#include "layers.h"
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
            quantise<V>,
            tabulate<V>,
            convolve<V>};
}

}  // namespace elmokit
