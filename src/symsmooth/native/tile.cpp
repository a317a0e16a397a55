#include "tile.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

index count_points(const Tiles& tiles) {
    index largest = 0;
    for (index t = 0; t < tiles.count; ++t) {
        const index* b = tiles.boxes + 6 * t;
        largest = max(largest, (b[1] - b[0]) * (b[3] - b[2]) * (b[5] - b[4]));
    }
    return (largest + 3) / 4 * 4;
}

index count_columns(const Tiles& tiles) {
    index largest = 0;
    for (index t = 0; t < tiles.count; ++t) largest = max(largest, tiles.pointers[t + 1] - tiles.pointers[t]);
    return padded(largest);
}

// Positions on shifted diagonals, every subsample-th; the shift changes, irregularly, from each cell of 8 pixels
// to the next: of a periodic picture plain diagonals would show some patches only.
SYMSMOOTH_INLINE bool is_taken(index z, index y, index x, index subsample) {
    const index cell = (x >> 3) * 2654435 + (y >> 3) * 1640531 + (z >> 3) * 974711;
    return subsample == 1 || (z + y + x + (cell >> 7)) % subsample == 0;
}

}  // namespace

void take_patch(const Points& points, const float* pixels, index corner, float* to) {
    const index length = points.patch.x * points.channels;
    const index row_step = points.shape.x * points.channels, slice_step = points.shape.y * row_step;
    const index end = points.shape.z * slice_step;
    for (index z = 0; z < points.patch.z; ++z)
        for (index y = 0; y < points.patch.y; ++y) {
            const index at = corner + z * slice_step + y * row_step;
            if (at + padded(length) <= end)  // whole vectors stay inside the image
                for (index e = 0; e < length; e += lanes) store(to + e, load(pixels + at + e));
            else
                for (index e = 0; e < length; ++e) to[e] = pixels[at + e];
            to += length;
        }
}

Tile::Tile(const Points& points, const Tiles& tiles)
    : max_points(count_points(tiles)),
      max_near(count_columns(tiles)),
      dim(points.dim()),
      stride(padded(dim + 2)),
      rows(max_points * stride),
      gamma(max_points * max_near),
      means(max_near * stride),
      clusters((dim + 1) * max_near),
      centre(stride),
      corners(max_points),
      positions(max_points) {}

void Tile::open(const Points& points, const Tiles& tiles, index number, index subsample,
                const Mixture& mixture) {
    constexpr float none[3] = {0.0f, 0.0f, 0.0f};
    const index at = tiles.pointers[number];
    near = tiles.pointers[number + 1] - at;
    columns = padded(near);
    load_points(points, tiles.boxes + 6 * number, tiles.offsets ? tiles.offsets + 3 * number : none,
                subsample);
    centre_points();
    load_clusters(mixture, tiles.ids + at);
}

void Tile::load_points(const Points& points, const index* box, const float* offset, index subsample) {
    const Extent grid{points.shape.z - points.patch.z + 1, points.shape.y - points.patch.y + 1,
                      points.shape.x - points.patch.x + 1};
    n = 0;
    for (index z = box[0]; z < box[1]; ++z)
        for (index y = box[2]; y < box[3]; ++y)
            for (index x = box[4]; x < box[5]; ++x) {
                if (!is_taken(z, y, x, subsample)) continue;
                float* to = row(n);
                to[0] = (float(z) + offset[0]) * points.inv_hs;  // overwritten in a flat picture
                to[points.n_dims - 2] = (float(y) + offset[1]) * points.inv_hs;
                to[points.n_dims - 1] = (float(x) + offset[2]) * points.inv_hs;
                corners[n] = ((z * points.shape.y + y) * points.shape.x + x) * points.channels;
                positions[n] = (z * grid.y + y) * grid.x + x;
                take_patch(points, points.pixels, corners[n], to + points.n_dims);
                for (index e = 0; e < points.n_marks; ++e)
                    to[dim - points.n_marks + e] = points.marks[positions[n] * points.n_marks + e];
                for (index e = dim; e < stride; ++e) to[e] = 0.0f;
                ++n;
            }
    for (index r = n; r % 4 != 0; ++r)  // rows are multiplied in fours
        for (index e = 0; e < stride; ++e) row(r)[e] = 0.0f;
}

void Tile::centre_points() {
    const Vec8 share = splat(1.0f / float(max(n, index(1))));
    for (index e = 0; e < stride; e += lanes) {
        Vec8 total = splat(0.0f);
        for (index r = 0; r < n; ++r) total += load(row(r) + e);
        store(centre + e, total * share);
    }
    for (index r = 0; r < n; ++r) {
        float* own = row(r);
        Vec8 square = splat(0.0f);
        for (index e = 0; e < stride; e += lanes) {
            const Vec8 centred = load(own + e) - load(centre + e);
            store(own + e, centred);
            square += centred * centred;
        }
        own[dim] = 1.0f;
        own[dim + 1] = sum(square);
    }
}

void Tile::load_clusters(const Mixture& mixture, const std::int32_t* ids) {
    for (index c = 0; c < near; ++c) {
        const float* from = mixture.means + ids[c] * dim;
        float* own = means + c * stride;
        Vec8 square = splat(0.0f);
        for (index e = 0; e < stride; e += lanes) {
            const Vec8 all = e + lanes <= dim ? load(from + e) : load_first(from + e, max(dim - e, index(0)));
            const Vec8 centred = all - load(centre + e);
            store(own + e, centred);
            square += centred * centred;
        }
        clusters[dim * columns + c] = mixture.log2_proportions[ids[c]] - 0.5f * log2_e * sum(square);
    }
    transpose(means, stride, near, dim, clusters, columns);
    for (index e = 0; e < dim; ++e) {
        float* numbers = clusters + e * columns;
        for (index c = near; c < columns; ++c) numbers[c] = 0.0f;
        for (index c = 0; c < columns; c += lanes) store(numbers + c, load(numbers + c) * splat(log2_e));
    }
    for (index c = near; c < columns; ++c) clusters[dim * columns + c] = no_density;
}

}  // namespace symsmooth::SYMSMOOTH_ISA
