#include "dispatch.hpp"

#include <stdexcept>

namespace symsmooth {

namespace baseline {
extern const Kernels kernels;
}
#ifdef SYMSMOOTH_X86
namespace avx2 {
extern const Kernels kernels;
}
#endif

const std::vector<const Kernels*>& available() {
    static const std::vector<const Kernels*> found = [] {
        std::vector<const Kernels*> sets;
#ifdef SYMSMOOTH_X86
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&avx2::kernels);
#endif
        sets.push_back(&baseline::kernels);
        return sets;
    }();
    return found;
}

static const Kernels*& in_use() {
    static const Kernels* chosen = available().front();
    return chosen;
}

const Kernels& kernels() { return *in_use(); }

void use(const std::string& name) {
    std::string names;
    for (const Kernels* set : available()) {
        if (name == set->name) {
            in_use() = set;
            return;
        }
        names += (names.empty() ? "" : ", ") + std::string(set->name);
    }
    throw std::invalid_argument("instruction set " + name + " is not available here; SYMSMOOTH_ISA may be one of " +
                                names + ", or not set");
}

}  // namespace symsmooth
