// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKSTEP_TESTS_COUNT_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LOCKSTEP_TESTS_COUNT_ALLOCATIONS 0
#endif
#endif
#if !defined(LOCKSTEP_TESTS_COUNT_ALLOCATIONS)
#define LOCKSTEP_TESTS_COUNT_ALLOCATIONS 1
#endif

/// Counts calls of operator new in the executable that includes this (in one translation unit). Sanitizers bring their
/// own operator new; under them nothing is counted, which `counts_allocations` says, for a test to skip itself.
namespace lockstep_test {
inline constexpr bool counts_allocations = LOCKSTEP_TESTS_COUNT_ALLOCATIONS;
inline std::atomic<long> allocations{0};
}  // namespace lockstep_test

#if LOCKSTEP_TESTS_COUNT_ALLOCATIONS
// Inlined, g++ takes malloc's memory under operator delete for a mistake.
// Not inlined: g++ sees malloc and free through one half of an inlined pair and warns of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++lockstep_test::allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++lockstep_test::allocations;
  auto const unit = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif
