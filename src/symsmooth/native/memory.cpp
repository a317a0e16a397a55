#include <cstdint>
#include <cstring>
#include <new>

namespace symsmooth {

constexpr std::align_val_t alignment{64};

void* allocate(std::int64_t bytes) {
    void* memory = ::operator new(static_cast<std::size_t>(bytes), alignment);
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
    return memory;
}

void release(void* memory) noexcept { ::operator delete(memory, alignment); }

}  // namespace symsmooth
