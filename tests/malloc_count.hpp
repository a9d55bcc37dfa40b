// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cerrno>
#include <cstddef>
#if __has_include(<mm_malloc.h>)
#include <mm_malloc.h>  // declares posix_memalign differently, and must come first
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_TESTS_COUNT_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LOCKSTEP_TESTS_COUNT_MALLOC 0
#endif
#endif
#if !defined(LOCKSTEP_TESTS_COUNT_MALLOC)
#define LOCKSTEP_TESTS_COUNT_MALLOC 1
#endif

/// Counts all heap allocations, including operator new, on all threads of the executable that includes this file (in
/// one translation unit). Sanitizers have their own allocators; with them nothing is counted.
namespace lockstep_test {
inline constexpr bool counts_mallocs = LOCKSTEP_TESTS_COUNT_MALLOC;
inline std::atomic<long> mallocs{0};
}  // namespace lockstep_test

#if LOCKSTEP_TESTS_COUNT_MALLOC
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  ++lockstep_test::mallocs;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ++lockstep_test::mallocs;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  ++lockstep_test::mallocs;
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  ++lockstep_test::mallocs;
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  *out = memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
}
#endif
