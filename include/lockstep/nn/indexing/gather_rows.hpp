// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/indexing/detail/rows_by_slot.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns the rows of x with these indices, as x[indices] or torch.index_select in PyTorch. Backward adds up the
/// gradients of equal indices. The indices count rows of the whole batch: gather_tokens takes indices within a sample.
/// @shape x [rows, width]   @shape indices [n], from 0 to rows - 1   @shape returns [n, width]
/// @determinism bitwise, for any number of threads: sums of 32 equal indices in their order, then the sums in order
/// @throws DataError (at Contract::normal, on the host) for an index without a row; on a device its row is NaN
/// @throws ShapeError for 2^31 rows and more
template <class Context>
[[nodiscard]] VariableOf<Context, 2> gather_rows(Context& context, VariableOf<Context, 2> x,
                                                 TensorView<std::int32_t const, 1, typename Context::Space> indices) {
  auto const rows = x.extent(0), count = indices.extent[0];
  expect<ShapeError>(rows <= std::numeric_limits<std::int32_t>::max(), [&] {
    return "gather_rows: x has " + std::to_string(rows) + " rows; indices of 32 bits reach fewer than 2^31";
  });
  if constexpr (Context::Space::host_accessible && checks(Contract::normal))
    for (Index i = 0; i < count; ++i)
      expect<DataError>(indices.data[i] >= 0 && indices.data[i] < rows, [&] {
        return "gather_rows: index " + std::to_string(i) + " is " + std::to_string(indices.data[i]) +
               "; indices are from 0 to " + std::to_string(rows - 1) + ", because x has " + std::to_string(rows) +
               " rows: a collate that concatenates samples adds each sample's first row to its indices";
      });
  return detail::rows_by_slot(context, x, {.rows = 1, .slots = count, .length = count}, indices);
}

}}}  // namespace lockstep::nn
