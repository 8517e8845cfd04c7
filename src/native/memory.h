// Large, aligned memory for packed weights and for buffers that are reused from call to call.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <utility>

namespace elmokit {

/// Returns the product of sizes; throws std::bad_alloc if no memory could have that many elements.
inline std::size_t product(std::initializer_list<std::ptrdiff_t> sizes) {
    std::size_t result = 1;
    for (const std::ptrdiff_t size : sizes)
        if (size < 0 || __builtin_mul_overflow(result, static_cast<std::size_t>(size), &result))
            throw std::bad_alloc();
    return result;
}

/// Size of the pages of large arrays. Huge ones reduce TLB misses; small ones that are never touched
/// use no memory.
enum class Pages { huge, small };

/// An array, initially zero, aligned to pages.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::size_t count) { reserve(count); }
    explicit Buffer(Pages pages) : pages_(pages) {}
    ~Buffer() { release(); }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }

    /// Makes room for at least `count` elements. If the array has to grow, it is zeroed.
    void reserve(std::size_t count) {
        if (count <= count_) return;
        if (count > PTRDIFF_MAX / (2 * sizeof(T))) throw std::bad_alloc();
        release();
        const bool huge = pages_ == Pages::huge && count * sizeof(T) >= kHuge;
        const std::size_t bytes = count * sizeof(T) + (huge ? kHuge : 0);
        void* mapping =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapping == MAP_FAILED) throw std::bad_alloc();
        mapping_ = mapping;
        bytes_ = bytes;
        auto address = reinterpret_cast<std::uintptr_t>(mapping);
        if (huge) {
            address = (address + kHuge - 1) / kHuge * kHuge;
#ifdef MADV_HUGEPAGE
            madvise(reinterpret_cast<void*>(address), count * sizeof(T), MADV_HUGEPAGE);
#endif
        }
        data_ = reinterpret_cast<T*>(address);
        count_ = count;
    }

    /// Size of the array in bytes.
    std::size_t bytes() const { return count_ * sizeof(T); }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::ptrdiff_t i) { return data_[i]; }
    const T& operator[](std::ptrdiff_t i) const { return data_[i]; }
    explicit operator bool() const { return count_ != 0; }

  private:
    static constexpr std::size_t kHuge = std::size_t{2} << 20;

    void release() {
        // Clear the pointers first: a child forked in between must not use unmapped memory.
        void* const mapping = mapping_;
        mapping_ = nullptr;
        data_ = nullptr;
        count_ = 0;
        if (mapping) munmap(mapping, bytes_);
    }
    void swap(Buffer& other) {
        std::swap(mapping_, other.mapping_);
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(count_, other.count_);
        std::swap(pages_, other.pages_);
    }

    void* mapping_ = nullptr;
    T* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t count_ = 0;
    Pages pages_ = Pages::huge;
};

}  // namespace elmokit
