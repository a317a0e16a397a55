// symsmooth._native: the kernels for Python, which checks how their arguments fit together.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "dispatch.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace symsmooth {

namespace {

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Kernels* set : available()) names.emplace_back(set->name);
    return names;
}

// From now on the process uses freed memory again, instead of returning it to the system and asking anew.
void keep_freed_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most it takes
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// ---------------------------------------------------------------- parts of kernels, for tests

Array<float, 1> exp2(Floats<1> x) {
    const auto out = zeros<float, 1>({x.size()});
    kernels().exp2(x.data(), x.size(), out.data());
    return out;
}

Array<float, 2> product(Floats<2> x, bool transposed, Floats<2> y, index n_rows, bool upper) {
    const index depth = y.shape(0), width = y.shape(1);
    require(1 <= n_rows && n_rows <= longest && width >= 8 && width % 8 == 0,
            "rows, and a multiple of eight columns, are needed");
    const auto out = zeros<float, 2>({(n_rows + 3) / 4 * 4, width});
    if (transposed)
        require_shape(x, "x", {depth, out.shape(0)});
    else
        require_shape(x, "x", {out.shape(0), depth});
    kernels().product(x.data(), transposed, y.data(), n_rows, depth, width, upper, out.data());
    return out;
}

Array<float, 1> solve(Array<float, 2> system, index size) {
    require_shape(system, "system", {64, 128});
    require(1 <= size && size <= 64, "a system has 1 to 64 rows");
    const auto inverse_d = zeros<float, 1>({64});
    kernels().solve(system.data(), size, inverse_d.data());
    return inverse_d;
}

Array<float, 1> eigenvectors(Array<float, 2> matrix) {
    const index size = matrix.shape(0), stride = matrix.shape(1);
    require(1 <= size && size <= stride && stride % 8 == 0,
            "matrix must be square, in rows of a multiple of eight");
    const auto values = zeros<float, 1>({stride});
    kernels().eigenvectors(matrix.data(), size, stride, values.data());
    return values;
}

tuple<index, Array<float, 1>, Array<std::int32_t, 1>> largest(Floats<1> numbers, float margin, float gap,
                                                              index max_count) {
    require(numbers.size() >= 1 && max_count >= 1, "numbers are needed");
    const auto values = zeros<float, 1>({numbers.size()});
    const auto which = zeros<std::int32_t, 1>({numbers.size()});
    const index found = kernels().largest(numbers.data(), numbers.size(), margin, gap, max_count,
                                          values.data(), which.data());
    return {found, values, which};
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() =
        "The compiled core: kernels on NumPy arrays (docs/kernels.md).  They release the GIL and start no "
        "threads.";
    if (const char* wanted = std::getenv("SYMSMOOTH_ISA"); wanted && *wanted) use(wanted);
    nb::set_leak_warnings(false);  // a program may end while a thread of its own still holds a value
    m.def("instruction_set", [] { return std::string(kernels().name); });
    m.def("instruction_sets", &instruction_sets);
    m.def("use_instruction_set", &use, "name"_a);

    m.def("keep_freed_memory", &keep_freed_memory,
          "Let this process use freed memory again instead of returning it (glibc; elsewhere nothing).");

    bind_mixture(m);
    bind_clusters(m);
    bind_windows(m);
    bind_groups(m);
    bind_pixels(m);

    m.def("exp2", &exp2, "x"_a);
    m.def("product", &product, "x"_a, "transposed"_a, "y"_a, "n_rows"_a, "upper"_a);
    m.def("solve", &solve, "system"_a, "size"_a);
    m.def("eigenvectors", &eigenvectors, "matrix"_a);
    m.def("largest", &largest, "numbers"_a, "margin"_a, "gap"_a, "max_count"_a);
}

}  // namespace symsmooth
