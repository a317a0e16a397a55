// E- and M-steps of the mixture, tile by tile.
#include "table.hpp"
#include "tile.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

// Responsibilities of a tile's points (eq. em,gamma): gamma[r, c] * scale[r].  Returns the sum of log2
// densities.
double e_step(Tile& tile, float* scale) {
    double total = 0.0;
    for (index first = 0; first < tile.n; first += 4) {
        tile.log_densities(first);
        for (index r = first; r < min(first + 4, tile.n); ++r) {
            double log2_density;
            scale[r] = 1.0f / tile.exponentiate(r, log2_density);
            total += log2_density;
        }
    }
    return total;
}

// Normalise the few columns of the points, not all responsibilities.
void scale_points(Tile& tile, float* scale, const float* weight) {
    for (index r = 0; r < tile.n; ++r) {
        if (weight) scale[r] *= weight[tile.positions[r]];
        const Vec8 all = splat(scale[r]);
        for (index e = 0; e < tile.stride; e += lanes) store(tile.row(r) + e, load(tile.row(r) + e) * all);
    }
}

// Sums over the tile's points for each of its clusters: rows of [sum gamma p, sum gamma, sum gamma |p|^2].
void sum_over_points(Tile& tile, float* sums) {
    product(transposed(tile.gamma, tile.columns), tile.rows, tile.stride, tile.n, sums, tile.stride,
            tile.near, tile.stride);
}

// sum gamma |p - mu|^2 from the sums about the tile's mean.
SYMSMOOTH_INLINE float scatter_of(const float* sums, const float* mean, index dim, index stride) {
    const Vec8 mass = splat(sums[dim]), two = splat(2.0f);
    Vec8 total = splat(0.0f);  // means are zero beyond dim
    for (index e = 0; e < stride; e += lanes) {
        const Vec8 m = load(mean + e);
        total += m * (mass * m - two * load(sums + e));
    }
    return sums[dim + 1] + sum(total);
}

void add_sums(Tile& tile, const float* sums, const float* squares, index at, const ClusterSums& out) {
    const index dim = tile.dim;
    for (index c = 0; c < tile.near; ++c) {
        const float* own = sums + c * tile.stride;
        const float* mean = tile.mean(c);
        const float mass = own[dim];
        float* shift = out.shift + out.places[at + c] * dim;
        float* tail = out.tail + out.places[at + c] * 2;
        for (index e = 0; e < dim; ++e) shift[e] += own[e] - mass * mean[e];
        tail[0] += mass;
        tail[1] += squares ? squares[c] : scatter_of(own, mean, dim, tile.stride);
        out.tile_mass[at + c] = mass;
    }
}

// Put the patches of another image in the place of the points' own.
void replace_patches(Tile& tile, const Points& points, const float* target) {
    for (index r = 0; r < tile.n; ++r) {
        float* own = tile.row(r) + points.n_dims;
        const float one = tile.row(r)[tile.dim], square = tile.row(r)[tile.dim + 1];
        take_patch(points, target, tile.corners[r], own);
        for (index e = 0; e < tile.dim - points.n_dims; ++e) own[e] -= tile.centre[points.n_dims + e];
        for (index e = tile.dim; e < tile.stride; ++e) tile.row(r)[e] = 0.0f;
        tile.row(r)[tile.dim] = one;
        tile.row(r)[tile.dim + 1] = square;
    }
}

// squares[c] = sum of gamma^2.
void sum_squares(Tile& tile, const float* scale, float* squares) {
    for (index c = 0; c < tile.columns; c += lanes) {
        Vec8 total = splat(0.0f);
        for (index r = 0; r < tile.n; ++r) {
            const Vec8 share = load(tile.gamma + r * tile.columns + c) * splat(scale[r]);
            total += share * share;
        }
        store(squares + c, total);
    }
}

// Add the patches w_j, rows of `estimates`, to the image: sum_j P_j' w_j.
void add_patches(Tile& tile, const Points& points, const float* estimates, index width, index start,
                 float* out) {
    const index length = points.patch.x * points.channels;
    const index row_step = points.shape.x * points.channels, slice_step = points.shape.y * row_step;
    for (index r = 0; r < tile.n; ++r) {
        const float* from = estimates + r * width;
        for (index z = 0; z < points.patch.z; ++z)
            for (index y = 0; y < points.patch.y; ++y) {
                float* to = out + (tile.corners[r] - start + z * slice_step + y * row_step);
                for (index e = 0; e < length; ++e) to[e] += from[e];
                from += length;
            }
    }
}

}  // namespace

// One E-step on a strip of tiles, and the sums that the M-step needs; returns the sum of log2 densities.
double sum_points(const Points& points, const Tiles& tiles, const Mixture& mixture, const float* weight,
                  index subsample, const ClusterSums& out) {
    Tile tile(points, tiles);
    Buffer<float> scale(tile.max_points), sums(tile.max_near * tile.stride);
    double likelihood = 0.0;
    for (index t = 0; t < tiles.count; ++t) {
        const index at = tiles.pointers[t];
        tile.open(points, tiles, t, subsample, mixture);
        likelihood += e_step(tile, scale);
        scale_points(tile, scale, weight);
        sum_over_points(tile, sums);
        add_sums(tile, sums, nullptr, at, out);
    }
    return likelihood;
}

// The same, but the points that are summed are those of `target`, an image of the same shape; instead of the
// scatter, sum gamma^2.
double average_points(const Points& points, const float* target, const Tiles& tiles, const Mixture& mixture,
                      const float* weight, const ClusterSums& out) {
    Tile tile(points, tiles);
    Buffer<float> scale(tile.max_points), sums(tile.max_near * tile.stride), squares(tile.max_near);
    double likelihood = 0.0;
    for (index t = 0; t < tiles.count; ++t) {
        const index at = tiles.pointers[t];
        tile.open(points, tiles, t, 1, mixture);
        likelihood += e_step(tile, scale);
        sum_squares(tile, scale, squares);
        replace_patches(tile, points, target);
        scale_points(tile, scale, weight);
        sum_over_points(tile, sums);
        add_sums(tile, sums, squares, at, out);
    }
    return likelihood;
}

// Add sum_j P_j' w_j to out, w_j = sum_i gamma_ij estimates_i (eq. vwj); out begins at `start` of the image.
void aggregate_means(const Points& points, const Tiles& tiles, const Mixture& mixture,
                     const float* cluster_estimates, index start, float* out) {
    Tile tile(points, tiles);
    const index d = points.patch_numbers(), width = padded(d);
    Buffer<float> scale(tile.max_points), near(tile.max_near * width), estimates(tile.max_points * width);
    for (index t = 0; t < tiles.count; ++t) {
        const index at = tiles.pointers[t];
        tile.open(points, tiles, t, 1, mixture);
        e_step(tile, scale);
        for (index c = 0; c < tile.near; ++c)
            std::memcpy(near + c * width, cluster_estimates + tiles.ids[at + c] * tile.dim + points.n_dims,
                        d * sizeof(float));
        product(plain(tile.gamma, tile.columns), near, width, tile.near, estimates, width, tile.n, width);
        for (index r = 0; r < tile.n; ++r)
            for (index e = 0; e < width; e += lanes)
                store(estimates + r * width + e, load(estimates + r * width + e) * splat(scale[r]));
        add_patches(tile, points, estimates, width, start, out);
    }
}

// gamma (points, clusters) of a single tile.
void responsibilities(const Points& points, const Tiles& tiles, const Mixture& mixture, float* gamma) {
    Tile tile(points, tiles);
    Buffer<float> scale(tile.max_points);
    tile.open(points, tiles, 0, 1, mixture);
    e_step(tile, scale);
    for (index r = 0; r < tile.n; ++r)
        for (index c = 0; c < tile.near; ++c)
            gamma[r * tile.near + c] = tile.gamma[r * tile.columns + c] * scale[r];
}

}  // namespace symsmooth::SYMSMOOTH_ISA
