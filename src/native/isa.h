// Fills in the table of kernels for one instruction set.
#pragma once

#include "convolution.h"
#include "layers.h"
#include "limits.h"
#include "tiles.h"
#include "train_cells.h"
#include "train_convolution.h"
#include "train_softmax.h"

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
            training_cells<V>,
            backward_cells<V>,
            quantize<V>,
            tabulate<V>,
            convolve<V>,
            training_convolution<V>,
            backward_convolution<V>,
            softmax<V>,
            PairProducts<V>::exist ? round_row<V> : nullptr,
            multiply_add<V>,
            read<V>,
            {begin_tiles<V>, end_tiles<V>, round_to_tiles<V>, pack_tile_rows<V>,
             pack_tile_columns<V>, pack_tile_panel<V>, transpose_tiles<V>, tile_product<V>,
             tile_cells<V>, tile_backward_cells<V>, tile_backward_clip<V>}};
}

}  // namespace elmokit
