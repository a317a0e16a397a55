#include "lists.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace symsmooth {

namespace {

index clamped_cell(float position, index size, index count) {
    const double cell = std::floor(std::trunc(double(position)) / double(size));
    return cell > 0.0 ? index(std::min(cell, double(count - 1))) : 0;  // what is no number is in the first
}

// Clusters sorted by the tile their centre lies in: order[starts[cell]:starts[cell + 1]].
struct Cells {
    std::vector<index> starts, order;
};

Cells sort_into_cells(const TileGrid& grid, const float* positions, index k) {
    const Extent n = grid.n_tiles;
    std::vector<index> cells(k);
    Cells sorted{std::vector<index>(n.z * n.y * n.x + 1), std::vector<index>(k)};
    for (index i = 0; i < k; ++i) {
        const float* at = positions + 3 * i;
        cells[i] =
            (clamped_cell(at[0], grid.tile.z, n.z) * n.y + clamped_cell(at[1], grid.tile.y, n.y)) * n.x +
            clamped_cell(at[2], grid.tile.x, n.x);
        ++sorted.starts[cells[i] + 1];
    }
    for (std::size_t cell = 1; cell < sorted.starts.size(); ++cell)
        sorted.starts[cell] += sorted.starts[cell - 1];
    std::vector<index> filled = sorted.starts;
    for (index i = 0; i < k; ++i) sorted.order[filled[cells[i]]++] = i;
    return sorted;
}

// The cells along one axis that lie within the radius of first..last.
struct Range {
    index low, high;
};

Range cells_within(index first, index last, float radius, index size, index count) {
    const double low = std::floor((double(first) - radius) / double(size));
    const double high = std::floor((double(last) + radius) / double(size));
    return {index(std::max(low, 0.0)), index(std::min(high, double(count - 1)))};
}

float square_gap(float at, index first, index end) {
    const float gap = std::max(float(first) - at, at - float(end - 1));
    return gap > 0.0f ? gap * gap : 0.0f;
}

}  // namespace

void find_candidates(const TileGrid& grid, const float* positions, index k, float radius, index* pointers,
                     std::int32_t* ids) {
    const Cells cells = sort_into_cells(grid, positions, k);
    index found = 0;
    pointers[0] = 0;
    for (index t = 0; t < grid.count; ++t) {
        const index* b = grid.boxes + 6 * t;
        const Range z = cells_within(b[0], b[1] - 1, radius, grid.tile.z, grid.n_tiles.z);
        const Range y = cells_within(b[2], b[3] - 1, radius, grid.tile.y, grid.n_tiles.y);
        const Range x = cells_within(b[4], b[5] - 1, radius, grid.tile.x, grid.n_tiles.x);
        for (index cz = z.low; cz <= z.high; ++cz)
            for (index cy = y.low; cy <= y.high; ++cy) {
                const index row = (cz * grid.n_tiles.y + cy) * grid.n_tiles.x;
                if (x.high < x.low) continue;
                for (index q = cells.starts[row + x.low]; q < cells.starts[row + x.high + 1]; ++q) {
                    const float* at = positions + 3 * cells.order[q];
                    const float far = square_gap(at[0], b[0], b[1]) + square_gap(at[1], b[2], b[3]) +
                                      square_gap(at[2], b[4], b[5]);
                    if (!(far < radius * radius)) continue;
                    if (ids) ids[found] = std::int32_t(cells.order[q]);
                    ++found;
                }
            }
        pointers[t + 1] = found;
    }
}

void count_members(const Memberships& all, index* counts) {
    for (index j = 0; j < all.n * all.most; ++j)
        if (all.weights[j] > all.least) ++counts[all.clusters[j]];
}

void list_members(const Memberships& all, const PatchGrid& grid, index* places, std::int32_t* corners,
                  float* shares) {
    for (index r = 0; r < all.n; ++r) {
        const index j = grid.first + r, y = j / grid.width;
        const index corner =
            y / grid.height * grid.slice_step + y % grid.height * grid.row_step + j % grid.width;
        for (index q = r * all.most; q < (r + 1) * all.most; ++q)
            if (all.weights[q] > all.least) {
                const index place = places[all.clusters[q]]++;
                corners[place] = std::int32_t(corner);
                shares[place] = all.weights[q];
            }
    }
}

}  // namespace symsmooth
