// Channels of a picture, mixed with each other.
#include "memory.hpp"
#include "simd.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

constexpr index together = 512;  // pixels, of which all channels stay near the processor

}  // namespace

// out[c] = sum over k of transform[k, c] channel k, as planes (channels, n).  Channels are planes too, or lie
// pixel by pixel.
void mix_channels(const float* pixels, index n, index channels, bool is_planar, const float* transform,
                  float* out) {
    Buffer<float> apart(channels * together);
    for (index at = 0; at < n; at += together) {
        const index count = min(n - at, together);
        const float* first = pixels + at;
        index step = n;
        if (!is_planar) {
            for (index i = 0; i < count; ++i)
                for (index k = 0; k < channels; ++k)
                    apart[k * together + i] = pixels[(at + i) * channels + k];
            first = apart;
            step = together;
        }
        for (index c = 0; c < channels; ++c) {
            float* own = out + c * n + at;
            for (index i = 0; i < count; ++i) own[i] = transform[c] * first[i];
            for (index k = 1; k < channels; ++k) {
                const float share = transform[k * channels + c];
                const float* other = first + k * step;
                for (index i = 0; i < count; ++i) own[i] += share * other[i];
            }
        }
    }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
