// A tile of pixels against the clusters near it.
//
// The tile's generalised patches are the rows of one matrix and its clusters the columns of another, so
// that log-densities are one matrix product and the M-step's sums another; responsibilities live in the
// tile's buffer and nowhere else.  Everything is taken relative to the tile's mean point, so that float32 is
// enough at any contrast.
#pragma once

#include "kernels.hpp"
#include "matrix.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

// log2 of a weight, in that of a point's best cluster, below which it is 0: sums of much smaller numbers would be
// subnormal, and take a hundred times as long.
constexpr float least_weight = -90.0f;

class Tile {
public:
    Tile(const Points& points, const Tiles& tiles);

    // Take every subsample-th position of a tile, and the clusters near it.
    void open(const Points& points, const Tiles& tiles, index number, index subsample,
              const Mixture& mixture);

    // Fill log-densities of four points from r on: log2 of pi_i exp(-|p_j - mu_i|^2 / 2), but for the
    // part that all clusters have, -|p_j|^2 / 2.  Beyond the last cluster they are very low.
    SYMSMOOTH_INLINE void log_densities(index r) {
        const Strided four = plain(row(r), stride);
        product_rows<4, Write::result>(four, clusters, columns, dim + 1, gamma + r * columns, columns,
                                       columns);
    }

    // Turn the log-densities of a point to weights; returns their sum, and fills the log2-density.
    SYMSMOOTH_INLINE float exponentiate(index r, double& log2_density) {
        float* own = gamma + r * columns;
        const float best = maximum(own);
        const Vec8 top = splat(best);
        Vec8 total = splat(0.0f);
        for (index c = 0; c < columns; c += lanes) {
            const Vec8 below = load(own + c) - top;
            const Vec8 weight = select(below > splat(least_weight), exp2(below), splat(0.0f));
            store(own + c, weight);
            total += weight;
        }
        const float mass = sum(total);
        log2_density = double(best) + std::log2(mass) - 0.5f * log2_e * row(r)[dim + 1];
        return mass;
    }

    SYMSMOOTH_INLINE float maximum(const float* own) const {
        Vec8 best = load(own);
        for (index c = lanes; c < columns; c += lanes) best = max(best, load(own + c));
        return largest(best);
    }

    // Point r less the tile's mean, then 1 (which gives a cluster's mass for free), then |p|^2 (its scatter).
    SYMSMOOTH_INLINE float* row(index r) { return rows + r * stride; }
    // Mean of cluster c less the tile's.
    SYMSMOOTH_INLINE const float* mean(index c) { return means + c * stride; }

    const index max_points, max_near;  // points and clusters, in any of the tiles
    index n = 0;                       // points
    index near = 0;                    // clusters
    index columns = 0;                 // the same, up to a multiple of eight
    const index dim, stride;           // of rows and means
    Buffer<float> rows, gamma, means, clusters, centre;
    Buffer<index> corners;    // of the points' patches in the image
    Buffer<index> positions;  // of the points in the grid

private:
    void load_points(const Points& points, const index* box, const float* offset, index subsample);
    void centre_points();
    void load_clusters(const Mixture& mixture, const std::int32_t* ids);
};

// Copy the patch at a corner, line by line; seven places beyond its end may be written.
void take_patch(const Points& points, const float* pixels, index corner, float* to);

}  // namespace symsmooth::SYMSMOOTH_ISA
