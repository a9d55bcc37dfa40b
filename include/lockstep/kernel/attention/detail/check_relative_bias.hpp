// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/attention/relative_buckets.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// @throws ShapeError if the shapes disagree; reports both
inline void check_relative_bias(RelativeBuckets const& buckets, Extents<2> table, Extents<2> bias) {
  expect<ShapeError>(table[0] == buckets.count && table[1] == bias[0], [&] {
    return "RelativeBias: the table is " + to_string(table) + " and the bias " + to_string(bias) +
           "; the table needs " + std::to_string(buckets.count) + " rows and a column for each of the bias's rows";
  });
}

}}}  // namespace lockstep::kernel::detail
