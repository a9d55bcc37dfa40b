// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// A matrix with strides: element (i, j) is at data[i * row + j * column].
template <class Scalar>
struct Strided {
  Scalar* data;
  Index row, column;
  /// Returns the part from (i, j) on. A null (empty) matrix stays null.
  [[nodiscard]] Strided at(Index i, Index j) const noexcept {
    return {data ? data + i * row + j * column : data, row, column};
  }
};

}}}  // namespace lockstep::kernel::detail
