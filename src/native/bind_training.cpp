// The functions of `elmokit._native` for training. They run in the calling thread, keep no state,
// and write their results into the arrays passed. Only `nn/` calls them.
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

void check_range(const char* name, std::int64_t value, std::int64_t end) {
    if (value < 0 || value >= end)
        throw std::out_of_range(std::string(name) + " contains " + std::to_string(value) +
                                "; expected 0 to " + std::to_string(end - 1));
}

using Widths = std::vector<std::pair<int, int>>;
using Ids = Array<const std::int16_t, 2>;
using Lengths = Array<const std::int64_t, 1>;

/// The arguments that the forward and the backward pass of a convolution share, checked.
struct ConvolutionArguments {
    ConvolutionArguments(const Widths& widths, int max_characters, bool tanh,
                         std::size_t characters, const Ids& ids, const Lengths& lengths,
                         const Array<float, 2>& outputs, const Array<std::int16_t, 2>& positions) {
        std::ptrdiff_t table_columns = 0;
        int widest = 1;
        for (const auto& [width, count] : widths) {
            if (width < 1 || width > max_characters || count < 1)
                throw nb::value_error(
                    "filters: a width is not within 1 to max_characters, or a count is not "
                    "positive");
            const int padded = (count + kPaddedFilters - 1) / kPaddedFilters * kPaddedFilters;
            filters.push_back({width, count, padded, nullptr, table_columns, nullptr});
            table_columns += static_cast<std::ptrdiff_t>(width) * padded;
            padded_filters += padded;
            all_filters += count;
            widest = std::max(widest, width);
        }
        const auto n = static_cast<std::ptrdiff_t>(ids.shape(0));
        const auto columns = static_cast<std::ptrdiff_t>(ids.shape(1));
        check_shape("lengths", lengths, {n});
        check_shape("outputs", outputs, {n, all_filters});
        check_shape("positions", positions, {n, padded_filters});
        std::int64_t longest = 0;
        for (std::ptrdiff_t u = 0; u < n; ++u) {
            check_range("lengths", lengths.data()[u], max_characters + 1);
            longest = std::max(longest, lengths.data()[u]);
        }
        if (columns < std::min<std::int64_t>(longest + widest, max_characters))
            throw nb::value_error("ids: too few columns for the windows of the longest word");
        for (std::ptrdiff_t i = 0; i < n * columns; ++i)
            check_range("ids", ids.data()[i], static_cast<std::int64_t>(characters));
        convolution = {filters.data(), static_cast<int>(filters.size()),
                       max_characters, 0,
                       nullptr,        nullptr,
                       table_columns,  tanh};
        words = {static_cast<int>(n), ids.data(),       columns,       lengths.data(),
                 outputs.data(),      positions.data(), padded_filters};
    }

    std::vector<Filters> filters;
    std::ptrdiff_t all_filters = 0, padded_filters = 0;
    Convolution convolution{};
    TrainingWords words{};
};

void convolution_forward(const std::string& isa, const Widths& widths, int max_characters,
                         bool tanh, const Table& table, const Vector& biases, const Ids& ids,
                         const Lengths& lengths, const Array<float, 2>& outputs,
                         const Array<std::int16_t, 2>& positions) {
    ConvolutionArguments w(widths, max_characters, tanh, table.shape(0), ids, lengths, outputs,
                           positions);
    check_shape("table", table, {std::ptrdiff_t(table.shape(0)), w.convolution.table_stride});
    check_shape("biases", biases, {w.padded_filters});
    const float* bias = biases.data();
    for (Filters& filters : w.filters) {
        filters.bias = bias;
        bias += filters.padded;
    }
    w.convolution.table = const_cast<float*>(table.data());  // only `tabulate` writes to it
    const Kernels& kernels = find_kernels(isa, false);
    const nb::gil_scoped_release released;
    kernels.training_convolution(w.convolution, w.words);
}

void convolution_backward(const std::string& isa, const Widths& widths, int max_characters,
                          bool tanh, const Ids& ids, const Lengths& lengths,
                          const Array<float, 2>& outputs, const Array<std::int16_t, 2>& positions,
                          const Table& d_outputs, const Array<float, 1>& d_biases,
                          const Array<float, 2>& d_table) {
    const ConvolutionArguments w(widths, max_characters, tanh, d_table.shape(0), ids, lengths,
                                 outputs, positions);
    check_shape("d_outputs", d_outputs, {w.words.words, w.all_filters});
    check_shape("d_biases", d_biases, {w.all_filters});
    check_shape("d_table", d_table, {std::ptrdiff_t(d_table.shape(0)), w.convolution.table_stride});
    const Kernels& kernels = find_kernels(isa, false);
    const nb::gil_scoped_release released;
    kernels.backward_convolution(w.convolution, w.words, d_outputs.data(), d_biases.data(),
                                 d_table.data());
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
        throw nb::value_error(
            "logits: the number of columns is not that of the candidates, padded");
    check_shape("logits", logits, {rows, columns});
    check_shape("bias", bias, {columns});
    check_shape("weights", weights, {words, width});
    check_shape("targets", targets, {rows});
    check_shape("target_bias", target_bias, {rows});
    if (hidden_gradient) check_shape("hidden_gradient", *hidden_gradient, {rows, width});
    if (weight_gradient) check_shape("weight_gradient", *weight_gradient, {words, width});
    if (bias_gradient) check_shape("bias_gradient", *bias_gradient, {std::max(words, columns)});
    for (std::ptrdiff_t n = 0; n < rows; ++n) check_range("targets", targets.data()[n], words);
    const Kernels& kernels = find_kernels(isa, false);
    const nb::gil_scoped_release released;
    return kernels.softmax({static_cast<int>(rows), candidates, static_cast<int>(columns),
                            static_cast<int>(width), logits.data(), bias.data(), hidden.data(),
                            weights.data(), targets.data(), target_bias.data(),
                            hidden_gradient ? hidden_gradient->data() : nullptr,
                            weight_gradient ? weight_gradient->data() : nullptr,
                            bias_gradient ? bias_gradient->data() : nullptr});
}

}  // namespace

void bind_training(nb::module_& m) {
    m.attr("PADDED_FILTERS") = kPaddedFilters;
    m.def("convolution_forward", &convolution_forward);
    m.def("convolution_backward", &convolution_backward);
    m.attr("SOFTMAX_COLUMNS") = kSoftmaxColumns;
    m.def("softmax", &softmax, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg() = nb::none(), nb::arg() = nb::none(),
          nb::arg() = nb::none());
}
