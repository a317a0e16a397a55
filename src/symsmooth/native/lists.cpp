#include "lists.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace symsmooth::lists {

namespace {

constexpr float farthest = 1e9f;  // pixels: nobody looks further

index clamped_cell(float position, index size, index count) {
    const double cell = std::floor(std::trunc(double(position)) / double(size));
    return cell > 0.0 ? index(std::min(cell, double(count - 1))) : 0;  // what is no number is in the first
}

struct Centre {
    float z, y, x;
    std::int32_t cluster;
};

// Centres sorted by the tile they lie in: centres[starts[cell]:starts[cell + 1]].
struct Cells {
    std::vector<index> starts;
    std::vector<Centre> centres;
};

Cells sort_into_cells(const TileGrid& tiles, const float* centres, index k) {
    const Extent n = tiles.n_tiles(), tile = tiles.tile;
    std::vector<index> cells(k);
    Cells sorted{std::vector<index>(n.z * n.y * n.x + 1), std::vector<Centre>(k)};
    for (index i = 0; i < k; ++i) {
        const float* at = centres + 3 * i;
        cells[i] = (clamped_cell(at[0], tile.z, n.z) * n.y + clamped_cell(at[1], tile.y, n.y)) * n.x +
                   clamped_cell(at[2], tile.x, n.x);
        ++sorted.starts[cells[i] + 1];
    }
    for (std::size_t cell = 1; cell < sorted.starts.size(); ++cell)
        sorted.starts[cell] += sorted.starts[cell - 1];
    std::vector<index> filled = sorted.starts;
    for (index i = 0; i < k; ++i) {
        const float* at = centres + 3 * i;
        sorted.centres[filled[cells[i]]++] = {at[0], at[1], at[2], std::int32_t(i)};
    }
    return sorted;
}

// Positions first ... last of a tile along an axis, and the cells low ... high within the radius of them.
struct Range {
    float first, last;
    index low, high;
};

Range range_of(index number, index size, index grid, index count, float offset, float radius) {
    const index end = std::min((number + 1) * size, grid);
    const float first = float(number * size) + offset, last = float(end - 1) + offset;
    return {first, last, clamped_cell(first - radius, size, count), clamped_cell(last + radius, size, count)};
}

float square_gap(float at, const Range& tile) {
    const float gap = std::max(tile.first - at, at - tile.last);
    return gap > 0.0f ? gap * gap : 0.0f;
}

}  // namespace

std::vector<std::int32_t> find_candidates(const TileGrid& tiles, const float* offsets, const float* centres,
                                          index k, float radius, index* pointers) {
    constexpr float none[3] = {0.0f, 0.0f, 0.0f};
    const Cells cells = sort_into_cells(tiles, centres, k);
    const Extent n = tiles.n_tiles();
    std::vector<std::int32_t> found;
    *pointers++ = 0;
    for (index t = 0; t < n.z * n.y * n.x; ++t) {
        const float* offset = offsets ? offsets + 3 * t : none;
        const std::size_t before = found.size();
        const auto look = [&](float within) {
            const Range z = range_of(t / n.x / n.y, tiles.tile.z, tiles.grid.z, n.z, offset[0], within);
            const Range y = range_of(t / n.x % n.y, tiles.tile.y, tiles.grid.y, n.y, offset[1], within);
            const Range x = range_of(t % n.x, tiles.tile.x, tiles.grid.x, n.x, offset[2], within);
            const auto square_of = [&](const Centre& at) {
                return square_gap(at.z, z) + square_gap(at.y, y) + square_gap(at.x, x);
            };
            const auto look_from = [&](index first, index last) {
                for (index q = first; q < last; ++q)
                    if (square_of(cells.centres[q]) < within * within)
                        found.push_back(cells.centres[q].cluster);
            };
            if (within > 2.0f * radius) return look_from(0, k);  // more cells than centres
            for (index cz = z.low; cz <= z.high; ++cz)
                for (index cy = y.low; cy <= y.high; ++cy) {
                    const index row = (cz * n.y + cy) * n.x;
                    look_from(cells.starts[row + x.low], cells.starts[row + x.high + 1]);
                }
        };
        for (float within = radius; found.size() == before && within < farthest;
             within = std::max(2.0f * within, 1.0f))
            look(within);
        *pointers++ = index(found.size());
    }
    return found;
}

void count_members(const Memberships& all, index* counts) {
    for (index j = 0; j < all.n * all.max_clusters; ++j)
        if (all.weights[j] > all.min_share) ++counts[all.clusters[j]];
}

void list_members(const Memberships& all, const PatchGrid& grid, index* places, std::int32_t* corners,
                  float* shares) {
    for (index r = 0; r < all.n; ++r) {
        const index j = grid.first + r, y = j / grid.width;
        const index corner =
            y / grid.height * grid.slice_step + y % grid.height * grid.row_step + j % grid.width;
        for (index q = r * all.max_clusters; q < (r + 1) * all.max_clusters; ++q)
            if (all.weights[q] > all.min_share) {
                const index place = places[all.clusters[q]]++;
                corners[place] = std::int32_t(corner);
                shares[place] = all.weights[q];
            }
    }
}

}  // namespace symsmooth::lists
