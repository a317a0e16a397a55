#include "table.hpp"

#include "matrix.hpp"
#include "members.hpp"

#define SYMSMOOTH_TEXT(x) #x
#define SYMSMOOTH_NAME(x) SYMSMOOTH_TEXT(x)

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

void exp2_of(const float* x, index n, float* out) {
    for (index i = 0; i < n; i += lanes)
        store_first(out + i, exp2(load_first(x + i, min(n - i, index(lanes)))), min(n - i, index(lanes)));
}

// out (n_rows up to a multiple of four, width) = x y, or x' y
void product_of(const float* x, bool is_transposed, const float* y, index n_rows, index count, index width,
                bool upper, float* out) {
    const index tall = (n_rows + 3) / 4 * 4;
    const Strided left = is_transposed ? transposed(x, tall) : plain(x, count);
    (upper ? product_upper : product)(left, y, width, count, out, width, n_rows, width);
}

void solve_system(float* rows, index size, float* inverse_d) {
    Buffer<float> factors(4 * capacity);
    const System system{rows, inverse_d, factors};
    for (index e = size; e % 4 != 0; ++e) system.left(e)[e] = 1.0f;
    solve(system, size);
}

void eigenvectors_of(float* matrix, index size, index stride, float* values) {
    Buffer<float> work(4 * stride);
    eigenvectors(matrix, size, stride, values, work);
}

index largest_of(const float* numbers, index size, float margin, float gap, index max_count, float* values,
                 std::int32_t* which) {
    Buffer<float> padded_numbers(padded(size)), found(padded(size));
    float best = numbers[0];
    for (index i = 0; i < padded(size); ++i) {
        padded_numbers[i] = i < size ? numbers[i] : no_density;
        best = max(best, padded_numbers[i]);
    }
    Buffer<std::int32_t> places(padded(size));
    const Found all = find_largest(padded_numbers, padded(size), margin, best, gap, max_count, found, places);
    for (index q = 0; q < all.count; ++q) {
        values[q] = found[q];
        which[q] = places[q];
    }
    return all.count;
}

}  // namespace

extern const Kernels kernels;
const Kernels kernels = {
    .name = SYMSMOOTH_NAME(SYMSMOOTH_ISA),
    .sum_points = sum_points,
    .average_points = average_points,
    .aggregate_means = aggregate_means,
    .responsibilities = responsibilities,
    .strongest_clusters = strongest_clusters,
    .spectral_filter = spectral_filter,
    .wiener_filter = wiener_filter,
    .symmetric_window = symmetric_window,
    .symmetric_window_double = symmetric_window_double,
    .symmetric_weights = symmetric_weights,
    .steered_window = steered_window,
    .steered_window_double = steered_window_double,
    .steered_weights = steered_weights,
    .match_patches = match_patches,
    .threshold_groups = threshold_groups,
    .wiener_groups = wiener_groups,
    .bayes_groups = bayes_groups,
    .add_squares = add_squares,
    .keep_largest = keep_largest,
    .mix_channels = mix_channels,
    .halve = halve,
    .enlarge = enlarge,
    .scale_by_root = scale_by_root,
    .correct_tone = correct_tone,
    .exp2 = exp2_of,
    .product = product_of,
    .solve = solve_system,
    .eigenvectors = eigenvectors_of,
    .largest = largest_of,
};

}  // namespace symsmooth::SYMSMOOTH_ISA
