// The array types that Python passes to the kernel, and a check of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <string>

namespace elmokit {

namespace nb = nanobind;

template <class T, int Dimensions>
using Array = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using Vector = Array<const float, 1>;
using Table = Array<const float, 2>;

/// Throws nb::value_error, Python's ValueError, unless the array has this shape.
template <class A>
void check_shape(const char* name, const A& array, std::initializer_list<std::ptrdiff_t> shape) {
    std::size_t axis = 0;
    for (const std::ptrdiff_t size : shape) {
        if (static_cast<std::ptrdiff_t>(array.shape(axis)) != size) {
            const std::string message = std::string(name) + ": axis " + std::to_string(axis) +
                                        " has the size " + std::to_string(array.shape(axis)) +
                                        "; expected " + std::to_string(size);
            throw nb::value_error(message.c_str());
        }
        ++axis;
    }
}

}  // namespace elmokit
