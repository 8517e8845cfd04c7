// Rows of activations, the input of a matrix product: floats and, for int8 weights, their codes.
#pragma once

#include "kernels.h"
#include "memory.h"

namespace elmokit {

class Activations {
  public:
    /// Allocates `rows` of `depth` values. A row is padded with zeros to whole panels and one panel
    /// more, so that the rows of a tile do not map to the same cache sets.
    void reserve(const Kernels& kernels, int rows, int depth, bool int8) {
        const std::ptrdiff_t panel = kPanelVectors * kernels.lanes;
        kernels_ = &kernels;
        depth_ = depth;
        stride_ = (depth + panel - 1) / panel * panel + panel;
        values_.reserve(rows * stride_);
        if (!int8) return;
        code_stride_ = stride_ * kernels.activation_bytes;
        codes_.reserve(rows * code_stride_);
        scales_.reserve(rows);
        sums_.reserve(rows);
    }

    float* row(int r) { return values_.data() + r * stride_; }
    std::ptrdiff_t stride() const { return stride_; }

    /// Computes the int8 codes of a row from its floats.
    void quantize(int r) {
        kernels_->quantize(row(r), depth_, codes_.data() + r * code_stride_, &scales_[r],
                           &sums_[r]);
    }

    Rows view() const {
        return {values_.data(), stride_, codes_.data(), code_stride_, scales_.data(), sums_.data()};
    }

  private:
    const Kernels* kernels_ = nullptr;
    int depth_ = 0;
    std::ptrdiff_t stride_ = 0;
    std::ptrdiff_t code_stride_ = 0;
    Buffer<float> values_;
    Buffer<std::uint8_t> codes_;
    Buffer<float> scales_;
    Buffer<std::int32_t> sums_;
};

}  // namespace elmokit
