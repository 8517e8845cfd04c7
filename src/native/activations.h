// Rows of activations, the input of a matrix product: floats and, where the product reads codes,
// their codes (int8 or bfloat16).
#pragma once

#include "kernels.h"
#include "memory.h"

namespace elmokit {

class Activations {
  public:
    /// Allocates `rows` of `depth` values. A row is padded with zeros to whole panels and one panel
    /// more, so that the rows of a tile do not map to the same cache sets.
    void reserve(const Kernels& kernels, int rows, int depth, Dtype dtype) {
        const std::ptrdiff_t panel = kPanelVectors * kernels.lanes;
        kernels_ = &kernels;
        depth_ = depth;
        stride_ = (depth + panel - 1) / panel * panel + panel;
        values_.reserve(rows * stride_);
        rounds_ = dtype == Dtype::bfloat16;
        if (!coded(kernels, dtype)) return;
        code_stride_ = stride_ * (rounds_ ? sizeof(std::uint16_t) : kernels.activation_bytes);
        // A product by tiles reads whole tiles of rows; what is beyond the last one is not used.
        codes_.reserve((rows + (rounds_ ? 2 * kTileRows : 0)) * code_stride_);
        if (rounds_) return;
        scales_.reserve(rows);
        sums_.reserve(rows);
    }

    /// Size of all arrays in bytes.
    std::size_t bytes() const {
        return values_.bytes() + codes_.bytes() + scales_.bytes() + sums_.bytes();
    }

    float* row(int r) { return values_.data() + r * stride_; }
    std::ptrdiff_t stride() const { return stride_; }

    /// Whether products read codes of the activations.
    static bool coded(const Kernels& kernels, Dtype dtype) {
        return dtype == Dtype::int8 || (dtype == Dtype::bfloat16 && kernels.round_row);
    }

    /// Computes the codes of a row from its floats.
    void encode(int r) {
        std::uint8_t* codes = codes_.data() + r * code_stride_;
        if (rounds_)
            kernels_->round_row(row(r), depth_, reinterpret_cast<std::uint16_t*>(codes));
        else
            kernels_->quantize(row(r), depth_, codes, &scales_[r], &sums_[r]);
    }

    Rows view() const {
        return {values_.data(), stride_, codes_.data(), code_stride_, scales_.data(), sums_.data()};
    }

  private:
    const Kernels* kernels_ = nullptr;
    int depth_ = 0;
    bool rounds_ = false;
    std::ptrdiff_t stride_ = 0;
    std::ptrdiff_t code_stride_ = 0;
    Buffer<float> values_;
    Buffer<std::uint8_t> codes_;
    Buffer<float> scales_;
    Buffer<std::int32_t> sums_;
};

}  // namespace elmokit
