// What an instruction set has to offer: its kernels behind function pointers, and the layouts
// that they share with the rest of the engine.
//
// This header is included by files that are compiled with different instruction sets, so it holds
// plain data only: an inline function here could be compiled for AVX-512, kept by the linker and
// run on a machine without it.
//
// Shape letters: N rows, K depth (the dimension that a product sums over), C characters, F filters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elmokit {

/// A panel, the unit of packed weights, is so many vectors wide; an LSTM has as many gates.
constexpr int kPanelVectors = 4;

/// Added to the forget gate at run time, as TensorFlow's LSTM cell does; not in the files.
constexpr float kForgetBias = 1.0f;

/// The indices begin, …, end - 1.
struct Span {
    int begin;
    int end;
};

/// N rows of K activations; the codes are there if the weights that meet them are int8.
struct Rows {
    const float* values;
    std::ptrdiff_t stride;
    const void* codes;           // int8 or int16, K rounded up to a multiple of `code_group`
    std::ptrdiff_t code_stride;  // in bytes
    const float* scales;         // value = code * scale
    const std::int32_t* sums;    // of the codes of a row
};

/// A matrix of K rows packed into panels, with its bias: float32 or, if `codes` is set, int8.
struct Panels {
    const float* values;       // [panel][k][kPanelVectors * lanes]
    const std::uint8_t* codes; // [panel][k / group][kPanelVectors * lanes][k % group]
    const float* scales;       // [panel][kPanelVectors * lanes], of the codes
    const float* bias;         // [panel][kPanelVectors * lanes]
    int depth;                 // K
};

/// Where a linear map writes clip(x·W + bias): panel p of row n begins at
/// `values + p * panel_stride + n * row_stride`; columns from `columns` on are not written.
struct LinearOut {
    float* values;
    std::ptrdiff_t panel_stride;
    std::ptrdiff_t row_stride;
    int columns;
    float clip;  // infinity for none
};

/// A highway's panels hold its carry gate in the first two vectors, its transform in the others.
struct HighwayOut {
    float* values;
    std::ptrdiff_t stride;
};

/// An LSTM's panels hold the gates i, j, f, o of as many cells as a vector has lanes.
struct CellState {
    const float* inputs;  // x·W_x + bias + 1 for the gate f: [panel][row][kPanelVectors * lanes]
    std::ptrdiff_t input_panel_stride;
    float* cells;         // read and written
    float* outputs;       // sigmoid(o) * tanh(c)
    std::ptrdiff_t stride;  // of cells and outputs
    float clip;           // infinity for none
};

/// A step of an LSTM that learns: what it keeps for its way back. Gates lie as the files have them,
/// i, j, f, o side by side, each as wide as there are units; units fill whole vectors.
struct LearningCells {
    float* gates;         // x·W_x + bias before, the gates' values after
    const float* before;  // cells of the step before
    float* cells;
    float* outputs;       // sigmoid(o) * tanh(c)
    int units;            // H: the stride of cells and outputs, a quarter of that of the gates
    float clip;           // infinity for none
};

/// The way back through such a step. The products are the gradients of its outputs.
struct BackwardCells {
    const float* gates;   // their values
    const float* before;
    const float* cells;
    float* d_gates;       // gradients before the nonlinearities
    float* d_cells;       // of the cells after the step, replaced by those of the cells before
    int units;
    float clip;
};

/// The filters of one width. Their table rows, one for each place k in the window, are padded.
struct Filters {
    int width;
    int count;
    int padded;            // count, rounded up to whole vectors
    const float* weight;   // [width][E][count], as in the file
    std::ptrdiff_t table;  // where this width begins in a character's table: [width][padded]
    const float* bias;     // [padded]
};

/// All filters, and the table with what each character contributes at each place of each filter.
struct Convolution {
    const Filters* filters;
    int widths;
    int max_characters;         // C
    int embedding_dim;          // E
    const float* embedding;     // [characters][E]
    float* table;               // [characters][table_stride]
    std::ptrdiff_t table_stride;
    bool tanh;                  // the activation; else relu
};

/// The words of a convolution that learns. Of every filter, which window was the largest is kept.
struct LearningWords {
    int words;                    // U
    const std::int16_t* ids;      // [U][ids_stride], which rows of the table
    std::ptrdiff_t ids_stride;
    const std::int64_t* lengths;  // [U]
    float* outputs;               // [U][F]
    std::int16_t* places;         // [U][places_stride]: as `outputs`, but every width padded
    std::ptrdiff_t places_stride;
};

/// While they learn, the filters of a width are padded to a multiple of this: any whole vectors.
constexpr int kPaddedFilters = 16;

/// A block of rows of a softmax over S candidates and each row's true word, one of R words of which
/// the candidates are the first S: the loss and its gradients. P is the width of a hidden vector.
struct SoftmaxRows {
    int rows;
    int candidates;               // S
    int columns;                  // S, padded to whole groups of kSoftmaxColumns
    int width;                    // P
    float* logits;                // [rows][columns]: hidden · weights; becomes the loss's gradient
    const float* bias;            // [columns], added to the logits; -infinity in the padding
    const float* hidden;          // [rows][P]
    const float* weights;         // [R][P]
    const std::int64_t* targets;  // [rows]: which of the R words is the true one
    const float* target_bias;     // [rows]
    float* hidden_gradient;       // [rows][P] or null: written, what the logits' gradient lacks
    float* weight_gradient;       // [R][P] or null: added to, likewise
    float* bias_gradient;         // [max(R, columns)] or null: added to, complete
};

/// A row of logits is read in groups of so many, whatever the instruction set.
constexpr int kSoftmaxColumns = 64;

/// One instruction set. Every sum runs over k in order, alone in its lane: no result depends on
/// which rows or panels are computed together.
struct Kernels {
    const char* name;
    int lanes;             // floats in a vector
    int tile_rows;         // rows that are multiplied together
    int code_group;        // int8: consecutive k that lie side by side in a panel
    int code_bias;         // int8: what is added to a weight's code
    int activation_bytes;  // int8: the size of an activation's code

    void (*linear)(const Rows&, const Panels&, Span panels, Span rows, const LinearOut&);
    void (*highway)(const Rows&, const Panels&, Span panels, Span rows, const HighwayOut&);
    void (*cells)(const Rows&, const Panels&, Span panels, Span rows, const CellState&);
    void (*learning_cells)(const Rows&, const Panels&, Span panels, Span rows,
                           const LearningCells&);
    void (*backward_cells)(const Rows&, const Panels&, Span panels, Span rows,
                           const BackwardCells&);
    /// A row of `depth` values, padded with zeros to whole vectors, to codes.
    void (*quantize)(const float* row, int depth, void* codes, float* scale, std::int32_t* sum);
    /// Fills the table of one character.
    void (*tabulate)(const Convolution&, int character);
    /// One word of `length` real characters to F filter outputs (a few floats beyond are zeroed).
    void (*convolve)(const Convolution&, const std::int16_t* ids, int length, float* out);
    /// Words to filter outputs and places, which are written.
    void (*learn_windows)(const Convolution&, const LearningWords&);
    /// Adds the gradient of the outputs [U][F] to those of the biases [F] and of the table.
    void (*backward_windows)(const Convolution&, const LearningWords&, const float* outputs,
                            float* biases, float* table);
    /// The sum of the losses of a block. Without gradients the logits are left as they are.
    double (*softmax)(const SoftmaxRows&);
};

// The last two exist on x86-64 only.
const Kernels* portable_kernels();
const Kernels* avx2_kernels();
const Kernels* avx512_kernels();

}  // namespace elmokit
