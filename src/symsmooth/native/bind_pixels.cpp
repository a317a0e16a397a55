// What is done to every pixel, for Python: mixed channels, other sizes, spectra, and tone curves.
#include "bindings.hpp"
#include "dispatch.hpp"

namespace symsmooth {

namespace {

void mix_channels(Floats<2> pixels, Floats<2> transform, bool is_planar, Array<float, 2> mixed) {
    const index n = pixels.shape(is_planar ? 1 : 0), channels = pixels.shape(is_planar ? 0 : 1);
    require(channels >= 1, "a picture has one channel at least");
    require_shape(transform, "transform", {channels, channels});
    require_shape(mixed, "mixed", {channels, n});
    unlocked([&] {
        kernels().mix_channels(pixels.data(), n, channels, is_planar, transform.data(), mixed.data());
    });
}

Array<float, 4> halve(Floats<4> image) {
    const Extent shape = extent_of(image, 0);
    require_extent(shape);
    const auto out = unfilled<float, 4>({shape.z, (shape.y + 1) / 2, (shape.x + 1) / 2, image.shape(3)});
    unlocked([&] { kernels().halve(image.data(), shape, image.shape(3), out.data()); });
    return out;
}

Array<float, 4> enlarge(Floats<4> image, index factor, index height, index width) {
    const Extent shape = extent_of(image, 0);
    require_extent(shape);
    require(factor == 2 || factor == 4, "factor must be 2 or 4");
    require(1 <= height && height <= factor * shape.y && 1 <= width && width <= factor * shape.x,
            "an image must not become larger than factor times its size");
    const auto out = unfilled<float, 4>({shape.z, height, width, image.shape(3)});
    unlocked(
        [&] { kernels().enlarge(image.data(), shape, image.shape(3), factor, height, width, out.data()); });
    return out;
}

Array<float, 1> correct_tone(Floats<1> pixels, Floats<1> level, Floats<2> table, float most, float scale,
                             float offset, float share) {
    require_shape(level, "level", {pixels.size()});
    for (int axis : {0, 1})
        require(2 <= table.shape(axis) && table.shape(axis) <= 4096,
                "a table has 2 to 4096 rows and columns");
    const ToneTable own{table.data(), table.shape(0), table.shape(1), most};
    const auto out = unfilled<float, 1>({pixels.size()});
    unlocked([&] {
        kernels().correct_tone(pixels.data(), level.data(), pixels.size(), own, scale, offset, share,
                               out.data());
    });
    return out;
}

void scale_by_root(Array<float, 2> transform, Floats<2> rows, Floats<2> columns, float least,
                   bool is_divided) {
    const index height = transform.shape(0), width = transform.shape(1), count = columns.shape(0);
    require(count >= 1, "a spectrum has one term at least");
    require_shape(rows, "rows", {height, count});
    require_shape(columns, "columns", {count, width});
    unlocked([&] {
        kernels().scale_by_root(transform.data(), height, width, rows.data(), columns.data(), count, least,
                                is_divided);
    });
}

void add_at(Array<float, 1> sums, Ints<1> places, Floats<1> values) {
    require_shape(places, "places", {values.size()});
    require(are_between(places.data(), places.size(), 0, sums.size()), "places must lie in the sums");
    unlocked([&] {
        for (index i = 0; i < values.size(); ++i) sums[places[i]] += values[i];
    });
}

}  // namespace

void bind_pixels(nb::module_& m) {
    m.def("mix_channels", &mix_channels, "pixels"_a, "transform"_a, "is_planar"_a, "mixed"_a,
          "Mix channels of planes, or of pixels (n, channels), into planes (channels, n).");
    m.def("halve", &halve, "image"_a, "Means over blocks of two by two pixels of (z, y, x, channels).");
    m.def("enlarge", &enlarge, "image"_a, "factor"_a, "height"_a, "width"_a,
          "Interpolate (z, y, x, channels) linearly to 2 or 4 times its height and width, or less.");
    m.def("add_at", &add_at, "sums"_a, "places"_a, "values"_a, "Add values to the sums at their places.");
    m.def("scale_by_root", &scale_by_root, "transform"_a, "rows"_a, "columns"_a, "least"_a, "is_divided"_a,
          "Multiply (y, x) by the root of max(rows @ columns, least), or divide by it.");
    m.def("correct_tone", &correct_tone, "pixels"_a, "level"_a, "table"_a, "most"_a, "scale"_a, "offset"_a,
          "share"_a, "Give back what a tone curve has taken from noisy pixels, by a table.");
}

}  // namespace symsmooth
