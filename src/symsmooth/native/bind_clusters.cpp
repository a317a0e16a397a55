// Which clusters are near a tile, which patches belong to a cluster, and what it does with them, for Python.
#include "bindings.hpp"
#include "dispatch.hpp"
#include "lists.hpp"

namespace symsmooth {

namespace {

// Pointers and ids, as in Tiles, of tiles in raster order.
tuple<Array<index, 1>, Array<std::int32_t, 1>> find_candidates(Three grid, Three tile, Floats<2> centres,
                                                               float radius, optional<Floats<2>> offsets) {
    require_extent(extent(grid));
    require_extent(extent(tile));
    require_shape(centres, "centres", {any, 3});
    require(radius >= 0.0f, "radius must not be negative");
    const lists::TileGrid tiles{extent(grid), extent(tile)};
    require(count(tiles.n_tiles()) <= INT32_MAX, "there are too many tiles");
    if (offsets) require_shape(*offsets, "offsets", {count(tiles.n_tiles()), 3});
    const auto pointers = zeros<index, 1>({count(tiles.n_tiles()) + 1});
    const std::vector<std::int32_t> found = unlocked([&] {
        return lists::find_candidates(tiles, offsets ? offsets->data() : nullptr, centres.data(),
                                      centres.shape(0), radius, pointers.data());
    });
    const auto ids = zeros<std::int32_t, 1>({index(found.size())});
    std::copy(found.begin(), found.end(), ids.data());
    return {pointers, ids};
}

lists::Memberships memberships(Ints<2> clusters, Floats<2> weights, float min_share, index n_clusters) {
    require_shape(weights, "weights", {clusters.shape(0), clusters.shape(1)});
    require(n_clusters >= 0 && are_between(clusters.data(), clusters.size(), 0, n_clusters),
            "there are fewer clusters");
    return {clusters.data(), weights.data(), clusters.shape(0), clusters.shape(1), min_share};
}

Array<index, 1> count_members(Ints<2> clusters, Floats<2> weights, float min_share, index n_clusters) {
    const lists::Memberships all = memberships(clusters, weights, min_share, n_clusters);
    const auto counts = zeros<index, 1>({n_clusters});
    unlocked([&] { lists::count_members(all, counts.data()); });
    return counts;
}

void list_members(Ints<2> clusters, Floats<2> weights, float min_share, Three grid, Three channel,
                  index first, Array<index, 1> places, Array<std::int32_t, 1> corners,
                  Array<float, 1> shares) {
    const lists::Memberships all = memberships(clusters, weights, min_share, places.size());
    require_extent(extent(channel));
    for (int axis = 0; axis < 3; ++axis)
        require(1 <= grid[axis] && grid[axis] <= channel[axis], "grid must lie in the channel");
    require(count(extent(channel)) <= INT32_MAX, "corners must fit into int32");
    require(0 <= first && first <= count(extent(grid)) - all.n, "patches must lie in the grid");
    require_shape(shares, "shares", {corners.size()});
    std::vector<index> counts(places.size());
    lists::count_members(all, counts.data());
    for (index i = 0; i < places.size(); ++i)
        require(0 <= places[i] && places[i] <= corners.size() - counts[i],
                "places must leave room for all members");
    const lists::PatchGrid patches{grid[1], grid[2], channel[2], channel[1] * channel[2], first};
    unlocked([&] { lists::list_members(all, patches, places.data(), corners.data(), shares.data()); });
}

// The patches of clusters in a channel; lines of a patch begin at its corner + lines.
struct BoundMembers {
    BoundMembers(Longs<1> pointers, Ints<1> corners, Floats<1> shares, Three grid, Three patch)
        : pointers(pointers), corners(corners), shares(shares), side(patch[2]) {
        constexpr index max_side = 8, max_pixels = 64;
        require_extent(extent(grid));
        require_extent(extent(patch));
        require(
            *std::max_element(patch.begin(), patch.end()) <= max_side && count(extent(patch)) <= max_pixels,
            "patches may be 8 pixels wide and have 64 pixels at most");
        const index height = grid[1] + patch[1] - 1, width = grid[2] + patch[2] - 1;
        for (index z = 0; z < patch[0]; ++z)
            for (index y = 0; y < patch[1]; ++y) lines.push_back((z * height + y) * width);
        n_pixels = (grid[0] + patch[0] - 1) * height * width;
        reach = lines.back() + side;
        require_pointers(pointers, corners.size());
        require_shape(shares, "shares", {corners.size()});
        require(are_between(corners.data(), corners.size(), 0, n_pixels - reach + 1),
                "patches must lie in the channel");
    }
    PatchLines patch() const { return {lines.data(), index(lines.size()), side}; }

    const Longs<1> pointers;
    const Ints<1> corners;
    const Floats<1> shares;
    const index side;
    std::vector<index> lines;
    index n_pixels, reach;  // of the channel; from a corner to the end of its patch
};

// Where the pixels begin that clusters touch; total, mass and spread there, with eight places to spare.
using Parts = tuple<index, Array<float, 2>>;
constexpr index spare = 8;

template <class Filter>
Parts filter_clusters(const BoundMembers& members, index first, index last, const Filter& filter) {
    require(0 <= first && first <= last && last < members.pointers.size(), "first and last must be clusters");
    const index from = members.pointers[first], to = members.pointers[last];
    const std::int32_t* corners = members.corners.data();
    const auto [low, high] = std::minmax_element(corners + from, corners + to);
    const index start = from < to ? *low : 0,
                length = (from < to ? *high - start + members.reach : 0) + spare;
    const auto parts = zeros<float, 2>({3, length});
    const Aggregate out{start, parts.data(), parts.data() + length, parts.data() + 2 * length};
    const Members run{members.pointers.data(), corners, members.shares.data(), first, last};
    unlocked([&] { filter(run, out); });
    return {start, parts};
}

Parts spectral_filter(const BoundMembers& members, index first, index last, Floats<1> pixels, float noise,
                      float bias) {
    require_shape(pixels, "pixels", {members.n_pixels + spare});
    return filter_clusters(members, first, last, [&](const Members& run, const Aggregate& out) {
        kernels().spectral_filter(pixels.data(), members.patch(), run, noise, bias, out);
    });
}

Parts wiener_filter(const BoundMembers& members, index first, index last, Floats<1> pixels, Floats<1> pilot,
                    float noise, float strength, float trust) {
    require_shape(pixels, "pixels", {members.n_pixels + spare});
    require_shape(pilot, "pilot", {members.n_pixels + spare});
    return filter_clusters(members, first, last, [&](const Members& run, const Aggregate& out) {
        kernels().wiener_filter(pixels.data(), pilot.data(), members.patch(), run, noise, strength, trust,
                                out);
    });
}

}  // namespace

void bind_clusters(nb::module_& m) {
    nb::class_<BoundMembers>(
        m, "Members", "The patches of each cluster: corners and shares from pointers[i] to pointers[i + 1].")
        .def(nb::init<Longs<1>, Ints<1>, Floats<1>, Three, Three>(), "pointers"_a, "corners"_a, "shares"_a,
             "grid"_a, "patch"_a);
    m.def("find_candidates", &find_candidates, "grid"_a, "tile"_a, "centres"_a, "radius"_a,
          "offsets"_a = nb::none());
    m.def("count_members", &count_members, "clusters"_a, "weights"_a, "min_share"_a, "n_clusters"_a);
    m.def("list_members", &list_members, "clusters"_a, "weights"_a, "min_share"_a, "grid"_a, "channel"_a,
          "first"_a, "places"_a, "corners"_a, "shares"_a);
    m.def("spectral_filter", &spectral_filter, "members"_a, "first"_a, "last"_a, "pixels"_a, "noise"_a,
          "bias"_a);
    m.def("wiener_filter", &wiener_filter, "members"_a, "first"_a, "last"_a, "pixels"_a, "pilot"_a, "noise"_a,
          "strength"_a, "trust"_a);
}

}  // namespace symsmooth
