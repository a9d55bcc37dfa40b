// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Prefetches up to two ranges of memory that are read next, a few lines at a time during other computation. The
/// third-level cache is too slow to wait for and too slow to read in one go.
struct Prefetch {
  static constexpr Index line = 64, at_once = 4 * line;

  char const *at = nullptr, *end = nullptr;
  char const *next = nullptr, *next_end = nullptr;
  Index step = at_once;  ///< bytes from the lines of one request to those of the next

  template <class Scalar>
  [[nodiscard]] static Prefetch of(Scalar const* first, Index count, Scalar const* second = nullptr,
                                   Index second_count = 0) {
    return {bytes(first), bytes(first + count), bytes(second), bytes(second + second_count)};
  }
  /// Returns a prefetch of the beginnings of `rows` rows, `stride` elements apart.
  template <class Scalar>
  [[nodiscard]] static Prefetch of_rows(Scalar const* first, Index rows, Index stride) {
    return {bytes(first), bytes(first + rows * stride), nullptr, nullptr, stride * Index{sizeof(Scalar)}};
  }
  /// Continues with the second range once the first is finished. Call it from time to time.
  void advance() noexcept {
    if (at < end) return;
    at = next;
    end = next_end;
    next = next_end;
    step = at_once;
  }
  /// Prefetches the next lines into the second-level cache. May prefetch some lines beyond the end, which is harmless.
  [[gnu::always_inline]] void fetch() noexcept {
    if (at >= end) return;
    for (Index i = 0; i < at_once; i += line) __builtin_prefetch(at + i, 0, 2);
    at += step;
  }

 private:
  template <class Scalar>
  [[nodiscard]] static char const* bytes(Scalar const* p) noexcept {
    return static_cast<char const*>(static_cast<void const*>(p));
  }
};

}}}  // namespace lockstep::kernel::detail
