// The kernels of one instruction set, by name; kernels.hpp says what they take.
#pragma once

#include "kernels.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

double sum_points(const Points&, const Tiles&, const Mixture&, const float*, index, const ClusterSums&);
double average_points(const Points&, const float*, const Tiles&, const Mixture&, const float*,
                      const ClusterSums&);
void aggregate_means(const Points&, const Tiles&, const Mixture&, const float*, index, float*);
void responsibilities(const Points&, const Tiles&, const Mixture&, float*);
void strongest_clusters(const Points&, const Tiles&, const Mixture&, float, float, index, std::int32_t*,
                        float*);

void spectral_filter(const float*, const PatchLines&, const Members&, float, float, const Aggregate&);
void wiener_filter(const float*, const float*, const PatchLines&, const Members&, float, float, float,
                   const Aggregate&);

void symmetric_window(const Planes&, Extent, const Window&, const float*, float, const Columns<float>&);
void symmetric_window_double(const Planes&, Extent, const Window&, const float*, float,
                             const Columns<double>&);
void symmetric_weights(const Planes&, Extent, const Window&, const float*, float, float*);
void steered_window(const Planes&, const Window&, bool, const Columns<float>&);
void steered_window_double(const Planes&, const Window&, bool, const Columns<double>&);
void steered_weights(const Planes&, const Window&, float*);

void match_patches(const Planes&, const std::uint8_t*, const Matching&, std::int32_t*, std::int32_t*);
void threshold_groups(const float*, const Groups&, const Transform&, float);
void wiener_groups(const float*, const float*, const Groups&, const Transform&, float);
void bayes_groups(const float*, const float*, const Groups&, index, float, float);

void add_squares(const float*, const index*, index, index, float*);
void keep_largest(const float*, index, index, std::int32_t, float*, std::int32_t*);

void mix_channels(const float*, index, index, bool, const float*, float*);
void halve(const float*, Extent, index, float*);
void enlarge(const float*, Extent, index, index, index, index, float*);
void scale_by_root(float*, index, index, const float*, const float*, index, float, bool);
void correct_tone(const float*, const float*, index, const ToneTable&, float, float, float, float*);

}  // namespace symsmooth::SYMSMOOTH_ISA
