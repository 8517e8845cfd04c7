#include "train_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "interrupts.h"
#include "memory.h"

namespace elmokit {

namespace {

/// Words that are multiplied together: few enough that they stay in the cache with the weights.
constexpr int kRowsAtOnce = 64;

/// Words, in tiles, that a gradient of weights sums over at a time, for the same reason.
constexpr int kDepthAtOnce = 32;

/// An array of malloc, aligned, not initialized: it is allocated anew at every step (train/malloc.py
/// keeps malloc from returning it).
template <class T>
class Scratch {
  public:
    explicit Scratch(std::size_t count) {
        constexpr std::size_t alignment = 64;
        const std::size_t bytes = (count * sizeof(T) + alignment) / alignment * alignment;
        values_.reset(static_cast<T*>(std::aligned_alloc(alignment, bytes)));
        if (!values_) throw std::bad_alloc();
    }
    T* data() const { return values_.get(); }

  private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> values_;
};

using Codes = Scratch<std::uint16_t>;

/// The tiles of this thread, while it exists.
class TileSession {
  public:
    explicit TileSession(const TileKernels& tiles) : tiles_(tiles) { tiles_.begin(); }
    ~TileSession() { tiles_.end(); }
    TileSession(const TileSession&) = delete;
    TileSession& operator=(const TileSession&) = delete;

  private:
    const TileKernels& tiles_;
};

/// Weights in tiles, for a product that sums over `depth` values, which has `columns` columns.
class PackedTiles {
  public:
    /// Clears the padding, if there is any.
    PackedTiles(std::ptrdiff_t depth, std::ptrdiff_t columns, int groups = 1, bool padded = false)
        : depth_(static_cast<int>(padded_depth(depth) / kTileDepth)),
          tiles_(padded_tiles(columns, groups)),
          groups_(groups),
          values_(product({tiles_, depth_, kTileValues})) {
        if (padded || depth % kTileDepth || columns % (kTileGroup * kTileRows))
            std::memset(values_.data(), 0, product({tiles_, depth_, kTileValues, 2}));
    }
    TileLayout layout(int first = 0) const { return {depth_, first, groups_}; }
    std::uint16_t* data() const { return values_.data(); }
    TileWeights view() const { return {values_.data(), tiles_, depth_}; }

  private:
    static int padded_tiles(std::ptrdiff_t columns, int groups) {
        const std::ptrdiff_t per_group = (columns / groups + kTileRows - 1) / kTileRows;
        return static_cast<int>((per_group * groups + kTileGroup - 1) / kTileGroup * kTileGroup);
    }

    int depth_, tiles_, groups_;
    Codes values_;
};

/// Returns the distance of rows of so many values, a multiple of kTileDepth: not a multiple of 1 KiB,
/// so that the rows of a tile do not map to the same cache sets.
std::ptrdiff_t row_stride(std::ptrdiff_t values) {
    return values % 512 == 0 ? values + kTileDepth : values;
}

/// The transpose of rows of bfloat16, which are then summed over by a product.
class TransposedRows {
  public:
    TransposedRows(const TileKernels& tiles, const std::uint16_t* from, std::ptrdiff_t stride,
                   std::ptrdiff_t rows, std::ptrdiff_t columns)
        : depth_(static_cast<int>(padded_depth(rows) / kTileDepth)),
          stride_(row_stride(padded_depth(rows))),
          values_(product({columns + kTileMargin, stride_})) {
        tiles.transpose(from, stride, static_cast<int>(rows), static_cast<int>(columns),
                        values_.data(), static_cast<int>(stride_));
        // Tiles of the last rows read beyond them; the results are not used.
        std::memset(values_.data() + columns * stride_, 0, product({kTileMargin, stride_, 2}));
    }
    int depth() const { return depth_; }
    /// The transposed rows from a row on, of the words from a word on.
    TileRows from_row(std::ptrdiff_t row, std::ptrdiff_t word) const {
        return {values_.data() + row * stride_ + word, stride_};
    }

  private:
    int depth_;
    std::ptrdiff_t stride_;
    Codes values_;
};

/// Clears the margin below rows of bfloat16 and, if the columns do not fill whole tiles, all of them.
void clear_padding(std::uint16_t* values, std::ptrdiff_t rows, std::ptrdiff_t columns,
                   std::ptrdiff_t padded, std::ptrdiff_t stride) {
    const std::ptrdiff_t first = columns == padded ? rows : 0;
    std::memset(values + first * stride, 0, product({rows - first + kTileMargin, stride, 2}));
}

/// Rows of bfloat16 and a margin below them, with zeros to the right.
class RoundedRows {
  public:
    RoundedRows(std::ptrdiff_t rows, std::ptrdiff_t columns)
        : stride_(row_stride(padded_depth(columns))),
          columns_(columns),
          rows_(rows),
          values_(product({rows + kTileMargin, stride_})) {
        clear_padding(values_.data(), rows, columns, padded_depth(columns), stride_);
    }
    RoundedRows(const TileKernels& tiles, const float* from, std::ptrdiff_t rows,
                std::ptrdiff_t columns)
        : RoundedRows(rows, columns) {
        tiles.round(from, columns, static_cast<int>(rows), static_cast<int>(columns), row(0),
                    stride_);
    }
    std::ptrdiff_t stride() const { return stride_; }
    std::uint16_t* row(std::ptrdiff_t n) const { return values_.data() + n * stride_; }
    TileRows from_row(std::ptrdiff_t n) const { return {row(n), stride_}; }
    TransposedRows transposed(const TileKernels& tiles) const {
        return {tiles, row(0), stride_, rows_, columns_};
    }

  private:
    std::ptrdiff_t stride_, columns_, rows_;
    Codes values_;
};

/// Some columns of packed activations, and the words that they sum over.
struct GradientPanel {
    TileWeights weights;
    std::ptrdiff_t column;  // the first of up to 64
    std::ptrdiff_t word;    // the first
    bool add;               // whether earlier words were summed over before
};

/// Calls function(panel) for each 64 columns of rows of bfloat16 and each part of the words, of which
/// `depth` tiles are summed over. The rows reach to the end of the last tile, with numbers.
template <class Function>
void for_each_panel(const TileKernels& tiles, const std::uint16_t* rows, std::ptrdiff_t stride,
                    std::ptrdiff_t columns, int depth, const Function& function) {
    constexpr std::ptrdiff_t width = std::ptrdiff_t{kTileGroup} * kTileRows;
    const Codes packed(product({kTileGroup, kDepthAtOnce, kTileValues}));
    const Codes last(product({kDepthAtOnce * kTileDepth, width}));  // columns of less than a panel
    int first = 0;
    do {  // at least once, to clear the gradient of no words
        const int some = std::min(depth - first, kDepthAtOnce);
        const std::ptrdiff_t word = first * std::ptrdiff_t{kTileDepth};
        const std::ptrdiff_t words = some * std::ptrdiff_t{kTileDepth};
        const std::uint16_t* const from = rows + word * stride;
        for (std::ptrdiff_t column = 0; column < columns; column += width) {
            check_interrupts();
            if (column + width <= stride) {
                tiles.pack_panel(from + column, stride, some, packed.data());
            } else {
                std::memset(last.data(), 0, product({words, width, 2}));
                for (std::ptrdiff_t n = 0; n < words; ++n)
                    std::copy_n(from + n * stride + column, stride - column,
                                last.data() + n * width);
                tiles.pack_panel(last.data(), width, some, packed.data());
            }
            function(GradientPanel{{packed.data(), kTileGroup, some}, column, word, first > 0});
        }
        first += some;
    } while (first < depth);
}

/// to (columns, rows) = or += the transpose of from (rows, columns).
void transpose_into(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t rows,
                    std::ptrdiff_t columns, float* to, bool add) {
    for (std::ptrdiff_t c = 0; c < columns; ++c)
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            float& out = to[c * rows + r];
            const float x = from[r * from_stride + c];
            out = add ? out + x : x;
        }
}

/// to (columns, width) = or += the transpose of (transposed rows · rows).
void multiply_transposed(const TileKernels& tiles, const TransposedRows& transposed, int width,
                         const std::uint16_t* rows, std::ptrdiff_t stride, std::ptrdiff_t columns,
                         bool add, float* to) {
    constexpr std::ptrdiff_t panel_width = std::ptrdiff_t{kTileGroup} * kTileRows;
    const Scratch<float> block(product({width, panel_width}));
    for_each_panel(tiles, rows, stride, columns, transposed.depth(),
                   [&](const GradientPanel& panel) {
                       const auto count = static_cast<int>(
                           std::min<std::ptrdiff_t>(columns - panel.column, panel_width));
                       tiles.product(transposed.from_row(0, panel.word), width, panel.weights,
                                     {block.data(), panel_width, kTileRows, count, nullptr, false,
                                      INFINITY});
                       transpose_into(block.data(), panel_width, width, count,
                                      to + panel.column * width, add || panel.add);
                   });
}

/// Changes the order of gates: from [4][H] to [H / 16][4][16], or back.
void reorder_gates(const float* from, int units, float* to, bool back) {
    for (int gate = 0; gate < 4; ++gate)
        for (int unit = 0; unit < units; ++unit) {
            const int file = gate * units + unit;
            const int tile = (unit / kTileRows * 4 + gate) * kTileRows + unit % kTileRows;
            to[back ? file : tile] = from[back ? tile : file];
        }
}

}  // namespace

void run_forward(const Kernels& kernels, const TrainingLayer& layer,
                 const TileLSTMWeights& weights, const TileForwardPass& pass) {
    const TileKernels& tiles = kernels.tiles;
    const TileSession session(tiles);
    const int width = layer.width, units = layer.units;
    const std::ptrdiff_t half = padded_depth(width), stride = 2 * half;
    const std::ptrdiff_t output_stride = padded_depth(units);
    std::ptrdiff_t words = 0;
    for (std::ptrdiff_t step = 0; step < layer.steps; ++step) words += layer.alive[step];

    const PackedTiles gates(stride, 4 * std::ptrdiff_t{units}, 4, half != width);
    const PackedTiles projection(units, width);
    tiles.pack_rows(weights.input, width, 4 * units, gates.layout(), gates.data());
    tiles.pack_rows(weights.recurrent, width, 4 * units,
                    gates.layout(static_cast<int>(half / kTileDepth)), gates.data());
    tiles.pack_rows(weights.projection, units, width, projection.layout(), projection.data());
    std::vector<float> bias(4 * std::size_t(units));
    reorder_gates(weights.bias, units, bias.data(), false);

    clear_padding(pass.factors, words, width, half, stride);
    clear_padding(pass.cell_outputs, words, units, output_stride, output_stride);
    tiles.round(pass.inputs, width, static_cast<int>(words), width, pass.factors, stride);
    tiles.round(pass.initial_hidden, width, static_cast<int>(layer.alive[0]), width,
                pass.factors + half, stride);

    const float* before = pass.initial_cell;
    std::ptrdiff_t row = 0;
    for (std::ptrdiff_t step = 0; step < layer.steps; ++step) {
        check_interrupts();
        const int live = static_cast<int>(layer.alive[step]);
        std::uint16_t* const cell_outputs = pass.cell_outputs + row * output_stride;
        float* const outputs = pass.outputs + row * width;
        tiles.cells({pass.factors + row * stride, stride}, live, gates.view(),
                    {bias.data(), pass.gates + row * 4 * units, before, pass.cells + row * units,
                     cell_outputs, output_stride, units, layer.cell_clip});
        tiles.product({cell_outputs, output_stride}, live, projection.view(),
                      {outputs, width, kTileRows, width, nullptr, false, layer.projection_clip});
        before = pass.cells + row * units;
        row += live;
        if (step + 1 < layer.steps)
            tiles.round(outputs, width, static_cast<int>(layer.alive[step + 1]), width,
                        pass.factors + row * stride + half, stride);
    }
}

void run_backward(const Kernels& kernels, const TrainingLayer& layer,
                  const TileLSTMWeights& weights, const TileBackwardPass& pass) {
    const TileKernels& tiles = kernels.tiles;
    const TileSession session(tiles);
    const int width = layer.width, units = layer.units;
    const std::ptrdiff_t half = padded_depth(width), stride = 2 * half;
    const std::ptrdiff_t n_gates = 4 * std::ptrdiff_t{units};
    std::ptrdiff_t words = 0;
    for (std::ptrdiff_t step = 0; step < layer.steps; ++step) words += layer.alive[step];

    const PackedTiles projection(width, units), recurrent(n_gates, width), input(n_gates, width);
    tiles.pack_columns(weights.projection, units, width, projection.layout(), projection.data());
    const TileLayout gate_layout{recurrent.layout().depth, 0, 4};
    tiles.pack_columns(weights.recurrent, width, 4 * units, gate_layout, recurrent.data());

    const RoundedRows d_gates(words, n_gates), d_projected(words, width);
    std::vector<float> d_bias(n_gates);
    std::fill_n(pass.d_hidden, layer.alive[0] * width, 0.0f);
    std::ptrdiff_t row = words;
    for (std::ptrdiff_t step = layer.steps - 1; step >= 0; --step) {
        check_interrupts();
        const int live = static_cast<int>(layer.alive[step]);
        row -= live;
        tiles.backward_clip(pass.outputs + row * width, pass.d_outputs + row * width,
                            pass.d_hidden, live, width, layer.projection_clip,
                            d_projected.row(row), d_projected.stride());
        const float* before =
            step ? pass.cells + (row - layer.alive[step - 1]) * units : pass.initial_cell;
        tiles.backward_cells(
            d_projected.from_row(row), live, projection.view(),
            {pass.gates + row * n_gates, before, pass.cells + row * units, d_gates.row(row),
             d_gates.stride(), pass.d_cell, d_bias.data(), units, layer.cell_clip});
        tiles.product(d_gates.from_row(row), live, recurrent.view(),
                      {pass.d_hidden, width, kTileRows, width, nullptr, false, INFINITY});
    }
    reorder_gates(d_bias.data(), units, pass.d_bias, true);

    if (pass.d_inputs) {
        tiles.pack_columns(weights.input, width, 4 * units, gate_layout, input.data());
        for (std::ptrdiff_t first = 0; first < words; first += kRowsAtOnce) {
            check_interrupts();
            tiles.product(d_gates.from_row(first),
                          static_cast<int>(std::min<std::ptrdiff_t>(words - first, kRowsAtOnce)),
                          input.view(),
                          {pass.d_inputs + first * width, width, kTileRows, width, nullptr, false,
                           INFINITY});
        }
    }

    const TransposedRows factors(tiles, pass.factors, stride, words, stride);
    for_each_panel(tiles, d_gates.row(0), d_gates.stride(), n_gates, factors.depth(),
                   [&](const GradientPanel& panel) {
                       const auto multiply = [&](std::ptrdiff_t row, float* out) {
                           tiles.product(factors.from_row(row, panel.word), width, panel.weights,
                                         {out + panel.column / 4, n_gates, units,
                                          kTileGroup * kTileRows, nullptr, panel.add, INFINITY});
                       };
                       multiply(0, pass.d_input);
                       multiply(half, pass.d_recurrent);
                   });
    multiply_transposed(tiles, d_projected.transposed(tiles), width, pass.cell_outputs,
                        padded_depth(units), units, false, pass.d_projection);
}

double run_softmax(const Kernels& kernels, const TileSoftmax& s) {
    const TileKernels& tiles = kernels.tiles;
    const TileSession session(tiles);
    const bool with_gradients = s.hidden_gradient || s.weight_gradient || s.bias_gradient;
    const std::ptrdiff_t columns =
        (s.candidates + kSoftmaxColumns - 1) / kSoftmaxColumns * kSoftmaxColumns;
    const PackedTiles to_logits(s.width, s.candidates);
    tiles.pack_columns(s.weights, s.candidates, s.width, to_logits.layout(), to_logits.data());
    std::unique_ptr<PackedTiles> to_hidden;
    if (s.hidden_gradient) {
        to_hidden = std::make_unique<PackedTiles>(columns, s.width, 1, columns != s.candidates);
        tiles.pack_rows(s.weights, s.candidates, s.width, to_hidden->layout(), to_hidden->data());
    }
    const RoundedRows hidden(tiles, s.hidden, s.rows, s.width);
    const RoundedRows gradients(with_gradients ? s.rows : 0, columns);
    const Scratch<float> logits(product({kRowsAtOnce, columns}));
    std::memset(logits.data(), 0, product({kRowsAtOnce, columns, sizeof(float)}));
    double loss = 0;
    for (std::ptrdiff_t first = 0; first < s.rows; first += kRowsAtOnce) {
        check_interrupts();
        const auto count =
            static_cast<int>(std::min<std::ptrdiff_t>(s.rows - first, kRowsAtOnce));
        tiles.product(hidden.from_row(first), count, to_logits.view(),
                      {logits.data(), columns, kTileRows, s.candidates, nullptr, false, INFINITY});
        loss += kernels.softmax(
            {count, s.candidates, static_cast<int>(columns), s.width, logits.data(), s.bias,
             s.hidden + first * s.width, s.weights, s.targets + first, s.target_bias + first,
             s.hidden_gradient ? s.hidden_gradient + first * s.width : nullptr, s.weight_gradient,
             s.bias_gradient});
        if (!with_gradients) continue;
        tiles.round(logits.data(), columns, count, static_cast<int>(columns),
                    gradients.row(first), gradients.stride());
        if (s.hidden_gradient)
            tiles.product(gradients.from_row(first), count, to_hidden->view(),
                          {s.hidden_gradient + first * s.width, s.width, kTileRows, s.width,
                           nullptr, true, INFINITY});
    }
    if (!s.weight_gradient || s.rows == 0) return loss;

    multiply_transposed(tiles, hidden.transposed(tiles), s.width, gradients.row(0),
                        gradients.stride(), s.candidates, true, s.weight_gradient);
    return loss;
}

void run_affine(const Kernels& kernels, const TileAffine& map, const float* x, const float* weight,
                const float* bias, float* y) {
    const TileKernels& tiles = kernels.tiles;
    const TileSession session(tiles);
    const PackedTiles packed(map.inputs, map.outputs);
    tiles.pack_rows(weight, map.inputs, map.outputs, packed.layout(), packed.data());
    const RoundedRows rounded(tiles, x, map.rows, map.inputs);
    std::vector<float> padded_bias(std::size_t(packed.view().tiles) * kTileRows);
    std::copy_n(bias, map.outputs, padded_bias.data());
    for (std::ptrdiff_t first = 0; first < map.rows; first += kRowsAtOnce) {
        check_interrupts();
        tiles.product(rounded.from_row(first),
                      static_cast<int>(std::min<std::ptrdiff_t>(map.rows - first, kRowsAtOnce)),
                      packed.view(),
                      {y + first * map.outputs, map.outputs, kTileRows, map.outputs,
                       padded_bias.data(), false, INFINITY});
    }
}

void run_affine_backward(const Kernels& kernels, const TileAffine& map, const float* x,
                         const float* weight, const float* d_y, float* d_x, float* d_weight,
                         float* d_bias) {
    const TileKernels& tiles = kernels.tiles;
    const TileSession session(tiles);
    if (d_bias) {
        std::fill_n(d_bias, map.outputs, 0.0f);
        for (std::ptrdiff_t n = 0; n < map.rows; ++n)
            for (int c = 0; c < map.outputs; ++c) d_bias[c] += d_y[n * map.outputs + c];
    }
    if (!d_x && !d_weight) return;
    const RoundedRows d_rows(tiles, d_y, map.rows, map.outputs);
    if (d_x) {
        const PackedTiles packed(map.outputs, map.inputs);
        tiles.pack_columns(weight, map.inputs, map.outputs, packed.layout(), packed.data());
        for (std::ptrdiff_t first = 0; first < map.rows; first += kRowsAtOnce) {
            check_interrupts();
            tiles.product(d_rows.from_row(first),
                          static_cast<int>(std::min<std::ptrdiff_t>(map.rows - first, kRowsAtOnce)),
                          packed.view(),
                          {d_x + first * map.inputs, map.inputs, kTileRows, map.inputs, nullptr,
                           false, INFINITY});
        }
    }
    if (!d_weight) return;
    const TransposedRows transposed =
        RoundedRows(tiles, x, map.rows, map.inputs).transposed(tiles);
    for_each_panel(tiles, d_rows.row(0), d_rows.stride(), map.outputs, transposed.depth(),
                   [&](const GradientPanel& panel) {
                       tiles.product(transposed.from_row(0, panel.word), map.inputs, panel.weights,
                                     {d_weight + panel.column, map.outputs, kTileRows,
                                      static_cast<int>(map.outputs - panel.column), nullptr,
                                      panel.add, INFINITY});
                   });
}

}  // namespace elmokit
