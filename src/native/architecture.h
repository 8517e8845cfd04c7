// The architecture of a biLM: the sizes and switches of `bilm/config.py`.
#pragma once

#include <utility>
#include <vector>

namespace elmokit {

struct Architecture {
    // character network: characters to word vectors
    std::vector<std::pair<int, int>> filters;  // (width in characters, number of filters)
    int characters = 0;
    int embedding_dim = 0;
    int max_characters = 0;
    bool tanh = false;  // activation; relu if false
    int highways = 0;
    bool character_projection = true;

    // LSTM: word vectors to contextual vectors
    int cells = 0;  // H
    int width = 0;  // P
    int layers = 0;
    bool projection = true;
    bool skip = true;
    float cell_clip = 0.0f;        // infinity: no clipping
    float projection_clip = 0.0f;  // infinity: no clipping

    int n_filters() const {
        int sum = 0;
        for (const auto& [width_, count] : filters) sum += count;
        return sum;
    }
};

}  // namespace elmokit
