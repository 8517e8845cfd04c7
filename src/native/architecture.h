// The numbers of a biLM's architecture, as `bilm/config.py` has them.
#pragma once

#include <utility>
#include <vector>

namespace elmokit {

struct Architecture {
    // from characters to word vectors
    std::vector<std::pair<int, int>> filters;  // width in characters, how many
    int characters = 0;
    int embedding_dim = 0;
    int max_characters = 0;
    bool tanh = false;  // else relu
    int highways = 0;
    bool character_projection = true;

    // from word vectors to contextual ones
    int cells = 0;  // H
    int width = 0;  // P
    int layers = 0;
    bool projection = true;
    bool skip = true;
    float cell_clip = 0.0f;  // infinity for none
    float projection_clip = 0.0f;

    int n_filters() const {
        int sum = 0;
        for (const auto& [width_, count] : filters) sum += count;
        return sum;
    }
};

}  // namespace elmokit
