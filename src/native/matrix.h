// A weight matrix, packed once into the layout that the kernels multiply with.
//
// The columns form groups of equal size (the four gates of an LSTM, the two maps of a highway). A
// panel contains the same units of every group, so that the values of a unit are computed together.
// Odd sizes are padded with zeros.
#pragma once

#include <vector>

#include "kernels.h"
#include "memory.h"
#include "team.h"

namespace elmokit {

/// A group of columns of a row-major matrix, as in the weight files.
struct Columns {
    const float* weight;
    std::ptrdiff_t stride;    // from one row to the next
    const float* bias;        // may be null
    float extra_bias = 0.0f;  // added to every bias
};

class Matrix {
  public:
    Matrix() = default;

    /// Packs 1, 2 or 4 groups of `units` columns each, with `depth` rows.
    Matrix(const Kernels& kernels, Team& team, Dtype dtype, const std::vector<Columns>& groups,
           int depth, int units);

    int panels() const { return panels_; }
    /// Number of columns, padding included.
    int width() const { return panels_ * panel_width_; }
    /// Number of weights, padding included.
    std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(width()) * depth_; }
    /// Size of a weight in bytes.
    int weight_bytes() const { return codes_ ? 1 : pairs_ ? 2 : 4; }
    explicit operator bool() const { return panels_ != 0; }
    Panels view() const {
        return {values_.data(), codes_.data(), scales_.data(),
                bias_.data(),   depth_,        pairs_.data()};
    }

  private:
    /// The columns that one vector of a panel contains: a group, its first unit, and their number.
    struct Slice {
        int group;
        int unit;
        int count;
    };
    Slice slice(int panel, int vector, int groups) const;
    void pack_values(const std::vector<Columns>& groups, Span panels);
    void pack_pairs(const std::vector<Columns>& groups, Span panels);
    void pack_codes(const std::vector<Columns>& groups, Span panels);

    int lanes_ = 0;
    int code_group_ = 0;
    int code_bias_ = 0;
    int depth_ = 0;
    int units_ = 0;
    int panel_width_ = 0;
    int panels_ = 0;
    Buffer<float> values_;
    Buffer<std::uint16_t> pairs_;
    Buffer<std::uint8_t> codes_;
    Buffer<float> scales_;
    Buffer<float> bias_;
};

}  // namespace elmokit
