#include "matrix.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

void product(Strided x, const float* y, index y_stride, index count, float* out, index out_stride,
             index n_rows, index width) {
    for (index i = 0; i < n_rows; i += 4) {
        const Strided rows{x.at + i * x.row, x.row, x.column};
        product_rows<4, Write::result>(rows, y, y_stride, count, out + i * out_stride, out_stride, width);
    }
}

void product_upper(Strided x, const float* y, index y_stride, index count, float* out, index out_stride,
                   index n_rows, index width) {
    for (index i = 0; i < n_rows; i += 4) {
        const Strided rows{x.at + i * x.row, x.row, x.column};
        const index j = i / lanes * lanes;
        product_rows<4, Write::result>(rows, y + j, y_stride, count, out + i * out_stride + j, out_stride,
                                       width - j);
    }
}

namespace {

// Even and odd rows have sums of their own: twice as many as one addition takes cycles.
template <int vectors>
SYMSMOOTH_INLINE void combine_block(const float* factors, index count, const float* rows, index stride,
                                    float* out) {
    Vec8 even[vectors], odd[vectors];
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) even[j] = odd[j] = splat(0.0f);
    index k = 0;
    for (; k + 2 <= count; k += 2) {
        const float* at = rows + k * stride;
#pragma GCC unroll 8
        for (int j = 0; j < vectors; ++j) {
            even[j] += splat(factors[k]) * load(at + lanes * j);
            odd[j] += splat(factors[k + 1]) * load(at + stride + lanes * j);
        }
    }
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) {
        if (k < count) even[j] += splat(factors[k]) * load(rows + k * stride + lanes * j);
        store(out + lanes * j, even[j] + odd[j]);
    }
}

}  // namespace

void combine(const float* factors, index count, const float* rows, index stride, float* out, index width) {
    index j = 0;
    for (; width - j >= 4 * lanes; j += 4 * lanes)
        combine_block<4>(factors, count, rows + j, stride, out + j);
    switch ((width - j) / lanes) {
        case 3: return combine_block<3>(factors, count, rows + j, stride, out + j);
        case 2: return combine_block<2>(factors, count, rows + j, stride, out + j);
        case 1: return combine_block<1>(factors, count, rows + j, stride, out + j);
    }
}

namespace {

SYMSMOOTH_INLINE Float4 load4(const float* from) {
    Float4 v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

SYMSMOOTH_INLINE void transpose_4x4(const float* from, index stride, float* to, index to_stride) {
    const Float4 a = load4(from), b = load4(from + stride);
    const Float4 c = load4(from + 2 * stride), d = load4(from + 3 * stride);
    const Float4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Float4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Float4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Float4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const Float4 turned[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                              __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                              __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                              __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
    for (int i = 0; i < 4; ++i) std::memcpy(to + i * to_stride, &turned[i], sizeof turned[i]);
}

}  // namespace

void transpose(const float* from, index stride, index rows, index columns, float* to, index to_stride) {
    const index whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (index i = 0; i < whole_rows; i += 4)
        for (index j = 0; j < whole_columns; j += 4)
            transpose_4x4(from + i * stride + j, stride, to + j * to_stride + i, to_stride);
    for (index i = 0; i < rows; ++i)
        for (index j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
            to[j * to_stride + i] = from[i * stride + j];
}

namespace {

// Four rows: each less its combination of those above it, row r -= sum over s < r of below[r][s] row s.
SYMSMOOTH_INLINE void eliminate(float* rows, index stride, const float (&below)[4][4], index width) {
    for (index j = 0; j < width; j += lanes) {
        float* at = rows + j;
        const Vec8 first = load(at);
        const Vec8 second = load(at + stride) - splat(below[1][0]) * first;
        const Vec8 third = load(at + 2 * stride) - splat(below[2][0]) * first - splat(below[2][1]) * second;
        const Vec8 fourth = load(at + 3 * stride) - splat(below[3][0]) * first - splat(below[3][1]) * second -
                            splat(below[3][2]) * third;
        store(at + stride, second);
        store(at + 2 * stride, third);
        store(at + 3 * stride, fourth);
    }
}

// L of the four rows from i on, whose columns up to i are eliminated; fills inverse_d.
SYMSMOOTH_INLINE void factor_block(const System& system, index i, float (&below)[4][4]) {
    float d[4][4];
    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) d[r][s] = system.left(i + r)[i + s];
    for (int r = 0; r < 4; ++r) {
        for (int s = 0; s < r; ++s) {
            below[r][s] = d[s][r] * system.inverse_d[i + s];
            for (int t = r; t < 4; ++t) d[r][t] -= below[r][s] * d[s][t];
        }
        system.inverse_d[i + r] = 1.0f / d[r][r];
    }
}

// Four rows of D L' x = b, from the last up; those further down are taken off already.
SYMSMOOTH_INLINE void substitute(const System& system, index i, index width) {
    const float *first = system.left(i) + i, *second = system.left(i + 1) + i,
                *third = system.left(i + 2) + i;
    const float* inverse = system.inverse_d + i;
    for (index j = 0; j < width; j += lanes) {
        float* at = system.right(i) + j;
        const Vec8 d = load(at + 3 * System::stride) * splat(inverse[3]);
        const Vec8 c = (load(at + 2 * System::stride) - splat(third[3]) * d) * splat(inverse[2]);
        const Vec8 b =
            (load(at + System::stride) - splat(second[3]) * d - splat(second[2]) * c) * splat(inverse[1]);
        const Vec8 a =
            (load(at) - splat(first[3]) * d - splat(first[2]) * c - splat(first[1]) * b) * splat(inverse[0]);
        store(at, a);
        store(at + System::stride, b);
        store(at + 2 * System::stride, c);
        store(at + 3 * System::stride, d);
    }
}

// Gauss: A = L D L', and B becomes L^-1 B.  Rows go by fours; all above them are taken off at once.
void forward(const System& system, index size) {
    const index stride = System::stride, width = padded(size);
    for (index i = 0; i < size; i += 4) {
        for (index k = 0; k < i; ++k)
            for (int r = 0; r < 4; ++r)
                system.factors[4 * k + r] = system.left(k)[i + r] * system.inverse_d[k];
        const Strided factors = transposed(system.factors, 4);
        const index j = i / lanes * lanes;
        product_rows<4, Write::difference>(factors, system.left(0) + j, stride, i, system.left(i) + j, stride,
                                           width - j);
        product_rows<4, Write::difference>(factors, system.right(0), stride, i, system.right(i), stride,
                                           width);
        float below[4][4];
        factor_block(system, i, below);
        eliminate(system.left(i) + j, stride, below, width - j);
        eliminate(system.right(i), stride, below, width);
    }
}

// B becomes (D L')^-1 B, from the last rows up.
void backward(const System& system, index size) {
    const index stride = System::stride, width = padded(size), end = (size + 3) / 4 * 4;
    for (index i = end - 4; i >= 0; i -= 4) {
        product_rows<4, Write::difference>(plain(system.left(i) + i + 4, stride), system.right(i + 4), stride,
                                           end - i - 4, system.right(i), stride, width);
        substitute(system, i, width);
    }
}

}  // namespace

void solve(const System& system, index size) {
    forward(system, size);
    backward(system, size);
}

namespace {

constexpr float tiny = 1e-30f;

// row[0:width] -= factor * other[0:width]
SYMSMOOTH_INLINE void subtract(float* row, float factor, const float* other, index width) {
    const Vec8 all = splat(factor);
    for (index j = 0; j < width; j += lanes) store(row + j, load(row + j) - all * load(other + j));
}

SYMSMOOTH_INLINE void clear_from(float* row, index from, index to) {
    for (index k = from; k < to; ++k) row[k] = 0.0f;
}

// Householder: rows of a become the reflections' vectors u, h their |u|^2 / 2, off the off-diagonal.
//
// Step i takes row i to a multiple of e_(i-1) by I - u u' / h, and a to (I - u u' / h) a (I - u u' / h).
void tridiagonalise(float* a, index size, index stride, float* h, float* off, float* u, float* w) {
    for (index i = size - 1; i > 0; --i) {
        const index width = padded(i);
        float* row = a + i * stride;
        float scale = 0.0f;
        for (index k = 0; k < i; ++k) scale += std::fabs(row[k]);
        if (scale < tiny) {
            off[i] = row[i - 1];
            h[i] = 0.0f;
            clear_from(row, 0, i);
        } else {
            const float inverse_scale = 1.0f / scale;
            for (index k = 0; k < i; ++k) u[k] = row[k] * inverse_scale;
            clear_from(u, i, stride);
            float square = dot(u, u, width);
            const float f = u[i - 1], root = std::sqrt(square);
            const float g = f > 0.0f ? -root : root;
            off[i] = scale * g;
            square -= f * g;
            h[i] = square;
            u[i - 1] = f - g;
            for (index k = 0; k < i; ++k) row[k] = u[k];
            const float inverse = 1.0f / square;
            combine(u, i, a, stride, w, width);  // a is symmetric: a u
            clear_from(w, i, width);
            for (index k = 0; k < width; k += lanes) store(w + k, load(w + k) * splat(inverse));
            const Vec8 shift = splat(0.5f * inverse * dot(w, u, width));
            for (index k = 0; k < width; k += lanes) store(w + k, load(w + k) - shift * load(u + k));
            for (index j = 0; j < i; ++j) {
                float* other = a + j * stride;
                const Vec8 own_u = splat(u[j]), own_w = splat(w[j]);
                for (index k = 0; k < width; k += lanes)
                    store(other + k, load(other + k) - own_u * load(w + k) - own_w * load(u + k));
            }
        }
        for (index j = 0; j < i; ++j) a[j * stride + i] = 0.0f;
    }
    off[0] = h[0] = 0.0f;
}

// Multiply the reflections together: a becomes the orthogonal matrix, values the diagonal.
void multiply_reflections(float* a, index size, index stride, const float* h, float* values, float* u) {
    for (index i = 0; i < size; ++i) {
        values[i] = a[i * stride + i];
        a[i * stride + i] = 1.0f;
        if (i == 0) continue;
        float* row = a + i * stride;
        if (h[i] != 0.0f) {
            const index width = padded(i);
            for (index k = 0; k < i; ++k) u[k] = row[k];
            clear_from(u, i, width);
            const float inverse = 1.0f / h[i];
            for (index j = 0; j < i; ++j) {
                float* other = a + j * stride;
                subtract(other, inverse * dot(u, other, width), u, width);
            }
        }
        clear_from(row, 0, i);
    }
}

// Rows lower and upper become s upper + c lower and c upper - s lower.
SYMSMOOTH_INLINE void rotate(float* upper, float* lower, float c, float s, index stride) {
    const Vec8 cs = splat(c), ss = splat(s);
    for (index k = 0; k < stride; k += lanes) {
        const Vec8 u = load(upper + k), v = load(lower + k);
        store(lower + k, ss * u + cs * v);
        store(upper + k, cs * u - ss * v);
    }
}

// Implicit QL: the tridiagonal matrix (values, off) becomes diagonal, and the rows of a its eigenvectors.
void diagonalise(float* a, index size, index stride, float* values, float* off) {
    for (index i = 1; i < size; ++i) off[i - 1] = off[i];
    off[size - 1] = 0.0f;
    float offset = 0.0f, largest = 0.0f, norm = 0.0f;
    for (index i = 0; i < size; ++i) norm = max(norm, std::fabs(values[i]) + std::fabs(off[i]));
    for (index low = 0; low < size; ++low) {
        largest = max(largest, std::fabs(values[low]) + std::fabs(off[low]));
        const float small = max(1e-6f * largest, 1e-8f * norm);  // of no rank: squares of less would vanish
        index high = low;
        while (high < size - 1 && std::fabs(off[high]) > small) ++high;
        for (int sweep = 0; high > low && sweep < 30; ++sweep) {
            float g = values[low];
            float p = (values[low + 1] - g) / (2.0f * off[low]);
            float r = std::sqrt(p * p + 1.0f);
            if (p < 0.0f) r = -r;
            values[low] = off[low] / (p + r);
            values[low + 1] = off[low] * (p + r);
            const float next_value = values[low + 1], next_off = off[low + 1];
            float h = g - values[low];
            for (index i = low + 2; i < size; ++i) values[i] -= h;
            offset += h;
            p = values[high];
            float c = 1.0f, c2 = 1.0f, c3 = 1.0f, s = 0.0f, s2 = 0.0f;
            for (index i = high - 1; i >= low; --i) {
                c3 = c2;
                c2 = c;
                s2 = s;
                g = c * off[i];
                h = c * p;
                r = std::sqrt(p * p + off[i] * off[i]);
                off[i + 1] = s * r;
                const bool turns = r > tiny;  // nothing to turn where both are zero
                const float inverse = 1.0f / (turns ? r : 1.0f);
                s = turns ? off[i] * inverse : 0.0f;
                c = turns ? p * inverse : 1.0f;
                p = c * values[i] - s * g;
                values[i + 1] = h + s * (c * g + s * values[i]);
                rotate(a + i * stride, a + (i + 1) * stride, c, s, stride);
            }
            p = next_value != 0.0f ? -s * s2 * c3 * next_off * off[low] / next_value : 0.0f;
            off[low] = s * p;
            values[low] = c * p;
            if (std::fabs(off[low]) <= small) break;
        }
        values[low] += offset;
        off[low] = 0.0f;
    }
}

}  // namespace

void eigenvectors(float* a, index size, index stride, float* values, float* work) {
    float* off = work;
    float* h = off + stride;
    float* u = h + stride;
    float* w = u + stride;
    tridiagonalise(a, size, stride, h, off, u, w);
    multiply_reflections(a, size, stride, h, values, u);
    diagonalise(a, size, stride, values, off);
}

}  // namespace symsmooth::SYMSMOOTH_ISA
