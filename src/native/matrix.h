// A matrix of the network, packed once for the kernels that multiply with it.
//
// Its columns come in groups of equal size (an LSTM's four gates, a highway's two maps), and a
// panel takes the same units of every group, so that what belongs together is computed together.
// Odd sizes are padded with zeros.
#pragma once

#include <vector>

#include "kernels.h"
#include "memory.h"
#include "team.h"

namespace elmokit {

/// Some columns of a row-major matrix, as it stands in the file.
struct Columns {
    const float* weight;
    std::ptrdiff_t stride;  // from one row to the next
    const float* bias;      // null for none
    float more_bias = 0.0f; // added to every bias
};

class Matrix {
  public:
    Matrix() = default;

    /// `groups` (1, 2 or 4) of `units` columns each, `depth` rows.
    Matrix(const Kernels& kernels, Team& team, bool int8, const std::vector<Columns>& groups,
           int depth, int units);

    int panels() const { return panels_; }
    /// Columns, padding included.
    int width() const { return panels_ * panel_width_; }
    /// Weights, padding included.
    std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(width()) * depth_; }
    bool int8() const { return static_cast<bool>(codes_); }
    explicit operator bool() const { return panels_ != 0; }
    Panels view() const {
        return {values_.data(), codes_.data(), scales_.data(), bias_.data(), depth_};
    }

  private:
    /// The columns that one vector of a panel holds: a group, its first unit, and how many.
    struct Slice {
        int group;
        int unit;
        int count;
    };
    Slice slice(int panel, int vector, int groups) const;
    void pack_values(const std::vector<Columns>& groups, Span panels);
    void pack_codes(const std::vector<Columns>& groups, Span panels);

    int lanes_ = 0;
    int code_group_ = 0;
    int code_bias_ = 0;
    int depth_ = 0;
    int units_ = 0;
    int panel_width_ = 0;
    int panels_ = 0;
    Buffer<float> values_;
    Buffer<std::uint8_t> codes_;
    Buffer<float> scales_;
    Buffer<float> bias_;
};

}  // namespace elmokit
