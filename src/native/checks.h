// What the Python module checks before it computes, so that no argument can break the process:
// every function takes its arrays as `Array`, and checks sizes and indices with the functions below.
// All of them throw Python exceptions that say what was found and what was expected.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace elmokit {

namespace nb = nanobind;

/// Upper bound on every dimension of a network, as in `bilm/config.py`: products of two fit into 64
/// bits, small multiples into 32.
constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;
/// Upper bound on the number of words or sentences of a call, whose indices are 32-bit integers.
constexpr std::int64_t kMaxRows = std::int64_t{1} << 30;

[[noreturn]] inline void refuse(const std::string& message) {
    throw nb::value_error(message.c_str());
}

/// The name in NumPy of an element type, given its code in Python's buffer protocol.
inline std::string dtype_name(std::string code) {
    static constexpr const char* names[][2] = {
        {"f", "float32"},    {"d", "float64"}, {"e", "float16"}, {"g", "longdouble"},
        {"b", "int8"},       {"B", "uint8"},   {"h", "int16"},   {"H", "uint16"},
        {"i", "int32"},      {"I", "uint32"},  {"q", "int64"},   {"Q", "uint64"},
        {"l", "int64"},      {"L", "uint64"},  {"?", "bool"},    {"Zf", "complex64"},
        {"Zd", "complex128"}};
    std::string prefix;
    if (!code.empty() && (code[0] == '@' || code[0] == '=' || code[0] == '<')) code.erase(0, 1);
    if (!code.empty() && (code[0] == '>' || code[0] == '!')) {
        prefix = "big-endian ";
        code.erase(0, 1);
    }
    for (const auto& [known, name] : names)
        if (code == known) return prefix + name;
    return prefix + "'" + code + "'";
}

template <class T>
constexpr const char* dtype_of() {
    using Element = std::remove_const_t<T>;
    static_assert(std::is_same_v<Element, float> || std::is_same_v<Element, std::int16_t> ||
                  std::is_same_v<Element, std::int64_t>);
    return std::is_same_v<Element, float>          ? "float32"
           : std::is_same_v<Element, std::int16_t> ? "int16"
                                                   : "int64";
}

/// A C-contiguous array of a Python caller, which stays as it is while this exists. Arrays of
/// another type or order are refused, never converted: results in a copy would be lost. If T is not
/// const, the array must be writable.
template <class T, int Dimensions>
class Array {
  public:
    Array(const char* name, nb::handle object) : name_(name) {
        constexpr bool writes = !std::is_const_v<T>;
        const int request = PyBUF_FORMAT | PyBUF_STRIDES;
        if (PyObject_GetBuffer(object.ptr(), &view_, request | (writes ? PyBUF_WRITABLE : 0))) {
            PyErr_Clear();
            const bool readable = !PyObject_GetBuffer(object.ptr(), &view_, request);
            if (readable) {
                PyBuffer_Release(&view_);
                refuse(name_ + ": the array is read-only; expected one to write results into");
            }
            PyErr_Clear();
            const std::string found = nb::type_name(object.type()).c_str();
            throw nb::type_error((name_ + ": found " + found + "; expected " + expected()).c_str());
        }
        try {
            check();
        } catch (...) {
            PyBuffer_Release(&view_);
            throw;
        }
    }
    ~Array() { PyBuffer_Release(&view_); }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    const std::string& name() const { return name_; }
    T* data() const { return static_cast<T*>(view_.buf); }
    std::ptrdiff_t shape(int axis) const { return view_.shape[axis]; }
    std::ptrdiff_t size() const {
        return view_.len / static_cast<std::ptrdiff_t>(sizeof(T));
    }

    void check_shape(std::initializer_list<std::ptrdiff_t> sizes) const {
        int axis = 0;
        for (const std::ptrdiff_t size : sizes) {
            if (shape(axis) != size)
                refuse(name_ + ": axis " + std::to_string(axis) + " has the size " +
                       std::to_string(shape(axis)) + "; expected " + std::to_string(size));
            ++axis;
        }
    }

  private:
    static std::string expected() {
        return std::string("a NumPy array of ") + dtype_of<T>() + " with " +
               std::to_string(Dimensions) + (Dimensions == 1 ? " axis" : " axes");
    }
    void check() const {
        const std::string dtype = dtype_name(view_.format ? view_.format : "B");
        if (dtype != dtype_of<T>() || view_.itemsize != sizeof(T))
            throw nb::type_error(
                (name_ + ": found an array of " + dtype + "; expected " + expected()).c_str());
        if (view_.ndim != Dimensions)
            refuse(name_ + ": found an array with " + std::to_string(view_.ndim) +
                   " axes; expected " + expected());
        if (!PyBuffer_IsContiguous(&view_, 'C'))
            refuse(name_ + ": the array is not C-contiguous; use numpy.ascontiguousarray");
        if (reinterpret_cast<std::uintptr_t>(view_.buf) % alignof(T))
            refuse(name_ + ": the array is not aligned; use numpy.require(..., requirements='A')");
    }

    const std::string name_;
    Py_buffer view_{};
};

using Vector = Array<const float, 1>;
using Table = Array<const float, 2>;
using Indices = Array<const std::int64_t, 1>;

inline void check_size(const std::string& name, std::int64_t value, std::int64_t minimum,
                       std::int64_t maximum) {
    if (value < minimum || value > maximum)
        refuse(name + " is " + std::to_string(value) + "; expected " + std::to_string(minimum) +
               " to " + std::to_string(maximum));
}

/// A bound on values: positive; infinity for none.
inline void check_clip(const std::string& name, float value) {
    if (!(value > 0))
        refuse(name + " is " + std::to_string(value) + "; expected a positive number or infinity");
}

/// Throws Python's IndexError unless all values are within 0 to end - 1.
template <class T>
void check_range(const std::string& name, const T* values, std::ptrdiff_t count, std::int64_t end) {
    T smallest = 0, largest = 0;  // simple loops, which the compiler vectorizes
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        smallest = std::min(smallest, values[i]);
        largest = std::max(largest, values[i]);
    }
    if (smallest >= 0 && (largest < end || count == 0)) return;
    const T wrong = smallest < 0 ? smallest : largest;
    throw std::out_of_range(name + " contains " + std::to_string(wrong) + "; expected 0 to " +
                            std::to_string(end - 1));
}

/// Throws unless the values are 0 to n - 1 in any order.
inline void check_permutation(const std::string& name, const std::vector<std::int64_t>& values) {
    check_range(name, values.data(), values.size(), values.size());
    std::vector<char> seen(values.size());
    for (const std::int64_t value : values)
        if (std::exchange(seen[value], true))
            refuse(name + " contains " + std::to_string(value) + " twice; expected every row once");
}

/// Returns a copy of an array of indices. What is checked must be what is used, even if another
/// thread of the caller writes to the array meanwhile.
template <class T, int Dimensions>
std::vector<std::remove_const_t<T>> copy_of(const Array<T, Dimensions>& array) {
    return {array.data(), array.data() + array.size()};
}

/// Throws unless all values are finite.
template <class T, int Dimensions>
void check_finite(const Array<T, Dimensions>& array) {
    const float* const values = array.data();
    constexpr std::ptrdiff_t piece = 4096;  // without branches, which the compiler vectorizes
    for (std::ptrdiff_t first = 0; first < array.size(); first += piece) {
        const std::ptrdiff_t end = std::min(first + piece, array.size());
        int wrong = 0;
        for (std::ptrdiff_t i = first; i < end; ++i) wrong |= !(std::fabs(values[i]) < INFINITY);
        if (!wrong) continue;
        for (std::ptrdiff_t i = first; i < end; ++i)
            if (!std::isfinite(values[i]))
                refuse(array.name() + " contains " + std::to_string(values[i]) +
                       ", at element " + std::to_string(i) + "; expected finite numbers");
    }
}

/// Checks the packing of a batch: the number of sentences that have a word at each step.
inline void check_packing(const std::vector<std::int64_t>& alive, std::int64_t words,
                          std::int64_t sentences) {
    if (alive.empty()) refuse("alive is empty; expected one number for each step");
    std::int64_t rows = 0, limit = sentences;
    for (const std::int64_t count : alive) {
        if (count < 1 || count > limit)
            refuse("alive contains " + std::to_string(count) + " where " + std::to_string(limit) +
                   " is the most; it must be positive, must not increase, and must not begin with "
                   "more than the sentences of the state");
        rows += count;  // cannot overflow: rows <= words, and count <= sentences
        if (rows > words) break;
        limit = count;
    }
    if (rows != words)
        refuse("alive does not add up to the " + std::to_string(words) + " words of the batch");
}

/// Memory that a call reads or writes.
struct Region {
    template <class T, int Dimensions>
    Region(const Array<T, Dimensions>& array)
        : name(array.name().c_str()),
          begin(reinterpret_cast<std::uintptr_t>(array.data())),
          end(begin + array.size() * sizeof(T)),
          written(!std::is_const_v<T>) {}
    const char* name;
    std::uintptr_t begin, end;
    bool written;
};

/// Throws if an array that is written shares memory with another one.
inline void check_disjoint(std::initializer_list<Region> regions) {
    for (const Region& a : regions)
        for (const Region& b : regions)
            if (&a != &b && a.written && a.begin < b.end && b.begin < a.end)
                refuse(std::string(a.name) + " shares memory with " + b.name +
                       "; results need an array of their own");
}

}  // namespace elmokit
