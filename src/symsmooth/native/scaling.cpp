// Half size, and twice or four times the size: rows of slices, along y and x.
#include "memory.hpp"
#include "simd.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

constexpr index most = 4;  // times the size

// What a fine pixel takes of the coarse one before, of the one it lies in, and of the next.
struct Taps {
    float before, own, after;
};

// Pixels lie a quarter beside the centres of those twice as large.
constexpr Taps twice[] = {{0.25f, 0.75f, 0.0f}, {0.0f, 0.75f, 0.25f}};
// The same, done twice.
constexpr Taps four_times[most] = {
    {0.375f, 0.625f, 0.0f}, {0.1875f, 0.75f, 0.0625f}, {0.0625f, 0.75f, 0.1875f}, {0.0f, 0.625f, 0.375f}};

// out[i] = the mean of pixels 2 i and 2 i + 1 of a line that is long enough for both
template <class Count>
SYMSMOOTH_INLINE void halve_line(const float* line, index width, Count channels, float* out) {
    for (index i = 0; i < width; ++i)
        for (index c = 0; c < channels; ++c)
            out[i * channels + c] = 0.5f * (line[2 * i * channels + c] + line[(2 * i + 1) * channels + c]);
}

// Pixels `factor` i to `factor` (i + 1) of out, from pixels i - 1 to i + 1 of a line; it begins at pixel -1.
template <class Count>
SYMSMOOTH_INLINE void enlarge_line(const float* line, index width, Count channels, const Taps* taps,
                                   index factor, float* out) {
    for (index i = 0; i < width; ++i)
        for (index p = 0; p < factor; ++p)
            for (index c = 0; c < channels; ++c) {
                const float* own = line + (i + 1) * channels + c;
                out[(i * factor + p) * channels + c] =
                    taps[p].before * own[-channels] + taps[p].own * own[0] + taps[p].after * own[channels];
            }
}

// Numbers of channels that most pictures have, known when this is compiled.
template <int n>
struct Always {
    SYMSMOOTH_INLINE operator index() const { return n; }
};

template <class Work>
SYMSMOOTH_INLINE void with_channels(index channels, const Work& work) {
    if (channels == 1)
        work(Always<1>());
    else if (channels == 3)
        work(Always<3>());
    else
        work(channels);
}

}  // namespace

// out[z, i, j] = the mean of the pixels (z, 2 i + {0, 1}, 2 j + {0, 1}); beyond an odd end lies the last again
void halve(const float* image, Extent shape, index channels, float* out) {
    const index height = (shape.y + 1) / 2, width = (shape.x + 1) / 2, size = shape.x * channels;
    Buffer<float> line(2 * width * channels);
    for (index z = 0; z < shape.z; ++z)
        for (index y = 0; y < height; ++y, out += width * channels) {
            const float* upper = image + (z * shape.y + 2 * y) * size;
            const float* lower = 2 * y + 1 < shape.y ? upper + size : upper;
            for (index i = 0; i < size; ++i) line[i] = 0.5f * (upper[i] + lower[i]);
            for (index i = size; i < 2 * width * channels; ++i) line[i] = line[i - channels];
            with_channels(channels, [&](auto n) SYMSMOOTH_LAMBDA { halve_line(line, width, n, out); });
        }
}

// out[z, y, x] = linear interpolation between the pixels of an image, once (factor 2) or twice (4); beyond an
// end lies the last again
void enlarge(const float* image, Extent shape, index channels, index factor, index height, index width,
             float* out) {
    const Taps* taps = factor == most ? four_times : twice;
    const index size = shape.x * channels;
    Buffer<float> line(size + 2 * channels), fine(factor * size);
    float* inside = line + channels;
    for (index z = 0; z < shape.z; ++z)
        for (index y = 0; y < height; ++y, out += width * channels) {
            const index at = y / factor;
            const Taps& own = taps[y % factor];
            const float* slice = image + z * shape.y * size;
            const float* before = slice + max(at - 1, index(0)) * size;
            const float* middle = slice + at * size;
            const float* after = slice + min(at + 1, shape.y - 1) * size;
            for (index i = 0; i < size; ++i)
                inside[i] = own.before * before[i] + own.own * middle[i] + own.after * after[i];
            for (index c = 0; c < channels; ++c) {
                line[c] = inside[c];
                inside[size + c] = inside[size - channels + c];
            }
            with_channels(channels, [&](auto n) SYMSMOOTH_LAMBDA {
                if (factor == most)
                    enlarge_line(line, shape.x, n, taps, Always<most>(), fine);
                else
                    enlarge_line(line, shape.x, n, taps, Always<2>(), fine);
            });
            std::memcpy(out, fine, std::size_t(width * channels) * sizeof(float));
        }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
