// Arrays of Python's, and the words in which they are refused.
//
// Type, dimensions and order of an array stand in a signature: what differs is a TypeError that names what is
// wanted.  How sizes and indices fit together is checked with what is here: else a ValueError.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <string>

#include "kernels.hpp"

namespace symsmooth {

namespace nb = nanobind;
using namespace nb::literals;
using std::optional, std::tuple;

// A C-contiguous array of NumPy's, held as long as this lives; T const: read only.  It is never converted:
// what is written to it arrives.
template <class T, int n_dims>
class Array : public nb::ndarray<nb::numpy, T, nb::ndim<n_dims>, nb::c_contig, nb::device::cpu> {
public:
    using Base = nb::ndarray<nb::numpy, T, nb::ndim<n_dims>, nb::c_contig, nb::device::cpu>;
    using Shape = std::array<index, n_dims>;
    using Base::Base;
    Array() = default;
    explicit Array(Base array) : Base(std::move(array)) {}

    index shape(int axis) const { return index(Base::shape(axis)); }
    index size() const { return index(Base::size()); }
    T& operator[](index i) const { return this->data()[i]; }
    bool is_aligned() const { return reinterpret_cast<std::uintptr_t>(this->data()) % sizeof(T) == 0; }
};

template <int n_dims>
using Floats = Array<const float, n_dims>;
template <int n_dims>
using Ints = Array<const std::int32_t, n_dims>;
template <int n_dims>
using Longs = Array<const index, n_dims>;

inline void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

constexpr index any = -1;  // size of an axis

template <class T, int n_dims>
void require_shape(const Array<T, n_dims>& array, const char* name, typename Array<T, n_dims>::Shape wanted) {
    bool fits = true;
    std::string sizes, found;
    for (int axis = 0; axis < n_dims; ++axis)
        fits &= wanted[axis] == any || wanted[axis] == array.shape(axis);
    if (fits) return;
    for (int axis = 0; axis < n_dims; ++axis) {
        sizes += (axis ? ", " : "") + (wanted[axis] == any ? "any" : std::to_string(wanted[axis]));
        found += (axis ? ", " : "") + std::to_string(array.shape(axis));
    }
    require(false, (std::string(name) + " must have shape (" + sizes + "), got (" + found + ")").c_str());
}

// All of data[:size] lie in low <= x < high.
template <class T>
bool are_between(const T* data, index size, index low, index high) {
    bool inside = true;
    for (index i = 0; i < size; ++i) inside &= data[i] >= low && data[i] < high;
    return inside;
}

// Pointers into an array of `end` elements begin at 0 or later, never fall, and end at `end` or before.
inline void require_pointers(const Longs<1>& pointers, index end) {
    bool rising = pointers.size() > 0 && pointers[0] >= 0 && pointers[pointers.size() - 1] <= end;
    for (index i = 1; i < pointers.size(); ++i) rising &= pointers[i - 1] <= pointers[i];
    require(rising, "pointers must rise from 0 to at most the size of what they point into");
}

// A new array; std::bad_alloc, which is a MemoryError, if there is no room for it.
template <class T, int n_dims>
Array<T, n_dims> new_array(typename Array<T, n_dims>::Shape shape, bool is_zero) {
    constexpr index max_size = index(1) << 38;
    index size = 1;
    std::size_t sizes[n_dims];
    for (int axis = 0; axis < n_dims; ++axis) {
        if (__builtin_mul_overflow(size, shape[axis], &size) || size > max_size) throw std::bad_alloc();
        sizes[axis] = std::size_t(shape[axis]);
    }
    const auto length = std::size_t(std::max(size, index(1)));
    void* memory = is_zero ? std::calloc(length, sizeof(T)) : std::malloc(length * sizeof(T));
    if (!memory) throw std::bad_alloc();
    return {memory, n_dims, sizes, nb::capsule(memory, [](void* own) noexcept { std::free(own); })};
}

// To be added to.
template <class T, int n_dims>
Array<T, n_dims> zeros(typename Array<T, n_dims>::Shape shape) {
    return new_array<T, n_dims>(shape, true);
}

// To be filled, all of it.
template <class T, int n_dims>
Array<T, n_dims> unfilled(typename Array<T, n_dims>::Shape shape) {
    return new_array<T, n_dims>(shape, false);
}

// Do something that touches no object of Python's, while other threads run.
template <class Work>
auto unlocked(const Work& work) {
    const nb::gil_scoped_release release;
    return work();
}

// ---------------------------------------------------------------- extents

using Three = std::array<index, 3>;  // z, y, x

constexpr index longest = index(1) << 20;  // of an extent: products of three do not overflow

inline Extent extent(Three three) { return {three[0], three[1], three[2]}; }
inline index count(Extent e) { return e.z * e.y * e.x; }

template <class T>
Extent extent_of(const Array<T, 4>& image, int first_axis) {
    return {image.shape(first_axis), image.shape(first_axis + 1), image.shape(first_axis + 2)};
}

inline void require_extent(Extent e) {
    for (index side : {e.z, e.y, e.x})
        require(1 <= side && side <= longest, "extents must be 1 to 2^20 along each axis");
}

// The positions of a patch in an image; refused if there are none.
inline Extent positions(Extent image, Extent patch) {
    require_extent(patch);
    const Extent grid{image.z - patch.z + 1, image.y - patch.y + 1, image.x - patch.x + 1};
    require(grid.z >= 1 && grid.y >= 1 && grid.x >= 1, "patches must fit into the image");
    return grid;
}

}  // namespace symsmooth

template <class T, int n_dims>
struct nanobind::detail::type_caster<symsmooth::Array<T, n_dims>> {
    using Own = symsmooth::Array<T, n_dims>;
    using Base = make_caster<typename Own::Base>;
    NB_TYPE_CASTER(Own, Base::Name)

    template <class Flags>
    bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        Base base;
        if (!base.from_python(source, Flags(flags & ~Flags(cast_flags::convert)), cleanup)) return false;
        value = Own(base.value);
        return value.is_aligned();
    }
    static handle from_cpp(const Own& array, rv_policy policy, cleanup_list* cleanup) noexcept {
        return Base::from_cpp(array, policy, cleanup);
    }
};
