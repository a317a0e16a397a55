// Patches of one channel, moved line by line, eight pixels at a time.
#pragma once

#include "kernels.hpp"
#include "memory.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

// row = the patch at `pixels`.  What is written beyond a line is overwritten by the next: eight floats more
// than the patch must be there.
SYMSMOOTH_INLINE void take_lines(const float* pixels, const PatchLines& patch, float* row) {
    for (index l = 0; l < patch.n_lines; ++l) store(row + l * patch.side, load(pixels + patch.lines[l]));
}

// pixels += a * row + b * mean; `line_only` is one for the pixels of a line, zero beyond.
SYMSMOOTH_INLINE void add_lines(float* pixels, const PatchLines& patch, Vec8 line_only, const float* row,
                                float a, const float* mean, float b) {
    const Vec8 own = line_only * splat(a), common = line_only * splat(b);
    for (index l = 0; l < patch.n_lines; ++l) {
        float* to = pixels + patch.lines[l];
        store(to, load(to) + own * load(row + l * patch.side) + common * load(mean + l * patch.side));
    }
}

SYMSMOOTH_INLINE Vec8 first_lanes(index side) {
    const float ones[lanes] = {1, 1, 1, 1, 1, 1, 1, 1};
    return load_first(ones, side);
}

}  // namespace symsmooth::SYMSMOOTH_ISA
