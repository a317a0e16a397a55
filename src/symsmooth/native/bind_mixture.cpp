// Mixtures of generalised patches, for Python.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bindings.hpp"
#include "dispatch.hpp"

namespace symsmooth {

namespace {

struct BoundPoints : Points {
    BoundPoints(Floats<4> padded, Three patch, index n_dims, float inv_hs, optional<Floats<2>> own_marks)
        : Points{padded.data(),
                 extent_of(padded, 0),
                 padded.shape(3),
                 extent(patch),
                 n_dims,
                 inv_hs,
                 own_marks ? own_marks->data() : nullptr,
                 own_marks ? index(own_marks->shape(1)) : 0},
          padded(padded),
          marked(own_marks),
          grid(positions(shape, extent(patch))) {
        require(n_dims == 2 || n_dims == 3, "n_dims must be 2 or 3");
        require(channels >= 1, "padded must have a channel");
        if (marked) require_shape(*marked, "marks", {count(grid), any});
    }
    const Floats<4> padded;
    const optional<Floats<2>> marked;
    const Extent grid;
};

struct BoundTiles : Tiles {
    BoundTiles(Longs<2> own_boxes, Longs<1> own_pointers, Ints<1> own_ids, optional<Floats<2>> own_offsets)
        : Tiles{own_boxes.data(), own_pointers.data(), own_ids.data(), own_boxes.shape(0),
                own_offsets ? own_offsets->data() : nullptr},
          arrays(own_boxes, own_pointers, own_ids, own_offsets),
          n_ids(own_ids.size()) {
        require_shape(own_boxes, "boxes", {any, 6});
        require_shape(own_pointers, "pointers", {count + 1});
        require_pointers(own_pointers, n_ids);
        if (own_offsets) require_shape(*own_offsets, "offsets", {count, 3});
        for (index t = 0; t < count; ++t) {
            const index* b = boxes + 6 * t;
            require(pointers[t] < pointers[t + 1], "each tile must meet a cluster");
            require(0 <= b[0] && b[0] <= b[1] && 0 <= b[2] && b[2] <= b[3] && 0 <= b[4] && b[4] <= b[5],
                    "boxes must lie in the grid of positions");
            end = {std::max(end.z, b[1]), std::max(end.y, b[3]), std::max(end.x, b[5])};
        }
        if (n_ids == 0) return;
        const auto [low, high] = std::minmax_element(ids, ids + n_ids);
        require(*low >= 0, "ids must be clusters");
        first_cluster = *low, n_clusters = index(*high) + 1 - *low;
    }

    // The clusters that some tile meets, and for each of `ids` its place among them.
    tuple<Array<std::int32_t, 1>, std::vector<std::int32_t>> met() const {
        std::vector<std::int32_t> numbers(n_clusters), places(n_ids);
        for (index i = 0; i < n_ids; ++i) numbers[ids[i] - first_cluster] = 1;
        const auto clusters = unfilled<std::int32_t, 1>({std::count(numbers.begin(), numbers.end(), 1)});
        std::int32_t place = 0;
        for (index c = 0; c < n_clusters; ++c)
            if (numbers[c]) clusters[place] = std::int32_t(first_cluster + c), numbers[c] = place++;
        for (index i = 0; i < n_ids; ++i) places[i] = numbers[ids[i] - first_cluster];
        return {clusters, std::move(places)};
    }

    const tuple<Longs<2>, Longs<1>, Ints<1>, optional<Floats<2>>> arrays;
    const index n_ids;
    Extent end{};                             // behind the last position of all boxes
    index first_cluster = 0, n_clusters = 0;  // from the first to the last that a tile meets
};

struct BoundMixture : Mixture {
    BoundMixture(Floats<2> own_means, Floats<1> own_log2_proportions)
        : Mixture{own_means.data(), own_log2_proportions.data(), own_means.shape(0)},
          arrays(own_means, own_log2_proportions),
          dim(own_means.shape(1)) {
        require_shape(own_log2_proportions, "log2_proportions", {size});
    }
    const tuple<Floats<2>, Floats<1>> arrays;
    const index dim;
};

void require_fit(const BoundPoints& points, const BoundTiles& tiles, const BoundMixture& mixture) {
    require(tiles.end.z <= points.grid.z && tiles.end.y <= points.grid.y && tiles.end.x <= points.grid.x,
            "boxes must lie in the grid of positions");
    require(tiles.first_cluster + tiles.n_clusters <= mixture.size, "ids must be clusters of the mixture");
    require(mixture.dim == points.dim(), "means must have as many numbers as points");
}

// The sum of log2 densities; clusters, and shift and tail for each of them; tile_mass.
using Sums = tuple<double, Array<std::int32_t, 1>, Array<float, 2>, Array<float, 2>, Array<float, 1>>;

Sums sum_points(const BoundPoints& points, const BoundTiles& tiles, const BoundMixture& mixture,
                optional<Floats<4>> target, optional<Floats<1>> weight, index subsample) {
    require_fit(points, tiles, mixture);
    const Extent shape = points.shape;
    if (target) require_shape(*target, "target", {shape.z, shape.y, shape.x, points.channels});
    if (weight) require_shape(*weight, "weight", {count(points.grid)});
    require(subsample >= 1 && (subsample == 1 || !target),
            "subsample must be at least 1, and 1 with a target");
    require(!target || points.n_marks == 0, "with a target points must have no marks");
    const auto [clusters, places] = tiles.met();
    const auto shift = zeros<float, 2>({clusters.size(), mixture.dim}),
               tail = zeros<float, 2>({clusters.size(), 2});
    const auto tile_mass = zeros<float, 1>({tiles.n_ids});
    const ClusterSums out{places.data(), shift.data(), tail.data(), tile_mass.data()};
    const float* weights = weight ? weight->data() : nullptr;
    const double likelihood = unlocked([&] {
        return target ? kernels().average_points(points, target->data(), tiles, mixture, weights, out)
                      : kernels().sum_points(points, tiles, mixture, weights, subsample, out);
    });
    return {likelihood, clusters, shift, tail, tile_mass};
}

void add_rows(Array<float, 2> sums, Ints<1> places, Floats<2> rows) {
    const index width = sums.shape(1);
    require_shape(rows, "rows", {places.size(), width});
    require(are_between(places.data(), places.size(), 0, sums.shape(0)), "places must be rows of the sums");
    unlocked([&] {
        for (index i = 0; i < places.size(); ++i)
            for (index e = 0; e < width; ++e) sums[places[i] * width + e] += rows[i * width + e];
    });
}

// The part of the flat image that patches of the tiles touch: where it begins, and what is added there.
tuple<index, Array<float, 1>> aggregate_means(const BoundPoints& points, const BoundTiles& tiles,
                                              const BoundMixture& mixture, Floats<2> estimates) {
    require_fit(points, tiles, mixture);
    require_shape(estimates, "estimates", {mixture.size, mixture.dim});
    index start = points.padded.size(), end = 0;
    for (index t = 0; t < tiles.count; ++t) {
        const index* b = tiles.boxes + 6 * t;
        if (b[0] == b[1] || b[2] == b[3] || b[4] == b[5]) continue;
        const auto at = [&](index z, index y, index x) {
            return ((z * points.shape.y + y) * points.shape.x + x) * points.channels;
        };
        start = std::min(start, at(b[0], b[2], b[4]));
        end = std::max(end,
                       at(b[1] - 2 + points.patch.z, b[3] - 2 + points.patch.y, b[5] - 1 + points.patch.x));
    }
    const auto out = zeros<float, 1>({std::max(end - start, index(0))});
    unlocked([&] { kernels().aggregate_means(points, tiles, mixture, estimates.data(), start, out.data()); });
    return {start, out};
}

Array<float, 2> responsibilities(const BoundPoints& points, const BoundTiles& tiles,
                                 const BoundMixture& mixture) {
    require_fit(points, tiles, mixture);
    require(tiles.count == 1, "responsibilities are found for one box at a time");
    const index* b = tiles.boxes;
    const index n_points = (b[1] - b[0]) * (b[3] - b[2]) * (b[5] - b[4]);
    const auto gamma = zeros<float, 2>({n_points, tiles.pointers[1] - tiles.pointers[0]});
    unlocked([&] { kernels().responsibilities(points, tiles, mixture, gamma.data()); });
    return gamma;
}

void strongest_clusters(const BoundPoints& points, const BoundTiles& tiles, const BoundMixture& mixture,
                        float temperature, float min_share, Array<std::int32_t, 2> clusters,
                        Array<float, 2> weights) {
    constexpr float lowest_margin = -1e20f;  // of log-densities: below it nothing is one
    require_fit(points, tiles, mixture);
    require_shape(clusters, "clusters", {count(points.grid), any});
    require_shape(weights, "weights", {clusters.shape(0), clusters.shape(1)});
    require(clusters.shape(1) >= 1 && temperature > 0.0f && min_share > 0.0f && min_share < 1.0f,
            "at least one cluster, temperature > 0 and 0 < min_share < 1 are needed");
    require(std::log2(min_share) / temperature > lowest_margin, "temperature must not be that close to 0");
    unlocked([&] {
        kernels().strongest_clusters(points, tiles, mixture, temperature, min_share, clusters.shape(1),
                                     clusters.data(), weights.data());
    });
}

}  // namespace

void bind_mixture(nb::module_& m) {
    nb::class_<BoundPoints>(
        m, "Points",
        "The generalised patches of an image that is divided by h_r, and what else is known of them.")
        .def(nb::init<Floats<4>, Three, index, float, optional<Floats<2>>>(), "padded"_a, "patch"_a,
             "n_dims"_a, "inv_hs"_a, "marks"_a = nb::none());
    nb::class_<BoundTiles>(m, "Tiles",
                           "Boxes (z0, z1, y0, y1, x0, x1) of positions, the clusters that each meets, and "
                           "what is added to its positions.")
        .def(nb::init<Longs<2>, Longs<1>, Ints<1>, optional<Floats<2>>>(), "boxes"_a, "pointers"_a, "ids"_a,
             "offsets"_a = nb::none());
    nb::class_<BoundMixture>(m, "Mixture", "The means of clusters, and log2 of their proportions.")
        .def(nb::init<Floats<2>, Floats<1>>(), "means"_a, "log2_proportions"_a);
    m.def("sum_points", &sum_points, "points"_a, "tiles"_a, "mixture"_a, "target"_a, "weight"_a,
          "subsample"_a);
    m.def("add_rows", &add_rows, "sums"_a, "places"_a, "rows"_a,
          "Add rows to those of sums at their places.");
    m.def("aggregate_means", &aggregate_means, "points"_a, "tiles"_a, "mixture"_a, "estimates"_a);
    m.def("responsibilities", &responsibilities, "points"_a, "tiles"_a, "mixture"_a);
    m.def("strongest_clusters", &strongest_clusters, "points"_a, "tiles"_a, "mixture"_a, "temperature"_a,
          "min_share"_a, "clusters"_a, "weights"_a);
}

}  // namespace symsmooth
