// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Callback for each completed part of a matrix product: `f(row, rows, column, columns)` with its place in C, or none.
/// Refers to f. Type-erased because products call it rarely, and would otherwise be compiled again for each f.
class PartDone {
 public:
  constexpr PartDone() noexcept = default;
  template <class F>
  requires(!std::is_same_v<F, PartDone>) PartDone(F const& f)
  noexcept
      : f_(&f), call_([](void const* any, Index row, Index rows, Index column, Index columns) {
          (*static_cast<F const*>(any))(row, rows, column, columns);
        }) {}

  void operator()(Index row, Index rows, Index column, Index columns) const {
    if (call_) call_(f_, row, rows, column, columns);
  }

 private:
  void const* f_ = nullptr;
  void (*call_)(void const*, Index, Index, Index, Index) = nullptr;
};

}}}  // namespace lockstep::kernel::detail
