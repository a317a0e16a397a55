#pragma once

#include "simd.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

// How many were found, and the threshold's gap: a good one to begin with at the next point.
struct Found {
    index count;
    float gap;
};

// Find the at most `max_count` largest of numbers[:size] that are above best + margin.
//
// Fills values and which (their places), in any order.  `size` is a multiple of eight.  First a threshold
// is sought that a few more exceed, best + gap or else by bisection (margin <= gap <= 0), then the smallest
// go.  What is below `lowest` is not found, whatever the margin: it may stand for no number.
Found find_largest(const float* numbers, index size, float margin, float best, float gap, index max_count,
                   float* values, std::int32_t* which);

}  // namespace symsmooth::SYMSMOOTH_ISA
