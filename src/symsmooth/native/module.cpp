// symsmooth._native: binds the kernels and checks what they are given, nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "arrays.hpp"
#include "dispatch.hpp"
#include "lists.hpp"

namespace symsmooth {

namespace {

using nb::handle;
using Three = std::array<index, 3>;
using Four = std::array<index, 4>;
using Release = nb::gil_scoped_release;

constexpr index spare = 8;      // places beyond the last pixel that kernels may touch
constexpr index most_side = 8;  // of a patch
constexpr index most_numbers = 64;
constexpr index longest = index(1) << 20;         // of an extent: products of three do not overflow
constexpr index furthest_place = index(1) << 60;  // in an array: sums of a few do not overflow
constexpr float lowest_margin = -1e20f;           // of log-densities: below it nothing is one

Extent extent(const Three& three) { return {three[0], three[1], three[2]}; }

Extent extent_of(const Array<const float>& image, int first_axis) {
    return {image.shape(first_axis), image.shape(first_axis + 1), image.shape(first_axis + 2)};
}

index count(Extent e) { return e.z * e.y * e.x; }

// The positions of a patch in an image; refused if there are none.
Extent positions(Extent image, Extent patch) {
    for (index side : {patch.z, patch.y, patch.x})
        if (side < 1 || side > longest) refuse("a patch must have at least one pixel along each axis");
    const Extent grid{image.z - patch.z + 1, image.y - patch.y + 1, image.x - patch.x + 1};
    if (grid.z < 1 || grid.y < 1 || grid.x < 1) refuse("patches must fit into the image");
    return grid;
}

// Boxes (n, 6) of positions, none of them outside the grid.
void check_boxes(const Array<const index>& boxes, Extent grid) {
    const index ends[3] = {grid.z, grid.y, grid.x};
    for (index t = 0; t < boxes.size() / 6; ++t)
        for (int axis = 0; axis < 3; ++axis) {
            const index low = boxes[6 * t + 2 * axis], high = boxes[6 * t + 2 * axis + 1];
            if (low < 0 || low > high || high > ends[axis]) refuse("boxes must lie in the grid of positions");
        }
}

// ---------------------------------------------------------------- mixtures

// What all kernels of mixtures take: points, tiles and their candidates, the mixture.
struct Scene {
    Array<const float> padded;
    Array<const index> boxes, pointers;
    Array<const std::int32_t> ids;
    Array<const float> means, log2_proportions;
    Points points;
    Tiles tiles;
    Mixture mixture;
    Extent grid;

    Scene(handle padded_, Three patch, index n_dims, float inv_hs, handle boxes_, handle pointers_,
          handle ids_, handle means_, handle log2_proportions_)
        : padded(padded_, "padded", 4),
          boxes(boxes_, "boxes", 2),
          pointers(pointers_, "pointers", 1),
          ids(ids_, "ids", 1),
          means(means_, "means", 2),
          log2_proportions(log2_proportions_, "log2_proportions", 1) {
        if (n_dims != 2 && n_dims != 3) refuse("n_dims must be 2 or 3");
        grid = positions(extent_of(padded, 0), extent(patch));
        points = {padded.data(), extent_of(padded, 0), padded.shape(3), extent(patch), n_dims, inv_hs};
        if (points.channels < 1) refuse("padded must have a channel");
        boxes.require_shape(1, 6);
        check_boxes(boxes, grid);
        pointers.require_size(boxes.shape(0) + 1);
        pointers.require_pointers(ids.size());
        ids.require_between(0, means.shape(0));
        means.require_shape(1, points.dim());
        log2_proportions.require_size(means.shape(0));
        for (index t = 0; t < boxes.shape(0); ++t)
            if (pointers[t + 1] == pointers[t]) refuse("each tile must meet a cluster");
        tiles = {boxes.data(), pointers.data(), ids.data(), boxes.shape(0)};
        mixture = {means.data(), log2_proportions.data(), means.shape(0)};
    }
};

struct SumsOut {
    Array<float> shift, tail, tile_mass;
    ClusterSums sums;

    SumsOut(const Scene& scene, index first, handle shift_, handle tail_, handle tile_mass_)
        : shift(shift_, "shift", 2), tail(tail_, "tail", 2), tile_mass(tile_mass_, "tile_mass", 1) {
        shift.require_shape(1, scene.points.dim());
        tail.require_shape(0, shift.shape(0));
        tail.require_shape(1, 2);
        tile_mass.require_size(scene.ids.size());
        if (first < 0 || first > scene.means.shape(0)) refuse("first must be a cluster");
        scene.ids.require_between(first, first + shift.shape(0));
        sums = {first, shift.data(), tail.data(), tile_mass.data()};
    }
};

double py_sum_points(handle padded, Three patch, index n_dims, float inv_hs, handle boxes, handle pointers,
                     handle ids, handle means, handle log2_proportions, handle weight_, index thin,
                     index first, handle shift, handle tail, handle tile_mass) {
    const Scene scene(padded, patch, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions);
    const Optional<const float> weight(weight_, "weight", 1);
    if (weight) weight->require_size(count(scene.grid));
    if (thin < 1) refuse("thin must be at least 1");
    const SumsOut out(scene, first, shift, tail, tile_mass);
    const Release release;
    return kernels().sum_points(scene.points, scene.tiles, scene.mixture, weight.data(), thin, out.sums);
}

double py_average_points(handle padded, Three patch, index n_dims, float inv_hs, handle boxes,
                         handle pointers, handle ids, handle means, handle log2_proportions, handle target_,
                         handle weight_, index first, handle shift, handle tail, handle tile_mass) {
    const Scene scene(padded, patch, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions);
    const Array<const float> target(target_, "target", 4);
    for (int axis = 0; axis < 4; ++axis) target.require_shape(axis, scene.padded.shape(axis));
    const Optional<const float> weight(weight_, "weight", 1);
    if (weight) weight->require_size(count(scene.grid));
    const SumsOut out(scene, first, shift, tail, tile_mass);
    const Release release;
    return kernels().average_points(scene.points, target.data(), scene.tiles, scene.mixture, weight.data(),
                                    out.sums);
}

void py_mix_answers(handle padded, Three patch, index n_dims, float inv_hs, handle boxes, handle pointers,
                    handle ids, handle means, handle log2_proportions, handle answers_, index start,
                    handle out_) {
    const Scene scene(padded, patch, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions);
    const Array<const float> answers(answers_, "answers", 2);
    answers.require_shape(0, scene.means.shape(0));
    answers.require_shape(1, scene.means.shape(1));
    const Array<float> out(out_, "out", 1);
    const Points& p = scene.points;
    if (start < 0 || start > scene.padded.size()) refuse("start must be a place in padded");
    const auto at = [&](index z, index y, index x) {
        return ((z * p.shape.y + y) * p.shape.x + x) * p.channels;
    };
    for (index t = 0; t < scene.tiles.count; ++t) {
        const index* b = scene.tiles.boxes + 6 * t;
        if (b[0] == b[1] || b[2] == b[3] || b[4] == b[5]) continue;
        const index last = at(b[1] - 2 + p.patch.z, b[3] - 2 + p.patch.y, b[5] - 2 + p.patch.x) + p.channels;
        if (at(b[0], b[2], b[4]) < start || last - start > out.size())
            refuse("out must hold the patches of all boxes from start on");
    }
    const Release release;
    kernels().mix_answers(p, scene.tiles, scene.mixture, answers.data(), start, out.data());
}

void py_responsibilities(handle padded, Three patch, index n_dims, float inv_hs, handle boxes,
                         handle pointers, handle ids, handle means, handle log2_proportions, handle gamma_) {
    const Scene scene(padded, patch, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions);
    const Array<float> gamma(gamma_, "gamma", 2);
    if (scene.tiles.count != 1) refuse("responsibilities are found for one box at a time");
    const index* b = scene.tiles.boxes;
    gamma.require_shape(0, (b[1] - b[0]) * (b[3] - b[2]) * (b[5] - b[4]));
    gamma.require_shape(1, scene.pointers[1] - scene.pointers[0]);
    const Release release;
    kernels().responsibilities(scene.points, scene.tiles, scene.mixture, gamma.data());
}

void py_strongest_clusters(handle padded, Three patch, index n_dims, float inv_hs, handle boxes,
                           handle pointers, handle ids, handle means, handle log2_proportions, float temper,
                           float least, handle clusters_, handle weights_) {
    const Scene scene(padded, patch, n_dims, inv_hs, boxes, pointers, ids, means, log2_proportions);
    const Array<std::int32_t> clusters(clusters_, "clusters", 2);
    const Array<float> weights(weights_, "weights", 2);
    clusters.require_shape(0, count(scene.grid));
    weights.require_shape(0, clusters.shape(0));
    weights.require_shape(1, clusters.shape(1));
    if (clusters.shape(1) < 1 || !(temper > 0.0f) || !(least > 0.0f && least < 1.0f))
        refuse("at least one cluster, temper > 0 and 0 < least < 1 are needed");
    if (!(std::log2(least) / temper > lowest_margin)) refuse("temper must not be that close to 0");
    const Release release;
    kernels().strongest_clusters(scene.points, scene.tiles, scene.mixture, temper, least, clusters.shape(1),
                                 clusters.data(), weights.data());
}

// ---------------------------------------------------------------- lists

void candidates(handle boxes_, handle positions_, Three tile, Three n_tiles, float radius, index* pointers,
                index n_pointers, std::int32_t* ids) {
    const Array<const index> boxes(boxes_, "boxes", 2);
    const Array<const float> centres(positions_, "positions", 2);
    boxes.require_shape(1, 6);
    centres.require_shape(1, 3);
    for (int axis = 0; axis < 3; ++axis)
        if (tile[axis] < 1 || n_tiles[axis] < 1 || tile[axis] > longest || n_tiles[axis] > longest)
            refuse("tiles must have a size and a number");
    check_boxes(boxes, {tile[0] * n_tiles[0], tile[1] * n_tiles[1], tile[2] * n_tiles[2]});
    if (n_pointers != boxes.shape(0) + 1) refuse("pointers must have one element more than there are boxes");
    if (!(radius >= 0.0f)) refuse("radius must not be negative");
    const Release release;
    find_candidates({boxes.data(), boxes.shape(0), extent(tile), extent(n_tiles)}, centres.data(),
                    centres.shape(0), radius, pointers, ids);
}

void py_count_candidates(handle boxes, handle positions, Three tile, Three n_tiles, float radius,
                         handle pointers_) {
    const Array<index> pointers(pointers_, "pointers", 1);
    candidates(boxes, positions, tile, n_tiles, radius, pointers.data(), pointers.size(), nullptr);
}

void py_list_candidates(handle boxes, handle positions, Three tile, Three n_tiles, float radius,
                        handle pointers_, handle ids_) {
    const Array<index> pointers(pointers_, "pointers", 1);
    const Array<std::int32_t> ids(ids_, "ids", 1);
    candidates(boxes, positions, tile, n_tiles, radius, pointers.data(), pointers.size(), nullptr);
    ids.require_size(pointers[pointers.size() - 1]);
    candidates(boxes, positions, tile, n_tiles, radius, pointers.data(), pointers.size(), ids.data());
}

struct MembershipsIn {
    Array<const std::int32_t> clusters;
    Array<const float> weights;
    Memberships all;

    MembershipsIn(handle clusters_, handle weights_, float least, index k)
        : clusters(clusters_, "clusters", 2), weights(weights_, "weights", 2) {
        weights.require_shape(0, clusters.shape(0));
        weights.require_shape(1, clusters.shape(1));
        clusters.require_between(0, k);
        all = {clusters.data(), weights.data(), clusters.shape(0), clusters.shape(1), least};
    }
};

void py_count_members(handle clusters, handle weights, float least, handle counts_) {
    const Array<index> counts(counts_, "counts", 1);
    const MembershipsIn in(clusters, weights, least, counts.size());
    counts.require_between(0, furthest_place);
    const Release release;
    count_members(in.all, counts.data());
}

void py_list_members(handle clusters, handle weights, float least, Three grid, Three steps, index first,
                     handle places_, handle corners_, handle shares_) {
    const Array<index> places(places_, "places", 1);
    const Array<std::int32_t> corners(corners_, "corners", 1);
    const Array<float> shares(shares_, "shares", 1);
    const MembershipsIn in(clusters, weights, least, places.size());
    shares.require_size(corners.size());
    for (index side : grid)
        if (side < 1 || side > longest) refuse("grid must have a position along each axis");
    if (first < 0 || first > grid[0] * grid[1] * grid[2] - in.all.n) refuse("patches must lie in the grid");
    if (steps[2] != 1) refuse("corners are counted in one channel");
    for (index step : steps)
        if (step < 0 || step > INT32_MAX) refuse("steps must not be negative, and corners fit into int32");
    if ((grid[0] - 1) * steps[0] + (grid[1] - 1) * steps[1] + grid[2] - 1 > INT32_MAX)
        refuse("corners must fit into int32");
    std::vector<index> counts(places.size());
    count_members(in.all, counts.data());
    for (index i = 0; i < places.size(); ++i)
        if (places[i] < 0 || places[i] > corners.size() - counts[i])
            refuse("places must leave room for all members");
    const Release release;
    list_members(in.all, {grid[1], grid[2], steps[1], steps[0], first}, places.data(), corners.data(),
                 shares.data());
}

// ---------------------------------------------------------------- cluster filters

// What both filters take: patches, members, and what is added to.
struct ClustersIn {
    Array<const index> lines, pointers;
    Array<const std::int32_t> corners;
    Array<const float> shares;
    Array<float> total, mass, spread;
    PatchLines patch;
    Members members;
    Aggregate out;

    ClustersIn(handle lines_, index side, handle pointers_, handle corners_, handle shares_, index first,
               index last, index start, handle total_, handle mass_, handle spread_)
        : lines(lines_, "lines", 1),
          pointers(pointers_, "pointers", 1),
          corners(corners_, "corners", 1),
          shares(shares_, "shares", 1),
          total(total_, "total", 1),
          mass(mass_, "mass", 1),
          spread(spread_, "spread", 1) {
        if (lines.size() < 1 || side < 1 || side > most_side || lines.size() > most_numbers / side)
            refuse("patches may be " + std::to_string(most_side) + " pixels wide and have " +
                   std::to_string(most_numbers) + " pixels at most");
        if (first < 0 || first > last || last >= pointers.size()) refuse("first and last must be clusters");
        pointers.require_pointers(corners.size());
        shares.require_size(corners.size());
        mass.require_size(total.size());
        spread.require_size(total.size());
        lines.require_between(0, total.size());
        for (index i = 0; i < lines.size(); ++i) end_ = std::max(end_, lines[i] + spare);
        if (start < -furthest_place || start > furthest_place) refuse("start must be a place in the channel");
        from_ = pointers[first], to_ = pointers[last];
        corners.require_between(std::max(start, index(0)), start + total.size() - end_ + 1, from_, to_);
        patch = {lines.data(), lines.size(), side};
        members = {pointers.data(), corners.data(), shares.data(), first, last};
        out = {start, total.data(), mass.data(), spread.data()};
    }

    // The channel holds all patches, and a little more.
    void check_channel(const Array<const float>& pixels) const {
        corners.require_between(0, pixels.size() - end_ + 1, from_, to_);
    }

private:
    index end_ = 0, from_ = 0, to_ = 0;
};

void py_spectral_filter(handle pixels_, handle lines, index side, handle pointers, handle corners,
                        handle shares, index first, index last, float noise, float bias, index start,
                        handle total, handle mass, handle spread) {
    const ClustersIn in(lines, side, pointers, corners, shares, first, last, start, total, mass, spread);
    const Array<const float> pixels(pixels_, "pixels", 1);
    in.check_channel(pixels);
    const Release release;
    kernels().spectral_filter(pixels.data(), in.patch, in.members, noise, bias, in.out);
}

void py_wiener_filter(handle pixels_, handle pilot_, handle lines, index side, handle pointers,
                      handle corners, handle shares, index first, index last, float noise, float strength,
                      float trust, index start, handle total, handle mass, handle spread) {
    const ClustersIn in(lines, side, pointers, corners, shares, first, last, start, total, mass, spread);
    const Array<const float> pixels(pixels_, "pixels", 1), pilot(pilot_, "pilot", 1);
    in.check_channel(pixels);
    in.check_channel(pilot);
    const Release release;
    kernels().wiener_filter(pixels.data(), pilot.data(), in.patch, in.members, noise, strength, trust,
                            in.out);
}

// ---------------------------------------------------------------- windows

Window window_of(const Array<const index>& offsets, Extent grid, Four span) {
    offsets.require_shape(1, 3);
    offsets.require_between(-longest, longest);
    if (span[0] < 0 || span[0] > span[1] || span[1] > grid.z || span[2] < 0 || span[2] > span[3] ||
        span[3] > grid.y)
        refuse("span must lie in the image");
    return {offsets.data(), offsets.shape(0), span[0], span[1], span[2], span[3]};
}

// How far the pairs of a window reach beyond its strip, along z and y: offsets that lead out of the grid
// along any axis have no pair, and reach nowhere.
struct Reach {
    index z0, z1, y0, y1;
};

Reach reach_of(const Window& window, Extent grid) {
    Reach reach{window.z0, window.z1, window.y0, window.y1};
    for (index o = 0; o < window.count; ++o) {
        const index dz = window.offsets[3 * o], dy = window.offsets[3 * o + 1],
                    dx = window.offsets[3 * o + 2];
        const index z0 = std::max(window.z0 + dz, index(0)), z1 = std::min(window.z1 + dz, grid.z);
        const index y0 = std::max(window.y0 + dy, index(0)), y1 = std::min(window.y1 + dy, grid.y);
        if (z0 >= z1 || y0 >= y1 || std::abs(dx) >= grid.x) continue;
        reach.z0 = std::min(reach.z0, z0), reach.z1 = std::max(reach.z1, z1);
        reach.y0 = std::min(reach.y0, y0), reach.y1 = std::max(reach.y1, y1);
    }
    return reach;
}

template <class T>
struct ColumnsIn {
    Array<const T> values;
    Array<T> out;
    Columns<T> columns;

    ColumnsIn(handle values_, std::array<index, 2> origin, handle out_, Extent grid, Reach reach)
        : values(values_, "values", 4), out(out_, "out", 4) {
        const index sizes[] = {grid.z, grid.y, grid.x};
        for (int axis = 0; axis < 3; ++axis) values.require_shape(axis + 1, sizes[axis]);
        out.require_shape(0, values.shape(0));
        out.require_shape(3, grid.x);
        if (origin[0] < 0 || origin[1] < 0 || origin[0] > reach.z0 || origin[1] > reach.y0 ||
            reach.z1 - origin[0] > out.shape(1) || reach.y1 - origin[1] > out.shape(2))
            refuse("out must hold all that the window reaches");
        columns = {values.data(), out.data(),   values.shape(0), origin[0],
                   origin[1],     out.shape(1), out.shape(2)};
    }
};

bool is_double(handle values) {
    Py_buffer view;
    if (PyObject_GetBuffer(values.ptr(), &view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
        PyErr_Clear();
        return false;
    }
    const bool found = view.format && view.format[0] == 'd';
    PyBuffer_Release(&view);
    return found;
}

struct SymmetricIn {
    Array<const float> padded;
    Array<const index> offsets;
    Array<const float> spatial;
    Planes planes;
    Extent grid;
    Window window;

    SymmetricIn(handle padded_, Three patch, handle offsets_, handle spatial_, const Four* span)
        : padded(padded_, "padded", 4), offsets(offsets_, "offsets", 2), spatial(spatial_, "spatial", 1) {
        grid = positions(extent_of(padded, 1), extent(patch));
        planes = {padded.data(), padded.shape(0), extent_of(padded, 1)};
        window = window_of(offsets, grid, span ? *span : Four{0, grid.z, 0, grid.y});
        spatial.require_size(window.count);
    }
};

void py_symmetric_window(handle padded, Three patch, handle offsets, handle spatial, float coefficient,
                         Four span, handle values, std::array<index, 2> origin, handle out) {
    const SymmetricIn in(padded, patch, offsets, spatial, &span);
    const Reach reach = reach_of(in.window, in.grid);
    if (is_double(values)) {
        const ColumnsIn<double> columns(values, origin, out, in.grid, reach);
        const Release release;
        kernels().symmetric_window_double(in.planes, extent(patch), in.window, in.spatial.data(), coefficient,
                                          columns.columns);
    } else {
        const ColumnsIn<float> columns(values, origin, out, in.grid, reach);
        const Release release;
        kernels().symmetric_window(in.planes, extent(patch), in.window, in.spatial.data(), coefficient,
                                   columns.columns);
    }
}

void check_weights(const Array<float>& weights, const Window& window, Extent grid) {
    const index sizes[] = {window.count, grid.z, grid.y, grid.x};
    for (int axis = 0; axis < 4; ++axis) weights.require_shape(axis, sizes[axis]);
}

void py_symmetric_weights(handle padded, Three patch, handle offsets, handle spatial, float coefficient,
                          handle weights_) {
    const SymmetricIn in(padded, patch, offsets, spatial, nullptr);
    const Array<float> weights(weights_, "weights", 4);
    check_weights(weights, in.window, in.grid);
    const Release release;
    kernels().symmetric_weights(in.planes, extent(patch), in.window, in.spatial.data(), coefficient,
                                weights.data());
}

struct SteeredIn {
    Array<const float> steering;
    Array<const index> offsets;
    Planes planes;
    Window window;

    SteeredIn(handle steering_, handle offsets_, const Four* span)
        : steering(steering_, "steering", 4), offsets(offsets_, "offsets", 2) {
        steering.require_shape(0, 6);
        planes = {steering.data(), 6, extent_of(steering, 1)};
        window = window_of(offsets, planes.shape, span ? *span : Four{0, planes.shape.z, 0, planes.shape.y});
    }
};

void py_steered_window(handle steering, handle offsets, Four span, handle values, bool transpose,
                       std::array<index, 2> origin, handle out) {
    const SteeredIn in(steering, offsets, &span);
    const Window& w = in.window;
    const Reach reach = transpose ? reach_of(w, in.planes.shape) : Reach{w.z0, w.z1, w.y0, w.y1};
    if (is_double(values)) {
        const ColumnsIn<double> columns(values, origin, out, in.planes.shape, reach);
        const Release release;
        kernels().steered_window_double(in.planes, w, transpose, columns.columns);
    } else {
        const ColumnsIn<float> columns(values, origin, out, in.planes.shape, reach);
        const Release release;
        kernels().steered_window(in.planes, w, transpose, columns.columns);
    }
}

void py_steered_weights(handle steering, handle offsets, handle weights_) {
    const SteeredIn in(steering, offsets, nullptr);
    const Array<float> weights(weights_, "weights", 4);
    check_weights(weights, in.window, in.planes.shape);
    const Release release;
    kernels().steered_weights(in.planes, in.window, weights.data());
}

// ---------------------------------------------------------------- groups

void py_match_patches(handle guide_, handle whole_, handle ref_z, handle ref_y, handle ref_x, Three patch,
                      Three radius, index least, index most, float limit, bool boost, handle members_,
                      handle counts_) {
    const Array<const float> guide(guide_, "guide", 4);
    const Optional<const std::uint8_t> whole(whole_, "whole", 1);
    const Array<const index> z(ref_z, "ref_z", 1), y(ref_y, "ref_y", 1), x(ref_x, "ref_x", 1);
    const Array<std::int32_t> members(members_, "members", 2), counts(counts_, "counts", 1);
    const Planes planes{guide.data(), guide.shape(0), extent_of(guide, 1)};
    const Extent grid = positions(planes.shape, extent(patch));
    if (whole) whole->require_size(count(planes.shape));
    if (count(planes.shape) > INT32_MAX) refuse("guide is too large");
    z.require_between(0, grid.z);
    y.require_between(0, grid.y);
    x.require_between(0, grid.x);
    for (index reach : radius)
        if (reach < 0 || reach > longest) refuse("radius must not be negative");
    if (least < 0 || most < 1) refuse("least must not be negative, and most at least 1");
    counts.require_size(z.size() * y.size() * x.size());
    members.require_shape(0, counts.size());
    members.require_shape(1, most);
    const Matching wanted{extent(patch), extent(radius), z.data(), y.data(), x.data(), z.size(),
                          y.size(),      x.size(),       least,    most,     limit,    boost};
    const Release release;
    kernels().match_patches(planes, whole.data(), wanted, members.data(), counts.data());
}

// What all filters of groups take.
struct GroupsIn {
    Array<const float> planes;
    Array<const std::int32_t> members, counts;
    Array<const index> offsets;
    Array<float> total, mass;
    Groups groups;

    GroupsIn(handle planes_, handle members_, handle counts_, handle offsets_, handle total_, handle mass_)
        : planes(planes_, "planes", 2),
          members(members_, "members", 2),
          counts(counts_, "counts", 1),
          offsets(offsets_, "offsets", 1),
          total(total_, "total", 2),
          mass(mass_, "mass", 2) {
        for (const auto* out : {&total, &mass}) {
            out->require_shape(0, planes.shape(0));
            out->require_shape(1, planes.shape(1));
        }
        counts.require_size(members.shape(0));
        counts.require_between(0, members.shape(1) + 1);
        if (offsets.size() < 1) refuse("offsets must not be empty");
        offsets.require_between(0, planes.shape(1));
        index furthest = 0;
        for (index e = 0; e < offsets.size(); ++e) furthest = std::max(furthest, offsets[e]);
        for (index g = 0; g < counts.size(); ++g)
            members.require_between(0, planes.shape(1) - furthest, g * members.shape(1),
                                    g * members.shape(1) + counts[g]);
        groups = {members.data(), counts.data(),   members.shape(0), members.shape(1),
                  offsets.data(), offsets.size(),  line_length(),    total.data(),
                  mass.data(),    planes.shape(0), planes.shape(1)};
    }

    void check_pilot(const Array<const float>& pilot) const {
        pilot.require_shape(0, planes.shape(0));
        pilot.require_shape(1, planes.shape(1));
    }

private:
    // Offsets are lines of neighbours, all of the same length.
    index line_length() const {
        index length = 1;
        while (length < offsets.size() && offsets[length] == offsets[0] + length) ++length;
        if (offsets.size() % length != 0) refuse("offsets must be lines of the same length");
        for (index e = 0; e < offsets.size(); ++e)
            if (offsets[e] != offsets[e / length * length] + e % length)
                refuse("offsets must be lines of the same length");
        return length;
    }
};

struct TransformIn {
    Array<const float> forward, backward, window;
    Transform transform;

    TransformIn(handle forward_, handle backward_, index n_axes, handle window_, index d)
        : forward(forward_, "forward", 2), backward(backward_, "backward", 2), window(window_, "window", 1) {
        const index side = forward.shape(0);
        for (const auto* matrix : {&forward, &backward}) {
            matrix->require_shape(0, side);
            matrix->require_shape(1, side);
        }
        window.require_size(d);
        if (side < 4 || side % 4 != 0) refuse("a patch must have a side that is a multiple of four");
        index numbers = 1;
        for (index axis = 0; axis < n_axes && numbers <= d; ++axis) numbers *= side;
        if (n_axes < 1 || numbers != d) refuse("a patch must have side^n_axes numbers");
        transform = {forward.data(), backward.data(), side, n_axes, window.data()};
    }
};

void check_lines_of_four(const Groups& groups) {
    require(groups.side % 4 == 0, "lines of a patch must be a multiple of four long");
}

void py_threshold_groups(handle planes, handle members, handle counts, handle offsets, handle forward,
                         handle backward, index n_axes, float threshold, handle window, handle total,
                         handle mass) {
    const GroupsIn in(planes, members, counts, offsets, total, mass);
    const TransformIn basis(forward, backward, n_axes, window, in.groups.d);
    check_lines_of_four(in.groups);
    const Release release;
    kernels().threshold_groups(in.planes.data(), in.groups, basis.transform, threshold);
}

void py_wiener_groups(handle planes, handle pilot_, handle members, handle counts, handle offsets,
                      handle forward, handle backward, index n_axes, float noise, handle window, handle total,
                      handle mass) {
    const GroupsIn in(planes, members, counts, offsets, total, mass);
    const TransformIn basis(forward, backward, n_axes, window, in.groups.d);
    check_lines_of_four(in.groups);
    const Array<const float> pilot(pilot_, "pilot", 2);
    in.check_pilot(pilot);
    const Release release;
    kernels().wiener_groups(in.planes.data(), pilot.data(), in.groups, basis.transform, noise);
}

void py_bayes_groups(handle planes, handle pilot_, handle members, handle counts, handle offsets,
                     index together, float flat, float bias, handle total, handle mass) {
    const GroupsIn in(planes, members, counts, offsets, total, mass);
    const Optional<const float> pilot(pilot_, "pilot", 2);
    if (pilot) in.check_pilot(*pilot.operator->());
    require(together >= 1 && in.groups.planes % together == 0, "planes must be a multiple of together");
    const Release release;
    kernels().bayes_groups(in.planes.data(), pilot.data(), in.groups, together, flat, bias);
}

// ---------------------------------------------------------------- Gaussians

void py_add_squares(handle projections_, handle starts_, handle out_) {
    const Array<const float> projections(projections_, "projections", 2);
    const Array<const index> starts(starts_, "starts", 1);
    const Array<float> out(out_, "out", 2);
    starts.require_pointers(projections.shape(0));
    out.require_shape(0, starts.size() - 1);
    out.require_shape(1, projections.shape(1));
    const Release release;
    kernels().add_squares(projections.data(), starts.data(), starts.size() - 1, projections.shape(1),
                          out.data());
}

void py_keep_largest(handle scores_, index first, handle best_, handle label_) {
    const Array<const float> scores(scores_, "scores", 2);
    const Array<float> best(best_, "best", 1);
    const Array<std::int32_t> label(label_, "label", 1);
    best.require_size(scores.shape(1));
    label.require_size(scores.shape(1));
    require(first >= 0 && first <= INT32_MAX - scores.shape(0), "first must be the number of a component");
    const Release release;
    kernels().keep_largest(scores.data(), scores.shape(0), scores.shape(1), std::int32_t(first), best.data(),
                           label.data());
}

// ---------------------------------------------------------------- parts of kernels, for tests

void py_exp2(handle x_, handle out_) {
    const Array<const float> x(x_, "x", 1);
    const Array<float> out(out_, "out", 1);
    out.require_size(x.size());
    kernels().exp2(x.data(), x.size(), out.data());
}

void py_product(handle x_, bool turned, handle y_, index n_rows, bool upper, handle out_) {
    const Array<const float> x(x_, "x", 2), y(y_, "y", 2);
    const Array<float> out(out_, "out", 2);
    const index depth = y.shape(0), width = y.shape(1);
    require(n_rows >= 1 && n_rows <= longest && width >= 8 && width % 8 == 0,
            "rows, and a multiple of eight columns, are needed");
    const index tall = (n_rows + 3) / 4 * 4;
    x.require_shape(turned ? 1 : 0, tall);
    x.require_shape(turned ? 0 : 1, depth);
    out.require_shape(0, tall);
    out.require_shape(1, width);
    kernels().product(x.data(), turned, y.data(), n_rows, depth, width, upper, out.data());
}

void py_solve(handle system_, index size, handle inverse_d_) {
    const Array<float> system(system_, "system", 2), inverse_d(inverse_d_, "inverse_d", 1);
    system.require_shape(0, 64);
    system.require_shape(1, 128);
    inverse_d.require_size(64);
    require(size >= 1 && size <= 64, "a system has 1 to 64 rows");
    kernels().solve(system.data(), size, inverse_d.data());
}

void py_eigenvectors(handle matrix_, handle values_) {
    const Array<float> matrix(matrix_, "matrix", 2), values(values_, "values", 1);
    require(matrix.shape(0) >= 1 && matrix.shape(1) >= matrix.shape(0) && matrix.shape(1) % 8 == 0,
            "matrix must be square, in rows of a multiple of eight");
    values.require_size(matrix.shape(1));
    kernels().eigenvectors(matrix.data(), matrix.shape(0), matrix.shape(1), values.data());
}

index py_largest(handle numbers_, float margin, float gap, index most, handle values_, handle which_) {
    const Array<const float> numbers(numbers_, "numbers", 1);
    const Array<float> values(values_, "values", 1);
    const Array<std::int32_t> which(which_, "which", 1);
    require(numbers.size() >= 1 && most >= 1, "numbers are needed");
    values.require_size(numbers.size());
    which.require_size(numbers.size());
    return kernels().largest(numbers.data(), numbers.size(), margin, gap, most, values.data(), which.data());
}

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Kernels* set : available()) names.emplace_back(set->name);
    return names;
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The compiled core: kernels on NumPy arrays.  See docs/kernels.md.";
    if (const char* wanted = std::getenv("SYMSMOOTH_ISA"); wanted && *wanted) use(wanted);

    m.def("instruction_set", [] { return std::string(kernels().name); });
    m.def("instruction_sets", &instruction_sets);
    m.def("use_instruction_set", &use);

    m.def("sum_points", &py_sum_points, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg());
    m.def("average_points", &py_average_points, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg());
    m.def("mix_answers", &py_mix_answers);
    m.def("responsibilities", &py_responsibilities);
    m.def("strongest_clusters", &py_strongest_clusters);
    m.def("count_candidates", &py_count_candidates);
    m.def("list_candidates", &py_list_candidates);
    m.def("count_members", &py_count_members);
    m.def("list_members", &py_list_members);
    m.def("spectral_filter", &py_spectral_filter);
    m.def("wiener_filter", &py_wiener_filter);
    m.def("symmetric_window", &py_symmetric_window);
    m.def("symmetric_weights", &py_symmetric_weights);
    m.def("steered_window", &py_steered_window);
    m.def("steered_weights", &py_steered_weights);
    m.def("match_patches", &py_match_patches, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("threshold_groups", &py_threshold_groups);
    m.def("wiener_groups", &py_wiener_groups);
    m.def("bayes_groups", &py_bayes_groups, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("add_squares", &py_add_squares);
    m.def("keep_largest", &py_keep_largest);

    m.def("exp2", &py_exp2);
    m.def("product", &py_product);
    m.def("solve", &py_solve);
    m.def("eigenvectors", &py_eigenvectors);
    m.def("largest", &py_largest);
}

}  // namespace symsmooth
