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

// row[0:width] -= factor * other[0:width]
SYMSMOOTH_INLINE void subtract(float* row, float factor, const float* other, index width) {
    const Vec8 all = splat(factor);
    for (index j = 0; j < width; j += lanes) store(row + j, load(row + j) - all * load(other + j));
}

// Four rows: each less its combination of those above it, row r -= sum over s < r of below[r][s] row s.
SYMSMOOTH_INLINE void eliminate(float* rows, index stride, const float (&below)[4][4], index width) {
    for (index j = 0; j < width; j += lanes) {
        float* at = rows + j;
        const Vec8 first = load(at);
        const Vec8 second = load(at + stride) - splat(below[1][0]) * first;
        const Vec8 third = load(at + 2 * stride) - splat(below[2][0]) * first - splat(below[2][1]) * second;
        const Vec8 fourth = load(at + 3 * stride) - splat(below[3][0]) * first -
                            splat(below[3][1]) * second - splat(below[3][2]) * third;
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

// Gauss: A = L D L', and B becomes L^-1 B.  Rows go by fours; all above them are taken off at once.
void forward(const System& system, index size) {
    const index stride = System::stride, width = padded(size);
    index i = 0;
    for (; i + 4 <= size; i += 4) {
        for (index k = 0; k < i; ++k)
            for (int r = 0; r < 4; ++r)
                system.factors[4 * k + r] = system.left(k)[i + r] * system.inverse_d[k];
        const Strided factors = transposed(system.factors, 4);
        const index j = i / lanes * lanes;
        product_rows<4, Write::difference>(factors, system.left(0) + j, stride, i, system.left(i) + j,
                                           stride, width - j);
        product_rows<4, Write::difference>(factors, system.right(0), stride, i, system.right(i), stride,
                                           width);
        float below[4][4];
        factor_block(system, i, below);
        eliminate(system.left(i) + j, stride, below, width - j);
        eliminate(system.right(i), stride, below, width);
    }
    for (; i < size; ++i) {
        for (index k = 0; k < i; ++k) system.factors[k] = system.left(k)[i] * system.inverse_d[k];
        const Strided factors = plain(system.factors, 0);
        const index j = i / lanes * lanes;
        product_rows<1, Write::difference>(factors, system.left(0) + j, stride, i, system.left(i) + j,
                                           stride, width - j);
        product_rows<1, Write::difference>(factors, system.right(0), stride, i, system.right(i), stride,
                                           width);
        system.inverse_d[i] = 1.0f / system.left(i)[i];
    }
}

// B becomes (D L')^-1 B, from the last row up.
void backward(const System& system, index size) {
    const index stride = System::stride, width = padded(size);
    index end = size;  // rows from here on are done
    const auto finish = [&](index i) {
        for (index k = i + 1; k < end; ++k) subtract(system.right(i), system.left(i)[k], system.right(k), width);
        const Vec8 inverse = splat(system.inverse_d[i]);
        for (index j = 0; j < width; j += lanes) store(system.right(i) + j, load(system.right(i) + j) * inverse);
    };
    while (end % 4 != 0) {
        const index i = end - 1;
        end = size;
        finish(i);
        end = i;
    }
    for (; end >= 4; end -= 4) {
        const index i = end - 4;
        product_rows<4, Write::difference>(plain(system.left(i) + end, stride), system.right(end), stride,
                                           size - end, system.right(i), stride, width);
        for (index r = end - 1; r >= i; --r) finish(r);
    }
}

}  // namespace

void solve(const System& system, index size) {
    forward(system, size);
    backward(system, size);
}

namespace {

constexpr float tiny = 1e-30f;

SYMSMOOTH_INLINE float dot(const float* a, const float* b, index width) {
    Vec8 total = splat(0.0f);
    for (index k = 0; k < width; k += lanes) total += load(a + k) * load(b + k);
    return sum(total);
}

// out[0:width] = sum over k < count of u[k] a[k][0:width]: for a symmetric a it is a u.
SYMSMOOTH_INLINE void combine_rows(const float* u, index count, const float* a, index stride, float* out,
                                   index width) {
    for (index j = 0; j < width; j += lanes) {
        Vec8 even = splat(0.0f), odd = splat(0.0f);
        const float* at = a + j;
        index k = 0;
        for (; k + 2 <= count; k += 2) {
            even += splat(u[k]) * load(at + k * stride);
            odd += splat(u[k + 1]) * load(at + (k + 1) * stride);
        }
        if (k < count) even += splat(u[k]) * load(at + k * stride);
        store(out + j, even + odd);
    }
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
            combine_rows(u, i, a, stride, w, width);
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
    float offset = 0.0f, largest = 0.0f;
    for (index low = 0; low < size; ++low) {
        largest = max(largest, std::fabs(values[low]) + std::fabs(off[low]));
        const float small = 1e-6f * largest;
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
                const float inverse = 1.0f / r;
                s = off[i] * inverse;
                c = p * inverse;
                p = c * values[i] - s * g;
                values[i + 1] = h + s * (c * g + s * values[i]);
                rotate(a + i * stride, a + (i + 1) * stride, c, s, stride);
            }
            p = -s * s2 * c3 * next_off * off[low] / next_value;
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
