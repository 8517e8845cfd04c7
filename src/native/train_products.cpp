#include "train_products.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <vector>

#include "interrupts.h"

namespace elmokit {

namespace {

// The parts that are multiplied at a time stay in the second-level cache: a block of rows of a, and
// a panel of b.
constexpr int kChunkDepth = 512;
constexpr int kBlockRows = 192;

/// Memory of malloc: for memory that the system has to map and clear in each call, that takes
/// longer than packing. (train/malloc.py keeps malloc from returning it.)
struct Free {
    void operator()(float* p) const { ::operator delete[](p, kAlignment); }
    static constexpr std::align_val_t kAlignment{64};
};
using Floats = std::unique_ptr<float[], Free>;

Floats floats(std::size_t count) { return Floats(new (Free::kAlignment) float[count]); }

typedef float Four __attribute__((vector_size(16)));

Four load(const float* p) {
    Four four;
    __builtin_memcpy(&four, p, sizeof four);
    return four;
}

void store(float* p, Four four) { __builtin_memcpy(p, &four, sizeof four); }

/// Writes the transpose of four rows of four; `stride` is the number of floats from one row to the
/// next.
void transpose_four(const float* from, std::ptrdiff_t from_stride, float* to,
                    std::ptrdiff_t to_stride) {
    const Four a = load(from), b = load(from + from_stride);
    const Four c = load(from + 2 * from_stride), d = load(from + 3 * from_stride);
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    store(to, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    store(to + to_stride, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
    const Four last_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four last_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    store(to + 2 * to_stride, __builtin_shufflevector(last_ab, last_cd, 0, 1, 4, 5));
    store(to + 3 * to_stride, __builtin_shufflevector(last_ab, last_cd, 2, 3, 6, 7));
}

/// Writes the transpose of a matrix. The rows of the next cache lines are fetched meanwhile: the
/// CPU does not see by itself that they will be read.
void transpose(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t rows,
               std::ptrdiff_t columns, float* to, std::ptrdiff_t to_stride) {
    constexpr std::ptrdiff_t kLine = 16;  // floats of a cache line, which is written at once
    for (std::ptrdiff_t first = 0; first < rows; first += kLine) {
        const std::ptrdiff_t end = std::min(rows, first + kLine);
        for (std::ptrdiff_t c = 0; c < columns; c += 4) {
            if (c % kLine == 0)
                for (std::ptrdiff_t next = end; next < std::min(rows, end + kLine); ++next)
                    __builtin_prefetch(from + next * from_stride + c);
            std::ptrdiff_t r = first;
            if (c + 4 <= columns)
                for (; r + 4 <= end; r += 4)
                    transpose_four(from + r * from_stride + c, from_stride, to + c * to_stride + r,
                                   to_stride);
            for (; r < end; ++r)
                for (std::ptrdiff_t k = c; k < std::min(columns, c + 4); ++k)
                    to[k * to_stride + r] = from[r * from_stride + k];
        }
    }
}

/// One product, part by part.
class Multiplication {
  public:
    Multiplication(const Kernels& kernels, const MatrixProduct& product)
        : kernels_(kernels),
          product_(product),
          width_(kPanelVectors * kernels.lanes),
          panels_((product.columns + width_ - 1) / width_),
          bias_(std::size_t(panels_) * width_) {
        const std::size_t depth = std::min(product.depth, kChunkDepth);
        packed_ = floats(bias_.size() * depth);
        if (copies_a()) a_ = floats(std::min(product.rows, kBlockRows) * depth);
        if (product.bias) std::copy_n(product.bias, product.columns, bias_.begin());
    }

    void run() {
        const std::ptrdiff_t columns = product_.columns;
        for (int first = 0; first < product_.depth; first += kChunkDepth) {
            const int depth = std::min(product_.depth - first, kChunkDepth);
            pack(first, depth);
            if (first > 0) std::fill(bias_.begin(), bias_.end(), 0.0f);  // it was added once
            const Panels b{packed_.get(), nullptr, nullptr, bias_.data(), depth};
            for (int row = 0; row < product_.rows; row += kBlockRows) {
                check_interrupts();
                const int end = std::min(product_.rows, row + kBlockRows);
                const LinearOut out{
                    product_.out + row * columns, width_, columns, product_.columns, INFINITY,
                    product_.add || first > 0};
                kernels_.linear(factors({row, end}, first, depth), b, {0, panels_}, {0, end - row},
                                out);
            }
        }
    }

  private:
    bool copies_a() const { return product_.a_transposed || product_.depth > kChunkDepth; }

    /// Packs some rows of b into panels.
    void pack(int first, int depth) {
        const std::ptrdiff_t columns = product_.columns;
        const std::ptrdiff_t size = std::ptrdiff_t{depth} * width_;
        const auto padding = static_cast<int>(panels_ * width_ - columns);
        if (product_.b_transposed) {
            for (int panel = 0; panel < panels_; ++panel) {
                const std::ptrdiff_t column = std::ptrdiff_t{panel} * width_;
                transpose(product_.b + column * product_.depth + first, product_.depth,
                          std::min<std::ptrdiff_t>(columns - column, width_), depth,
                          packed_.get() + panel * size, width_);
            }
        } else {
            for (int k = 0; k < depth; ++k) {
                const float* from = product_.b + (first + k) * columns;
                for (int panel = 0; panel < panels_; ++panel) {
                    const std::ptrdiff_t column = std::ptrdiff_t{panel} * width_;
                    std::copy_n(from + column, std::min<std::ptrdiff_t>(columns - column, width_),
                                packed_.get() + panel * size + std::ptrdiff_t{k} * width_);
                }
            }
        }
        float* const last = packed_.get() + (panels_ - 1) * size + width_ - padding;
        for (int k = 0; k < depth; ++k)
            std::fill_n(last + std::ptrdiff_t{k} * width_, padding, 0.0f);
    }

    /// Some rows of a, the k of a chunk one after another in memory.
    Rows factors(Span rows, int first, int depth) {
        const std::ptrdiff_t count = rows.end - rows.begin;
        if (product_.a_transposed) {
            transpose(product_.a + std::ptrdiff_t{first} * product_.rows + rows.begin,
                      product_.rows, depth, count, a_.get(), depth);
        } else {
            const std::ptrdiff_t stride = product_.depth;
            const float* const from = product_.a + rows.begin * stride + first;
            if (!copies_a()) return {from, stride, nullptr, 0, nullptr, nullptr};
            for (std::ptrdiff_t r = 0; r < count; ++r)
                std::copy_n(from + r * stride, depth, a_.get() + r * depth);
        }
        return {a_.get(), depth, nullptr, 0, nullptr, nullptr};
    }

    const Kernels& kernels_;
    const MatrixProduct& product_;
    const int width_;  // columns of a panel
    const int panels_;
    std::vector<float> bias_;
    Floats packed_, a_;
};

}  // namespace

void run_product(const Kernels& kernels, const MatrixProduct& product) {
    if (product.rows == 0) return;
    Multiplication(kernels, product).run();
}

}  // namespace elmokit
