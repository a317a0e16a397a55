// Scratch memory of a kernel: allocated when it begins, zeroed, freed when it ends.
#pragma once

#include "simd.hpp"

namespace symsmooth {
// Zeroed, at an address that is a multiple of 64; throws std::bad_alloc.  Compiled once, for all processors.
void* allocate(std::int64_t bytes);
void release(void* memory) noexcept;
}  // namespace symsmooth

namespace symsmooth::SYMSMOOTH_ISA {

// Some numbers and eight more, so that the last of them may be moved eight at a time.
template <class T>
class Buffer {
public:
    explicit Buffer(index size) : data_(static_cast<T*>(allocate((size + lanes) * sizeof(T)))) {}
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(data_); }
    SYMSMOOTH_INLINE operator T*() { return data_; }

private:
    T* data_;
};

}  // namespace symsmooth::SYMSMOOTH_ISA
