// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

/// Up to two ranges of memory that are read next, asked for a few lines at a time while something else is computed: the
/// third-level cache is too far away to be waited for and too slow to be read in one go.
struct Ahead {
  char const *at = nullptr, *end = nullptr;
  char const *then = nullptr, *then_end = nullptr;

  template <class T>
  [[nodiscard]] static Ahead of(T const* first, Index count, T const* second = nullptr, Index second_count = 0) {
    return {bytes(first), bytes(first + count), bytes(second), bytes(second + second_count)};
  }
  /// To be called now and then: the first range gives way to the second.
  void advance() noexcept {
    if (at < end) return;
    at = then;
    end = then_end;
    then = then_end;
  }
  /// Asks for the next lines, into the second-level cache. May ask for some beyond the end, which does no harm.
  [[gnu::always_inline]] void fetch() noexcept {
    constexpr int lines = 4, line = 64;
    if (at >= end) return;
    for (int i = 0; i < lines; ++i) __builtin_prefetch(at + i * line, 0, 2);
    at += lines * line;
  }

 private:
  template <class T>
  [[nodiscard]] static char const* bytes(T const* p) noexcept {
    return static_cast<char const*>(static_cast<void const*>(p));
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
