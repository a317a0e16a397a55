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
    const bool are_known =
        unlocked([&] { return are_between(clusters.data(), clusters.size(), 0, n_clusters); });
    require(n_clusters >= 0 && are_known, "there are fewer clusters");
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
    unlocked([&] { lists::count_members(all, counts.data()); });
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
        spans.reserve(n_clusters());
        unlocked([&] { find_spans(); });
    }
    index n_clusters() const { return pointers.size() - 1; }
    PatchLines patch() const { return {lines.data(), index(lines.size()), side}; }

    // Where the pixels begin and end that some clusters touch.
    struct Span {
        index first, end;
    };
    void find_spans() {
        for (index c = 0; c < n_clusters(); ++c) {
            const std::int32_t* own = corners.data();
            const auto [low, high] = std::minmax_element(own + pointers[c], own + pointers[c + 1]);
            const bool is_empty = pointers[c] == pointers[c + 1];
            spans.push_back(is_empty ? Span{n_pixels, 0} : Span{*low, *high + reach});
            require(is_empty || (0 <= *low && *high + reach <= n_pixels), "patches must lie in the channel");
        }
    }
    Span span(index first, index last) const {
        require(0 <= first && first <= last && last <= n_clusters(), "first and last must be clusters");
        Span found{n_pixels, 0};
        for (index c = first; c < last; ++c)
            found = {std::min(found.first, spans[c].first), std::max(found.end, spans[c].end)};
        return found.first < found.end ? found : Span{0, 0};
    }

    const Longs<1> pointers;
    const Ints<1> corners;
    const Floats<1> shares;
    const index side;
    std::vector<index> lines;
    std::vector<Span> spans;  // of each cluster
    index n_pixels, reach;    // of the channel; from a corner to the end of its patch
};

constexpr index spare = 8;  // places after the last pixel, which kernels may touch

// Add to parts, (total, mass) or (total, mass, spread) of the pixels that clusters touch.
template <class Filter>
void filter_clusters(const BoundMembers& members, index first, index last, const Array<float, 2>& parts,
                     const Filter& filter) {
    const auto [start, end] = members.span(first, last);
    const index length = end - start + spare;
    require(parts.shape(0) == 2 || parts.shape(0) == 3, "parts are total, mass and perhaps spread");
    require_shape(parts, "parts", {parts.shape(0), length});
    const Members run{members.pointers.data(), members.corners.data(), members.shares.data(), first, last};
    float* spread = parts.shape(0) == 3 ? parts.data() + 2 * length : nullptr;
    const Aggregate out{start, parts.data(), parts.data() + length, spread};
    unlocked([&] { filter(run, out); });
}

tuple<index, index> span(const BoundMembers& members, index first, index last) {
    const auto [start, end] = members.span(first, last);
    return {start, end - start + spare};
}

// Move parts to the sums of all pixels: those of cells of 256 pixels that clusters touch; others are zeros.
void move_parts(const BoundMembers& members, index first, index last, Array<float, 2> parts,
                Array<float, 1> total, Array<float, 1> mass, optional<Array<float, 1>> spread) {
    constexpr index cell = 256;
    const auto [start, end] = members.span(first, last);
    const index length = end - start + spare, n_cells = (end - start + cell - 1) / cell;
    require_shape(parts, "parts", {spread ? 3 : 2, length});
    require_shape(total, "total", {members.n_pixels});
    require_shape(mass, "mass", {members.n_pixels});
    if (spread) require_shape(*spread, "spread", {members.n_pixels});
    float* const sums[] = {total.data(), mass.data(), spread ? spread->data() : nullptr};
    const std::int32_t* corners = members.corners.data();
    std::vector<char> has_corner(n_cells), is_touched(n_cells);
    unlocked([&] {
        for (index i = members.pointers[first]; i < members.pointers[last]; ++i)
            has_corner[(corners[i] - start) / cell] = 1;
        for (index at = 0; at < n_cells; ++at)
            for (std::size_t k = 0; has_corner[at] && k < members.lines.size(); ++k) {
                const index from = at * cell + members.lines[k], to = from + cell + members.side;
                for (index own = from / cell; own < n_cells && own * cell < to; ++own) is_touched[own] = 1;
            }
        for (index at = 0; at < n_cells; ++at) {
            const index from = at * cell, to = std::min(from + cell, end - start);
            for (index plane = 0; is_touched[at] && plane < parts.shape(0); ++plane) {
                float* own = parts.data() + plane * length;
                for (index i = from; i < to; ++i) sums[plane][start + i] += own[i];
                std::fill(own + from, own + to, 0.0f);
            }
        }
    });
}

void spectral_filter(const BoundMembers& members, index first, index last, Floats<1> pixels, float noise,
                     float bias, Array<float, 2> parts) {
    require_shape(pixels, "pixels", {members.n_pixels + spare});
    filter_clusters(members, first, last, parts, [&](const Members& run, const Aggregate& out) {
        kernels().spectral_filter(pixels.data(), members.patch(), run, noise, bias, out);
    });
}

void wiener_filter(const BoundMembers& members, index first, index last, Floats<1> pixels, Floats<1> pilot,
                   float noise, float strength, float trust, Array<float, 2> parts) {
    require_shape(pixels, "pixels", {members.n_pixels + spare});
    require_shape(pilot, "pilot", {members.n_pixels + spare});
    filter_clusters(members, first, last, parts, [&](const Members& run, const Aggregate& out) {
        kernels().wiener_filter(pixels.data(), pilot.data(), members.patch(), run, noise, strength, trust,
                                out);
    });
}

}  // namespace

void bind_clusters(nb::module_& m) {
    nb::class_<BoundMembers>(
        m, "Members", "The patches of each cluster: corners and shares from pointers[i] to pointers[i + 1].")
        .def(nb::init<Longs<1>, Ints<1>, Floats<1>, Three, Three>(), "pointers"_a, "corners"_a, "shares"_a,
             "grid"_a, "patch"_a)
        .def("span", &span, "first"_a, "last"_a,
             "Where the pixels begin that clusters touch, and how many places they take.");
    m.def("move_parts", &move_parts, "members"_a, "first"_a, "last"_a, "parts"_a, "total"_a, "mass"_a,
          "spread"_a, "Add parts to the sums of all pixels, and leave zeros in them.");
    m.def("find_candidates", &find_candidates, "grid"_a, "tile"_a, "centres"_a, "radius"_a,
          "offsets"_a = nb::none());
    m.def("count_members", &count_members, "clusters"_a, "weights"_a, "min_share"_a, "n_clusters"_a);
    m.def("list_members", &list_members, "clusters"_a, "weights"_a, "min_share"_a, "grid"_a, "channel"_a,
          "first"_a, "places"_a, "corners"_a, "shares"_a);
    m.def("spectral_filter", &spectral_filter, "members"_a, "first"_a, "last"_a, "pixels"_a, "noise"_a,
          "bias"_a, "parts"_a);
    m.def("wiener_filter", &wiener_filter, "members"_a, "first"_a, "last"_a, "pixels"_a, "pilot"_a, "noise"_a,
          "strength"_a, "trust"_a, "parts"_a);
}

}  // namespace symsmooth
