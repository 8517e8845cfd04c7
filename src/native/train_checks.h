// What the functions for training check, besides checks.h.
#pragma once

#include <optional>

#include "checks.h"
#include "train_lstm.h"

namespace elmokit {

/// An array that may be None.
template <class T, int Dimensions>
class Optional {
  public:
    Optional(const char* name, nb::handle object) {
        if (!object.is_none()) array_.emplace(name, object);
    }
    void check_shape(std::initializer_list<std::ptrdiff_t> sizes) const {
        if (array_) array_->check_shape(sizes);
    }
    void check_disjoint_from(std::initializer_list<Region> regions) const {
        if (!array_) return;
        for (const Region& region : regions) check_disjoint({*array_, region});
    }
    T* data(std::ptrdiff_t offset = 0) const { return array_ ? array_->data() + offset : nullptr; }

  private:
    std::optional<Array<T, Dimensions>> array_;
};

/// The packing and the architecture of a layer, checked. Keeps a pointer to `alive`.
inline TrainingLayer make_layer(const std::vector<std::int64_t>& alive, std::ptrdiff_t words,
                         std::ptrdiff_t sentences, const Table& projection, float cell_clip,
                         float projection_clip) {
    check_size("the number of words", words, 1, kMaxRows);
    check_size("the number of sentences", sentences, 1, kMaxRows);
    check_size("the number of cells", projection.shape(0), 1, kMaxSize);
    check_size("the width", projection.shape(1), 1, kMaxSize);
    check_clip("cell_clip", cell_clip);
    check_clip("projection_clip", projection_clip);
    check_packing(alive, words, sentences);
    if (alive[0] != sentences)
        refuse("alive begins with " + std::to_string(alive[0]) + "; expected all " +
               std::to_string(sentences) + " sentences of the state");
    const auto units = static_cast<int>(projection.shape(0));
    if (units % 16)
        refuse("the number of cells is " + std::to_string(units) + "; expected a multiple of 16");
    return {alive.data(),
            static_cast<std::ptrdiff_t>(alive.size()),
            static_cast<int>(projection.shape(1)),
            units,
            cell_clip,
            projection_clip};
}

}  // namespace elmokit
