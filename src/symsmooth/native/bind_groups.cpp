// Groups of similar patches, and mixtures of full-covariance Gaussians, for Python.
#include <vector>

#include "bindings.hpp"
#include "dispatch.hpp"

namespace symsmooth {

namespace {

// members[g][:counts[g]] are corners of patches in planes (z, y, x), whose numbers are at corner + offsets.
struct BoundGroups {
    BoundGroups(Ints<2> members, Ints<1> counts, Three planes, Three patch_)
        : members(members), counts(counts), shape(extent(planes)), patch(extent(patch_)) {
        require_extent(shape);
        positions(shape, patch);
        for (index z = 0; z < patch.z; ++z)
            for (index y = 0; y < patch.y; ++y)
                for (index x = 0; x < patch.x; ++x) offsets.push_back((z * shape.y + y) * shape.x + x);
        const index max_count = members.shape(1), end = count(shape) - offsets.back();
        require_shape(counts, "counts", {members.shape(0)});
        require(are_between(counts.data(), counts.size(), 0, max_count + 1),
                "counts must be numbers of members");
        for (index g = 0; g < counts.size(); ++g)
            require(are_between(members.data() + g * max_count, counts[g], 0, end),
                    "patches must lie in the planes");
    }

    const Ints<2> members;
    const Ints<1> counts;
    const Extent shape, patch;
    std::vector<index> offsets;
};

BoundGroups match_patches(Floats<4> guide, optional<Array<const std::uint8_t, 3>> whole, Longs<1> z,
                          Longs<1> y, Longs<1> x, Three patch, Three radius, index min_count, index max_count,
                          float limit, bool boost) {
    const Planes planes{guide.data(), guide.shape(0), extent_of(guide, 1)};
    const Extent shape = planes.shape, grid = positions(shape, extent(patch));
    require(are_between(z.data(), z.size(), 0, grid.z) && are_between(y.data(), y.size(), 0, grid.y) &&
                are_between(x.data(), x.size(), 0, grid.x),
            "references must be positions of patches");
    if (whole) require_shape(*whole, "whole", {shape.z, shape.y, shape.x});
    require(count(shape) <= INT32_MAX, "guide is too large");
    for (index reach : radius) require(0 <= reach && reach <= longest, "radius must not be negative");
    require(min_count >= 0 && max_count >= 1, "min_count must not be negative, and max_count at least 1");
    const Matching wanted{
        .patch = extent(patch),
        .radius = extent(radius),
        .z = z.data(),
        .y = y.data(),
        .x = x.data(),
        .n_z = z.size(),
        .n_y = y.size(),
        .n_x = x.size(),
        .min_count = min_count,
        .max_count = std::min(max_count, count(grid)),
        .limit = limit,
        .boost = boost,
    };
    const auto members = zeros<std::int32_t, 2>({z.size() * y.size() * x.size(), wanted.max_count});
    const auto counts = zeros<std::int32_t, 1>({members.shape(0)});
    const std::uint8_t* flags = whole ? whole->data() : nullptr;
    unlocked([&] { kernels().match_patches(planes, flags, wanted, members.data(), counts.data()); });
    return {
        Ints<2>(Ints<2>::Base(members)), Ints<1>(Ints<1>::Base(counts)), {shape.z, shape.y, shape.x}, patch};
}

using Totals = tuple<Array<float, 4>, Array<float, 4>>;  // estimates at the pixels, weights at the corners

template <class Filter>
Totals filter_groups(const BoundGroups& groups, Floats<4> planes, const Floats<4>* pilot,
                     const Filter& filter) {
    const Floats<4>::Shape shape{planes.shape(0), groups.shape.z, groups.shape.y, groups.shape.x};
    require_shape(planes, "planes", shape);
    if (pilot) require_shape(*pilot, "pilot", shape);
    const auto total = zeros<float, 4>(shape), mass = zeros<float, 4>(shape);
    const Groups all{
        .members = groups.members.data(),
        .counts = groups.counts.data(),
        .count = groups.members.shape(0),
        .max_count = groups.members.shape(1),
        .offsets = groups.offsets.data(),
        .d = index(groups.offsets.size()),
        .side = groups.patch.x,
        .total = total.data(),
        .mass = mass.data(),
        .planes = planes.shape(0),
        .size = count(groups.shape),
    };
    unlocked([&] { filter(all); });
    return {total, mass};
}

Transform transform_of(const BoundGroups& groups, Floats<2> forward, Floats<2> backward, Floats<1> window) {
    const auto [depth, height, side] = groups.patch;
    require(side % 4 == 0 && height == side && (depth == side || depth == 1),
            "a patch must be a square or a cube, its side a multiple of four");
    require_shape(forward, "forward", {side, side});
    require_shape(backward, "backward", {side, side});
    require_shape(window, "window", {depth * height * side});
    return {forward.data(), backward.data(), side, depth == 1 ? 2 : 3, window.data()};
}

Totals threshold_groups(const BoundGroups& groups, Floats<4> planes, Floats<2> forward, Floats<2> backward,
                        Floats<1> window, float threshold) {
    const Transform transform = transform_of(groups, forward, backward, window);
    return filter_groups(groups, planes, nullptr, [&](const Groups& all) {
        kernels().threshold_groups(planes.data(), all, transform, threshold);
    });
}

Totals wiener_groups(const BoundGroups& groups, Floats<4> planes, Floats<4> pilot, Floats<2> forward,
                     Floats<2> backward, Floats<1> window, float noise) {
    const Transform transform = transform_of(groups, forward, backward, window);
    return filter_groups(groups, planes, &pilot, [&](const Groups& all) {
        kernels().wiener_groups(planes.data(), pilot.data(), all, transform, noise);
    });
}

Totals bayes_groups(const BoundGroups& groups, Floats<4> planes, optional<Floats<4>> pilot, index together,
                    float flat, float bias) {
    require(together >= 1 && planes.shape(0) % together == 0, "planes must be a multiple of together");
    const float* pilots = pilot ? pilot->data() : nullptr;
    return filter_groups(groups, planes, pilot ? &*pilot : nullptr, [&](const Groups& all) {
        kernels().bayes_groups(planes.data(), pilots, all, together, flat, bias);
    });
}

// ---------------------------------------------------------------- Gaussians

Array<float, 2> add_squares(Floats<2> projections, Longs<1> starts) {
    require_pointers(starts, projections.shape(0));
    const auto out = zeros<float, 2>({starts.size() - 1, projections.shape(1)});
    unlocked([&] {
        kernels().add_squares(projections.data(), starts.data(), out.shape(0), out.shape(1), out.data());
    });
    return out;
}

void keep_largest(Floats<2> scores, index first, Array<float, 1> best, Array<std::int32_t, 1> label) {
    const index n = scores.shape(0), m = scores.shape(1);
    require_shape(best, "best", {m});
    require_shape(label, "label", {m});
    require(0 <= first && first <= INT32_MAX - n, "first must be the number of a component");
    unlocked(
        [&] { kernels().keep_largest(scores.data(), n, m, std::int32_t(first), best.data(), label.data()); });
}

}  // namespace

void bind_groups(nb::module_& m) {
    nb::class_<BoundGroups>(m, "Groups",
                            "Groups of similar patches: members[g, :counts[g]] are their corners.")
        .def(nb::init<Ints<2>, Ints<1>, Three, Three>(), "members"_a, "counts"_a, "planes"_a, "patch"_a)
        .def_ro("members", &BoundGroups::members, nb::rv_policy::reference)
        .def_ro("counts", &BoundGroups::counts, nb::rv_policy::reference);
    m.def("match_patches", &match_patches, "guide"_a, "whole"_a, "z"_a, "y"_a, "x"_a, "patch"_a, "radius"_a,
          "min_count"_a, "max_count"_a, "limit"_a, "boost"_a);
    m.def("threshold_groups", &threshold_groups, "groups"_a, "planes"_a, "forward"_a, "backward"_a,
          "window"_a, "threshold"_a);
    m.def("wiener_groups", &wiener_groups, "groups"_a, "planes"_a, "pilot"_a, "forward"_a, "backward"_a,
          "window"_a, "noise"_a);
    m.def("bayes_groups", &bayes_groups, "groups"_a, "planes"_a, "pilot"_a, "together"_a, "flat"_a, "bias"_a);
    m.def("add_squares", &add_squares, "projections"_a, "starts"_a);
    m.def("keep_largest", &keep_largest, "scores"_a, "first"_a, "best"_a, "label"_a);
}

}  // namespace symsmooth
