#include "char_cnn.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>

#include "interrupts.h"

namespace elmokit {

namespace {

/// Words that are computed together: by all threads, or by each thread if there are enough words for
/// all of them. Bounds the memory; large enough that reading the weights takes little time compared
/// to the products.
constexpr int kWordsPerBlock = 256;
constexpr int kWordsPerTask = 64;
constexpr int kFewWords = 16;

}  // namespace

CharCNN::CharCNN(const Architecture& architecture, const Kernels& kernels, Team& team, Dtype dtype)
    : architecture_(architecture),
      kernels_(kernels),
      team_(team),
      dtype_(dtype),
      coded_(Activations::coded(kernels, dtype)),
      tabulated_(architecture.characters),
      filters_loaded_(architecture.filters.size()),
      highways_(architecture.highways) {
    std::ptrdiff_t table_stride = 0;
    for (const auto& [width, count] : architecture_.filters) {
        const int padded = (count + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
        filter_weights_.emplace_back(product({width, count, architecture_.embedding_dim}));
        filter_biases_.emplace_back(padded);
        filters_.push_back({width, count, padded, filter_weights_.back().data(), table_stride,
                            filter_biases_.back().data()});
        table_stride += static_cast<std::ptrdiff_t>(width) * padded;
    }
    embedding_.reserve(product({architecture_.characters, architecture_.embedding_dim}));
    // The rows of a character are filled when it first occurs: most texts use few characters.
    table_.reserve(product({architecture_.characters, table_stride}));
    convolution_ = {filters_.data(),
                    static_cast<int>(filters_.size()),
                    architecture_.max_characters,
                    architecture_.embedding_dim,
                    embedding_.data(),
                    table_.data(),
                    table_stride,
                    architecture_.tanh};
}

void CharCNN::load_embedding(const float* embedding) {
    std::copy_n(embedding, std::size_t(architecture_.characters) * architecture_.embedding_dim,
                embedding_.data());
    std::fill(tabulated_.begin(), tabulated_.end(), false);
    embedding_loaded_ = true;
}

void CharCNN::load_filters(int index, const float* weight, const float* bias) {
    const auto [width, count] = architecture_.filters.at(index);
    std::copy_n(weight, std::size_t(width) * count * architecture_.embedding_dim,
                filter_weights_[index].data());
    std::copy_n(bias, count, filter_biases_[index].data());
    std::fill(tabulated_.begin(), tabulated_.end(), false);
    filters_loaded_[index] = true;
}

void CharCNN::load_highway(int index, const Columns& carry, const Columns& transform) {
    const int n = architecture_.n_filters();
    highways_.at(index) = Matrix(kernels_, team_, dtype_, {carry, transform}, n, n);
}

void CharCNN::load_projection(const Columns& columns) {
    projection_ =
        Matrix(kernels_, team_, dtype_, {columns}, architecture_.n_filters(), architecture_.width);
}

std::string CharCNN::missing() const {
    if (!embedding_loaded_) return "the embedding";
    for (std::size_t i = 0; i < filters_loaded_.size(); ++i)
        if (!filters_loaded_[i]) return "filters " + std::to_string(i);
    for (std::size_t i = 0; i < highways_.size(); ++i)
        if (!highways_[i]) return "highway " + std::to_string(i);
    return architecture_.character_projection && !projection_ ? "the projection" : "";
}

void CharCNN::word_vectors(const std::int16_t* ids, const std::int64_t* lengths,
                           std::ptrdiff_t words, float* out) {
    const std::vector<int> new_ids = new_characters(ids, words);
    if (!new_ids.empty()) {
        team_.run([&](const Member& member) {
            const Span mine = member.share(static_cast<std::ptrdiff_t>(new_ids.size()));
            for (int i = mine.begin; i < mine.end; ++i) kernels_.tabulate(convolution_, new_ids[i]);
        });
        for (const int character : new_ids) tabulated_[character] = true;
    }

    // With words for all, every thread takes blocks of its own and never waits for another one.
    const int members = team_.members();
    const bool alone = words >= std::ptrdiff_t{members} * kFewWords;
    const std::ptrdiff_t size =
        alone ? std::clamp<std::ptrdiff_t>(words / (4 * std::ptrdiff_t{members}), kFewWords,
                                           kWordsPerTask)
              : kWordsPerBlock;
    const int filters = architecture_.n_filters();
    if (static_cast<int>(buffers_.size()) < members) buffers_.resize(members);
    for (int i = 0; i < (alone ? members : 1); ++i) {
        const int rows = static_cast<int>(std::min(words, size));
        buffers_[i].x.reserve(kernels_, rows, filters, dtype_);
        buffers_[i].y.reserve(kernels_, rows, filters, dtype_);
    }
    const auto compute = [&](const Member& member, Buffers& buffers, std::ptrdiff_t first) {
        compute_block(member, buffers, ids + first * architecture_.max_characters, lengths + first,
                      static_cast<int>(std::min(words - first, size)),
                      out + first * architecture_.width);
    };
    std::atomic<std::ptrdiff_t> next{0};
    team_.run([&](const Member& member) {
        if (alone) {
            Barrier nobody(1, 0, team_.failure());
            const Member self{0, 1, &nobody};
            while (true) {
                self.synchronize();  // throws if another thread failed
                const std::ptrdiff_t first = next.fetch_add(size);
                if (first >= words) return;
                compute(self, buffers_[member.index], first);
            }
        } else {
            for (std::ptrdiff_t first = 0; first < words; first += size) {
                compute(member, buffers_[0], first);
                member.synchronize();
            }
        }
    });
}

std::size_t CharCNN::buffer_bytes() const {
    std::size_t bytes = 0;
    for (const Buffers& each : buffers_) bytes += each.x.bytes() + each.y.bytes();
    return bytes;
}

std::vector<int> CharCNN::new_characters(const std::int16_t* ids, std::ptrdiff_t words) const {
    std::vector<char> seen(tabulated_);
    std::vector<int> new_ids;
    for (std::ptrdiff_t i = 0; i < words * architecture_.max_characters; ++i) {
        if (!seen[ids[i]]) {
            seen[ids[i]] = true;
            new_ids.push_back(ids[i]);
        }
    }
    return new_ids;
}

void CharCNN::compute_block(const Member& member, Buffers& buffers, const std::int16_t* ids,
                            const std::int64_t* lengths, int words, float* out) {
    Activations* x = &buffers.x;
    Activations* y = &buffers.y;
    check_interrupts();
    const Span mine = member.share(words);
    const bool multiplied = !highways_.empty() || projection_;

    for (int word = mine.begin; word < mine.end; ++word) {
        kernels_.convolve(convolution_,
                          ids + static_cast<std::ptrdiff_t>(word) * architecture_.max_characters,
                          static_cast<int>(lengths[word]), x->row(word));
        if (coded_ && multiplied) x->encode(word);
    }
    member.synchronize();

    for (const Matrix& highway : highways_) {
        check_interrupts();
        const auto [panels, rows] = member.block(highway.panels(), words, kernels_.tile_rows);
        kernels_.highway(x->view(), highway.view(), panels, rows, {y->row(0), y->stride()});
        member.synchronize();
        if (coded_) {
            for (int word = mine.begin; word < mine.end; ++word) y->encode(word);
            member.synchronize();
        }
        std::swap(x, y);
    }

    check_interrupts();
    if (projection_) {
        const auto [panels, rows] = member.block(projection_.panels(), words, kernels_.tile_rows);
        const std::ptrdiff_t panel_width = projection_.width() / projection_.panels();
        kernels_.linear(x->view(), projection_.view(), panels, rows,
                        {out, panel_width, architecture_.width, architecture_.width, INFINITY});
    } else {
        for (int word = mine.begin; word < mine.end; ++word)
            std::memcpy(out + static_cast<std::ptrdiff_t>(word) * architecture_.width, x->row(word),
                        architecture_.width * sizeof(float));
    }
}

}  // namespace elmokit
