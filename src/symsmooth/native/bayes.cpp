// NL-Bayes on groups of patches: Gaussian moments of a group, and the estimate they give.
//
// Everything is in units of the noise: sigma = 1.  A group's patches stand in rows of `wide` places: d
// numbers, plane after plane, and zeros up to a multiple of eight.
#include "matrix.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

constexpr float min_factor = 1e-3f;  // directions that keep less are left out

class Group {
public:
    Group(const Groups& groups, index together)
        : groups_(groups),
          together_(together),
          d(groups.d * together),
          wide(padded(d)),
          rows((groups.max_count + 4) * wide),
          guide((groups.max_count + 4) * wide),
          projected((groups.max_count + 4) * wide),
          mean(wide),
          guide_mean(wide),
          matrix((wide + 4) * wide),
          kept(wide * wide),
          kept_transposed(wide * wide),
          scaled(wide * wide),
          values(wide),
          work(4 * wide) {}

    // Fill rows with patches of the planes from `first` on, less their mean; returns their variance.
    //
    // The variance is that of all numbers, plane by plane, as if each plane were flat.
    float gather(const float* planes, index first, float* to, float* to_mean) {
        const index side = groups_.d;
        for (index r = 0; r < n; ++r) {
            for (index p = 0; p < together_; ++p)
                take(planes, (first + p) * groups_.size + corners[r], to + r * wide + p * side);
            for (index e = d; e < wide; ++e) to[r * wide + e] = 0.0f;
        }
        const Vec8 share = splat(1.0f / float(n));
        Vec8 square = splat(0.0f);
        for (index e = 0; e < wide; e += lanes) {
            Vec8 total = splat(0.0f);
            for (index r = 0; r < n; ++r) total += load(to + r * wide + e);
            const Vec8 level = total * share;
            store(to_mean + e, level);
            for (index r = 0; r < n; ++r) {
                const Vec8 centred = load(to + r * wide + e) - level;
                store(to + r * wide + e, centred);
                square += centred * centred;
            }
        }
        float total = sum(square) / float(n);
        for (index p = 0; p < together_; ++p) {  // and how the means differ within a plane
            const float* own = to_mean + p * side;
            const float level = level_of(own);
            for (index e = 0; e < side; ++e) total += (own[e] - level) * (own[e] - level);
        }
        const float freedom = float(n * side) / float(max(n * side - 1, index(1)));
        return total * freedom / float(d);
    }

    // Make all patches equal to their mean, plane by plane.
    void flatten() {
        for (index p = 0; p < together_; ++p) {
            float* own = mean + p * groups_.d;
            const float level = level_of(own);
            for (index e = 0; e < groups_.d; ++e) own[e] = level;
        }
        std::memset(rows, 0, n * wide * sizeof(float));
    }

    // Replace rows (less their mean) by their estimate under the covariance of `from`.
    //
    // With C = V' diag(l) V the covariance: Y V' diag(f) V, f = l / (l + 1) if it is a pilot's, else
    // f = (l - bias)+ / l.
    void shrink(const float* from, bool is_pilot, float bias) {
        product_upper(transposed(from, wide), from, wide, n, matrix, wide, d, wide);
        const float share = 1.0f / float(max(n - 1, index(1)));
        for (index e = 0; e < d; ++e)
            for (index q = e; q < d; ++q)
                matrix[q * wide + e] = matrix[e * wide + q] = matrix[e * wide + q] * share;
        eigenvectors(matrix, d, wide, values, work);
        index rank = 0;
        for (index e = 0; e < d; ++e) {
            const float value = values[e];
            const float factor = is_pilot ? value / (value + 1.0f) : 1.0f - bias / max(value, 1e-6f);
            if (!(factor > min_factor)) continue;
            for (index q = 0; q < wide; q += lanes) {
                const Vec8 vector = load(matrix + e * wide + q);
                store(kept + rank * wide + q, vector);
                store(scaled + rank * wide + q, vector * splat(factor));
            }
            ++rank;
        }
        if (rank == 0) {
            std::memset(rows, 0, n * wide * sizeof(float));
            return;
        }
        transpose(kept, wide, rank, d, kept_transposed, wide);
        product(plain(rows, wide), kept_transposed, wide, d, projected, wide, n, padded(rank));
        product(plain(projected, wide), scaled, wide, rank, rows, wide, n, wide);
    }

    // Add the patches to the planes from `first` on, and one to the mass of their corners.
    void scatter(index first) {
        for (index r = 0; r < n; ++r)
            for (index p = 0; p < together_; ++p) {
                const index at = (first + p) * groups_.size + corners[r];
                add(at, rows + r * wide + p * groups_.d, mean + p * groups_.d);
                groups_.mass[at] += 1.0f;
            }
    }

    const std::int32_t* corners = nullptr;
    index n = 0;

private:
    // Whether eight numbers from here on lie in the planes.
    SYMSMOOTH_INLINE bool has_eight(index at) const { return at + lanes <= groups_.planes * groups_.size; }

    SYMSMOOTH_INLINE void take(const float* planes, index at, float* to) const {
        for (index l = 0; l < groups_.d; l += groups_.side) {
            const index from = at + groups_.offsets[l];
            if (groups_.side <= lanes && has_eight(from))
                store(to + l, load(planes + from));
            else
                for (index e = 0; e < groups_.side; ++e) to[l + e] = planes[from + e];
        }
    }

    SYMSMOOTH_INLINE void add(index at, const float* row, const float* level) const {
        for (index l = 0; l < groups_.d; l += groups_.side) {
            float* to = groups_.total + at + groups_.offsets[l];
            for (index e = 0; e < groups_.side; ++e) to[e] += row[l + e] + level[l + e];
        }
    }

    SYMSMOOTH_INLINE float level_of(const float* own) const {
        float level = 0.0f;
        for (index e = 0; e < groups_.d; ++e) level += own[e];
        return level / float(groups_.d);
    }

    const Groups& groups_;
    const index together_;

public:
    const index d, wide;
    Buffer<float> rows, guide, projected, mean, guide_mean, matrix, kept, kept_transposed, scaled, values,
        work;
};

}  // namespace

// Estimate each group, `together` planes at a time, and add it to total and mass.
//
// Without a pilot this is step 1, else step 2.  Groups whose variance is below 1 + flat sqrt(2 / numbers),
// `flat` deviations above that of pure noise, become their mean.
void bayes_groups(const float* planes, const float* pilot, const Groups& groups, index together, float flat,
                  float bias) {
    Group group(groups, together);
    for (index g = 0; g < groups.count; ++g) {
        group.n = groups.counts[g];
        group.corners = groups.members + g * groups.max_count;
        if (group.n == 0) continue;
        for (index first = 0; first < groups.planes; first += together) {
            const float variance = group.gather(planes, first, group.rows, group.mean);
            if (variance < 1.0f + flat * std::sqrt(2.0f / float(group.n * group.d))) {
                group.flatten();
            } else if (pilot) {
                group.gather(pilot, first, group.guide, group.guide_mean);
                group.shrink(group.guide, true, bias);
            } else {
                group.shrink(group.rows, false, bias);
            }
            group.scatter(first);
        }
    }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
