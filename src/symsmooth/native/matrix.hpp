// Small dense matrices: products, solves and eigenvectors of a few dozen rows, thousands of times.
#pragma once

#include "memory.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

// A view of numbers in rows: element (i, j) is at[i * row + j * column].
struct Strided {
    const float* at;
    index row, column;
};

// x as it lies in memory, and its transpose.
SYMSMOOTH_INLINE Strided plain(const float* x, index stride) { return {x, stride, 1}; }
SYMSMOOTH_INLINE Strided transposed(const float* x, index stride) { return {x, 1, stride}; }

SYMSMOOTH_INLINE float dot(const float* a, const float* b, index width) {
    Vec8 total = splat(0.0f);
    for (index k = 0; k < width; k += lanes) total += load(a + k) * load(b + k);
    return sum(total);
}

enum class Write { result, difference };  // out = x y, or out -= x y

// `rows` rows and 8 * `vectors` columns of x y; the sums stay in registers.
template <int rows, int vectors, Write write>
SYMSMOOTH_INLINE void product_block(Strided x, const float* y, index y_stride, index count, float* out,
                                    index out_stride) {
    Vec8 sums[rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < vectors; ++j)
            sums[i][j] = write == Write::result ? splat(0.0f) : load(out + i * out_stride + lanes * j);
    for (index q = 0; q < count; ++q) {
        Vec8 row[vectors];
#pragma GCC unroll 8
        for (int j = 0; j < vectors; ++j) row[j] = load(y + q * y_stride + lanes * j);
#pragma GCC unroll 8
        for (int i = 0; i < rows; ++i) {
            const float factor = x.at[i * x.row + q * x.column];
            const Vec8 all = splat(write == Write::result ? factor : -factor);
#pragma GCC unroll 8
            for (int j = 0; j < vectors; ++j) sums[i][j] += all * row[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < vectors; ++j) store(out + i * out_stride + lanes * j, sums[i][j]);
}

// `rows` rows of a product, `width` columns of it (a multiple of eight).
template <int rows, Write write>
SYMSMOOTH_INLINE void product_rows(Strided x, const float* y, index y_stride, index count, float* out,
                                   index out_stride, index width) {
    index j = 0;
    while (width - j >= 24 && width - j != 32) {
        product_block<rows, 3, write>(x, y + j, y_stride, count, out + j, out_stride);
        j += 24;
    }
    while (width - j >= 16) {
        product_block<rows, 2, write>(x, y + j, y_stride, count, out + j, out_stride);
        j += 16;
    }
    if (j < width) product_block<rows, 1, write>(x, y + j, y_stride, count, out + j, out_stride);
}

// out = x y, n_rows x count times count x width.
//
// `width` is a multiple of eight.  Rows are written in fours: up to three more than n_rows may be.
void product(Strided x, const float* y, index y_stride, index count, float* out, index out_stride,
             index n_rows, index width);

// The same of a symmetric result: what lies left of the diagonal is not needed, most of it not written.
void product_upper(Strided x, const float* y, index y_stride, index count, float* out, index out_stride,
                   index n_rows, index width);

// out = sum over k < count of factors[k] * row k; `width` is a multiple of eight.
void combine(const float* factors, index count, const float* rows, index stride, float* out, index width);

// to = from', from (rows, columns).
void transpose(const float* from, index stride, index rows, index columns, float* to, index to_stride);

constexpr index capacity = 64;  // rows of a system, and numbers in a patch

// A x = b for many b: row i holds row i of A (symmetric, positive definite), then row i of B.
struct System {
    static constexpr index stride = 2 * capacity;
    float* rows;       // capacity x stride
    float* inverse_d;  // capacity: the inverse of D in A = L D L'
    float* factors;    // 4 x capacity, scratch

    SYMSMOOTH_INLINE float* left(index i) const { return rows + i * stride; }
    SYMSMOOTH_INLINE float* right(index i) const { return rows + i * stride + capacity; }
};

// Replace B by A^-1 B.  Of A the upper triangle is read, and used up.  Rows beyond `size`, up to a multiple
// of four, must be those of the identity; columns up to a multiple of eight, zero.
void solve(const System& system, index size);

// Replace the rows of a symmetric matrix by its eigenvectors, and fill values; they are not sorted.
//
// `stride` is a multiple of eight, with zeros beyond `size` in each row; values and work have as many places.
// Householder's tridiagonalisation, then implicit QL.
void eigenvectors(float* matrix, index size, index stride, float* values, float* work);

}  // namespace symsmooth::SYMSMOOTH_ISA
