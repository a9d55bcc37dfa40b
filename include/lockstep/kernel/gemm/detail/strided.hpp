// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// A matrix with strides: element (i, j) is at data[i * row + j * column].
template <class T>
struct Strided {
  T* data;
  Index row, column;
  /// Returns the part from (i, j) on. A null (empty) matrix stays null.
  [[nodiscard]] Strided at(Index i, Index j) const noexcept {
    return {data ? data + i * row + j * column : data, row, column};
  }
};

/// Prefetches a part of a matrix, a share per call, during other work. Activations are larger than any cache, and the
/// processor does not predict a jump to the next rows. One of the strides must be 1.
template <class T>
class Prefetch {
 public:
  Prefetch(Strided<T const> m, Index rows, Index columns, Index calls) noexcept
      : data_(m.data),
        stride_(m.column == 1 ? m.row : m.column),
        lines_(m.column == 1 ? rows : columns),
        length_(m.column == 1 ? columns : rows) {
    if (rows <= 0 || columns <= 0) lines_ = 0;
    share_ = (lines_ + calls - 1) / calls;
  }
  void operator()() noexcept {
    constexpr Index step = 64 / Index{sizeof(T)};
    for (auto const end = std::min(lines_, next_ + share_); next_ < end; ++next_)
      for (Index i = 0; i < length_; i += step) __builtin_prefetch(data_ + next_ * stride_ + i, 0, 2);
  }

 private:
  T const* data_;
  Index stride_, lines_, length_, share_ = 0, next_ = 0;
};

}}}  // namespace lockstep::kernel::detail
