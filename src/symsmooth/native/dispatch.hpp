// Which of the instruction sets that were built is used.
#pragma once

#include <string>
#include <vector>

#include "kernels.hpp"

namespace symsmooth {

// The sets that were built and that this processor has, the best first.
const std::vector<const Kernels*>& available();

// The kernels in use.
const Kernels& kernels();

// Use a set by its name; throws std::invalid_argument, in words, if it is not available.
void use(const std::string& name);

}  // namespace symsmooth
