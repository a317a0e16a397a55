// Lists of clusters and of members: whole numbers only, compiled once for all processors.
#pragma once

#include <vector>

#include "kernels.hpp"

namespace symsmooth::lists {

// How a grid of positions is cut into tiles, in raster order.
struct TileGrid {
    Extent grid, tile;

    Extent n_tiles() const {
        return {(grid.z - 1) / tile.z + 1, (grid.y - 1) / tile.y + 1, (grid.x - 1) / tile.x + 1};
    }
};

// The clusters within `radius` of each tile, or within twice, four times ... of it where there is none: fills
// pointers (tiles + 1), and returns the clusters' numbers.
// Tiles are looked for at their place and what `offsets` (tiles, 3), which may be null, adds to it.
std::vector<std::int32_t> find_candidates(const TileGrid& tiles, const float* offsets, const float* centres,
                                          index k, float radius, index* pointers);

// Clusters of patches: `clusters` (n, max_clusters) with `weights`; those not above `min_share` do not count.
struct Memberships {
    const std::int32_t* clusters;
    const float* weights;
    index n, max_clusters;
    float min_share;
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

}  // namespace symsmooth::lists
