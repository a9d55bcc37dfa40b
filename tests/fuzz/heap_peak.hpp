// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#if __has_include(<mm_malloc.h>)
#include <mm_malloc.h>  // declares posix_memalign differently, and must come first
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_TESTS_MEASURE_HEAP 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LOCKSTEP_TESTS_MEASURE_HEAP 0
#endif
#endif
#if !defined(LOCKSTEP_TESTS_MEASURE_HEAP)
#define LOCKSTEP_TESTS_MEASURE_HEAP 1
#endif

/// Measures the heap of the executable that includes this file, in one translation unit, on all threads and in all
/// libraries. Sanitizers have their own allocators; with them nothing is measured.
namespace lockstep_test {

inline constexpr bool measures_heap = LOCKSTEP_TESTS_MEASURE_HEAP;

/// Bytes in use, and the most that were in use since `heap_peak` was set.
inline std::atomic<long> heap_bytes{0}, heap_peak{0};

inline void* count_heap(void* memory) noexcept {
  if (memory == nullptr) return memory;
  auto const now = heap_bytes += static_cast<long>(::malloc_usable_size(memory));
  for (auto peak = heap_peak.load(); now > peak && !heap_peak.compare_exchange_weak(peak, now);) {
  }
  return memory;
}
inline void uncount_heap(void* memory) noexcept {
  if (memory != nullptr) heap_bytes -= static_cast<long>(::malloc_usable_size(memory));
}

}  // namespace lockstep_test

#if LOCKSTEP_TESTS_MEASURE_HEAP
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);

void* malloc(std::size_t bytes) { return lockstep_test::count_heap(__libc_malloc(bytes)); }
void* calloc(std::size_t count, std::size_t bytes) { return lockstep_test::count_heap(__libc_calloc(count, bytes)); }
void* realloc(void* memory, std::size_t bytes) {
  auto const before = memory == nullptr ? 0 : static_cast<long>(::malloc_usable_size(memory));
  auto* const out = __libc_realloc(memory, bytes);
  if (out == nullptr && bytes > 0) return out;
  lockstep_test::count_heap(out);  // the old and the new memory may exist at once
  lockstep_test::heap_bytes -= before;
  return out;
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return lockstep_test::count_heap(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  *out = memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  lockstep_test::uncount_heap(memory);
  __libc_free(memory);
}
}
#endif
