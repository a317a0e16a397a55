// Filters with a search window, for Python.
#include "bindings.hpp"
#include "dispatch.hpp"

namespace symsmooth {

namespace {

using Span = std::array<index, 4>;  // z0, z1, y0, y1

// What is added to the rows that a strip reaches: their first slice and row, and columns (m, z, y, x).
template <class T>
using Strip = tuple<index, index, Array<T, 4>>;

Window window_of(Longs<2> offsets, Extent grid, const Span& s) {
    require(0 <= s[0] && s[0] <= s[1] && s[1] <= grid.z && 0 <= s[2] && s[2] <= s[3] && s[3] <= grid.y,
            "span must lie in the image");
    return {offsets.data(), offsets.shape(0), s[0], s[1], s[2], s[3]};
}

void require_offsets(Longs<2> offsets) {
    require_shape(offsets, "offsets", {any, 3});
    require(are_between(offsets.data(), offsets.size(), -longest, longest), "offsets must not be that large");
}

// The rows of a window and of all that lies at an offset from them.
Span reach_of(const Window& window, Extent grid) {
    Three low{}, high{};
    for (index i = 0; i < 3 * window.count; ++i) {
        low[i % 3] = std::min(low[i % 3], window.offsets[i]);
        high[i % 3] = std::max(high[i % 3], window.offsets[i]);
    }
    return {std::max(window.z0 + low[0], index(0)), std::min(window.z1 + high[0], grid.z),
            std::max(window.y0 + low[1], index(0)), std::min(window.y1 + high[1], grid.y)};
}

template <class T, class Filter>
Strip<T> filter_columns(Array<const T, 4> values, Extent grid, const Span& reach, const Filter& filter) {
    require_shape(values, "values", {any, grid.z, grid.y, grid.x});
    const auto out = zeros<T, 4>({values.shape(0), reach[1] - reach[0], reach[3] - reach[2], grid.x});
    const Columns<T> columns{
        .values = values.data(),
        .out = out.data(),
        .count = values.shape(0),
        .origin_z = reach[0],
        .origin_y = reach[2],
        .out_depth = out.shape(1),
        .out_height = out.shape(2),
    };
    unlocked([&] { filter(columns); });
    return {reach[0], reach[2], out};
}

// Weights 2^-(spatial + coefficient |patch_i - patch_j|^2) at offsets, one of each pair of opposite ones.
struct SymmetricWindow {
    SymmetricWindow(Floats<4> padded, Three patch, Longs<2> offsets, Floats<1> spatial, float coefficient)
        : padded(padded),
          offsets(offsets),
          spatial(spatial),
          planes{padded.data(), padded.shape(0), extent_of(padded, 1)},
          patch(extent(patch)),
          grid(positions(planes.shape, this->patch)),
          coefficient(coefficient) {
        require_offsets(offsets);
        require_shape(spatial, "spatial", {offsets.shape(0)});
    }

    template <class T>
    Strip<T> apply(const Span& span, Array<const T, 4> values) const {
        const Window window = window_of(offsets, grid, span);
        return filter_columns(values, grid, reach_of(window, grid), [&](const Columns<T>& columns) {
            if constexpr (std::is_same_v<T, float>)
                kernels().symmetric_window(planes, patch, window, spatial.data(), coefficient, columns);
            else
                kernels().symmetric_window_double(planes, patch, window, spatial.data(), coefficient,
                                                  columns);
        });
    }

    Array<float, 4> weights() const {
        const Window window = window_of(offsets, grid, {0, grid.z, 0, grid.y});
        const auto out = zeros<float, 4>({window.count, grid.z, grid.y, grid.x});
        unlocked([&] {
            kernels().symmetric_weights(planes, patch, window, spatial.data(), coefficient, out.data());
        });
        return out;
    }

    const Floats<4> padded;
    const Longs<2> offsets;
    const Floats<1> spatial;
    const Planes planes;
    const Extent patch, grid;
    const float coefficient;
};

// Weights 2^-(x_j - x_i)' S_i (x_j - x_i) at all offsets; steering is zz, yy, xx, 2 zy, 2 zx and 2 yx of S.
struct SteeredWindow {
    SteeredWindow(Floats<4> steering, Longs<2> offsets)
        : steering(steering), offsets(offsets), planes{steering.data(), 6, extent_of(steering, 1)} {
        require_shape(steering, "steering", {6, any, any, any});
        require_offsets(offsets);
    }

    template <class T>
    Strip<T> apply(const Span& span, Array<const T, 4> values, bool transposed) const {
        const Window window = window_of(offsets, planes.shape, span);
        const Span reach = transposed ? reach_of(window, planes.shape) : span;
        return filter_columns(values, planes.shape, reach, [&](const Columns<T>& columns) {
            if constexpr (std::is_same_v<T, float>)
                kernels().steered_window(planes, window, transposed, columns);
            else
                kernels().steered_window_double(planes, window, transposed, columns);
        });
    }

    Array<float, 4> weights() const {
        const Extent grid = planes.shape;
        const Window window = window_of(offsets, grid, {0, grid.z, 0, grid.y});
        const auto out = zeros<float, 4>({window.count, grid.z, grid.y, grid.x});
        unlocked([&] { kernels().steered_weights(planes, window, out.data()); });
        return out;
    }

    const Floats<4> steering;
    const Longs<2> offsets;
    const Planes planes;
};

}  // namespace

void bind_windows(nb::module_& m) {
    nb::class_<SymmetricWindow>(m, "SymmetricWindow",
                                "Weights of patches that are alike, at one of each pair of opposite offsets.")
        .def(nb::init<Floats<4>, Three, Longs<2>, Floats<1>, float>(), "padded"_a, "patch"_a, "offsets"_a,
             "spatial"_a, "coefficient"_a)
        .def("apply", &SymmetricWindow::apply<float>, "span"_a, "values"_a)
        .def("apply", &SymmetricWindow::apply<double>, "span"_a, "values"_a)
        .def("weights", &SymmetricWindow::weights);
    nb::class_<SteeredWindow>(m, "SteeredWindow",
                              "Weights of a Gaussian of its own for each pixel, at offsets.")
        .def(nb::init<Floats<4>, Longs<2>>(), "steering"_a, "offsets"_a)
        .def("apply", &SteeredWindow::apply<float>, "span"_a, "values"_a, "transposed"_a)
        .def("apply", &SteeredWindow::apply<double>, "span"_a, "values"_a, "transposed"_a)
        .def("weights", &SteeredWindow::weights);
}

}  // namespace symsmooth
