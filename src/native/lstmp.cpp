#include "lstmp.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <stdexcept>

namespace elmokit {

namespace {

/// Sentences that run side by side, and words whose input products are computed ahead: bounds on
/// memory, large enough that reading the weights takes little beside the products.
constexpr int kSentencesAtOnce = 128;
constexpr int kWordsAhead = 128;

// How work is divided, see below; measured, not critical.
constexpr int kFewSentences = 16;
constexpr std::ptrdiff_t kCacheBytes = std::ptrdiff_t{32} << 20;
constexpr std::ptrdiff_t kLeastProducts = 200'000;

}  // namespace

BiLSTM::BiLSTM(const Architecture& architecture, const Kernels& kernels, Team& team, bool int8)
    : architecture_(architecture),
      kernels_(kernels),
      team_(team),
      int8_(int8),
      layers_(2 * architecture.layers) {}

void BiLSTM::load(int layer, int side, const float* input, const float* recurrent,
                  const float* bias, const float* projection) {
    const int cells = architecture_.cells, width = architecture_.width;
    const auto gates = [&](const float* weight, const float* gate_bias) {
        std::vector<Columns> groups;
        for (int g = 0; g < 4; ++g) {
            const float* b = gate_bias ? gate_bias + g * cells : nullptr;
            groups.push_back({weight + g * cells, 4 * std::ptrdiff_t{cells}, b,
                              gate_bias && g == 2 ? kForgetBias : 0.0f});
        }
        return Matrix(kernels_, team_, int8_, groups, width, cells);
    };
    Layer& there = layers_.at(2 * layer + side);
    there.input = gates(input, bias);
    there.recurrent = gates(recurrent, nullptr);
    if (projection)
        there.projection =
            Matrix(kernels_, team_, int8_, {{projection, width, nullptr}}, cells, width);
}

/// One layer reading some sentences in one direction, as one member of the team runs it.
///
/// The backward direction is the same network reading every sentence from its end: its row n
/// stands for the word `mirror[n]`.
struct BiLSTM::Pass {
    BiLSTM& lstm;
    Buffers& buffers;
    const Batch& batch;
    const int depth;
    const int side;
    const Span ranks;  // the sentences
    const Member& member;

    const Layer& layer = lstm.layers_[2 * depth + side];
    const int width = lstm.architecture_.width;
    const int cells = lstm.architecture_.cells;
    const bool int8 = lstm.int8_;
    const Kernels& kernels = lstm.kernels_;
    Activations* h = &buffers.hidden;
    Activations* m = &buffers.output;

    /// Some steps whose input products are computed together.
    struct Chunk {
        std::ptrdiff_t step;       // the first,
        std::ptrdiff_t last;       // one behind the last,
        std::ptrdiff_t first_row;  // where the first begins in the batch,
        int words;                 // of these sentences in these steps
    };

    /// How many of these sentences have a word at this step.
    int alive(std::ptrdiff_t step) const {
        if (step >= batch.steps) return 0;
        const auto all = static_cast<std::ptrdiff_t>(batch.alive[step]);
        return static_cast<int>(std::clamp<std::ptrdiff_t>(all, ranks.begin, ranks.end)) -
               ranks.begin;
    }
    /// Row n's place in a layer (N, D).
    float* place(int layer_index, std::ptrdiff_t n) const {
        const std::ptrdiff_t word = side == 0 ? n : batch.mirror[n];
        return batch.layers + ((layer_index * batch.n_words + word) * 2 + side) * width;
    }
    float* cell_row(int r) const { return buffers.cells.data() + r * m->stride(); }
    float* state_row(float* state, int size, int r) const {
        return state + ((2 * depth + side) * batch.sentences + ranks.begin + r) * size;
    }

    void run() {
        const Span mine = member.share(ranks.end - ranks.begin);
        for (int r = mine.begin; r < mine.end; ++r) {
            std::memcpy(h->row(r), state_row(batch.hidden, width, r), width * sizeof(float));
            std::memcpy(cell_row(r), state_row(batch.cell, cells, r), cells * sizeof(float));
            if (int8) h->quantize(r);
        }
        std::ptrdiff_t row = 0;
        for (std::ptrdiff_t step = 0; step < batch.steps && alive(step) > 0;) {
            Chunk chunk{step, step, row, 0};
            while (alive(chunk.last) > 0 &&
                   (chunk.last == step || chunk.words + alive(chunk.last) <= kWordsAhead)) {
                chunk.words += alive(chunk.last);
                row += batch.alive[chunk.last++];
            }
            multiply_inputs(chunk);
            read(chunk);
            step = chunk.last;
        }
        member.meet();
    }

    /// x·W_x + bias of all words of the chunk.
    void multiply_inputs(const Chunk& chunk) {
        const Span mine = member.share(chunk.words);
        int first = 0;
        std::ptrdiff_t row = chunk.first_row + ranks.begin;
        for (std::ptrdiff_t step = chunk.step; step < chunk.last; ++step) {
            const int end = std::min(first + alive(step), mine.end);
            for (int i = std::max(first, mine.begin); i < end; ++i) {
                std::memcpy(buffers.input.row(i), place(depth, row + i - first),
                            width * sizeof(float));
                if (int8) buffers.input.quantize(i);
            }
            first += alive(step);
            row += batch.alive[step];
        }
        member.meet();
        const auto [panels, rows] =
            member.block(layer.input.panels(), chunk.words, kernels.tile_rows);
        const std::ptrdiff_t panel_width = kPanelVectors * kernels.lanes;
        kernels.linear(buffers.input.view(), layer.input.view(), panels, rows,
                       {buffers.gates.data(), kWordsAhead * panel_width, panel_width,
                        layer.input.width(), INFINITY});
        member.meet();
    }

    /// The steps of the chunk, one after another.
    void read(const Chunk& chunk) {
        int first = 0;
        std::ptrdiff_t row = chunk.first_row + ranks.begin;
        for (std::ptrdiff_t step = chunk.step; step < chunk.last; ++step) {
            const int living = alive(step);
            update_cells(first, living);
            if (layer.projection)
                project(living);
            else
                std::swap(h, m);
            finish(row, living, alive(step + 1));
            first += living;
            row += batch.alive[step];
        }
    }

    void update_cells(int first, int living) {
        const auto [panels, rows] =
            member.block(layer.recurrent.panels(), living, kernels.tile_rows);
        const std::ptrdiff_t panel_width = kPanelVectors * kernels.lanes;
        kernels.cells(h->view(), layer.recurrent.view(), panels, rows,
                      {buffers.gates.data() + first * panel_width, kWordsAhead * panel_width,
                       buffers.cells.data(), m->row(0), m->stride(), lstm.architecture_.cell_clip});
        member.meet();
    }

    void project(int living) {
        if (int8) {
            const Span mine = member.share(living);
            for (int r = mine.begin; r < mine.end; ++r) m->quantize(r);
            member.meet();
        }
        const auto [panels, rows] =
            member.block(layer.projection.panels(), living, kernels.tile_rows);
        kernels.linear(m->view(), layer.projection.view(), panels, rows,
                       {h->row(0), kPanelVectors * kernels.lanes, h->stride(), width,
                        lstm.architecture_.projection_clip});
        member.meet();
    }

    /// Writes h to the layer, and to the state for sentences that end here. The next step may begin
    /// meanwhile: it does not change what is read here.
    void finish(std::ptrdiff_t row, int living, int living_next) {
        const bool skip = depth > 0 && lstm.architecture_.skip;
        const Span mine = member.share(living);
        for (int r = mine.begin; r < mine.end; ++r) {
            const float* said = h->row(r);
            float* out = place(depth + 1, row + r);
            if (skip) {
                const float* x = place(depth, row + r);
                for (int p = 0; p < width; ++p) out[p] = said[p] + x[p];
            } else {
                std::memcpy(out, said, width * sizeof(float));
            }
            if (r >= living_next) {
                std::memcpy(state_row(batch.hidden, width, r), said, width * sizeof(float));
                std::memcpy(state_row(batch.cell, cells, r), cell_row(r), cells * sizeof(float));
            } else if (int8) {
                h->quantize(r);
            }
        }
        if (int8) member.meet();
    }
};

void BiLSTM::contextualize(const Batch& batch) {
    check(batch);
    const int sentences =
        static_cast<int>(std::min<std::int64_t>(batch.alive[0], kSentencesAtOnce));
    const int squads = this->squads(sentences);
    const int size = squad_size(sentences, squads);
    std::deque<Barrier> barriers;
    for (int squad = 0; squad < squads; ++squad) {
        barriers.emplace_back(size, team_.looks());
        reserve(buffers_[squad], sentences);
    }
    team_.run([&](const Member& one) {
        const int squad = one.index / size;
        if (squad >= squads) return;
        const Member member{one.index % size, size, &barriers[squad]};
        for (int side = squad; side < 2; side += squads) {
            copy_words(member, batch, side);
            for (int depth = 0; depth < architecture_.layers; ++depth) {
                for (int first = 0; first < batch.alive[0]; first += kSentencesAtOnce) {
                    const int end = static_cast<int>(
                        std::min<std::int64_t>(first + kSentencesAtOnce, batch.alive[0]));
                    Pass{*this, buffers_[squad], batch, depth, side, {first, end}, member}.run();
                }
            }
        }
    });
}

/// An even team reads both directions at once, half of it each: with two threads nobody waits for
/// anybody. But where the weights of both are more than the cache holds and meet few rows, memory
/// is the limit, and one direction after the other finds more of its weights in the cache.
int BiLSTM::squads(int sentences) const {
    const bool memory_bound =
        sentences < kFewSentences && 2 * layers_[0].step_bytes() > kCacheBytes;
    return team_.members() % 2 == 0 && !memory_bound ? 2 : 1;
}

/// A member with less to do in a step than this takes longer to meet the others than to do it.
int BiLSTM::squad_size(int sentences, int squads) const {
    const std::ptrdiff_t products = sentences * layers_[0].step_products();
    return static_cast<int>(
        std::clamp<std::ptrdiff_t>(products / kLeastProducts, 1, team_.members() / squads));
}

/// Layer 0 is the word vector, twice.
void BiLSTM::copy_words(const Member& member, const Batch& batch, int side) const {
    const std::ptrdiff_t width = architecture_.width;
    const std::ptrdiff_t end = batch.n_words * (member.index + 1) / member.count;
    for (std::ptrdiff_t n = batch.n_words * member.index / member.count; n < end; ++n)
        std::memcpy(batch.layers + (2 * n + side) * width, batch.words + n * width,
                    width * sizeof(float));
    member.meet();
}

void BiLSTM::check(const Batch& batch) const {
    const auto refuse = [](const char* why) { throw std::invalid_argument(why); };
    if (batch.steps < 1) refuse("the packing has no steps");
    std::ptrdiff_t rows = 0;
    for (std::ptrdiff_t step = 0; step < batch.steps; ++step) {
        if (batch.alive[step] < 1 || batch.alive[step] > batch.alive[step ? step - 1 : 0])
            refuse("`alive` has to be positive and never to rise");
        rows += batch.alive[step];
    }
    if (rows != batch.n_words) refuse("`alive` and `mirror` are of different batches");
    if (batch.sentences < batch.alive[0]) refuse("the state has too few rows for the batch");
    for (std::ptrdiff_t n = 0; n < batch.n_words; ++n)
        if (batch.mirror[n] < 0 || batch.mirror[n] >= batch.n_words)
            refuse("`mirror` points outside the batch");
    for (const Layer& layer : layers_)
        if (!layer.input) refuse("not all layers are loaded");
}

void BiLSTM::reserve(Buffers& buffers, int sentences) const {
    const int width = architecture_.width, cells = architecture_.cells;
    buffers.input.reserve(kernels_, kWordsAhead, width, int8_);
    buffers.hidden.reserve(kernels_, sentences, width, int8_);
    buffers.output.reserve(kernels_, sentences, cells, int8_);
    buffers.gates.reserve(static_cast<std::size_t>(kWordsAhead) * layers_[0].input.width());
    buffers.cells.reserve(sentences * buffers.output.stride());
}

}  // namespace elmokit
