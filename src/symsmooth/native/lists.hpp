// Lists of clusters and of members: whole numbers only, compiled once for all processors.
#pragma once

#include "kernels.hpp"

namespace symsmooth {

// How a grid is cut into tiles.
struct TileGrid {
    const index* boxes;  // (count, 6)
    index count;
    Extent tile, n_tiles;
};

// The clusters within `radius` of each tile: fills pointers (count + 1), and ids unless it is null.
void find_candidates(const TileGrid& grid, const float* positions, index k, float radius, index* pointers,
                     std::int32_t* ids);

// Clusters of patches: `clusters` (n, most) with `weights`; those not above `least` do not count.
struct Memberships {
    const std::int32_t* clusters;
    const float* weights;
    index n, most;
    float least;
};

// Add to counts how many patches belong to each cluster.
void count_members(const Memberships&, index* counts);

// Write the members of each cluster, in the order of the picture, from places[cluster] on.
//
// corners receives the corner of a member's patch in an image whose rows and slices are `row_step` and
// `slice_step` apart, shares its weight; patches lie on a grid of `height` x `width` positions a slice, the
// first of them is number `first`.
struct PatchGrid {
    index height, width, row_step, slice_step, first;
};
void list_members(const Memberships&, const PatchGrid&, index* places, std::int32_t* corners, float* shares);

}  // namespace symsmooth
