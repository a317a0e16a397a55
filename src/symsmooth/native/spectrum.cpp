// The spectrum of noise, at the frequencies of a picture's cosine transform.
#include "memory.hpp"
#include "simd.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

// Multiply each number of a transform (height, width) by the root of rows (height, count) times columns
// (count, width), which is `least` at least, or divide by it.
void scale_by_root(float* transform, index height, index width, const float* rows, const float* columns,
                   index count, float least, bool is_divided) {
    Buffer<float> power(width);
    for (index y = 0; y < height; ++y, transform += width, rows += count) {
        for (index x = 0; x < width; ++x) power[x] = rows[0] * columns[x];
        for (index k = 1; k < count; ++k)
            for (index x = 0; x < width; ++x) power[x] += rows[k] * columns[k * width + x];
        for (index x = 0; x < width; ++x) power[x] = std::sqrt(max(power[x], least));
        if (is_divided)
            for (index x = 0; x < width; ++x) transform[x] /= power[x];
        else
            for (index x = 0; x < width; ++x) transform[x] *= power[x];
    }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
