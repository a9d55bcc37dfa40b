// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/detail/lanes.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Computes to = x + y. Call it inside with_best_instructions.
template <class Scalar>
[[gnu::always_inline]] inline void add_rows(Scalar const* x, Scalar const* y, Scalar* __restrict to,
                                            Index width) noexcept {
  for (Index c = 0; c < width; ++c) to[c] = x[c] + y[c];
}

/// Default rows of a sum: entry i is row i.
struct Consecutive {
  [[nodiscard]] Index operator()(Index i) const noexcept { return i; }
};

/// Sums columns over the rows, with `vectors` vectors of columns in registers.
template <std::size_t vectors, std::size_t bytes, class Scalar, class Pick>
[[gnu::always_inline]] inline void sum_columns(Vectors<bytes>, Scalar const* x, Index row_size, Pick pick, Index count,
                                               Scalar* to, Write write) noexcept {
  constexpr auto lanes = static_cast<std::size_t>(LanesOf<Scalar, bytes>::count);
  Lanes<Scalar, bytes> sums[vectors]{}, next;
  for (Index i = 0; i < count; ++i) {
    auto const* const row = x + pick(i) * row_size;
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v) {
      load(next, row + v * lanes);
      sums[v] += next;
    }
  }
#pragma GCC unroll 8
  for (std::size_t v = 0; v < vectors; ++v) {
    if (write == Write::add) {
      load(next, to + v * lanes);
      sums[v] = next + sums[v];
    }
    store(to + v * lanes, sums[v]);
  }
}

/// Computes `sum_rows` inside with_best_instructions.
template <std::size_t bytes, class Scalar, class Pick>
[[gnu::always_inline]] inline void sum_rows_inline(Vectors<bytes> vectors, Scalar const* x, Index row_size, Index width,
                                                   Pick pick, Index count, Scalar* to, Write write) noexcept {
  constexpr Index lanes = LanesOf<Scalar, bytes>::count, several = bytes == 64 ? 4 : 8;
  Index c = 0;
  for (; c + several * lanes <= width; c += several * lanes)
    sum_columns<several>(vectors, x + c, row_size, pick, count, to + c, write);
  for (; c + lanes <= width; c += lanes) sum_columns<1>(vectors, x + c, row_size, pick, count, to + c, write);
  for (; c < width; ++c) {
    Scalar sum = 0;
    for (Index i = 0; i < count; ++i) sum += x[pick(i) * row_size + c];
    to[c] = write == Write::add ? to[c] + sum : sum;
  }
}

/// Computes to = the sum over i < count, in order, of row pick(i) of x, or adds it to `to`. Rows are `width` wide and
/// `row_size` apart; x may be null if there are no rows. Sums many rows in blocks and then adds the blocks, so that a
/// long sum is as accurate as a short one.
template <class Scalar, class Pick = Consecutive>
void sum_rows(Scalar const* x, Index row_size, Index width, Index count, Scalar* to, Write write,
              Pick pick = {}) noexcept {
  if (count == 0) {
    if (write == Write::overwrite) std::fill_n(to, width, Scalar{0});
    return;
  }
  constexpr Index block = 1024;
  with_best_instructions([=](auto vectors) {
    for (Index first = 0; first < count; first += block)
      sum_rows_inline(
          vectors, x, row_size, width, [=](Index i) { return pick(first + i); }, std::min(block, count - first), to,
          first == 0 ? write : Write::add);
  });
}

}}}  // namespace lockstep::kernel::detail
