#include "train_products.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <vector>

#include "interrupts.h"

namespace elmokit {

namespace {

/// Number of k that are multiplied at a time: so few that what is packed of them stays in the
/// cache.
constexpr int kChunkDepth = 256;
/// Floats of a cache line, which is read once.
constexpr std::ptrdiff_t kLine = 16;

/// Memory of malloc: for memory that the system has to map and clear in each call, that takes
/// longer than packing. (train/malloc.py keeps malloc from returning it.)
struct Free {
    void operator()(float* p) const { ::operator delete[](p, kAlignment); }
    static constexpr std::align_val_t kAlignment{64};
};
using Floats = std::unique_ptr<float[], Free>;

Floats floats(std::size_t count) { return Floats(new (Free::kAlignment) float[count]); }

/// Writes the transpose of a matrix; `stride` is the number of floats from one row to the next.
void transpose(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t rows,
               std::ptrdiff_t columns, float* to, std::ptrdiff_t to_stride) {
    for (std::ptrdiff_t r0 = 0; r0 < rows; r0 += kLine) {
        const std::ptrdiff_t end = std::min(rows, r0 + kLine);
        for (std::ptrdiff_t c = 0; c < columns; ++c)
            for (std::ptrdiff_t r = r0; r < end; ++r)
                to[c * to_stride + r] = from[r * from_stride + c];
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
        if (copies_a()) a_ = floats(std::size_t(product.rows) * depth);
        if (product.add || product.depth > kChunkDepth)
            sums_ = floats(std::size_t(product.rows) * width_);
        if (product.bias) std::copy_n(product.bias, product.columns, bias_.begin());
    }

    void run() {
        for (int first = 0; first < product_.depth; first += kChunkDepth) {
            const int depth = std::min(product_.depth - first, kChunkDepth);
            check_interrupts();
            pack(first, depth);
            const Rows a = factors(first, depth);
            for (int panel = 0; panel < panels_; ++panel) {
                check_interrupts();
                multiply(a, panel, depth, first > 0);
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

    /// Some columns of a, one after another in memory.
    Rows factors(int first, int depth) {
        if (!copies_a()) return {product_.a, product_.depth, nullptr, 0, nullptr, nullptr};
        const std::ptrdiff_t rows = product_.rows;
        if (product_.a_transposed)
            transpose(product_.a + first * rows, rows, depth, rows, a_.get(), depth);
        else
            for (std::ptrdiff_t r = 0; r < rows; ++r)
                std::copy_n(product_.a + r * product_.depth + first, depth, a_.get() + r * depth);
        return {a_.get(), depth, nullptr, 0, nullptr, nullptr};
    }

    /// Multiplies with a panel. The bias is added with the first products.
    void multiply(const Rows& a, int panel, int depth, bool continues) {
        const std::ptrdiff_t column = std::ptrdiff_t{panel} * width_, columns = product_.columns;
        const auto count = static_cast<int>(std::min<std::ptrdiff_t>(columns - column, width_));
        const bool add = product_.add || continues;
        float* const out = product_.out + column;
        if (continues) std::fill_n(bias_.begin() + column, count, 0.0f);
        const Panels b{packed_.get() + column * depth, nullptr, nullptr, bias_.data() + column,
                       depth};
        kernels_.linear(a, b, {0, 1}, {0, product_.rows},
                        add ? LinearOut{sums_.get(), 0, width_, count, INFINITY}
                            : LinearOut{out, 0, columns, count, INFINITY});
        if (!add) return;
        for (std::ptrdiff_t r = 0; r < product_.rows; ++r)
            for (int c = 0; c < count; ++c) out[r * columns + c] += sums_.get()[r * width_ + c];
    }

    const Kernels& kernels_;
    const MatrixProduct& product_;
    const int width_;  // columns of a panel
    const int panels_;
    std::vector<float> bias_;
    Floats packed_, a_, sums_;
};

}  // namespace

void run_product(const Kernels& kernels, const MatrixProduct& product) {
    if (product.rows == 0) return;
    if (!product.a_transposed || product.rows <= product.columns || product.bias) {
        Multiplication(kernels, product).run();
        return;
    }
    // Transposing the larger factor would take long: the transpose of the result instead, whose
    // first factor is the smaller one.
    const std::ptrdiff_t rows = product.rows, columns = product.columns;
    const Floats out = floats(std::size_t(rows * columns));
    Multiplication(kernels,
                   {product.columns, product.depth, product.rows, product.b, !product.b_transposed,
                    product.a, !product.a_transposed, nullptr, out.get(), false})
        .run();
    if (!product.add) return transpose(out.get(), rows, columns, rows, product.out, columns);
    for (std::ptrdiff_t r0 = 0; r0 < rows; r0 += kLine)
        for (std::ptrdiff_t c = 0; c < columns; ++c)
            for (std::ptrdiff_t r = r0; r < std::min(rows, r0 + kLine); ++r)
                product.out[r * columns + c] += out.get()[c * rows + r];
}

}  // namespace elmokit
