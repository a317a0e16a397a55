// Loops of mixtures of full-covariance Gaussians: what matrix products leave to do.
#include "simd.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

constexpr index width = 8 * lanes;  // columns summed side by side

// out[c, i] = sum over r in starts[c]:starts[c + 1] of projections[r, i]^2
void add_squares(const float* projections, const index* starts, index components, index m, float* out) {
    for (index c = 0; c < components; ++c) {
        float* own = out + c * m;
        index i = 0;
        for (; i + width <= m;
             i += width) {  // down the rows, whole cache lines at a time, the sums in registers
            Vec8 total[width / lanes];
            for (Vec8& sum : total) sum = splat(0.0f);
            for (index r = starts[c]; r < starts[c + 1]; ++r) {
                const float* row = projections + r * m + i;
                for (index k = 0; k < width / lanes; ++k) {
                    const Vec8 value = load(row + k * lanes);
                    total[k] += value * value;
                }
            }
            for (index k = 0; k < width / lanes; ++k) store(own + i + k * lanes, total[k]);
        }
        for (; i < m; ++i) {
            float total = 0.0f;
            for (index r = starts[c]; r < starts[c + 1]; ++r)
                total += projections[r * m + i] * projections[r * m + i];
            own[i] = total;
        }
    }
}

// best[i] and label[i] become the largest of scores[:, i] and where it is, if it is larger; row c is
// component first + c.
void keep_largest(const float* scores, index components, index m, std::int32_t first, float* __restrict best,
                  std::int32_t* __restrict label) {
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
