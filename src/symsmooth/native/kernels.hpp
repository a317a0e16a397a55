// What the kernels are: plain functions on plain arrays, one table of them for each instruction set.
//
// A kernel fills arrays it is given.  It checks nothing (bind_*.cpp do), starts no threads, and allocates its
// scratch when it begins (std::bad_alloc is all it can throw).  What is in this file is shared by all
// instruction sets: functions here are always inlined, so that none of them is compiled for one set only.
// Images come as (z, y, x, channels) or as planes (channels, z, y, x); a flat picture is a volume of one
// slice, so that there is one loop for two and three dimensions.  Each kernel has a literal NumPy twin in
// tests/oracles.py.
#pragma once

#include <cstdint>

namespace symsmooth {

using index = std::int64_t;

struct Extent {
    index z, y, x;
};

// ---------------------------------------------------------------- mixtures of generalised patches

// The generalised patches p_j = [x_j / h_s, patch_j, marks_j], read from an image that is divided by h_r.
struct Points {
    const float* pixels;  // (z, y, x, channels)
    Extent shape;
    index channels;
    Extent patch;
    index n_dims;  // coordinates in a point: 2, or 3 in a volume
    float inv_hs;
    const float* marks;  // (positions, n_marks): what else is known of a patch
    index n_marks;

    [[gnu::always_inline]] index patch_numbers() const { return patch.z * patch.y * patch.x * channels; }
    [[gnu::always_inline]] index dim() const { return n_dims + patch_numbers() + n_marks; }
};

// Boxes of positions (z0, z1, y0, y1, x0, x1), and the clusters each of them meets.
struct Tiles {
    const index* boxes;     // (count, 6)
    const index* pointers;  // (count + 1)
    const std::int32_t* ids;
    index count;
    const float* offsets;  // (count, 3), or null: what is added to the positions of a box
};

struct Mixture {
    const float* means;  // (size, dim)
    const float* log2_proportions;
    index size;
};

// Sums over the points, for the clusters that the tiles meet.
struct ClusterSums {
    const std::int32_t* places;  // of the clusters of Tiles::ids in what follows
    float* shift;                // sum gamma (q_j - mu_i): (clusters, dim)
    float* tail;                 // sum gamma, and sum gamma |q_j - mu_i|^2 or sum gamma^2: (clusters, 2)
    float* tile_mass;            // each candidate's mass in its tile, as Tiles::ids
};

// Members of cluster c are corners[pointers[c]:pointers[c + 1]] with weights shares.
struct Members {
    const index* pointers;
    const std::int32_t* corners;
    const float* shares;
    index first, last;  // the clusters to look at
};

// A channel and its patches: `n_lines` lines of `side` pixels, which begin at corner + lines.
// Eight places beyond the last pixel may be read.
struct PatchLines {
    const index* lines;
    index n_lines, side;
};

// What filters add to: estimates at the pixels; at the patch's corner their weight, and weight times
// variance.  They begin at pixel `start`; eight places beyond the last may be written.
struct Aggregate {
    index start;
    float* total;
    float* mass;
    float* spread;  // or null
};

// ---------------------------------------------------------------- filters with a search window

struct Window {
    const index* offsets;  // (count, 3): z, y, x
    index count;
    index z0, z1, y0, y1;  // the strip whose pixels i are looked at
};

// Columns (count, z, y, x) to be filtered, and what is added to: it begins at (z, y) = origin, with rows and
// slices of its own number.
template <class T>
struct Columns {
    const T* values;
    T* out;
    index count;
    index origin_z, origin_y, out_depth, out_height;
};

// ---------------------------------------------------------------- groups of patches

struct Planes {
    const float* pixels;  // (count, z, y, x)
    index count;
    Extent shape;
};

struct Matching {
    Extent patch, radius;
    const index* z;  // the references' coordinates
    const index* y;
    const index* x;
    index n_z, n_y, n_x;
    index min_count, max_count;
    float limit;
    bool boost;
};

// Patches of planes (planes, size): corners members[g][:counts[g]], numbers at corner + offsets, which are
// lines of `side` neighbours.
struct Groups {
    const std::int32_t* members;  // (count, max_count)
    const std::int32_t* counts;
    index count, max_count;
    const index* offsets;
    index d, side;
    float* total;  // (planes, size)
    float* mass;
    index planes, size;
};

struct Transform {
    const float* forward;  // (side, side)
    const float* backward;
    index side, n_axes;
    const float* window;  // (d)
};

// ---------------------------------------------------------------- tone curves

// What is too dark by how much: (means, levels), for means from 0 to 1 and levels from 0 to `most`.
struct ToneTable {
    const float* values;
    index means, levels;
    float most;
};

// ---------------------------------------------------------------- the table

struct Kernels {
    const char* name;

    double (*sum_points)(const Points&, const Tiles&, const Mixture&, const float* weight, index subsample,
                         const ClusterSums&);
    double (*average_points)(const Points&, const float* target, const Tiles&, const Mixture&,
                             const float* weight, const ClusterSums&);
    void (*aggregate_means)(const Points&, const Tiles&, const Mixture&, const float* cluster_estimates,
                            index start, float* out);
    void (*responsibilities)(const Points&, const Tiles&, const Mixture&, float* gamma);
    void (*strongest_clusters)(const Points&, const Tiles&, const Mixture&, float temperature,
                               float min_share, index max_clusters, std::int32_t* clusters, float* weights);

    void (*spectral_filter)(const float* pixels, const PatchLines&, const Members&, float noise, float bias,
                            const Aggregate&);
    void (*wiener_filter)(const float* pixels, const float* pilot, const PatchLines&, const Members&,
                          float noise, float strength, float trust, const Aggregate&);

    void (*symmetric_window)(const Planes& padded, Extent patch, const Window&, const float* spatial,
                             float coefficient, const Columns<float>&);
    void (*symmetric_window_double)(const Planes& padded, Extent patch, const Window&, const float* spatial,
                                    float coefficient, const Columns<double>&);
    void (*symmetric_weights)(const Planes& padded, Extent patch, const Window&, const float* spatial,
                              float coefficient, float* weights);
    void (*steered_window)(const Planes& steering, const Window&, bool transpose, const Columns<float>&);
    void (*steered_window_double)(const Planes& steering, const Window&, bool transpose,
                                  const Columns<double>&);
    void (*steered_weights)(const Planes& steering, const Window&, float* weights);

    void (*match_patches)(const Planes& guide, const std::uint8_t* whole, const Matching&,
                          std::int32_t* members, std::int32_t* counts);
    void (*threshold_groups)(const float* planes, const Groups&, const Transform&, float threshold);
    void (*wiener_groups)(const float* planes, const float* pilot, const Groups&, const Transform&,
                          float noise);
    void (*bayes_groups)(const float* planes, const float* pilot, const Groups&, index together, float flat,
                         float bias);

    void (*add_squares)(const float* projections, const index* starts, index components, index m, float* out);
    void (*keep_largest)(const float* scores, index components, index m, std::int32_t first, float* best,
                         std::int32_t* label);

    void (*mix_channels)(const float* pixels, index n, index channels, bool is_planar, const float* transform,
                         float* out);
    void (*halve)(const float* image, Extent shape, index channels, float* out);
    void (*enlarge)(const float* image, Extent shape, index channels, index factor, index height, index width,
                    float* out);
    void (*scale_by_root)(float* transform, index height, index width, const float* rows,
                          const float* columns, index count, float least, bool is_divided);
    void (*correct_tone)(const float* pixels, const float* level, index n, const ToneTable&, float scale,
                         float offset, float share, float* out);

    // The parts that kernels are made of, for tests.
    void (*exp2)(const float* x, index n, float* out);
    void (*product)(const float* x, bool transposed, const float* y, index n_rows, index count, index width,
                    bool upper, float* out);
    void (*solve)(float* system, index size, float* inverse_d);
    void (*eigenvectors)(float* matrix, index size, index stride, float* values);
    index (*largest)(const float* numbers, index size, float margin, float gap, index max_count,
                     float* values, std::int32_t* which);
};

}  // namespace symsmooth
