// Loops of mixtures of full-covariance Gaussians: what matrix products leave to do.
#include "simd.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

// out[c, i] = sum over r in starts[c]:starts[c + 1] of projections[r, i]^2
void add_squares(const float* projections, const index* starts, index components, index m, float* out) {
    for (index c = 0; c < components; ++c) {
        float* own = out + c * m;
        index i = 0;
        for (; i + 2 * lanes <= m; i += 2 * lanes) {  // down the rows, the sums in registers
            Vec8 first = splat(0.0f), second = splat(0.0f);
            for (index r = starts[c]; r < starts[c + 1]; ++r) {
                const Vec8 a = load(projections + r * m + i), b = load(projections + r * m + i + lanes);
                first += a * a;
                second += b * b;
            }
            store(own + i, first);
            store(own + i + lanes, second);
        }
        for (; i < m; ++i) {
            float total = 0.0f;
            for (index r = starts[c]; r < starts[c + 1]; ++r)
                total += projections[r * m + i] * projections[r * m + i];
            own[i] = total;
        }
    }
}

// best[i] and label[i] become the largest of scores[:, i] and where it is, if it is larger; row c is component
// first + c.
void keep_largest(const float* scores, index components, index m, std::int32_t first,
                  float* __restrict best, std::int32_t* __restrict label) {
    for (index c = 0; c < components; ++c) {
        const float* row = scores + c * m;
        const std::int32_t own = first + std::int32_t(c);
        for (index i = 0; i < m; ++i) {
            const bool better = row[i] > best[i];
            best[i] = better ? row[i] : best[i];
            label[i] = better ? own : label[i];
        }
    }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
