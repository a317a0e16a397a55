// What module.cpp is made of: the kernels of one family each, and what they are given again and again.
//
// A value class is checked when it is made and then kept by Python; arrays it was made of must not be changed
// as long as it lives.
#pragma once

#include "arrays.hpp"

namespace symsmooth {

void bind_mixture(nb::module_& m);
void bind_clusters(nb::module_& m);
void bind_windows(nb::module_& m);
void bind_groups(nb::module_& m);
void bind_pixels(nb::module_& m);

}  // namespace symsmooth
