// What a soft cluster does with its patches, cluster by cluster.
//
// A cluster's patches stand in rows of `wide` places: d pixels, and zeros up to a multiple of eight.
#include "matrix.hpp"
#include "patches.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

constexpr float min_freedom = 0.1f;  // degrees of freedom: with fewer a cluster is one patch, its own mean
constexpr float min_energy = 1e-30f;
constexpr float max_signal = 1e12f;  // in units of the noise: squares of it do not overflow
constexpr index turns = 4;           // members that are added by turns; 1: previews take 2 % longer
constexpr float rounding = 1e-3f;    // of the trace of an eighth power
constexpr float resolution = 1e-6f;  // of a Gram matrix's trace: eigenvalues below it may be rounding

// The members of one cluster.
struct Cluster {
    const std::int32_t* corners;
    const float* shares;
    index n;
};

SYMSMOOTH_INLINE Cluster cluster_of(const Members& members, index c) {
    const index at = members.pointers[c];
    return {members.corners + at, members.shares + at, members.pointers[c + 1] - at};
}

index max_members(const Members& members) {
    index largest = 0;
    for (index c = members.first; c < members.last; ++c)
        largest = max(largest, members.pointers[c + 1] - members.pointers[c]);
    return largest;
}

struct Weights {
    float sum, square;  // sum g, sum g^2
};

// Fill rows with the members' patches and mean with their weighted mean.
SYMSMOOTH_INLINE Weights gather(const float* pixels, const PatchLines& patch, const Cluster& cluster,
                                float* rows, index wide, float* mean) {
    const index d = patch.n_lines * patch.side;
    Weights weights{0.0f, 0.0f};
    for (index r = 0; r < cluster.n; ++r) {
        float* row = rows + r * wide;
        take_lines(pixels + cluster.corners[r], patch, row);
        for (index e = d; e < wide; ++e) row[e] = 0.0f;
        const float share = cluster.shares[r];
        weights.sum += share;
        weights.square += share * share;
    }
    combine(cluster.shares, cluster.n, rows, wide, mean, wide);
    const Vec8 total = splat(weights.sum);
    for (index e = 0; e < wide; e += lanes) store(mean + e, load(mean + e) / total);
    return weights;
}

// Replace each patch y by root (y - mean).
SYMSMOOTH_INLINE void centre(float* rows, index wide, const float* mean, const float* roots, index n) {
    for (index r = 0; r < n; ++r) {
        const Vec8 root = splat(roots[r]);
        float* row = rows + r * wide;
        for (index e = 0; e < wide; e += lanes) store(row + e, root * (load(row + e) - load(mean + e)));
    }
}

// Add mean + row / root, with weight shares * quality.
//
// Patches that follow each other are mostly a pixel apart: what one has just written the next would read again,
// and wait for it.  So members take turns with others that are far in the list.
SYMSMOOTH_INLINE void scatter(const float* rows, index wide, const float* mean, const float* roots,
                              const PatchLines& patch, const Cluster& cluster, float quality, float variance,
                              const Aggregate& out) {
    const Vec8 line_only = first_lanes(patch.side);
    const index step = (cluster.n + turns - 1) / turns;
    for (index first = 0; first < step; ++first)
        for (index r = first; r < cluster.n; r += step) {
            const float weight = cluster.shares[r] * quality;
            const index corner = cluster.corners[r] - out.start;
            add_lines(out.total + corner, patch, line_only, rows + r * wide, weight / roots[r], mean, weight);
            out.mass[corner] += weight;
            if (out.spread) out.spread[corner] += weight * variance;
        }
}

// Eigenvalues up to here (in units of the noise) are those of noise alone: the edge of its spectrum.
SYMSMOOTH_INLINE float edge_of(float ratio) {
    const float root = 1.0f + std::sqrt(ratio);
    return root * root;
}

// Whether no eigenvalue of a symmetric matrix is above a bound, which is not always seen.
//
// The largest is at most (tr A^8)^(1/8).  Two products are a twentieth of the work of all eigenvectors, and
// of clusters without signal, a third to a half of those in photographs, nearly all are told by them.
SYMSMOOTH_INLINE bool is_below(const float* matrix, float bound, index size, index stride, float* square,
                               float* fourth) {
    for (index e = 0; e < size; ++e)
        if (matrix[e * stride + e] >= bound) return false;
    product(plain(matrix, stride), matrix, stride, size, square, stride, size, stride);
    product(plain(square, stride), square, stride, size, fourth, stride, size, stride);
    float trace = 0.0f;
    for (index e = 0; e < size; ++e) trace += dot(fourth + e * stride, fourth + e * stride, stride);
    const float fourth_of_bound = bound * bound * bound * bound;
    return trace < (1.0f - rounding) * fourth_of_bound * fourth_of_bound;
}

// Frobenius-optimal factor for an eigenvalue x (in units of the noise), ratio = d / n_eff.
//
// Gavish and Donoho (2017): sqrt((x - b - 1)^2 - 4 b) / x above the bulk's edge (1 + sqrt b)^2, else 0.
SYMSMOOTH_INLINE float shrink(float x, float ratio) {
    if (ratio > 1.0f) {
        x = x / ratio;
        ratio = 1.0f / ratio;
    }
    if (x <= edge_of(ratio)) return 0.0f;
    x = min(x, max_signal);
    const float apart = 1.0f - (ratio + 1.0f) / x;
    return std::sqrt(max(apart * apart - 4.0f * ratio / (x * x), 0.0f));
}

}  // namespace

// Optimal shrinkage of the spectrum of each cluster's covariance; noise is sigma^2.
//
// With Y the rows sqrt(g / sum g) (y - mu): C = Y'Y = V' diag(l) V, M = V' diag(f) V, Y <- Y M.
// C is divided by its trace, so that squares of its entries neither vanish nor overflow.
void spectral_filter(const float* pixels, const PatchLines& lines, const Members& members, float noise,
                     float bias, const Aggregate& aggregate) {
    const PatchLines patch = lines;  // copies stay in registers
    const Aggregate out = aggregate;
    const index d = patch.n_lines * patch.side, wide = padded(d), max_n = max_members(members);
    Buffer<float> rows((max_n + 4) * wide), estimates((max_n + 4) * wide), roots(max_n), mean(wide);
    Buffer<float> matrix((wide + 4) * wide), kept(wide * wide), scaled(wide * wide);
    Buffer<float> turned(wide * wide), projected((max_n + 4) * wide), values(wide), work(4 * wide);
    for (index c = members.first; c < members.last; ++c) {
        const Cluster cluster = cluster_of(members, c);
        const index n = cluster.n;
        if (n == 0) continue;
        const Weights g = gather(pixels, patch, cluster, rows, wide, mean);
        for (index r = 0; r < n; ++r) roots[r] = std::sqrt(cluster.shares[r] / g.sum);
        centre(rows, wide, mean, roots, n);
        const float freedom = g.sum * g.sum / g.square - 1.0f;
        index rank = 0;
        float trace = 0.0f;
        if (freedom > min_freedom) {
            product_upper(transposed(rows, wide), rows, wide, n, matrix, wide, d, wide);
            float energy = 0.0f;
            for (index e = 0; e < d; ++e) energy += matrix[e * wide + e];
            const float inverse = 1.0f / max(energy, min_energy);
            for (index e = 0; e < d; ++e)
                for (index q = e; q < d; ++q)
                    matrix[q * wide + e] = matrix[e * wide + q] = matrix[e * wide + q] * inverse;
            const float ratio = float(d) / freedom, unit = energy / (bias * noise);
            const bool is_noise = is_below(matrix, edge_of(ratio) / unit, d, wide, kept, scaled);
            if (!is_noise) eigenvectors(matrix, d, wide, values, work);
            for (index e = 0; e < d && !is_noise; ++e) {
                const float factor = shrink(values[e] * unit, ratio);
                if (!(factor > 0.0f)) continue;
                for (index q = 0; q < wide; q += lanes) {
                    const Vec8 vector = load(matrix + e * wide + q);
                    store(kept + rank * wide + q, vector);
                    store(scaled + rank * wide + q, vector * splat(factor));
                }
                ++rank;
                trace += factor;
            }
        }
        if (rank == 0) {
            std::memset(estimates, 0, n * wide * sizeof(float));
        } else if (padded(rank) * d + rank * wide < d * wide) {  // few directions: Y V', then times diag(f) V
            transpose(kept, wide, rank, d, turned, padded(rank));
            product(plain(rows, wide), turned, padded(rank), d, projected, padded(rank), n, padded(rank));
            product(plain(projected, padded(rank)), scaled, wide, rank, estimates, wide, n, wide);
        } else {
            product(transposed(kept, wide), scaled, wide, rank, matrix, wide, d, wide);
            product(plain(rows, wide), matrix, wide, d, estimates, wide, n, wide);
        }
        const float variance = noise * (trace / float(d) + g.square / (g.sum * g.sum));
        scatter(estimates, wide, mean, roots, patch, cluster, 1.0f, variance, out);
    }
}

namespace {

// The shift that makes a Gram matrix safely positive definite in float32: at least `shift`.
//
// Rounding leaves errors of a few 1e-7 of the trace in the eigenvalues.
SYMSMOOTH_INLINE float shift_of(const float* gram, float shift, index size) {
    float trace = 0.0f;
    for (index e = 0; e < size; ++e) trace += gram[e * capacity + e];
    return max(shift, resolution * trace);
}

// Right half of the system: diagonal I - right.
SYMSMOOTH_INLINE void complement(const System& system, float diagonal, index size) {
    for (index e = 0; e < size; ++e) {
        float* row = system.right(e);
        for (index q = 0; q < size; q += lanes) store(row + q, splat(0.0f) - load(row + q));
        row[e] += diagonal;
    }
}

// Write n <= 64 rows of d places as d rows of `capacity`, zeros up to a multiple of eight columns.
SYMSMOOTH_INLINE void turn(const float* rows, index stride, index n, index d, float* turned) {
    transpose(rows, stride, n, d, turned, capacity);
    for (index e = 0; e < d; ++e)
        for (index r = n; r < padded(n); ++r) turned[e * capacity + r] = 0.0f;
}

// Rows of the identity up to a multiple of four.
SYMSMOOTH_INLINE void pad_system(const System& system, index size) {
    for (index e = size; e % 4 != 0; ++e) {
        for (index q = 0; q < padded(size); q += lanes) {
            store(system.left(e) + q, splat(0.0f));
            store(system.right(e) + q, splat(0.0f));
        }
        system.left(e)[e] = 1.0f;
    }
}

// Multiply the system's right half by (gram + shift I)^-1; of the matrix the upper half is read.
SYMSMOOTH_INLINE void divide(const System& system, const float* gram, float shift, index size) {
    for (index e = 0; e < size; ++e) {
        for (index q = e / lanes * lanes; q < size; q += lanes)
            store(system.left(e) + q, load(gram + e * capacity + q));
        system.left(e)[e] += shift;
    }
    pad_system(system, size);
    solve(system, size);
}

SYMSMOOTH_INLINE void set_right(const System& system, const float* matrix, index size) {
    for (index e = 0; e < size; ++e)
        for (index q = 0; q < size; q += lanes) store(system.right(e) + q, load(matrix + e * capacity + q));
}

// matrix -= shift * right half
SYMSMOOTH_INLINE void subtract_right(float* matrix, float shift, const System& system, index size) {
    const Vec8 all = splat(shift);
    for (index e = 0; e < size; ++e)
        for (index q = 0; q < size; q += lanes) {
            float* at = matrix + e * capacity + q;
            store(at, load(at) - all * load(system.right(e) + q));
        }
}

// About the trace of S (S + shift I)^-1, from above: of the inverse only pivots are known.
SYMSMOOTH_INLINE float degrees_of_freedom(const System& system, float shift, index size) {
    float trace = 0.0f;
    for (index e = 0; e < size; ++e) trace += 1.0f - shift * system.inverse_d[e];
    return trace;
}

// Scratch of one cluster's Wiener filter.
struct Solver {
    Buffer<float> rows{capacity * System::stride}, inverse_d{capacity}, factors{4 * capacity};
    Buffer<float> gram{capacity * capacity}, turned{capacity * capacity}, whole{capacity * capacity};
    System system{rows, inverse_d, factors};

    // E = U W (I - a (S + a I)^-1), W = I - (S + b I)^-1 (b I - U'D), S = U'U, into rows of D.
    SYMSMOOTH_INLINE float within_patches(const float* guide, float* difference, index n, index d, index wide,
                                          float a, float b) {
        const Strided transposed_guide = transposed(guide, wide);
        product_upper(transposed_guide, guide, wide, n, gram, capacity, d, wide);
        product(transposed_guide, difference, wide, n, system.right(0), System::stride, d, wide);
        complement(system, b, d);
        divide(system, gram, shift_of(gram, b, d), d);
        complement(system, 1.0f, d);
        turn(system.right(0), System::stride, d, d, turned);  // W'
        set_right(system, turned, d);
        divide(system, gram, shift_of(gram, a, d), d);
        const float trace = degrees_of_freedom(system, a, d);
        subtract_right(turned, a, system, d);
        turn(turned, capacity, d, d, whole);
        product(plain(guide, wide), whole, capacity, d, difference, wide, n, wide);
        return trace;
    }

    // E = (I - b (G + b I)^-1) W U, W = I - (a I - D U') (G + a I)^-1, G = U U', into rows of D.
    SYMSMOOTH_INLINE float across_patches(const float* guide, float* difference, index n, index d, index wide,
                                          float a, float b) {
        const index columns = padded(n);
        turn(guide, wide, n, d, turned);
        product_upper(plain(guide, wide), turned, capacity, d, gram, capacity, n, columns);
        turn(difference, wide, n, d, turned);
        product(plain(guide, wide), turned, capacity, d, system.right(0), System::stride, n, columns);
        complement(system, a, n);
        divide(system, gram, shift_of(gram, a, n), n);
        const float trace = degrees_of_freedom(system, a, n);
        complement(system, 1.0f, n);
        turn(system.right(0), System::stride, n, n, turned);  // W
        set_right(system, turned, n);
        divide(system, gram, shift_of(gram, b, n), n);
        subtract_right(turned, b, system, n);
        product(plain(turned, capacity), guide, wide, n, difference, wide, n, wide);
        return trace;
    }
};

}  // namespace

// Wiener filter of each cluster with moments from the pilot, within patches and across them.
//
// With U the rows w (u - mu_u) of the pilot and Y the rows w (y - mu), w^2 = n g / sum g, S = U'U and
// a = n noise / strength, b = d noise / strength, a member becomes a row of
// E = U (S + b I)^-1 U' Y (S + a I)^-1 S.  Written with D = Y - U, which is no more than noise, it is
//
//     E = U W (I - a (S + a I)^-1),    W = I - (S + b I)^-1 (b I - U'D),
//
// where nothing large is left over from a difference: without noise it is E = U.  Of fewer patches than
// pixels it is found with G = U U' instead:
//
//     E = (I - b (G + b I)^-1) W U,    W = I - (a I - D U') (G + a I)^-1.
//
// The shifts of S and G are no smaller than what float32 can tell from zero (shift_of).
void wiener_filter(const float* pixels, const float* pilot, const PatchLines& lines, const Members& members,
                   float noise, float strength, float trust, const Aggregate& aggregate) {
    const PatchLines patch = lines;  // copies stay in registers
    const Aggregate out = aggregate;
    const index d = patch.n_lines * patch.side, wide = padded(d), max_n = max_members(members);
    Buffer<float> rows((max_n + 4) * wide), guide((max_n + 4) * wide), roots(max_n);
    Buffer<float> mean(wide), pilot_mean(wide);
    Solver solver;
    for (index c = members.first; c < members.last; ++c) {
        const Cluster cluster = cluster_of(members, c);
        const index n = cluster.n;
        if (n == 0) continue;
        gather(pixels, patch, cluster, rows, wide, mean);
        const Weights g = gather(pilot, patch, cluster, guide, wide, pilot_mean);
        for (index e = 0; e < d; ++e) mean[e] = pilot_mean[e] + trust * (mean[e] - pilot_mean[e]);
        for (index r = 0; r < n; ++r) roots[r] = std::sqrt(float(n) * cluster.shares[r] / g.sum);
        centre(rows, wide, mean, roots, n);
        centre(guide, wide, pilot_mean, roots, n);
        for (index e = 0; e < n * wide; e += lanes) store(rows + e, load(rows + e) - load(guide + e));
        const float a = float(n) * noise / strength, b = float(d) * noise / strength;
        const float trace = n < d ? solver.across_patches(guide, rows, n, d, wide, a, b)
                                  : solver.within_patches(guide, rows, n, d, wide, a, b);
        const float uncertainty = trace / float(d) + g.square / (g.sum * g.sum);
        const float quality = 1.0f / (uncertainty + 0.02f);
        scatter(rows, wide, mean, roots, patch, cluster, quality, noise * uncertainty, out);
    }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
