// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/apply_dropout.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/normalization/residual.hpp>
#include <lockstep/kernel/row_dropout.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/space.hpp>

// Call all of these inside with_best_instructions.
namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Computes y = dropout(x), or adds it to y, for `count` elements from column `first` of a row.
template <class Scalar>
[[gnu::always_inline]] inline void dropout_row(RowDropout<HostSpace> const& dropout, Index row, Index width,
                                               Index first, Index count, Scalar const* x, Scalar* y,
                                               Write write) noexcept {
  apply_dropout(dropout.mask, dropout.position(row), dropout.element(row, width, first), count, x, y, write);
}

/// Computes to += x.
template <class Scalar>
[[gnu::always_inline]] inline void add_to_row(Scalar const* x, Scalar* __restrict to, Index width) noexcept {
  for (Index c = 0; c < width; ++c) to[c] += x[c];
}

/// Computes to = x + dropout(the row of a residual, which must not be null). The row may be `to`.
template <class Scalar>
[[gnu::always_inline]] inline void add_residual(Scalar const* x, Residual<Scalar, HostSpace> const& residual, Index row,
                                                Index width, Scalar* to) noexcept {
  auto const* const value = residual.value.data + row * width;
  if (value == to) {
    if (residual.dropout.mask.active())
      dropout_row(residual.dropout, row, width, 0, width, value, to, Write::overwrite);
    add_to_row(x, to, width);
  } else if (residual.dropout.mask.active()) {
    std::copy_n(x, width, to);
    dropout_row(residual.dropout, row, width, 0, width, value, to, Write::add);
  } else {
    add_rows(x, value, to, width);
  }
}

}}}  // namespace lockstep::kernel::detail
