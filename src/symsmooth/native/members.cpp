// Which clusters a patch belongs to: the few largest responsibilities, at a temperature.
#include "members.hpp"

#include "table.hpp"
#include "tile.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

SYMSMOOTH_INLINE index count_above(const float* numbers, index size, float threshold) {
    const Vec8 limit = splat(threshold);
    Int8 count{};
    for (index i = 0; i < size; i += lanes) count = count - (load(numbers + i) > limit);
    return sum(count);
}

SYMSMOOTH_INLINE index list_above(const float* numbers, index size, float threshold, float* values,
                                  std::int32_t* which) {
    const Vec8 limit = splat(threshold);
    index count = 0;
    for (index i = 0; i < size; i += lanes)
        for (unsigned mask = bits(load(numbers + i) > limit); mask != 0; mask &= mask - 1) {
            const index place = i + __builtin_ctz(mask);
            values[count] = numbers[place];
            which[count] = std::int32_t(place);
            ++count;
        }
    return count;
}

// The first place that holds the largest of some numbers.
SYMSMOOTH_INLINE index place_of(const float* numbers, float best) {
    for (index i = 0;; i += lanes)
        if (const unsigned below = bits(splat(best) > load(numbers + i)); below != 0xffu)
            return i + __builtin_ctz(~below);
}

constexpr float lowest = 0.5f * no_density;

}  // namespace

Found find_largest(const float* numbers, index size, float margin, float best, float gap, index max_count,
                   float* values, std::int32_t* which) {
    float low = max(best + gap, lowest), high = best;
    index count = count_above(numbers, size, low);
    if (count < max_count && gap > margin) {  // too few: begin at the margin
        high = low;
        low = max(best + margin, lowest);
        count = count_above(numbers, size, low);
    }
    for (int step = 0; step < 8 && count > max_count + 2; ++step) {
        const float middle = 0.5f * (low + high);
        const index above = count_above(numbers, size, middle);
        if (above >= max_count) {
            low = middle;
            count = above;
        } else {
            high = middle;
        }
    }
    count = list_above(numbers, size, low, values, which);
    while (count > max_count) {
        index weakest = 0;
        for (index q = 1; q < count; ++q)
            if (values[q] < values[weakest]) weakest = q;
        --count;
        values[weakest] = values[count];
        which[weakest] = which[count];
    }
    return {count, low - best};
}

// For each point of a strip keep the clusters of the largest log-densities L.
//
// At most `max_clusters`, with weights proportional to exp(temperature (L - max L)), without those below
// `min_share` of the largest; clusters and weights are (pixels, max_clusters), unused places keep weight 0.
void strongest_clusters(const Points& points, const Tiles& tiles, const Mixture& mixture, float temperature,
                        float min_share, index max_clusters, std::int32_t* clusters, float* weights) {
    Tile tile(points, tiles);
    Buffer<float> values(tile.max_near);
    Buffer<std::int32_t> which(tile.max_near);
    const float margin = std::log2(min_share) / temperature;
    const Vec8 temperatures = splat(temperature);
    for (index t = 0; t < tiles.count; ++t) {
        const std::int32_t* ids = tiles.ids + tiles.pointers[t];
        tile.open(points, tiles, t, 1, mixture);
        float gap = margin;
        for (index r = 0; r < tile.n; ++r) {
            if (r % 4 == 0) tile.log_densities(r);
            const float* own = tile.gamma + r * tile.columns;
            const float best = tile.maximum(own);
            std::int32_t* own_clusters = clusters + tile.positions[r] * max_clusters;
            float* own_weights = weights + tile.positions[r] * max_clusters;
            if (max_clusters == 1) {
                if (best <= max(best + margin, lowest)) continue;  // floats do not tell clusters apart
                own_clusters[0] = ids[place_of(own, best)];
                own_weights[0] = 1.0f;
                continue;
            }
            const Found found =
                find_largest(own, tile.columns, margin, best, gap, max_clusters, values, which);
            gap = found.gap;
            for (index q = 0; q < found.count; q += lanes)
                store(values + q, exp2((load(values + q) - splat(best)) * temperatures));
            float mass = 0.0f;
            for (index q = 0; q < found.count; ++q) mass += values[q];
            const float share = 1.0f / mass;
            for (index q = 0; q < found.count; ++q) {
                own_clusters[q] = ids[which[q]];
                own_weights[q] = values[q] * share;
            }
        }
    }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
