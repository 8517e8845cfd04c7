#include "lstmp.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "interrupts.h"
#include "plan.h"

namespace elmokit {

namespace {

/// Number of words whose input products are computed together: large enough that reading the weights
/// takes little time compared to the products, and fewer for a large model, to bound the memory.
constexpr int kWordsPerChunk = 128, kFewestWordsPerChunk = 64;
constexpr std::ptrdiff_t kChunkBytes = std::ptrdiff_t{4} << 20;

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
                (chunk.end_step == step || chunk.words + alive(chunk.end_step) <= buffers.words)) {
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
                       {buffers.gates.data(), buffers.words * panel_width, panel_width,
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
                      {buffers.gates.data() + first * panel_width, buffers.words * panel_width,
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
    const auto sentences = static_cast<std::ptrdiff_t>(batch.alive[0]);
    const Plan plan = make_plan(team_.members(), sentences, layers_[0].step_products(),
                                layers_[0].step_bytes());
    std::deque<Barrier> barriers;
    if (static_cast<int>(buffers_.size()) < plan.subteams) buffers_.resize(plan.subteams);
    for (int subteam = 0; subteam < plan.subteams; ++subteam) {
        barriers.emplace_back(plan.members, team_.spins(), team_.failure());
        reserve(buffers_[subteam],
                static_cast<int>((sentences + plan.blocks - 1) / plan.blocks));
    }
    // Longer sentences come first, and so do longer tasks: the last ones are short.
    std::atomic<int> next{0};
    std::vector<int> taken(plan.subteams);  // the task of each subteam
    team_.run([&](const Member& team_member) {
        const int subteam = team_member.index / plan.members;
        if (subteam >= plan.subteams) return;
        const Member member{team_member.index % plan.members, plan.members, &barriers[subteam]};
        member.run([&] {
            while (true) {
                if (member.index == 0) taken[subteam] = next.fetch_add(1);
                member.synchronize();
                const int task = taken[subteam];
                if (task >= 2 * plan.blocks) return;
                const Span ranks = Member{task / 2, plan.blocks, nullptr}.share(sentences);
                run_task(member, buffers_[subteam], batch, task % 2, ranks);
            }
        });
    });
}

void BiLSTM::run_task(const Member& member, Buffers& buffers, const Batch& batch, int direction,
                      Span ranks) {
    copy_words(member, batch, direction, ranks);
    for (int depth = 0; depth < architecture_.layers; ++depth)
        Pass{*this, buffers, batch, depth, direction, ranks, member}.run();
}

/// Writes layer 0 of the block: the word vector, in the direction's half.
void BiLSTM::copy_words(const Member& member, const Batch& batch, int direction,
                        Span ranks) const {
    const std::ptrdiff_t width = architecture_.width;
    std::ptrdiff_t first = 0;
    for (std::ptrdiff_t step = 0; step < batch.steps && batch.alive[step] > ranks.begin; ++step) {
        const auto alive = static_cast<std::ptrdiff_t>(batch.alive[step]);
        const std::ptrdiff_t end = first + std::min<std::ptrdiff_t>(alive, ranks.end);
        for (std::ptrdiff_t n = first + ranks.begin; n < end; ++n)
            if (n % member.count == member.index)
                std::memcpy(batch.layers + (2 * n + direction) * width, batch.words + n * width,
                            width * sizeof(float));
        first += alive;
    }
    member.synchronize();
}

std::size_t BiLSTM::buffer_bytes() const {
    std::size_t bytes = 0;
    for (const Buffers& each : buffers_)
        bytes += each.input.bytes() + each.hidden.bytes() + each.output.bytes() +
                 each.gates.bytes() + each.cells.bytes();
    return bytes;
}

void BiLSTM::reserve(Buffers& buffers, int sentences) const {
    const int width = architecture_.width, cells = architecture_.cells;
    const std::ptrdiff_t gates = layers_[0].input.width();
    const auto words = static_cast<int>(
        std::clamp<std::ptrdiff_t>(kChunkBytes / (gates * std::ptrdiff_t{sizeof(float)}),
                                   kFewestWordsPerChunk, kWordsPerChunk));
    buffers.words = std::max({words, sentences, buffers.words});  // a step is never divided
    buffers.input.reserve(kernels_, buffers.words, width, dtype_);
    buffers.hidden.reserve(kernels_, sentences, width, dtype_);
    buffers.output.reserve(kernels_, sentences, cells, dtype_);
    buffers.gates.reserve(static_cast<std::size_t>(buffers.words) * gates);
    buffers.cells.reserve(sentences * buffers.output.stride());
}

}  // namespace elmokit
