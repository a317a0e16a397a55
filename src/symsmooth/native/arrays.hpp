// The border: what Python hands in is checked here, once, before a kernel sees it.
//
// A wrong array is a ValueError that says which one, what was wanted and what was given.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace symsmooth {

namespace nb = nanobind;
using index = std::int64_t;

[[noreturn]] inline void refuse(const std::string& what) { throw nb::value_error(what.c_str()); }

inline void require(bool holds, const char* what) {
    if (!holds) refuse(what);
}

template <class T>
constexpr const char* type_name() {
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Plain, float>) return "float32";
    if constexpr (std::is_same_v<Plain, double>) return "float64";
    if constexpr (std::is_same_v<Plain, std::int32_t>) return "int32";
    if constexpr (std::is_same_v<Plain, std::int64_t>) return "int64";
    if constexpr (std::is_same_v<Plain, std::uint8_t>) return "uint8";
}

// A C-contiguous array of T through the buffer protocol, held as long as this lives; T const: read only.
template <class T>
class Array {
public:
    Array(nb::handle object, const char* name, int n_dims) : name_(name) {
        const int writable = std::is_const_v<T> ? 0 : PyBUF_WRITABLE;
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | writable) != 0) {
            PyErr_Clear();
            refuse(wanted(n_dims) + ", got something else");
        }
        const bool fits = has_type() && view_.ndim == n_dims &&
                          reinterpret_cast<std::uintptr_t>(view_.buf) % sizeof(T) == 0;
        if (!fits) {
            const std::string got = ", got " + std::to_string(view_.ndim) + " dimensions of format '" +
                                    (view_.format ? view_.format : "B") + "'";
            PyBuffer_Release(&view_);
            refuse(wanted(n_dims) + got);
        }
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() { PyBuffer_Release(&view_); }

    T* data() const { return static_cast<T*>(view_.buf); }
    index shape(int axis) const { return view_.shape[axis]; }
    index size() const { return view_.len / index(sizeof(T)); }
    T& operator[](index i) const { return data()[i]; }

    void require_size(index wanted_size) const {
        if (size() != wanted_size)
            refuse(std::string(name_) + " must have " + std::to_string(wanted_size) + " elements, got " +
                   std::to_string(size()));
    }
    // At least so many: kernels may touch what lies beyond.
    void require_at_least(index wanted_size) const {
        if (size() < wanted_size)
            refuse(std::string(name_) + " must have at least " + std::to_string(wanted_size) +
                   " elements, got " + std::to_string(size()));
    }
    void require_shape(int axis, index wanted_size) const {
        if (shape(axis) != wanted_size)
            refuse(std::string(name_) + " must have size " + std::to_string(wanted_size) + " along axis " +
                   std::to_string(axis) + ", got " + std::to_string(shape(axis)));
    }
    // All elements from `from` to `to` lie in low <= x < high.
    void require_between(index low, index high, index from, index to) const {
        bool inside = true;
        for (index i = from; i < to; ++i) inside &= data()[i] >= low && data()[i] < high;
        if (!inside)
            refuse(std::string(name_) + " must lie between " + std::to_string(low) + " and " +
                   std::to_string(high - 1));
    }
    void require_between(index low, index high) const { require_between(low, high, 0, size()); }
    // Pointers into an array of `end` elements: they begin at 0 or later, never fall, end at `end` or before.
    void require_pointers(index end) const {
        bool rising = size() > 0 && data()[0] >= 0 && data()[size() - 1] <= end;
        for (index i = 1; i < size(); ++i) rising &= data()[i - 1] <= data()[i];
        if (!rising) refuse(std::string(name_) + " must rise from 0 to at most " + std::to_string(end));
    }

private:
    bool has_type() const {
        const char* format = view_.format ? view_.format : "B";
        if (format[0] == '\0' || format[1] != '\0' || view_.itemsize != sizeof(T)) return false;
        const std::string codes = std::is_floating_point_v<T> ? "fd"
                                  : std::is_signed_v<T>       ? "bhilq"
                                                              : "BHILQ?";
        return codes.find(format[0]) != std::string::npos;
    }
    std::string wanted(int n_dims) const {
        return std::string(name_) + " must be a contiguous" + (std::is_const_v<T> ? "" : ", writable") +
               " array of " + type_name<T>() + " with " + std::to_string(n_dims) + " dimensions";
    }

    const char* name_;
    Py_buffer view_{};
};

// An array that may be None.
template <class T>
class Optional {
public:
    Optional(nb::handle object, const char* name, int n_dims) {
        if (!object.is_none()) array_.emplace(object, name, n_dims);
    }
    explicit operator bool() const { return array_.has_value(); }
    const Array<T>* operator->() const { return &*array_; }
    T* data() const { return array_ ? array_->data() : nullptr; }

private:
    std::optional<Array<T>> array_;
};

}  // namespace symsmooth
