// BM3D's collaborative filters: a group of patches shrunk in the domain of a separable transform.
//
// A group of n patches, n a power of two: Haar across patches, then a small matrix along each axis of the
// patch, whose side is a multiple of four.  For the latter the group is turned to (d, n), so that the loops
// run along memory.
#include "matrix.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

constexpr float root_half = 0.70710678118654752f;

// One level of the Haar transform of rows, in place; it is its own inverse.
SYMSMOOTH_INLINE void butterfly(float* rows, index n, index width, index step) {
    const Vec8 half = splat(root_half);
    for (index i = 0; i < n; i += 2 * step) {
        float* a = rows + i * width;
        float* b = rows + (i + step) * width;
        for (index e = 0; e < width; e += lanes) {
            const Vec8 first = load(a + e), second = load(b + e);
            store(a + e, (first + second) * half);
            store(b + e, (first - second) * half);
        }
    }
}

// Apply a matrix (m, m) to the middle axis of (outer, m, inner), inner a multiple of eight.
SYMSMOOTH_INLINE void along(const float* matrix, index m, const float* source, float* target, index outer,
                            index inner) {
    for (index o = 0; o < outer; ++o)
        product(plain(matrix, m), source + o * m * inner, inner, m, target + o * m * inner, inner, m, inner);
}

// One group at a time: its patches in rows (n, wide), its spectrum (d, columns), columns >= n.
class Group {
public:
    Group(const Groups& groups, const Transform& transform)
        : d(groups.d),
          wide(padded(groups.d)),
          transform_(transform),
          rows(padded(groups.max_count) * wide),
          spectrum(wide * padded(groups.max_count)),
          work(wide * padded(groups.max_count)),
          scaled(wide) {}

    // The largest power of two that is not above count.
    void begin(index count) {
        for (n = 1; 2 * n <= count; n *= 2) {}
        columns = padded(n);
    }

    // Fill spectrum with the transform of the patches at the corners.
    void analyse(const float* pixels, const std::int32_t* corners, const index* offsets, float* to) {
        for (index r = 0; r < n; ++r)
            for (index e = 0; e < d; e += 4)
                std::memcpy(rows + r * wide + e, pixels + corners[r] + offsets[e], 4 * sizeof(float));
        for (index step = 1; step < n; step *= 2) butterfly(rows, n, wide, step);
        transpose(rows, wide, n, d, to, columns);
        if (n < columns)  // a few patches: nothing stands in the other lanes
            for (index e = 0; e < d; ++e)
                for (index r = n; r < columns; ++r) to[e * columns + r] = 0.0f;
        along_axes(transform_.forward, to);
    }

    // Fill rows with the inverse transform; the spectrum is used up.
    void synthesise(float* from) {
        along_axes(transform_.backward, from);
        transpose(from, columns, d, n, rows, wide);
        for (index step = n / 2; step > 0; step /= 2) butterfly(rows, n, wide, step);
    }

    // Add the patches to total with weight * window, and weight to mass at their corners.
    void scatter(const std::int32_t* corners, const index* offsets, float weight, float* total, float* mass) {
        for (index e = 0; e < d; ++e) scaled[e] = weight * transform_.window[e];
        for (index r = 0; r < n; ++r) {
            for (index e = 0; e < d; e += 4) {
                float* to = total + corners[r] + offsets[e];
                for (index i = e; i < e + 4; ++i) to[i - e] += scaled[i] * rows[r * wide + i];
            }
            mass[corners[r]] += weight;
        }
    }

    const index d, wide;
    index n = 0, columns = 0;

private:
    // Apply a matrix along each axis of a patch: spectrum (side, ..., side, columns).
    void along_axes(const float* matrix, float* data) {
        const index side = transform_.side, size = d * columns;
        float* source = data;
        float* target = work;
        index outer = 1, inner = size / side;
        for (index axis = 0; axis < transform_.n_axes; ++axis) {
            along(matrix, side, source, target, outer, inner);
            float* written = target;
            target = source;
            source = written;
            outer *= side;
            inner /= side;
        }
        if (source != data) std::memcpy(data, source, size * sizeof(float));
    }

    const Transform& transform_;

public:
    Buffer<float> rows, spectrum, work, scaled;
};

}  // namespace

// Hard-threshold each group, plane by plane (step 1); weight 1 / coefficients kept.
//
// The mean of a group is always kept: the filter does not depend on where zero is.
void threshold_groups(const float* planes, const Groups& groups, const Transform& transform,
                      float threshold) {
    Group group(groups, transform);
    for (index g = 0; g < groups.count; ++g) {
        if (groups.counts[g] == 0) continue;
        const std::int32_t* corners = groups.members + g * groups.max_count;
        group.begin(groups.counts[g]);
        for (index p = 0; p < groups.planes; ++p) {
            group.analyse(planes + p * groups.size, corners, groups.offsets, group.spectrum);
            const float mean = group.spectrum[0];
            const Vec8 limit = splat(threshold), low = splat(-threshold), zero = splat(0.0f);
            Int8 count{};
            group.spectrum[0] = 0.0f;
            for (index e = 0; e < group.d * group.columns; e += lanes) {
                const Vec8 own = load(group.spectrum + e);
                const Int8 is_large = (own > limit) | (low > own);
                store(group.spectrum + e, select(is_large, own, zero));
                count = count - is_large;
            }
            group.spectrum[0] = mean;
            group.synthesise(group.spectrum);
            group.scatter(corners, groups.offsets, 1.0f / float(1 + sum(count)),
                          groups.total + p * groups.size, groups.mass + p * groups.size);
        }
    }
}

// Wiener-filter each group with the pilot's spectrum (step 2); weight 1 / |W|^2.
//
// W = s^2 / (s^2 + noise), s the pilot's coefficients, noise = sigma^2; W = 1 for the group's mean.
void wiener_groups(const float* planes, const float* pilot, const Groups& groups, const Transform& transform,
                   float noise) {
    Group group(groups, transform);
    Buffer<float> guide(group.wide * padded(groups.max_count));
    const Vec8 noises = splat(noise), tiny = splat(1e-30f);  // without noise, nothing is divided by zero
    for (index g = 0; g < groups.count; ++g) {
        if (groups.counts[g] == 0) continue;
        const std::int32_t* corners = groups.members + g * groups.max_count;
        group.begin(groups.counts[g]);
        for (index p = 0; p < groups.planes; ++p) {
            group.analyse(planes + p * groups.size, corners, groups.offsets, group.spectrum);
            group.analyse(pilot + p * groups.size, corners, groups.offsets, guide);
            const float mean = group.spectrum[0];
            guide[0] = 0.0f;
            Vec8 norm = splat(0.0f);
            for (index e = 0; e < group.d * group.columns; e += lanes) {
                const Vec8 own = load(guide + e), square = own * own;
                const Vec8 gain = square / max(square + noises, tiny);
                store(group.spectrum + e, load(group.spectrum + e) * gain);
                norm += gain * gain;
            }
            group.spectrum[0] = mean;
            group.synthesise(group.spectrum);
            group.scatter(corners, groups.offsets, 1.0f / (1.0f + sum(norm)), groups.total + p * groups.size,
                          groups.mass + p * groups.size);
        }
    }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
