#include "dispatch.hpp"

#include <stdexcept>

#ifdef SYMSMOOTH_X86
#include <cpuid.h>
#endif

namespace symsmooth {

namespace baseline {
extern const Kernels kernels;
}
#ifdef SYMSMOOTH_X86
namespace avx2 {
extern const Kernels kernels;
}
#endif

#ifdef SYMSMOOTH_X86
// Whether the processor has AVX2 and FMA, and the system keeps the wide registers when it switches tasks.
// The compilers' own __builtin_cpu_supports needs a library that clang on Windows does not link.
static bool has_avx2() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    constexpr unsigned fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28;
    if ((c & (fma | osxsave | avx)) != (fma | osxsave | avx)) return false;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    constexpr unsigned both_halves = 6;  // of the 256-bit registers
    if ((low & both_halves) != both_halves) return false;
    constexpr unsigned avx2 = 1u << 5;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & avx2);
}
#endif

const std::vector<const Kernels*>& available() {
    static const std::vector<const Kernels*> found = [] {
        std::vector<const Kernels*> sets;
#ifdef SYMSMOOTH_X86
        if (has_avx2()) sets.push_back(&avx2::kernels);
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
    throw std::invalid_argument("instruction set " + name +
                                " is not available here; SYMSMOOTH_ISA may be one of " + names +
                                ", or not set");
}

}  // namespace symsmooth
