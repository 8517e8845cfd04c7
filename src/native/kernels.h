// The interface of an instruction set: function pointers to its kernels, and the data layouts that
// they share with the rest of the engine.
//
// Files that are compiled for different instruction sets include this header, so it contains plain
// data only: an inline function could be compiled for AVX-512, chosen by the linker, and run on a
// machine without it.
//
// Shape letters: N rows, K depth (the dimension that a product sums over), C characters, F filters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elmokit {

/// Bytes of a cache line.
constexpr int kCacheLine = 64;

/// Width of a panel, the unit of packed weights, in vectors; also the number of gates of an LSTM.
constexpr int kPanelVectors = 4;

/// Added to the forget gate at run time, as in TensorFlow's LSTM cell; not part of the weights.
constexpr float kForgetBias = 1.0f;

/// How the weights of matrix products are stored. Biases, characters and results are always float32.
enum class Dtype { float32, bfloat16, int8 };

/// The indices from begin to end - 1.
struct Span {
    int begin;
    int end;
};

/// N rows of K activations, with codes if the product does not read floats: int8 for int8 weights,
/// bfloat16 where the CPU multiplies bfloat16 by bfloat16.
struct Rows {
    const float* values;
    std::ptrdiff_t stride;
    const void* codes;           // int8, int16 or bfloat16; K rounded up to a multiple of a group
    std::ptrdiff_t code_stride;  // in bytes
    const float* scales;         // value = code * scale
    const std::int32_t* sums;    // sum of the codes of each row
};

/// A matrix of K rows packed into panels, with its bias: float32 or, if `codes` is set, int8 or, if
/// `pairs` is set, bfloat16.
struct Panels {
    const float* values;        // [panel][k][kPanelVectors * lanes]
    const std::uint8_t* codes;  // [panel][k / group][kPanelVectors * lanes][k % group]
    const float* scales;        // [panel][kPanelVectors * lanes]: value = code * scale
    const float* bias;          // [panel][kPanelVectors * lanes]
    int depth;                  // K
    const std::uint16_t* pairs = nullptr;  // bfloat16: [panel][k / 2][kPanelVectors * lanes][k % 2]
};

/// Where a linear map writes clip(x·W + bias): panel p of row n begins at
/// `values + p * panel_stride + n * row_stride`; columns from `columns` on are not written.
struct LinearOut {
    float* values;
    std::ptrdiff_t panel_stride;
    std::ptrdiff_t row_stride;
    int columns;
    float clip;        // infinity: no clipping
    bool add = false;  // to the values before
};

/// Where a highway writes. Its panels hold the carry gate in the first two vectors, and the
/// transform in the other two.
struct HighwayOut {
    float* values;
    std::ptrdiff_t stride;
};

/// A step of an LSTM. Its panels hold the gates i, j, f, o of as many cells as a vector has lanes.
struct CellState {
    const float* inputs;  // x·W_x + bias, and 1 for the gate f: [panel][row][kPanelVectors * lanes]
    std::ptrdiff_t input_panel_stride;
    float* cells;           // read and written
    float* outputs;         // sigmoid(o) * tanh(c)
    std::ptrdiff_t stride;  // of cells and outputs
    float clip;             // infinity: no clipping
};

/// A step of an LSTM in training, with what its backward pass needs. The gates i, j, f, o of a row
/// follow each other, as in the weight files, with H units each; H is a multiple of the lanes.
struct TrainingCells {
    float* gates;         // in: x·W_x + bias; out: the gates' values
    const float* before;  // cells of the previous step
    float* cells;
    float* outputs;  // sigmoid(o) * tanh(c)
    int units;       // H: the stride of cells and outputs; that of the gates is 4H
    float clip;      // infinity: no clipping
};

/// The backward pass of such a step. The products are the gradients of its outputs.
struct BackwardCells {
    const float* gates;   // values of the gates
    const float* before;  // cells of the previous step
    const float* cells;
    float* d_gates;  // out: gradients before the nonlinearities
    float* d_cells;  // in: gradients of `cells`; out: of `before`
    int units;
    float clip;
};

/// The filters of one width. Their table rows, one for each position in the window, are padded.
struct Filters {
    int width;
    int count;
    int padded;            // count, rounded up to whole vectors
    const float* weight;   // [width][E][count], as in the file
    std::ptrdiff_t table;  // offset of this width in a character's table: [width][padded]
    const float* bias;     // [padded]
};

/// All filters, and the table of what each character contributes at each position of each filter.
struct Convolution {
    const Filters* filters;
    int widths;
    int max_characters;      // C
    int embedding_dim;       // E
    const float* embedding;  // [characters][E]
    float* table;            // [characters][table_stride]
    std::ptrdiff_t table_stride;
    bool tanh;  // the activation; relu if false
};

/// The words of a convolution in training. The position of each filter's largest window is kept.
struct TrainingWords {
    int words;                // U
    const std::int16_t* ids;  // [U][ids_stride]: rows of the table
    std::ptrdiff_t ids_stride;
    const std::int64_t* lengths;  // [U]
    float* outputs;               // [U][F]
    std::int16_t* positions;  // [U][positions_stride]: like `outputs`, but padded for each width
    std::ptrdiff_t positions_stride;
};

/// In training, the filters of a width are padded to a multiple of this: whole vectors of any
/// instruction set.
constexpr int kPaddedFilters = 16;

/// A block of rows of a softmax over S candidates and the true word of each row, with the gradients
/// of the loss. There are R words, the first S of which are the candidates. P is the width of a
/// hidden vector.
struct SoftmaxRows {
    int rows;
    int candidates;               // S
    int columns;                  // S, padded to whole groups of kSoftmaxColumns
    int width;                    // P
    float* logits;                // [rows][columns]: in: hidden · weights; out: their gradient
    const float* bias;            // [columns], added to the logits; -infinity in the padding
    const float* hidden;          // [rows][P]
    const float* weights;         // [R][P]
    const std::int64_t* targets;  // [rows]: index of the true word among the R words
    const float* target_bias;     // [rows]
    float* hidden_gradient;       // [rows][P] or null; out: the part that `logits` does not carry
    float* weight_gradient;       // [R][P] or null; the part that `logits` does not carry is added
    float* bias_gradient;         // [max(R, columns)] or null; the whole gradient is added
};

/// Logits of a row are processed in groups of this size, whatever the instruction set.
constexpr int kSoftmaxColumns = 64;

/// Products of bfloat16 in training work on tiles: 16 rows of 32 activations, or 32 rows (pairs of
/// which are interleaved) of 16 columns of weights. Weights are multiplied in groups of four columns
/// of tiles, and padded with zeros to whole groups.
constexpr int kTileRows = 16;
constexpr int kTileDepth = 32;
constexpr int kTileGroup = 4;

/// Values of a tile.
constexpr std::ptrdiff_t kTileValues = std::ptrdiff_t{kTileRows} * kTileDepth;

/// Rows of bfloat16 activations, padded to whole tiles: with zeros to the right, and by memory that
/// may be read below.
struct TileRows {
    const std::uint16_t* values;
    std::ptrdiff_t stride;
};

/// Packed weights: [tiles][depth][kTileDepth / 2][kTileRows][2].
struct TileWeights {
    const std::uint16_t* values;
    int tiles;  // columns of tiles
    int depth;  // in tiles
};

/// Where weights are packed, and how: their columns are in groups, of which each tile takes the next
/// 16 of the next group. So a group of tiles has the four gates of 16 units.
struct TileLayout {
    int depth;   // of the packed weights, in tiles
    int first;   // tile, in depth, of the first row
    int groups;  // 1 or 4
};

/// Where a product is written: clip(a · w + bias), to which the value before may be added.
struct TileOut {
    float* values;
    std::ptrdiff_t row_stride;
    std::ptrdiff_t tile_stride;  // from a column of tiles to the next one
    int columns;                 // of all tiles; the others are not written
    const float* bias;           // [tiles * kTileRows] or null
    bool add;
    float clip;  // infinity: no clipping
};

/// A step of an LSTM in training with bfloat16, whose gates i, j, f, o of 16 units follow each other.
struct TileCells {
    const float* bias;        // [H / 16][4][16]
    float* gates;             // [H / 16][rows][4][16]: out
    const float* before;      // [rows][H]: cells of the previous step
    float* cells;             // [rows][H]: out
    std::uint16_t* outputs;   // [rows][output_stride]: out: sigmoid(o) * tanh(c)
    std::ptrdiff_t output_stride;
    int units;   // H
    float clip;  // infinity: no clipping
};

/// The backward pass of such a step.
struct TileBackwardCells {
    const float* gates;
    const float* before;
    const float* cells;
    std::uint16_t* d_gates;  // [rows][H / 16][4][16]: out
    std::ptrdiff_t d_gate_stride;
    float* d_cells;  // in: gradients of `cells`; out: of `before`
    float* d_bias;   // [H / 16][4][16]: added to
    int units;
    float clip;
};

/// The kernels of training with bfloat16, which call each other's tiles: between `begin` and `end`,
/// in one thread.
struct TileKernels {
    void (*begin)();
    void (*end)();
    /// Rounds rows of floats to bfloat16.
    void (*round)(const float* from, std::ptrdiff_t from_stride, int rows, int columns,
                  std::uint16_t* to, std::ptrdiff_t to_stride);
    /// Packs a matrix of weights, and the transpose of one.
    void (*pack_rows)(const float* from, int rows, int columns, const TileLayout&,
                      std::uint16_t* to);
    void (*pack_columns)(const float* from, int rows, int columns, const TileLayout&,
                         std::uint16_t* to);
    /// Packs kTileGroup columns of tiles of activations, as weights of `depth` tiles.
    void (*pack_panel)(const std::uint16_t* from, std::ptrdiff_t stride, int depth,
                       std::uint16_t* to);
    /// Transposes activations: columns become rows of `padded` values.
    void (*transpose)(const std::uint16_t* from, std::ptrdiff_t stride, int rows, int columns,
                      std::uint16_t* to, int padded);
    void (*product)(const TileRows&, int rows, const TileWeights&, const TileOut&);
    void (*cells)(const TileRows&, int rows, const TileWeights&, const TileCells&);
    void (*backward_cells)(const TileRows&, int rows, const TileWeights&,
                           const TileBackwardCells&);
    /// Rounds d_outputs + d_hidden, or 0 where the outputs were clipped.
    void (*backward_clip)(const float* outputs, const float* d_outputs, const float* d_hidden,
                          int rows, int columns, float clip, std::uint16_t* to,
                          std::ptrdiff_t to_stride);
};

/// Floats that `multiply_add` and `read` work on.
constexpr int kScratch = 1024;

/// The kernels of one instruction set. Every sum runs over k in order, in a lane of its own: no
/// result depends on which rows or panels are computed together.
struct Kernels {
    const char* name;
    int lanes;             // floats per vector
    int tile_rows;         // rows that are multiplied together
    int code_group;        // int8: number of consecutive k that are adjacent in a panel
    int code_bias;         // int8: added to the code of a weight
    int activation_bytes;  // int8: size of the code of an activation

    void (*linear)(const Rows&, const Panels&, Span panels, Span rows, const LinearOut&);
    void (*highway)(const Rows&, const Panels&, Span panels, Span rows, const HighwayOut&);
    void (*cells)(const Rows&, const Panels&, Span panels, Span rows, const CellState&);
    void (*training_cells)(const Rows&, const Panels&, Span panels, Span rows,
                           const TrainingCells&);
    void (*backward_cells)(const Rows&, const Panels&, Span panels, Span rows,
                           const BackwardCells&);
    /// Converts a row of `depth` values, padded with zeros to whole vectors, to codes.
    void (*quantize)(const float* row, int depth, void* codes, float* scale, std::int32_t* sum);
    /// Fills the table of one character.
    void (*tabulate)(const Convolution&, int character);
    /// Writes the F filter outputs of a word of `length` characters, and a few zeros after them.
    void (*convolve)(const Convolution&, const std::int16_t* ids, int length, float* out);
    /// Writes the filter outputs of words, and the positions of the largest windows.
    void (*training_convolution)(const Convolution&, const TrainingWords&);
    /// Adds the gradients of the biases [F] and of the table, given those of the outputs [U][F].
    void (*backward_convolution)(const Convolution&, const TrainingWords&, const float* d_outputs,
                                 float* d_biases, float* d_table);
    /// Returns the sum of the losses of a block. Leaves the logits unchanged if no gradient is
    /// wanted.
    double (*softmax)(const SoftmaxRows&);
    /// bfloat16: rounds a row of `depth` values, padded with zeros to whole vectors, where the CPU
    /// multiplies bfloat16 by bfloat16; null where weights are widened to float32.
    void (*round_row)(const float* row, int depth, std::uint16_t* out);
    /// Measures this CPU (limits.h): multiplies and adds in registers, and returns how often.
    double (*multiply_add)(Dtype dtype, int rounds, void* scratch);
    /// Measures the memory: reads an array, a multiple of kScratch in size.
    float (*read)(const float* values, std::ptrdiff_t count);
    TileKernels tiles;
};

// AVX2 and AVX-512 exist on x86-64 only.
const Kernels* portable_kernels();
const Kernels* avx2_kernels();
const Kernels* avx512_kernels();
const Kernels* avx512_bf16_kernels();    // for bfloat16 only
const Kernels* amx_kernels();            // likewise
const Kernels* emulated_bf16_kernels();  // likewise, on any machine: for tests
// These exist on AArch64 only.
const Kernels* neon_kernels();
const Kernels* neon_dotprod_kernels();
const Kernels* neon_i8mm_kernels();

}  // namespace elmokit
