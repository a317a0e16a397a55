// What a tone curve has taken from noisy pixels, given back: noise/tone.py says what it is.
#include "simd.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

constexpr index at_once = 64;  // pixels that are looked up together

// A place in a table of `size` entries, from 0 on: the entry before it, but the last one, and the share of the
// next.  What is no number counts as 0.
struct Place {
    std::int32_t entry;
    float share;
};

SYMSMOOTH_INLINE Place place_of(float place, index size) {
    const float inside = min(max(place, 0.0f), float(size - 1));
    const auto entry = std::int32_t(min(inside, float(size - 2)));
    return {entry, inside - float(entry)};
}

}  // namespace

// y = scale x + offset is corrected by what the table has at (y, scale level), which rises to 1 and to `most`:
//     out = x + (clip(y + share table, min(y, 0), max(y, 1)) - y) / scale
// Pixels further below 0 or above 1 than their level stay as they are.
void correct_tone(const float* pixels, const float* level, index n, const ToneTable& table, float scale,
                  float offset, float share, float* out) {
    const float per_mean = float(table.means - 1), per_level = scale * float(table.levels - 1) / table.most,
                back = 1.0f / scale;
    std::int32_t entry[at_once];
    float shown[at_once], spread[at_once], down[at_once], right[at_once], added[at_once];
    for (index start = 0; start < n; start += at_once) {
        const index count = min(n - start, at_once);
        for (index i = 0; i < count; ++i) {
            shown[i] = scale * pixels[start + i] + offset;
            spread[i] = scale * level[start + i];
            const Place row = place_of(per_mean * shown[i], table.means);
            const Place column = place_of(per_level * level[start + i], table.levels);
            entry[i] = row.entry * std::int32_t(table.levels) + column.entry;
            down[i] = row.share;
            right[i] = column.share;
        }
        for (index i = 0; i < count; ++i) {
            const float* upper = table.values + entry[i];
            const float* lower = upper + table.levels;
            const float above = upper[0] + right[i] * (upper[1] - upper[0]);
            const float below = lower[0] + right[i] * (lower[1] - lower[0]);
            added[i] = share * (above + down[i] * (below - above));
        }
        for (index i = 0; i < count; ++i) {  // no further than black or white, of what can be shown
            const float highest = max(1.0f - shown[i], 0.0f), lowest = min(-shown[i], 0.0f);
            const float change = max(min(added[i], highest), lowest);
            const float outside = max(-shown[i], shown[i] - 1.0f);
            out[start + i] = pixels[start + i] + (outside < spread[i] ? back * change : 0.0f);
        }
    }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
