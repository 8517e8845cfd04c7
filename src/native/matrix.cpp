#include "matrix.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace elmokit {

namespace {

/// Panels that are packed together. A source row is read in pieces of this many vectors, so that
/// neither reads nor writes jump to another page at every cache line.
constexpr int kPanelsPerBlock = 16;

/// Largest depth at which a sum of products of codes, each at most 127 * 128, fits into 32 bits.
constexpr int kMaxInt8Depth = INT32_MAX / (127 * 128);

/// The nearest bfloat16 of a finite number, the even one of two equally near.
std::uint16_t round_to_bfloat16(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float round_to_integer(float x) {
    constexpr float magic = 12582912.0f;  // 1.5 * 2^23
    return x + magic - magic;
}

}  // namespace

Matrix::Matrix(const Kernels& kernels, Team& team, Dtype dtype, const std::vector<Columns>& groups,
               int depth, int units)
    : lanes_(kernels.lanes),
      code_group_(kernels.code_group),
      code_bias_(kernels.code_bias),
      depth_(depth),
      units_(units),
      panel_width_(kPanelVectors * kernels.lanes) {
    if (dtype == Dtype::int8 && depth > kMaxInt8Depth)
        throw std::invalid_argument("a matrix of " + std::to_string(depth) +
                                    " rows is too large for int8; use float32");
    const int units_per_panel = panel_width_ / static_cast<int>(groups.size());
    panels_ = (units + units_per_panel - 1) / units_per_panel;
    const std::size_t columns = static_cast<std::size_t>(panels_) * panel_width_;
    bias_.reserve(columns);
    if (dtype == Dtype::int8) {
        codes_.reserve(columns * ((depth + code_group_ - 1) / code_group_) * code_group_);
        scales_.reserve(columns);
    } else if (dtype == Dtype::bfloat16) {
        pairs_.reserve(columns * ((depth + 1) / 2) * 2);
    } else {
        values_.reserve(columns * depth);
    }
    team.run([&](const Member& member) {
        const Span mine = member.share(panels_);
        for (int first = mine.begin; first < mine.end; first += kPanelsPerBlock) {
            const Span some{first, std::min(first + kPanelsPerBlock, mine.end)};
            dtype == Dtype::int8       ? pack_codes(groups, some)
            : dtype == Dtype::bfloat16 ? pack_pairs(groups, some)
                                       : pack_values(groups, some);
        }
    });
    for (int panel = 0; panel < panels_; ++panel) {
        for (int v = 0; v < kPanelVectors; ++v) {
            const Slice from = slice(panel, v, static_cast<int>(groups.size()));
            const Columns& group = groups[from.group];
            for (int i = 0; i < from.count; ++i)
                bias_[panel * panel_width_ + v * lanes_ + i] =
                    (group.bias ? group.bias[from.unit + i] : 0.0f) + group.extra_bias;
        }
    }
}

Matrix::Slice Matrix::slice(int panel, int vector, int groups) const {
    const int vectors_per_group = kPanelVectors / groups;
    const int unit = (panel * vectors_per_group + vector % vectors_per_group) * lanes_;
    return {vector / vectors_per_group, unit, std::clamp(units_ - unit, 0, lanes_)};
}

void Matrix::pack_values(const std::vector<Columns>& groups, Span panels) {
    const std::ptrdiff_t width = panel_width_;
    for (std::ptrdiff_t k = 0; k < depth_; ++k) {
        for (int v = 0; v < kPanelVectors; ++v) {
            for (int panel = panels.begin; panel < panels.end; ++panel) {
                const Slice from = slice(panel, v, static_cast<int>(groups.size()));
                const Columns& group = groups[from.group];
                std::memcpy(values_.data() + (std::ptrdiff_t{panel} * depth_ + k) * width + v * lanes_,
                            group.weight + k * group.stride + from.unit,
                            from.count * sizeof(float));
            }
        }
    }
}

void Matrix::pack_pairs(const std::vector<Columns>& groups, Span panels) {
    const std::ptrdiff_t width = panel_width_;
    const std::ptrdiff_t padded = (depth_ + 1) / 2 * 2;
    for (std::ptrdiff_t k = 0; k < depth_; ++k) {
        for (int v = 0; v < kPanelVectors; ++v) {
            for (int panel = panels.begin; panel < panels.end; ++panel) {
                const Slice from = slice(panel, v, static_cast<int>(groups.size()));
                const Columns& group = groups[from.group];
                const float* weight = group.weight + k * group.stride + from.unit;
                std::uint16_t* target = pairs_.data() + panel * padded * width +
                                        (k / 2 * width + v * lanes_) * 2 + k % 2;
                for (int i = 0; i < from.count; ++i) target[2 * i] = round_to_bfloat16(weight[i]);
            }
        }
    }
}

void Matrix::pack_codes(const std::vector<Columns>& groups, Span panels) {
    const std::ptrdiff_t width = panel_width_;
    const std::ptrdiff_t padded = (depth_ + code_group_ - 1) / code_group_ * code_group_;
    const int first = panels.begin;
    std::vector<float> inverse((panels.end - first) * width, 0.0f);

    const auto for_each_slice = [&](const auto& visit) {
        for (std::ptrdiff_t k = 0; k < depth_; ++k) {
            for (int v = 0; v < kPanelVectors; ++v) {
                for (int panel = panels.begin; panel < panels.end; ++panel) {
                    const Slice from = slice(panel, v, static_cast<int>(groups.size()));
                    const Columns& group = groups[from.group];
                    visit(k, panel, v * lanes_, group.weight + k * group.stride + from.unit,
                          from.count);
                }
            }
        }
    };

    for_each_slice([&](std::ptrdiff_t, int panel, int column, const float* weight, int count) {
        float* largest = inverse.data() + (panel - first) * width + column;
        for (int i = 0; i < count; ++i) largest[i] = std::max(largest[i], std::fabs(weight[i]));
    });
    for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(inverse.size()); ++i) {
        const float largest = inverse[i];
        const bool empty = largest < 1e-30f;  // its reciprocal would overflow
        scales_[first * width + i] = empty ? 0.0f : largest / 127.0f;
        inverse[i] = empty ? 0.0f : 127.0f / largest;
    }
    for_each_slice([&](std::ptrdiff_t k, int panel, int column, const float* weight, int count) {
        const float* scale = inverse.data() + (panel - first) * width + column;
        std::uint8_t* target = codes_.data() + panel * padded * width +
                               (k / code_group_ * width + column) * code_group_ + k % code_group_;
        for (int i = 0; i < count; ++i) {
            const int code = static_cast<int>(round_to_integer(weight[i] * scale[i]));
            target[i * code_group_] = static_cast<std::uint8_t>(code + code_bias_);
        }
    });
}

}  // namespace elmokit
