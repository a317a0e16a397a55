// Eight floats at a time, in the compiler's own vector types: no intrinsics, any processor.
//
// Every file that includes this one is compiled once for each instruction set, inside a namespace of its own
// (SYMSMOOTH_ISA): the linker can never give the function of one set to another.  For the same reason
// kernels use no templates of the standard library.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifndef SYMSMOOTH_ISA
#error "kernels are compiled with -DSYMSMOOTH_ISA=baseline, avx2, ..."
#endif

#define SYMSMOOTH_INLINE [[gnu::always_inline]] inline
#define SYMSMOOTH_LAMBDA __attribute__((always_inline))

namespace symsmooth::SYMSMOOTH_ISA {

using index = std::int64_t;

#if defined(__AVX__)
constexpr int register_floats = 8;
#else
constexpr int register_floats = 4;
#endif

using FloatRegister [[gnu::vector_size(4 * register_floats)]] = float;
using IntRegister [[gnu::vector_size(4 * register_floats)]] = std::int32_t;
using BitRegister [[gnu::vector_size(4 * register_floats)]] = std::uint32_t;

constexpr int lanes = 8;

// One register, or two where they are short.  (A vector type wider than a register would do on paper; GCC
// keeps such variables in memory.)
struct Vec8 {
    static constexpr int parts = lanes / register_floats;
    FloatRegister part[parts];
};

struct Int8 {
    static constexpr int parts = lanes / register_floats;
    IntRegister part[parts];
};

SYMSMOOTH_INLINE Vec8 load(const float* from) {
    Vec8 v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

SYMSMOOTH_INLINE void store(float* to, Vec8 v) { std::memcpy(to, &v, sizeof v); }

// The first n floats, n <= 8; zeros beyond.
SYMSMOOTH_INLINE Vec8 load_first(const float* from, index n) {
    float all[lanes] = {};
    for (index i = 0; i < n; ++i) all[i] = from[i];
    return load(all);
}

SYMSMOOTH_INLINE void store_first(float* to, Vec8 v, index n) {
    float all[lanes];
    store(all, v);
    for (index i = 0; i < n; ++i) to[i] = all[i];
}

SYMSMOOTH_INLINE Vec8 splat(float x) {
    Vec8 v;
    for (int p = 0; p < Vec8::parts; ++p) v.part[p] = x - FloatRegister{};  // x in all lanes
    return v;
}

// clang-format off: it takes ##= apart
#define SYMSMOOTH_OPERATOR(op)                                                      \
    SYMSMOOTH_INLINE Vec8 operator op(Vec8 a, Vec8 b) {                              \
        for (int p = 0; p < Vec8::parts; ++p) a.part[p] = a.part[p] op b.part[p];    \
        return a;                                                                    \
    }                                                                                \
    SYMSMOOTH_INLINE Vec8& operator op##=(Vec8& a, Vec8 b) { return a = a op b; }
// clang-format on
SYMSMOOTH_OPERATOR(+)
SYMSMOOTH_OPERATOR(-)
SYMSMOOTH_OPERATOR(*)
SYMSMOOTH_OPERATOR(/)
#undef SYMSMOOTH_OPERATOR

SYMSMOOTH_INLINE Vec8 max(Vec8 a, Vec8 b) {
    for (int p = 0; p < Vec8::parts; ++p) a.part[p] = a.part[p] > b.part[p] ? a.part[p] : b.part[p];
    return a;
}

SYMSMOOTH_INLINE float max(float a, float b) { return a > b ? a : b; }
SYMSMOOTH_INLINE float min(float a, float b) { return a < b ? a : b; }
SYMSMOOTH_INLINE index max(index a, index b) { return a > b ? a : b; }
SYMSMOOTH_INLINE index min(index a, index b) { return a < b ? a : b; }

// Lanes of a that are above those of b: -1, else 0.
SYMSMOOTH_INLINE Int8 operator>(Vec8 a, Vec8 b) {
    Int8 m;
    for (int p = 0; p < Int8::parts; ++p) m.part[p] = (IntRegister)(a.part[p] > b.part[p]);
    return m;
}

SYMSMOOTH_INLINE Int8 operator-(Int8 a, Int8 b) {
    for (int p = 0; p < Int8::parts; ++p) a.part[p] -= b.part[p];
    return a;
}

SYMSMOOTH_INLINE Int8 operator|(Int8 a, Int8 b) {
    for (int p = 0; p < Int8::parts; ++p) a.part[p] |= b.part[p];
    return a;
}

// a where the mask is set, else b.
SYMSMOOTH_INLINE Vec8 select(Int8 mask, Vec8 a, Vec8 b) {
    for (int p = 0; p < Vec8::parts; ++p) a.part[p] = mask.part[p] ? a.part[p] : b.part[p];
    return a;
}

using Float4 [[gnu::vector_size(16)]] = float;
using Int4 [[gnu::vector_size(16)]] = std::int32_t;

SYMSMOOTH_INLINE Float4 low_half(Vec8 v) {
    Float4 half;
    std::memcpy(&half, &v, sizeof half);
    return half;
}

SYMSMOOTH_INLINE Float4 high_half(Vec8 v) {
    Float4 half;
    std::memcpy(&half, (const char*)&v + sizeof half, sizeof half);
    return half;
}

// The sum of all lanes, always in the same order: (0+4 + 2+6) + (1+5 + 3+7).
SYMSMOOTH_INLINE float sum(Vec8 v) {
    Float4 a = low_half(v) + high_half(v);
    a += __builtin_shufflevector(a, a, 2, 3, 0, 1);
    return a[0] + a[1];
}

SYMSMOOTH_INLINE float largest(Vec8 v) {
    Float4 a = low_half(v), b = high_half(v);
    a = a > b ? a : b;
    b = __builtin_shufflevector(a, a, 2, 3, 0, 1);
    a = a > b ? a : b;
    return max(a[0], a[1]);
}

// The sum of an Int8's lanes.
SYMSMOOTH_INLINE int sum(Int8 v) {
    Int4 a, b;
    std::memcpy(&a, &v, sizeof a);
    std::memcpy(&b, (const char*)&v + sizeof a, sizeof b);
    a += b;
    a += __builtin_shufflevector(a, a, 2, 3, 0, 1);
    return a[0] + a[1];
}

// Bit i is set where lane i of a mask is.
SYMSMOOTH_INLINE unsigned bits(Int8 mask) {
    constexpr std::int32_t powers[lanes] = {1, 2, 4, 8, 16, 32, 64, 128};
    Int8 which;
    std::memcpy(&which, powers, sizeof which);
    for (int p = 0; p < Int8::parts; ++p) which.part[p] &= mask.part[p];
    Int4 a, b;
    std::memcpy(&a, &which, sizeof a);
    std::memcpy(&b, (const char*)&which + sizeof a, sizeof b);
    a |= b;
    a |= __builtin_shufflevector(a, a, 2, 3, 0, 1);
    return unsigned(a[0] | a[1]);
}

// 2^x for x <= 126, relative error below 6e-5; 1e-38 below -126.  Beyond 126 it is some number: lanes that
// nobody looks at may hold anything, so that the sum of bits is one of unsigned numbers, which may wrap.
// x = n + f: adding 1.5 * 2^23 leaves the whole number n in the last bits, from where it is added to the exponent
// of 2^f, a polynomial of degree four.
SYMSMOOTH_INLINE Vec8 exp2(Vec8 x) {
    Vec8 result;
    for (int p = 0; p < Vec8::parts; ++p) {
        const FloatRegister lowest = FloatRegister{} - 126.0f;
        const FloatRegister clamped = x.part[p] > lowest ? x.part[p] : lowest;
        const FloatRegister rounded = clamped + 12582912.0f;
        const FloatRegister f = clamped - (rounded - 12582912.0f);
        FloatRegister power = 0.00961812910762848f * f + 0.0555041086648216f;
        power = power * f + 0.240226506959101f;
        power = power * f + 0.693147180559945f;
        power = power * f + 1.0f;
        result.part[p] = (FloatRegister)((BitRegister)power + ((BitRegister)rounded << 23));
    }
    return result;
}

constexpr float log2_e = 1.4426950408889634f;

// Stands beyond the last log-density, up to a multiple of eight: below all that are one, which end far above.
constexpr float no_density = -3e38f;

// n up to the next multiple of eight.
constexpr index padded(index n) { return (n + lanes - 1) / lanes * lanes; }

}  // namespace symsmooth::SYMSMOOTH_ISA
