// Block matching: the patches nearest to each reference, in a box around it.
//
// A patch is named by its corner, a flat number in one plane.  Distances of a whole row of candidates are
// summed together, in registers.
#include "memory.hpp"
#include "table.hpp"

namespace symsmooth::SYMSMOOTH_ISA {

namespace {

constexpr float far_away = 1e30f;
constexpr index lines_between_looks = 2;

// The nearest so far, as a heap: the farthest of them is on top.
struct Heap {
    float* keys;
    std::int32_t* corners;
    index size, max_size;

    SYMSMOOTH_INLINE bool is_full() const { return size == max_size; }
    // What does not lie nearer than this cannot enter.
    SYMSMOOTH_INLINE float limit() const { return is_full() ? keys[0] : 2.0f * far_away; }

    SYMSMOOTH_INLINE void put(index at, float key, std::int32_t corner) {
        keys[at] = key;
        corners[at] = corner;
    }

    void add(float key, std::int32_t corner) {
        index at = size++;
        for (; at > 0 && keys[(at - 1) / 2] < key; at = (at - 1) / 2)
            put(at, keys[(at - 1) / 2], corners[(at - 1) / 2]);
        put(at, key, corner);
    }

    void replace_top(index among, float key, std::int32_t corner) {
        index hole = 0;
        for (index child = 1; child < among; child = 2 * hole + 1) {
            if (child + 1 < among && keys[child + 1] > keys[child]) ++child;
            if (keys[child] <= key) break;
            put(hole, keys[child], corners[child]);
            hole = child;
        }
        put(hole, key, corner);
    }

    // Into a list, nearest first.
    void sort() {
        for (index end = size - 1; end > 0; --end) {
            const float key = keys[0];
            const std::int32_t corner = corners[0];
            replace_top(end, keys[end], corners[end]);
            put(end, key, corner);
        }
    }
};

// Where patches are compared; the planes have eight places to spare.
struct Guide {
    const float* pixels;
    index planes;
    Extent shape, patch;

    // Squared distances of the patches at `own` and at 8 * vectors places from `other` on.
    //
    // Returns false, and fills nothing, as soon as none of them can be below the limit.
    template <int vectors>
    SYMSMOOTH_INLINE bool distances(index own, index other, float limit, float* sums) const {
        const index row_step = shape.x, slice_step = shape.y * row_step, plane_step = shape.z * slice_step;
        const Vec8 limits = splat(limit);
        Vec8 totals[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) totals[v] = splat(0.0f);
        index until_look = lines_between_looks;
        for (index p = 0; p < planes; ++p)
            for (index a = 0; a < patch.z; ++a)
                for (index b = 0; b < patch.y; ++b) {
                    const index line = p * plane_step + a * slice_step + b * row_step;
                    const float* reference = pixels + own + line;
                    const float* candidates = pixels + other + line;
                    for (index e = 0; e < patch.x; ++e) {
                        const Vec8 value = splat(reference[e]);
#pragma GCC unroll 8
                        for (int v = 0; v < vectors; ++v) {
                            const Vec8 difference = load(candidates + e + v * lanes) - value;
                            totals[v] += difference * difference;
                        }
                    }
                    if (--until_look == 0) {
                        until_look = lines_between_looks;
                        unsigned below = 0;
#pragma GCC unroll 8
                        for (int v = 0; v < vectors; ++v) below |= bits(limits > totals[v]);
                        if (below == 0) return false;
                    }
                }
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) store(sums + v * lanes, totals[v]);
        return true;
    }

    SYMSMOOTH_INLINE bool distances(int vectors, index own, index other, float limit, float* sums) const {
        switch (vectors) {
            case 1: return distances<1>(own, other, limit, sums);
            case 2: return distances<2>(own, other, limit, sums);
            case 3: return distances<3>(own, other, limit, sums);
            case 4: return distances<4>(own, other, limit, sums);
            default: return distances<5>(own, other, limit, sums);
        }
    }
};

constexpr index max_vectors = 5;

// Offer `n` candidates from corner `other` on, n <= 40.
SYMSMOOTH_INLINE void offer(const Guide& guide, const std::uint8_t* whole, index own, index other, index n,
                            Heap& heap) {
    float sums[max_vectors * lanes];
    const index vectors = (n + lanes - 1) / lanes;
    if (!guide.distances(int(vectors), own, other, heap.limit(), sums)) return;
    for (index v = 0; v < vectors; ++v) {
        unsigned near = bits(splat(heap.limit()) > load(sums + v * lanes));
        if (n - v * lanes < lanes) near &= (1u << (n - v * lanes)) - 1u;
        for (; near != 0; near &= near - 1) {
            const index j = v * lanes + __builtin_ctz(near), corner = other + j;
            if (!(sums[j] < heap.limit()) || corner == own || (whole && !whole[corner])) continue;
            if (heap.is_full())
                heap.replace_top(heap.size, sums[j], std::int32_t(corner));
            else
                heap.add(sums[j], std::int32_t(corner));
        }
    }
}

// Fill the heap with the nearest patches of the reference at (z, y, x), which is always among them, with a
// key below all others.
void find_nearest(const Guide& guide, const std::uint8_t* whole, index z, index y, index x, Extent radius,
                  Heap& heap) {
    const Extent shape = guide.shape, patch = guide.patch;
    const index own = (z * shape.y + y) * shape.x + x;
    const index first = max(x - radius.x, index(0)), last = min(x + radius.x, shape.x - patch.x);
    heap.size = 0;
    heap.add(-far_away, std::int32_t(own));
    for (index cz = max(z - radius.z, index(0)); cz <= min(z + radius.z, shape.z - patch.z); ++cz)
        for (index cy = max(y - radius.y, index(0)); cy <= min(y + radius.y, shape.y - patch.y); ++cy) {
            const index row = (cz * shape.y + cy) * shape.x;
            for (index cx = first; cx <= last; cx += max_vectors * lanes)
                offer(guide, whole, own, row + cx, min(last - cx + 1, max_vectors * lanes), heap);
        }
}

}  // namespace

// List, for each reference of a grid, its nearest patches within the radius, nearest first.
//
// The `max_count` nearest are found; those whose squared distance exceeds `limit` are dropped, but the
// `min_count` nearest stay.  The reference always comes first.  Where `whole` is given, patches for
// which it is 0 are in no group but their own.  With `boost` a patch that was in an earlier list is no reference: its count is 0.
void match_patches(const Planes& planes, const std::uint8_t* whole, const Matching& wanted,
                   std::int32_t* members, std::int32_t* counts) {
    const Extent shape = planes.shape;
    const index size = shape.z * shape.y * shape.x;
    Buffer<float> pixels(planes.count * size), keys(wanted.max_count);
    Buffer<std::uint8_t> done(size);
    std::memcpy(pixels, planes.pixels, planes.count * size * sizeof(float));
    const Guide guide{pixels, planes.count, shape, wanted.patch};
    index m = 0;
    for (index i = 0; i < wanted.n_z; ++i)
        for (index j = 0; j < wanted.n_y; ++j)
            for (index k = 0; k < wanted.n_x; ++k, ++m) {
                const index z = wanted.z[i], y = wanted.y[j], x = wanted.x[k];
                Heap heap{keys, members + m * wanted.max_count, 0, wanted.max_count};
                if (!done[(z * shape.y + y) * shape.x + x]) {
                    find_nearest(guide, whole, z, y, x, wanted.radius, heap);
                    heap.sort();
                    while (heap.size > wanted.min_count && heap.keys[heap.size - 1] > wanted.limit)
                        --heap.size;
                }
                if (wanted.boost)
                    for (index r = 0; r < heap.size; ++r) done[heap.corners[r]] = 1;
                counts[m] = std::int32_t(heap.size);
            }
}

}  // namespace symsmooth::SYMSMOOTH_ISA
