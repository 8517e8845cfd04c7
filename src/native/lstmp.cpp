#include "lstmp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "interrupts.h"

namespace elmokit {

namespace {

/// Number of sentences that run in parallel, and of words whose input products are computed
/// together. They bound the memory, and are large enough that reading the weights takes little time
/// compared to the products.
constexpr int kSentencesPerBlock = 128;
constexpr int kWordsPerChunk = 128;

// Thresholds for dividing the work among threads, see `subteams` below; measured, not critical.
constexpr int kFewSentences = 16;
constexpr std::ptrdiff_t kCacheBytes = std::ptrdiff_t{32} << 20;
constexpr std::ptrdiff_t kMinProductsPerThread = 200'000;

}  // namespace

BiLSTM::BiLSTM(const Architecture& architecture, const Kernels& kernels, Team& team, Dtype dtype)
    : architecture_(architecture),
      kernels_(kernels),
      team_(team),
      dtype_(dtype),
      coded_(Activations::coded(kernels, dtype)),
      layers_(2 * architecture.layers) {}

void BiLSTM::load(int layer, int direction, const float* input, const float* recurrent,
                  const float* bias, const float* projection) {
    const int cells = architecture_.cells, width = architecture_.width;
    const auto gates = [&](const float* weight, const float* gate_bias) {
        std::vector<Columns> groups;
        for (int g = 0; g < 4; ++g) {
            const float* b = gate_bias ? gate_bias + g * cells : nullptr;
            groups.push_back({weight + g * cells, 4 * std::ptrdiff_t{cells}, b,
                              gate_bias && g == 2 ? kForgetBias : 0.0f});
        }
        return Matrix(kernels_, team_, dtype_, groups, width, cells);
    };
    Layer loaded;  // replaces the old one when it is complete
    loaded.input = gates(input, bias);
    loaded.recurrent = gates(recurrent, nullptr);
    if (projection)
        loaded.projection =
            Matrix(kernels_, team_, dtype_, {{projection, width, nullptr}}, cells, width);
    layers_[2 * layer + direction] = std::move(loaded);
}

std::string BiLSTM::missing() const {
    for (std::size_t i = 0; i < layers_.size(); ++i)
        if (!layers_[i].input)
            return "layer " + std::to_string(i / 2) + " in direction " + std::to_string(i % 2);
    return "";
}

/// One layer over a block of sentences in one direction; every member of a subteam runs it.
///
/// The backward direction is the same network reading every sentence from its end: its row n is the
/// word `mirror[n]`.
struct BiLSTM::Pass {
    BiLSTM& lstm;
    Buffers& buffers;
    const Batch& batch;
    const int depth;
    const int direction;
    const Span ranks;  // the block of sentences
    const Member& member;

    const Layer& layer = lstm.layers_[2 * depth + direction];
    const int width = lstm.architecture_.width;
    const int cells = lstm.architecture_.cells;
    const bool coded = lstm.coded_;
    const Kernels& kernels = lstm.kernels_;
    Activations* h = &buffers.hidden;
    Activations* m = &buffers.output;

    /// Consecutive steps whose input products are computed together.
    struct Chunk {
        std::ptrdiff_t first_step;
        std::ptrdiff_t end_step;   // one past the last step
        std::ptrdiff_t first_row;  // row of the batch where the first step begins
        int words;                 // words of the block in these steps
    };

    /// Number of sentences of the block that have a word at this step.
    int alive(std::ptrdiff_t step) const {
        if (step >= batch.steps) return 0;
        const auto all = static_cast<std::ptrdiff_t>(batch.alive[step]);
        return static_cast<int>(std::clamp<std::ptrdiff_t>(all, ranks.begin, ranks.end)) -
               ranks.begin;
    }
    /// Where the output of row n is in a layer (N, D).
    float* layer_row(int layer_index, std::ptrdiff_t n) const {
        const std::ptrdiff_t word = direction == 0 ? n : batch.mirror[n];
        return batch.layers + ((layer_index * batch.n_words + word) * 2 + direction) * width;
    }
    float* cell_row(int r) const { return buffers.cells.data() + r * m->stride(); }
    float* state_row(float* state, int size, int r) const {
        return state + ((2 * depth + direction) * batch.sentences + ranks.begin + r) * size;
    }

    void run() {
        const Span mine = member.share(ranks.end - ranks.begin);
        for (int r = mine.begin; r < mine.end; ++r) {
            std::memcpy(h->row(r), state_row(batch.hidden, width, r), width * sizeof(float));
            std::memcpy(cell_row(r), state_row(batch.cell, cells, r), cells * sizeof(float));
            if (coded) h->encode(r);
        }
        std::ptrdiff_t row = 0;
        for (std::ptrdiff_t step = 0; step < batch.steps && alive(step) > 0;) {
            Chunk chunk{step, step, row, 0};
            while (
                alive(chunk.end_step) > 0 &&
                (chunk.end_step == step || chunk.words + alive(chunk.end_step) <= kWordsPerChunk)) {
                chunk.words += alive(chunk.end_step);
                row += batch.alive[chunk.end_step++];
            }
            multiply_inputs(chunk);
            run_steps(chunk);
            step = chunk.end_step;
        }
        member.synchronize();
    }

    /// Computes x·W_x + bias of all words of the chunk.
    void multiply_inputs(const Chunk& chunk) {
        const Span mine = member.share(chunk.words);
        int first = 0;
        std::ptrdiff_t row = chunk.first_row + ranks.begin;
        for (std::ptrdiff_t step = chunk.first_step; step < chunk.end_step; ++step) {
            const int end = std::min(first + alive(step), mine.end);
            for (int i = std::max(first, mine.begin); i < end; ++i) {
                std::memcpy(buffers.input.row(i), layer_row(depth, row + i - first),
                            width * sizeof(float));
                if (coded) buffers.input.encode(i);
            }
            first += alive(step);
            row += batch.alive[step];
        }
        check_interrupts();
        member.synchronize();
        const auto [panels, rows] =
            member.block(layer.input.panels(), chunk.words, kernels.tile_rows);
        const std::ptrdiff_t panel_width = kPanelVectors * kernels.lanes;
        kernels.linear(buffers.input.view(), layer.input.view(), panels, rows,
                       {buffers.gates.data(), kWordsPerChunk * panel_width, panel_width,
                        layer.input.width(), INFINITY});
        member.synchronize();
    }

    /// Runs the steps of the chunk, one after another.
    void run_steps(const Chunk& chunk) {
        int first = 0;
        std::ptrdiff_t row = chunk.first_row + ranks.begin;
        for (std::ptrdiff_t step = chunk.first_step; step < chunk.end_step; ++step) {
            check_interrupts();
            const int active = alive(step);
            update_cells(first, active);
            if (layer.projection)
                project(active);
            else
                std::swap(h, m);
            finish(row, active, alive(step + 1));
            first += active;
            row += batch.alive[step];
        }
    }

    void update_cells(int first, int active) {
        const auto [panels, rows] =
            member.block(layer.recurrent.panels(), active, kernels.tile_rows);
        const std::ptrdiff_t panel_width = kPanelVectors * kernels.lanes;
        kernels.cells(h->view(), layer.recurrent.view(), panels, rows,
                      {buffers.gates.data() + first * panel_width, kWordsPerChunk * panel_width,
                       buffers.cells.data(), m->row(0), m->stride(), lstm.architecture_.cell_clip});
        member.synchronize();
    }

    void project(int active) {
        if (coded) {
            const Span mine = member.share(active);
            for (int r = mine.begin; r < mine.end; ++r) m->encode(r);
            member.synchronize();
        }
        const auto [panels, rows] =
            member.block(layer.projection.panels(), active, kernels.tile_rows);
        kernels.linear(m->view(), layer.projection.view(), panels, rows,
                       {h->row(0), kPanelVectors * kernels.lanes, h->stride(), width,
                        lstm.architecture_.projection_clip});
        member.synchronize();
    }

    /// Writes h to the layer, and to the state for sentences that end here. Other members may start
    /// the next step meanwhile: it does not change what is read here.
    void finish(std::ptrdiff_t row, int active, int active_next) {
        const bool skip = depth > 0 && lstm.architecture_.skip;
        const Span mine = member.share(active);
        for (int r = mine.begin; r < mine.end; ++r) {
            const float* outputs = h->row(r);
            float* out = layer_row(depth + 1, row + r);
            if (skip) {
                const float* x = layer_row(depth, row + r);
                for (int p = 0; p < width; ++p) out[p] = outputs[p] + x[p];
            } else {
                std::memcpy(out, outputs, width * sizeof(float));
            }
            if (r >= active_next) {
                std::memcpy(state_row(batch.hidden, width, r), outputs, width * sizeof(float));
                std::memcpy(state_row(batch.cell, cells, r), cell_row(r), cells * sizeof(float));
            } else if (coded) {
                h->encode(r);
            }
        }
        if (coded) member.synchronize();
    }
};

void BiLSTM::contextualize(const Batch& batch) {
    const int sentences =
        static_cast<int>(std::min<std::int64_t>(batch.alive[0], kSentencesPerBlock));
    const int subteams = this->subteams(sentences);
    const int size = subteam_size(sentences, subteams);
    std::deque<Barrier> barriers;
    for (int subteam = 0; subteam < subteams; ++subteam) {
        barriers.emplace_back(size, team_.spins(), team_.failure());
        reserve(buffers_[subteam], sentences);
    }
    team_.run([&](const Member& team_member) {
        const int subteam = team_member.index / size;
        if (subteam >= subteams) return;
        const Member member{team_member.index % size, size, &barriers[subteam]};
        member.run([&] {
            for (int direction = subteam; direction < 2; direction += subteams)
                run_direction(member, buffers_[subteam], batch, direction);
        });
    });
}

void BiLSTM::run_direction(const Member& member, Buffers& buffers, const Batch& batch,
                           int direction) {
    copy_words(member, batch, direction);
    const int sentences = static_cast<int>(batch.alive[0]);
    for (int depth = 0; depth < architecture_.layers; ++depth) {
        for (int first = 0; first < sentences; first += kSentencesPerBlock) {
            const Span ranks{first, std::min(first + kSentencesPerBlock, sentences)};
            Pass{*this, buffers, batch, depth, direction, ranks, member}.run();
        }
    }
}

/// A team with an even number of members is divided into two subteams that run one direction each,
/// so that two threads never wait for each other. But if the weights of both directions do not fit
/// into the cache and are used for few rows, memory bandwidth is the limit: then the whole team
/// runs one direction after the other, which finds more of its weights in the cache.
int BiLSTM::subteams(int sentences) const {
    const bool memory_bound =
        sentences < kFewSentences && 2 * layers_[0].step_bytes() > kCacheBytes;
    return team_.members() % 2 == 0 && !memory_bound ? 2 : 1;
}

/// With fewer products per step, a member spends more time on synchronization than on its share.
int BiLSTM::subteam_size(int sentences, int subteams) const {
    const std::ptrdiff_t products = sentences * layers_[0].step_products();
    return static_cast<int>(std::clamp<std::ptrdiff_t>(products / kMinProductsPerThread, 1,
                                                       team_.members() / subteams));
}

/// Writes layer 0: the word vector, in each direction's half.
void BiLSTM::copy_words(const Member& member, const Batch& batch, int direction) const {
    const std::ptrdiff_t width = architecture_.width;
    const std::ptrdiff_t end = batch.n_words * (member.index + 1) / member.count;
    for (std::ptrdiff_t n = batch.n_words * member.index / member.count; n < end; ++n)
        std::memcpy(batch.layers + (2 * n + direction) * width, batch.words + n * width,
                    width * sizeof(float));
    member.synchronize();
}

void BiLSTM::reserve(Buffers& buffers, int sentences) const {
    const int width = architecture_.width, cells = architecture_.cells;
    buffers.input.reserve(kernels_, kWordsPerChunk, width, dtype_);
    buffers.hidden.reserve(kernels_, sentences, width, dtype_);
    buffers.output.reserve(kernels_, sentences, cells, dtype_);
    buffers.gates.reserve(static_cast<std::size_t>(kWordsPerChunk) * layers_[0].input.width());
    buffers.cells.reserve(sentences * buffers.output.stride());
}

}  // namespace elmokit
