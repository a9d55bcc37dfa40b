// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/sequence/arange.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/contrastive/all_gather.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns the numbers first, first + 1, …: the labels of a loss over pairs in which row i of this batch matches row
/// first + i. With nn::all_gather, pass its result instead.
/// @shape returns [rows]
/// @determinism bitwise
/// @throws ShapeError for numbers that no std::int32_t holds
template <class Context>
[[nodiscard]] TensorView<std::int32_t, 1, typename Context::Space> row_numbers(Context& context, Index rows,
                                                                               Index first = 0) {
  expect<ShapeError>(rows >= 0 && first >= 0 && first <= std::numeric_limits<std::int32_t>::max() - rows, [&] {
    return "row_numbers: " + std::to_string(rows) + " rows from " + std::to_string(first) +
           "; labels must be from 0 to 2147483647";
  });
  auto const numbers = context.template temporary<std::int32_t>(Extents<1>{rows});
  kernel::Arange<typename Context::Space>::fill(context.stream(), static_cast<std::int32_t>(first), numbers);
  return numbers;
}
/// Returns the numbers of this replica's rows among the rows of all replicas: the labels of a loss in which row i of
/// this batch matches row i of what nn::all_gather has gathered.
/// @shape returns [rows of this replica]
template <class Context>
[[nodiscard]] TensorView<std::int32_t, 1, typename Context::Space> row_numbers(Context& context,
                                                                               Gathered<Context> const& all) {
  return row_numbers(context, all.count, all.first);
}

}}}  // namespace lockstep::nn
