// The functions of `elmokit._native` for training. They run in the calling thread, keep no state,
// and write their results into the arrays passed. Only `nn/` calls them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"
#include "cpu.h"
#include "python.h"
#include "train_checks.h"
#include "train_products.h"

namespace nb = nanobind;
using namespace elmokit;

namespace {

/// Rows that are computed between two looks at Ctrl-C.
constexpr int kRowsAtOnce = 4096;

using Widths = std::vector<std::pair<int, int>>;
using Ids = Array<const std::int16_t, 2>;

/// The filters of a convolution in training, and the layout of their tables.
struct TrainingFilters {
    TrainingFilters(const Widths& widths, int max_characters, bool tanh) {
        check_size("max_characters", max_characters, 1, INT16_MAX);  // positions have 16 bits
        std::ptrdiff_t table_columns = 0;
        for (const auto& [width, count] : widths) {
            check_size("filters: a width", width, 1, max_characters);
            check_size("filters: a number of filters", count, 1, kMaxSize);
            const int padded = (count + kPaddedFilters - 1) / kPaddedFilters * kPaddedFilters;
            filters.push_back({width, count, padded, nullptr, table_columns, nullptr});
            table_columns += static_cast<std::ptrdiff_t>(width) * padded;
            padded_filters += padded;
            all_filters += count;
            widest = std::max(widest, width);
        }
        check_size("filters: the number of all filters", all_filters, 1, kMaxSize);
        convolution = {filters.data(), static_cast<int>(filters.size()),
                       max_characters, 0,
                       nullptr,        nullptr,
                       table_columns,  tanh};
    }

    std::vector<Filters> filters;
    std::ptrdiff_t all_filters = 0, padded_filters = 0;
    int widest = 1;
    Convolution convolution{};
};

/// The words of a convolution in training, copied and checked.
struct CheckedWords {
    CheckedWords(const TrainingFilters& filters, std::int64_t characters, const Ids& ids,
                 const Indices& lengths)
        : ids(copy_of(ids)), lengths(copy_of(lengths)), columns(ids.shape(1)) {
        const int max_characters = filters.convolution.max_characters;
        check_size("the number of words", ids.shape(0), 0, kMaxRows);
        lengths.check_shape({ids.shape(0)});
        check_range("lengths", this->lengths.data(), lengths.size(), max_characters + 1);
        std::int64_t longest = 0;
        for (const std::int64_t length : this->lengths) longest = std::max(longest, length);
        const auto needed = std::min<std::int64_t>(longest + filters.widest, max_characters);
        if (columns < needed)
            refuse("ids: found " + std::to_string(columns) + " columns; expected at least " +
                   std::to_string(needed) + " for the windows of the longest word");
        check_range("ids", this->ids.data(), ids.size(), characters);
    }

    /// Calls a function with some words at a time.
    template <class Function>
    void for_each_block(const TrainingFilters& filters, float* outputs, std::int16_t* positions,
                        const Function& function) const {
        const auto words = static_cast<std::ptrdiff_t>(lengths.size());
        for (std::ptrdiff_t first = 0; first < words; first += kRowsAtOnce) {
            check_interrupts();
            const auto count = std::min<std::ptrdiff_t>(words - first, kRowsAtOnce);
            const TrainingWords block{static_cast<int>(count),
                                      ids.data() + first * columns,
                                      columns,
                                      lengths.data() + first,
                                      outputs + first * filters.all_filters,
                                      positions + first * filters.padded_filters,
                                      filters.padded_filters};
            function(first, block);
        }
    }

    const std::vector<std::int16_t> ids;
    const std::vector<std::int64_t> lengths;
    const std::ptrdiff_t columns;
};

void convolution_forward(const std::string& isa, const Widths& widths, int max_characters,
                         bool tanh, nb::handle table_, nb::handle biases_, nb::handle ids_,
                         nb::handle lengths_, nb::handle outputs_, nb::handle positions_) {
    const Kernels& kernels = find_kernels(isa, Dtype::float32);
    TrainingFilters filters(widths, max_characters, tanh);
    const Table table("table", table_);
    const Vector biases("biases", biases_);
    const Ids ids("ids", ids_);
    const Indices lengths("lengths", lengths_);
    const Array<float, 2> outputs("outputs", outputs_);
    const Array<std::int16_t, 2> positions("positions", positions_);
    const CheckedWords words(filters, table.shape(0), ids, lengths);
    table.check_shape({table.shape(0), filters.convolution.table_stride});
    biases.check_shape({filters.padded_filters});
    outputs.check_shape({ids.shape(0), filters.all_filters});
    positions.check_shape({ids.shape(0), filters.padded_filters});
    check_disjoint({table, biases, ids, lengths, outputs, positions});
    const float* bias = biases.data();
    for (Filters& some : filters.filters) {
        some.bias = bias;
        bias += some.padded;
    }
    filters.convolution.table = const_cast<float*>(table.data());  // only `tabulate` writes to it
    without_gil([&] {
        words.for_each_block(filters, outputs.data(), positions.data(),
                             [&](std::ptrdiff_t, const TrainingWords& block) {
                                 kernels.training_convolution(filters.convolution, block);
                             });
    });
}

/// Throws unless each position is one of a window that the word has.
void check_positions(const TrainingFilters& filters, const CheckedWords& words,
                     const std::vector<std::int16_t>& positions) {
    const std::int16_t* row = positions.data();
    for (const std::int64_t length : words.lengths) {
        for (const Filters& some : filters.filters) {
            const int last = filters.convolution.max_characters - some.width;
            check_range("positions", row, some.count, std::min<std::int64_t>(length, last) + 1);
            row += some.padded;
        }
    }
}

void convolution_backward(const std::string& isa, const Widths& widths, int max_characters,
                          bool tanh, nb::handle ids_, nb::handle lengths_, nb::handle outputs_,
                          nb::handle positions_, nb::handle d_outputs_, nb::handle d_biases_,
                          nb::handle d_table_) {
    const Kernels& kernels = find_kernels(isa, Dtype::float32);
    const TrainingFilters filters(widths, max_characters, tanh);
    const Ids ids("ids", ids_);
    const Indices lengths("lengths", lengths_);
    const Table outputs("outputs", outputs_), d_outputs("d_outputs", d_outputs_);
    const Array<const std::int16_t, 2> positions("positions", positions_);
    const Array<float, 1> d_biases("d_biases", d_biases_);
    const Array<float, 2> d_table("d_table", d_table_);
    const CheckedWords words(filters, d_table.shape(0), ids, lengths);
    outputs.check_shape({ids.shape(0), filters.all_filters});
    positions.check_shape({ids.shape(0), filters.padded_filters});
    d_outputs.check_shape({ids.shape(0), filters.all_filters});
    d_biases.check_shape({filters.all_filters});
    d_table.check_shape({d_table.shape(0), filters.convolution.table_stride});
    check_disjoint({ids, lengths, outputs, positions, d_outputs, d_biases, d_table});
    without_gil([&] {
        std::vector<std::int16_t> copied_positions = copy_of(positions);
        check_positions(filters, words, copied_positions);
        words.for_each_block(
            filters, const_cast<float*>(outputs.data()), copied_positions.data(),  // only read
            [&](std::ptrdiff_t first, const TrainingWords& block) {
                kernels.backward_convolution(filters.convolution, block,
                                             d_outputs.data() + first * filters.all_filters,
                                             d_biases.data(), d_table.data());
            });
    });
}

double softmax(const std::string& isa, int candidates, nb::handle logits_, nb::handle bias_,
               nb::handle hidden_, nb::handle weights_, nb::handle targets_,
               nb::handle target_bias_, nb::handle hidden_gradient_, nb::handle weight_gradient_,
               nb::handle bias_gradient_) {
    const Kernels& kernels = find_kernels(isa, Dtype::float32);
    const Array<float, 2> logits("logits", logits_);
    const Vector bias("bias", bias_), target_bias("target_bias", target_bias_);
    const Table hidden("hidden", hidden_), weights("weights", weights_);
    const Indices targets("targets", targets_);
    const Optional<float, 2> hidden_gradient("hidden_gradient", hidden_gradient_);
    const Optional<float, 2> weight_gradient("weight_gradient", weight_gradient_);
    const Optional<float, 1> bias_gradient("bias_gradient", bias_gradient_);
    const std::ptrdiff_t rows = hidden.shape(0), width = hidden.shape(1);
    const std::ptrdiff_t words = weights.shape(0), columns = logits.shape(1);
    check_size("the number of rows", rows, 0, kMaxRows);
    check_size("the width", width, 0, kMaxSize);
    check_size("the number of words", words, 0, kMaxRows);
    check_size("the number of columns of logits", columns, 0, kMaxRows);
    if (columns % kSoftmaxColumns)
        refuse("logits: found " + std::to_string(columns) + " columns; expected a multiple of " +
               std::to_string(kSoftmaxColumns));
    check_size("candidates", candidates, 0, std::min(columns, words));
    logits.check_shape({rows, columns});
    bias.check_shape({columns});
    weights.check_shape({words, width});
    targets.check_shape({rows});
    target_bias.check_shape({rows});
    hidden_gradient.check_shape({rows, width});
    weight_gradient.check_shape({words, width});
    bias_gradient.check_shape({std::max(words, columns)});
    check_disjoint({logits, bias, hidden, weights, targets, target_bias});
    hidden_gradient.check_disjoint_from({logits, bias, hidden, weights, targets, target_bias});
    weight_gradient.check_disjoint_from({logits, bias, hidden, weights, targets, target_bias});
    bias_gradient.check_disjoint_from({logits, bias, hidden, weights, targets, target_bias});
    return without_gil([&] {
        const auto copied_targets = copy_of(targets);
        check_range("targets", copied_targets.data(), rows, words);
        double loss = 0;
        for (std::ptrdiff_t first = 0; first < rows; first += kRowsAtOnce) {
            check_interrupts();
            loss += kernels.softmax(
                {static_cast<int>(std::min<std::ptrdiff_t>(rows - first, kRowsAtOnce)), candidates,
                 static_cast<int>(columns), static_cast<int>(width),
                 logits.data() + first * columns, bias.data(), hidden.data() + first * width,
                 weights.data(), copied_targets.data() + first, target_bias.data() + first,
                 hidden_gradient.data(first * width), weight_gradient.data(),
                 bias_gradient.data()});
        }
        return loss;
    });
}

void multiply(const std::string& isa, nb::handle a_, bool a_transposed, nb::handle b_,
              bool b_transposed, nb::handle bias_, nb::handle out_, bool add) {
    const Kernels& kernels = find_kernels(isa, Dtype::float32);
    const Table a("a", a_), b("b", b_);
    const Optional<const float, 1> bias("bias", bias_);
    const Array<float, 2> out("out", out_);
    const std::ptrdiff_t rows = a.shape(a_transposed), depth = a.shape(!a_transposed);
    const std::ptrdiff_t columns = b.shape(!b_transposed);
    check_size("the number of rows", rows, 0, kMaxRows);
    check_size("the depth", depth, 1, kMaxRows);
    check_size("the number of columns", columns, 1, kMaxRows);
    if (b.shape(b_transposed) != depth)
        refuse("b: axis " + std::to_string(int(b_transposed)) + " has the size " +
               std::to_string(b.shape(b_transposed)) + "; expected " + std::to_string(depth));
    bias.check_shape({columns});
    out.check_shape({rows, columns});
    check_disjoint({a, b, out});
    bias.check_disjoint_from({out});
    without_gil([&] {
        run_product(kernels,
                    {static_cast<int>(rows), static_cast<int>(depth), static_cast<int>(columns),
                     a.data(), a_transposed, b.data(), b_transposed, bias.data(), out.data(), add});
    });
}

}  // namespace

void bind_training(nb::module_& m) {
    m.attr("PADDED_FILTERS") = kPaddedFilters;
    m.def("convolution_forward", &convolution_forward);
    m.def("convolution_backward", &convolution_backward);
    m.attr("INTEL_CPU") = made_by_intel();
    m.def("multiply", &multiply, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg().none(), nb::arg(), nb::arg());
    m.attr("SOFTMAX_COLUMNS") = kSoftmaxColumns;
    m.def("softmax", &softmax, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg().none() = nb::none(), nb::arg().none() = nb::none(),
          nb::arg().none() = nb::none());
}
