// Smoothing filters with a search window, applied without storing W.
//
// Images are planes here, (channels, z, y, x), so that the innermost loops run along rows.
#include "memory.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

// The pairs (i, i + offset) of one offset whose first pixel lies in the strip, and the second in the image.
struct Pairs {
    index number, dz, dy, dx;
    index x0, n;  // first column, and how many
    index y0, y1, z0, z1;
};

Pairs pairs_of(const Window& window, index o, Extent shape) {
    const index* offset = window.offsets + 3 * o;
    const index dz = offset[0], dy = offset[1], dx = offset[2];
    const index x0 = max(index(0), -dx), x1 = shape.x - max(index(0), dx);
    return {
        .number = o,
        .dz = dz,
        .dy = dy,
        .dx = dx,
        .x0 = x0,
        .n = x1 - x0,
        .y0 = max(window.y0, -dy),
        .y1 = min(window.y1, shape.y - dy),
        .z0 = max(window.z0, -dz),
        .z1 = min(window.z1, shape.z - dz),
    };
}

// gain[i] += weights[i] * source[i]
template <class T>
SYMSMOOTH_INLINE void add_weighted(T* __restrict gain, const float* __restrict weights,
                                   const T* __restrict source, index n) {
    for (index i = 0; i < n; ++i) gain[i] += T(weights[i]) * source[i];
}

// gain[i] += weights[i] * source[i], both ways; the rows are not the same.
template <class T>
SYMSMOOTH_INLINE void exchange_weighted(T* __restrict here, const T* __restrict from_here,
                                        T* __restrict there, const T* __restrict from_there,
                                        const float* __restrict weights, index n) {
    for (index i = 0; i < n; ++i) {
        const T weight = T(weights[i]);
        here[i] += weight * from_there[i];
        there[i] += weight * from_here[i];
    }
}

// sums[i] += (here[i] - there[i])^2
SYMSMOOTH_INLINE void add_squares(float* __restrict sums, const float* here, const float* there, index n) {
    for (index i = 0; i < n; ++i) sums[i] += (here[i] - there[i]) * (here[i] - there[i]);
}

// Add the squared differences of the row that enters, take off those of the one that leaves.
SYMSMOOTH_INLINE void move_squares(float* __restrict sums, const float* in, const float* out, index step,
                                   index n) {
    for (index i = 0; i < n; ++i) {
        const float enters = in[i] - in[i + step], leaves = out[i] - out[i + step];
        sums[i] += enters * enters - leaves * leaves;
    }
}

// weights[i] = 2^-(spatial + coefficient * sum of sums[i:i + side]); `fixed` is side, or 0 for any.
template <int fixed>
SYMSMOOTH_INLINE void weigh_sums(const float* sums, index side, float spatial, float coefficient,
                                 float* weights, index n) {
    const Vec8 constant = splat(-spatial), factor = splat(-coefficient), zero = splat(0.0f);
    for (index i = 0; i < n; i += lanes) {
        Vec8 total = load(sums + i);
#pragma GCC unroll 8
        for (index v = 1; v < (fixed ? fixed : side); ++v) total += load(sums + i + v);
        store(weights + i, exp2(constant + factor * max(total, zero)));
    }
}

SYMSMOOTH_INLINE void weigh(const float* sums, index side, float spatial, float coefficient, float* weights,
                            index n) {
    switch (side) {
        case 1: return weigh_sums<1>(sums, side, spatial, coefficient, weights, n);
        case 3: return weigh_sums<3>(sums, side, spatial, coefficient, weights, n);
        case 5: return weigh_sums<5>(sums, side, spatial, coefficient, weights, n);
        case 7: return weigh_sums<7>(sums, side, spatial, coefficient, weights, n);
        default: return weigh_sums<0>(sums, side, spatial, coefficient, weights, n);
    }
}

// Call use(pairs, z, y, weights) for each row of pairs in the strip, W_ij = 2^-(spatial + coefficient *
// |patch_i - patch_j|^2).
//
// The sum of squares over a patch runs down the rows (add the row that enters, take off the one that
// leaves), so that its cost does not grow with height.
template <class Use>
SYMSMOOTH_INLINE void for_each_pair_row(const Planes& image, Extent patch, const Window& window,
                                        const float* spatial, float coefficient, Use use) {
    const Extent shape{image.shape.z - patch.z + 1, image.shape.y - patch.y + 1, image.shape.x - patch.x + 1};
    const index row_step = image.shape.x, slice_step = image.shape.y * row_step;
    const index plane_step = image.shape.z * slice_step;
    Buffer<float> sums(image.shape.x + lanes), weights(shape.x + lanes);
    for (index o = 0; o < window.count; ++o) {
        const Pairs pairs = pairs_of(window, o, shape);
        if (pairs.n <= 0) continue;
        const index n_sums = pairs.n + patch.x - 1;
        const index step = pairs.dz * slice_step + pairs.dy * row_step + pairs.dx;
        const auto row_of = [&](index c, index z, index y) SYMSMOOTH_LAMBDA {
            return image.pixels + c * plane_step + z * slice_step + y * row_step + pairs.x0;
        };
        for (index z = pairs.z0; z < pairs.z1; ++z) {
            std::memset(sums, 0, n_sums * sizeof(float));
            if (coefficient > 0.0f && pairs.y0 < pairs.y1)
                for (index u = 0; u < patch.z; ++u)
                    for (index v = 0; v < patch.y; ++v)
                        for (index c = 0; c < image.count; ++c) {
                            const float* row = row_of(c, z + u, pairs.y0 + v);
                            add_squares(sums, row, row + step, n_sums);
                        }
            for (index y = pairs.y0; y < pairs.y1; ++y) {
                if (coefficient > 0.0f || y == pairs.y0)
                    weigh(sums, patch.x, spatial[o], coefficient, weights, pairs.n);
                if (coefficient > 0.0f && y + 1 < pairs.y1) {
                    if (patch.y == 1) std::memset(sums, 0, n_sums * sizeof(float));
                    for (index u = 0; u < patch.z; ++u)
                        for (index c = 0; c < image.count; ++c) {
                            const float* in = row_of(c, z + u, y + patch.y);
                            if (patch.y == 1)
                                add_squares(sums, in, in + step, n_sums);
                            else
                                move_squares(sums, in, row_of(c, z + u, y), step, n_sums);
                        }
                }
                use(pairs, z, y, weights);
            }
        }
    }
}

// Rows of the columns to be filtered, and of what is added to.
template <class T>
struct RowsOf {
    const Columns<T>& columns;
    Extent shape;

    SYMSMOOTH_INLINE const T* value(index m, index z, index y) const {
        return columns.values + ((m * shape.z + z) * shape.y + y) * shape.x;
    }
    SYMSMOOTH_INLINE T* out(index m, index z, index y) const {
        const index row =
            (m * columns.out_depth + z - columns.origin_z) * columns.out_height + y - columns.origin_y;
        return columns.out + row * shape.x;
    }
};

// Add W V to out for the pairs (i, i + offset) of half a window: W is symmetric, so each pair is weighed
// once and serves both its pixels.
template <class T>
void symmetric(const Planes& image, Extent patch, const Window& window, const float* spatial,
               float coefficient, const Columns<T>& columns) {
    const Extent shape{image.shape.z - patch.z + 1, image.shape.y - patch.y + 1, image.shape.x - patch.x + 1};
    const RowsOf<T> rows{columns, shape};
    for_each_pair_row(image, patch, window, spatial, coefficient,
                      [&](const Pairs& p, index z, index y, const float* weights) SYMSMOOTH_LAMBDA {
                          for (index m = 0; m < columns.count; ++m) {
                              T* here = rows.out(m, z, y) + p.x0;
                              T* there = rows.out(m, z + p.dz, y + p.dy) + p.x0 + p.dx;
                              const T* from_here = rows.value(m, z, y) + p.x0;
                              const T* from_there = rows.value(m, z + p.dz, y + p.dy) + p.x0 + p.dx;
                              if (p.dz != 0 || p.dy != 0) {
                                  exchange_weighted(here, from_here, there, from_there, weights, p.n);
                              } else {  // both in one row
                                  add_weighted(here, weights, from_there, p.n);
                                  add_weighted(there, weights, from_here, p.n);
                              }
                          }
                      });
}

// Call use(pairs, z, y, weights) for W_ij = 2^-(x_j - x_i)' Q_i (x_j - x_i).
//
// steering (6, z, y, x) holds Q_i as zz, yy, xx, 2zy, 2zx, 2yx.
template <class Use>
SYMSMOOTH_INLINE void for_each_steered_row(const Planes& steering, const Window& window, Use use) {
    const Extent shape = steering.shape;
    Buffer<float> weights(shape.x);
    for (index o = 0; o < window.count; ++o) {
        const Pairs p = pairs_of(window, o, shape);
        if (p.n <= 0) continue;
        const float factors[6] = {float(p.dz * p.dz), float(p.dy * p.dy), float(p.dx * p.dx),
                                  float(p.dz * p.dy), float(p.dz * p.dx), float(p.dy * p.dx)};
        for (index z = p.z0; z < p.z1; ++z)
            for (index y = p.y0; y < p.y1; ++y) {
                float* __restrict own = weights;
                std::memset(own, 0, p.n * sizeof(float));
                for (int q = 0; q < 6; ++q) {
                    if (factors[q] == 0.0f) continue;
                    const float* row = steering.pixels + ((q * shape.z + z) * shape.y + y) * shape.x + p.x0;
                    for (index i = 0; i < p.n; ++i) own[i] += factors[q] * row[i];
                }
                for (index i = 0; i < p.n; i += lanes)
                    store(own + i, exp2(splat(0.0f) - max(load(own + i), splat(0.0f))));
                use(p, z, y, weights);
            }
    }
}

// Add W V (or W' V) to out, for rows i in the strip.
template <class T>
void steered(const Planes& steering, const Window& window, bool transpose, const Columns<T>& columns) {
    const RowsOf<T> rows{columns, steering.shape};
    for_each_steered_row(steering, window,
                         [&](const Pairs& p, index z, index y, const float* weights) SYMSMOOTH_LAMBDA {
                             for (index m = 0; m < columns.count; ++m) {
                                 const index here = p.x0, there = p.x0 + p.dx;
                                 if (transpose)
                                     add_weighted(rows.out(m, z + p.dz, y + p.dy) + there, weights,
                                                  rows.value(m, z, y) + here, p.n);
                                 else
                                     add_weighted(rows.out(m, z, y) + here, weights,
                                                  rows.value(m, z + p.dz, y + p.dy) + there, p.n);
                             }
                         });
}

// Write the weights themselves, (offsets, z, y, x).
struct KeepWeights {
    float* weights;
    Extent shape;

    SYMSMOOTH_INLINE void operator()(const Pairs& p, index z, index y, const float* row) const {
        float* to = weights + ((p.number * shape.z + z) * shape.y + y) * shape.x + p.x0;
        std::memcpy(to, row, p.n * sizeof(float));
    }
};

}  // namespace

void symmetric_window(const Planes& image, Extent patch, const Window& window, const float* spatial,
                      float coefficient, const Columns<float>& columns) {
    symmetric(image, patch, window, spatial, coefficient, columns);
}

void symmetric_window_double(const Planes& image, Extent patch, const Window& window, const float* spatial,
                             float coefficient, const Columns<double>& columns) {
    symmetric(image, patch, window, spatial, coefficient, columns);
}

void symmetric_weights(const Planes& image, Extent patch, const Window& window, const float* spatial,
                       float coefficient, float* weights) {
    const Extent shape{image.shape.z - patch.z + 1, image.shape.y - patch.y + 1, image.shape.x - patch.x + 1};
    for_each_pair_row(image, patch, window, spatial, coefficient, KeepWeights{weights, shape});
}

void steered_window(const Planes& steering, const Window& window, bool transpose,
                    const Columns<float>& columns) {
    steered(steering, window, transpose, columns);
}

void steered_window_double(const Planes& steering, const Window& window, bool transpose,
                           const Columns<double>& columns) {
    steered(steering, window, transpose, columns);
}

void steered_weights(const Planes& steering, const Window& window, float* weights) {
    for_each_steered_row(steering, window, KeepWeights{weights, steering.shape});
}

}  // namespace symsmooth::SYMSMOOTH_ISA
