// What learning needs of the kernel, as functions of `elmokit._native`. They run in the thread that
// calls them, keep nothing, and write into the arrays passed. `nn/` is their only caller.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "cpu.h"

namespace nb = nanobind;
using namespace elmokit;

namespace {

void expect_within(const char* name, std::int64_t found, std::int64_t end) {
    if (found < 0 || found >= end)
        throw std::out_of_range(std::string(name) + " holds " + std::to_string(found) +
                                "; expected 0 to " + std::to_string(end - 1));
}

using Widths = std::vector<std::pair<int, int>>;
using Ids = Array<const std::int16_t, 2>;
using Lengths = Array<const std::int64_t, 1>;

/// What both directions of a convolution take, checked.
struct Windows {
    Windows(const Widths& widths, int max_characters, bool tanh, std::size_t characters,
            const Ids& ids, const Lengths& lengths, const Array<float, 2>& outputs,
            const Array<std::int16_t, 2>& places) {
        std::ptrdiff_t in_table = 0;
        int widest = 1;
        for (const auto& [width, count] : widths) {
            if (width < 1 || width > max_characters || count < 1)
                throw nb::value_error("filters: a width or a count cannot be");
            const int padded = (count + kPaddedFilters - 1) / kPaddedFilters * kPaddedFilters;
            filters.push_back({width, count, padded, nullptr, in_table, nullptr});
            in_table += static_cast<std::ptrdiff_t>(width) * padded;
            padded_filters += padded;
            all_filters += count;
            widest = std::max(widest, width);
        }
        const auto n = static_cast<std::ptrdiff_t>(ids.shape(0));
        const auto columns = static_cast<std::ptrdiff_t>(ids.shape(1));
        expect("lengths", lengths, {n});
        expect("outputs", outputs, {n, all_filters});
        expect("places", places, {n, padded_filters});
        std::int64_t longest = 0;
        for (std::ptrdiff_t u = 0; u < n; ++u) {
            expect_within("lengths", lengths.data()[u], max_characters + 1);
            longest = std::max(longest, lengths.data()[u]);
        }
        if (columns < std::min<std::int64_t>(longest + widest, max_characters))
            throw nb::value_error("ids: fewer columns than the windows of the longest word need");
        for (std::ptrdiff_t i = 0; i < n * columns; ++i)
            expect_within("ids", ids.data()[i], static_cast<std::int64_t>(characters));
        convolution = {filters.data(), static_cast<int>(filters.size()), max_characters, 0, nullptr,
                       nullptr,        in_table,                         tanh};
        words = {static_cast<int>(n), ids.data(),    columns,       lengths.data(),
                 outputs.data(),      places.data(), padded_filters};
    }

    std::vector<Filters> filters;
    std::ptrdiff_t all_filters = 0, padded_filters = 0;
    Convolution convolution{};
    LearningWords words{};
};

void windows(const std::string& isa, const Widths& widths, int max_characters, bool tanh,
             const Table& table, const Vector& biases, const Ids& ids, const Lengths& lengths,
             const Array<float, 2>& outputs, const Array<std::int16_t, 2>& places) {
    Windows w(widths, max_characters, tanh, table.shape(0), ids, lengths, outputs, places);
    expect("table", table, {std::ptrdiff_t(table.shape(0)), w.convolution.table_stride});
    expect("biases", biases, {w.padded_filters});
    const float* bias = biases.data();
    for (Filters& filters : w.filters) {
        filters.bias = bias;
        bias += filters.padded;
    }
    w.convolution.table = const_cast<float*>(table.data());  // `tabulate` alone writes it
    const Kernels& kernels = kernels_of(isa, false);
    const nb::gil_scoped_release released;
    kernels.learn_windows(w.convolution, w.words);
}

void windows_backward(const std::string& isa, const Widths& widths, int max_characters, bool tanh,
                      const Ids& ids, const Lengths& lengths, const Array<float, 2>& outputs,
                      const Array<std::int16_t, 2>& places, const Table& gradients,
                      const Array<float, 1>& biases, const Array<float, 2>& table) {
    const Windows w(widths, max_characters, tanh, table.shape(0), ids, lengths, outputs, places);
    expect("gradients", gradients, {w.words.words, w.all_filters});
    expect("biases", biases, {w.all_filters});
    expect("table", table, {std::ptrdiff_t(table.shape(0)), w.convolution.table_stride});
    const Kernels& kernels = kernels_of(isa, false);
    const nb::gil_scoped_release released;
    kernels.backward_windows(w.convolution, w.words, gradients.data(), biases.data(), table.data());
}

double softmax(const std::string& isa, int candidates, const Array<float, 2>& logits,
               const Vector& bias, const Table& hidden, const Table& weights,
               const Array<const std::int64_t, 1>& targets, const Vector& target_bias,
               const std::optional<Array<float, 2>>& hidden_gradient,
               const std::optional<Array<float, 2>>& weight_gradient,
               const std::optional<Array<float, 1>>& bias_gradient) {
    const auto rows = static_cast<std::ptrdiff_t>(hidden.shape(0));
    const auto width = static_cast<std::ptrdiff_t>(hidden.shape(1));
    const auto words = static_cast<std::ptrdiff_t>(weights.shape(0));
    const auto columns = static_cast<std::ptrdiff_t>(logits.shape(1));
    if (columns % kSoftmaxColumns || candidates < 0 || candidates > columns || candidates > words)
        throw nb::value_error("logits: their columns are not the padded candidates");
    expect("logits", logits, {rows, columns});
    expect("bias", bias, {columns});
    expect("weights", weights, {words, width});
    expect("targets", targets, {rows});
    expect("target_bias", target_bias, {rows});
    if (hidden_gradient) expect("hidden_gradient", *hidden_gradient, {rows, width});
    if (weight_gradient) expect("weight_gradient", *weight_gradient, {words, width});
    if (bias_gradient) expect("bias_gradient", *bias_gradient, {std::max(words, columns)});
    for (std::ptrdiff_t n = 0; n < rows; ++n) expect_within("targets", targets.data()[n], words);
    const Kernels& kernels = kernels_of(isa, false);
    const nb::gil_scoped_release released;
    return kernels.softmax({static_cast<int>(rows), candidates, static_cast<int>(columns),
                            static_cast<int>(width), logits.data(), bias.data(), hidden.data(),
                            weights.data(), targets.data(), target_bias.data(),
                            hidden_gradient ? hidden_gradient->data() : nullptr,
                            weight_gradient ? weight_gradient->data() : nullptr,
                            bias_gradient ? bias_gradient->data() : nullptr});
}

}  // namespace

void bind_learning(nb::module_& m) {
    m.attr("PADDED_FILTERS") = kPaddedFilters;
    m.def("windows", &windows);
    m.def("windows_backward", &windows_backward);
    m.attr("SOFTMAX_COLUMNS") = kSoftmaxColumns;
    m.def("softmax", &softmax, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg() = nb::none(), nb::arg() = nb::none(),
          nb::arg() = nb::none());
}
